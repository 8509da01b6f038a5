"""The interface through which the suite uses a client library, with plain values.

Owns the types and operations that the suite uses. A path is a flat tuple of kinds and ids or names;
the last id is missing if the service must assign it. Properties are dicts of plain values: None,
bool, int, float, str, bytes, aware datetimes, `Point`, `Path`, lists and dicts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import google.api_core.exceptions
import grpc
import pytest


class Point(NamedTuple):
    """A geo point."""

    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class Path:
    """A key that is used as a property value."""

    parts: tuple[Any, ...]


class Row(NamedTuple):
    """One entity: its path and its properties."""

    path: tuple[Any, ...]
    properties: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Where:
    """A filter; its operator is one of = < <= > >= != IN NOT_IN."""

    name: str
    operator: str
    value: Any


@dataclass(frozen=True, slots=True)
class Both:
    """Filters that must all match."""

    filters: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Filters of which at least one must match."""

    filters: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query. Each order is "name" or "-name"; the projection ("__key__",) requests only keys."""

    kind: str | None
    filter: Any = None
    ancestor: tuple[Any, ...] | None = None
    order: tuple[str, ...] = ()
    projection: tuple[str, ...] = ()
    distinct: tuple[str, ...] = ()
    limit: int | None = None
    offset: int = 0
    cursor: Any = None


@dataclass(slots=True)
class Page:
    """The results of one query, and the cursor for the next page."""

    rows: list[Row]
    cursor: Any = None
    is_end: bool = False
    paths: list[tuple[Any, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.paths = [row.path for row in self.rows]


class Work(Protocol):
    """The operations that are available both inside and outside a transaction."""

    def get(self, *paths: tuple[Any, ...]) -> list[Row]: ...
    def put(self, path: tuple[Any, ...], /, **properties: Any) -> Any: ...
    def delete(self, *paths: tuple[Any, ...]) -> None: ...
    def query(self, asked: Asked) -> Page: ...


class Driver(Work, Protocol):
    """A client library that is bound to one namespace of a database."""

    def put_unindexed(
        self, path: tuple[Any, ...], names: Sequence[str], /, **properties: Any
    ) -> Any: ...
    def aggregate(self, asked: Asked, function: str, name: str = "") -> Any: ...
    def allocate(self, path: tuple[Any, ...], count: int) -> list[tuple[Any, ...]]: ...
    def transaction(self, body: Callable[[Work], Any], *, is_read_only: bool = False) -> Any: ...


class Refused(Exception):
    """A refusal that has a status but is not an exception of the client library."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


def status_of(error: BaseException) -> str:
    """Return the name of the gRPC status behind a client library's exception."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, google.api_core.exceptions.RetryError):
        return status_of(error.cause)
    if isinstance(error, google.api_core.exceptions.GoogleAPICallError):
        assert error.grpc_status_code is not None, error
        return error.grpc_status_code.name
    if isinstance(error, grpc.RpcError):
        return error.code().name
    raise error


@contextlib.contextmanager
def assert_refused(status: str) -> Iterator[None]:
    """Expect that the block is refused with a status."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each library has its own errors
        yield
    assert status_of(caught.value) == status
