"""Read the table of all calls of the API, with the types of their requests and responses.

The table is in `operations.toml`. `openapi` describes the calls in the OpenAPI document. A test
compares the table with the routes.
"""

import functools
import pkgutil
from importlib import resources
from typing import Any, Literal, TypeAlias

import msgspec

from comments.web.http.decode import parameters

Json: TypeAlias = dict[str, Any]
SECURITY: dict[str, list[Json]] = {
    "none": [],
    "optional": [{}, {"guest": []}],
    "required": [{"guest": []}],
    "moderator": [{"moderator": []}],
}


class Operation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call: its route, its parameters and body, its response, and its error statuses."""

    method: str
    path: str
    name: str
    summary: str
    answer: type | None = None  # A type is written as its name below `comments`.
    or_answer: type | None = None  # The response to some queries.
    query: type = parameters.NoQuery
    body: type | None = None
    extra: tuple[str, ...] = ()  # Names of parameters.
    status: int = 200
    also: tuple[int, ...] = ()  # Other success statuses with the same response body.
    headers: tuple[str, ...] = ()  # The headers of the response.
    is_table: bool = False  # Whether the response can also be CSV.
    # Whether the call ignores, accepts or requires a token of a guest or an account, or requires a
    # moderator's token.
    security: Literal["none", "optional", "required", "moderator"] = "none"
    refuses: tuple[int, ...] = ()  # The statuses of errors that only some operations return.

    @property
    def refusals(self) -> list[int]:
        """Return the statuses of all errors that the operation may return."""
        if self.answer is None:
            return []
        statuses = {400, 404, 503, *self.refuses}
        if self.body is not None:
            statuses |= {403, 413, 415}
        if self.security != "none":
            statuses |= {401, 403}
        return sorted(statuses)


class Table(msgspec.Struct, frozen=True):
    """All calls, and the parameters and headers by the names that the calls use for them."""

    operations: tuple[Operation, ...]
    parameters: dict[str, Json]
    headers: dict[str, Json]


@functools.cache
def table() -> Table:
    """Return the table, read once per process."""
    data = (resources.files(__package__) / "operations.toml").read_bytes()
    return msgspec.toml.decode(data, type=Table, dec_hook=_type_named)


def _type_named(_kind: type, name: str) -> object:
    return pkgutil.resolve_name(f"comments.{name}")
