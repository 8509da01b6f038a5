"""The oracle's values: their order, and which index entries an entity has.

This module owns the order of values across types and the index entries of entities, both in a
simple form: a value's rank is a tuple that Python compares. The module does not use the engine, its
encodings or its indexes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

PROJECT = "test"
KEY = "__key__"

Rank = tuple[Any, ...]
Element = tuple[str, int | str | None]


@dataclass(frozen=True, slots=True)
class Key:
    """A key. An incomplete key's last element has no id or name."""

    path: tuple[Element, ...]
    namespace: str = ""
    database: str = ""

    @property
    def kind(self) -> str:
        return self.path[-1][0]

    @property
    def is_complete(self) -> bool:
        return self.path[-1][1] is not None

    def completed(self, number: int) -> Key:
        return replace(self, path=(*self.path[:-1], (self.kind, number)))

    def is_under(self, ancestor: Key) -> bool:
        """Return whether the key is `ancestor` itself or one of its descendants."""
        length = len(ancestor.path)
        return self.place == ancestor.place and self.path[:length] == ancestor.path

    @property
    def place(self) -> tuple[str, str]:
        return self.database, self.namespace


@dataclass(frozen=True, slots=True)
class Timestamp:
    micros: int


@dataclass(frozen=True, slots=True)
class Geo:
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class Value:
    """A value with its index flag. Compare ranks, not Values: in Python, True equals 1 and 1.0.

    The content is None, a bool, int, float, str, bytes, Timestamp, Geo or Key, a tuple of Values
    (an array), or a Properties object (an embedded entity).
    """

    content: Any
    is_indexed: bool = True


@dataclass(frozen=True, slots=True)
class Properties:
    """An entity's properties by name."""

    items: tuple[tuple[str, Value], ...]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


def properties(**given: Any) -> Properties:
    """Build properties concisely: `properties(a=1, v=(1, 2))`."""
    return Properties(tuple((name, value_of(content)) for name, content in given.items()))


def value_of(content: Any) -> Value:
    if isinstance(content, Value):
        return content
    if isinstance(content, tuple | list):
        return Value(tuple(value_of(each) for each in content))
    return Value(content)


def rank(content: Any) -> Rank:  # noqa: C901, PLR0911 - one line for each type
    """Return a value's sort key, which begins with the number of the value's type."""
    match content:
        case None:
            return (0,)
        case bool():
            return (2, content)
        case int():
            return (1, content)
        case Timestamp():
            return (1, content.micros)
        case bytes():
            return (4, content)
        case str():
            return (4, content.encode())
        case float():
            return (5, *_double(content))
        case Geo():
            return (6, *_double(content.latitude), *_double(content.longitude))
        case Key():
            return (7, content.database, content.namespace, path_rank(content))
        case _:
            raise TypeError(content)


def _double(number: float) -> Rank:
    if math.isnan(number):
        return (1, 0.0, 0)
    return (0, number, 0 if number == 0 and math.copysign(1, number) < 0 else 1)


def path_rank(key: Key) -> Rank:
    """Return a key's sort key: by element, with ids before names and parents before children."""
    return tuple(
        (kind.encode(), 1, name.encode()) if isinstance(name, str) else (kind.encode(), 0, name)
        for kind, name in key.path
    )


def projected(found: Rank) -> Any:
    """Return a projected value's content.

    Timestamps become integers, and bytes that are UTF-8 become texts, as indexes store them.
    """
    match found[0]:
        case 0:
            return None
        case 4:
            return _text(found[1])
        case 5:
            return _from_double(found[1:])
        case 6:
            return Geo(_from_double(found[1:4]), _from_double(found[4:]))
        case 7:
            path = tuple(
                (kind.decode(), name.decode() if is_name else name)
                for kind, is_name, name in found[3]
            )
            return Key(path, found[2], found[1])
        case _:
            return found[1]


def _text(found: bytes) -> str | bytes:
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found


def _from_double(found: Rank) -> float:
    if found[0]:
        return math.nan
    return -0.0 if found[1] == 0 and not found[2] else found[1]


Indexed = Mapping[str, frozenset[Rank]]


def indexed(given: Properties) -> Indexed:
    """Return each property's ranks for filters; embedded properties have dotted names."""
    found: dict[str, set[Rank]] = {}
    for name, value in given:
        _collect(name, value, found)
    return {name: frozenset(ranks) for name, ranks in found.items()}


def _collect(name: str, value: Value, found: dict[str, set[Rank]]) -> None:
    if not value.is_indexed:
        return
    if isinstance(value.content, tuple):
        if not value.content:
            found.setdefault(name, set()).add(rank(None))
        for element in value.content:
            _collect(name, element, found)
    elif isinstance(value.content, Properties):
        for inner, part in value.content:
            _collect(f"{name}.{inner}", part, found)
    else:
        found.setdefault(name, set()).add(rank(value.content))


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class Down:
    """A rank that sorts in reverse."""

    rank: Rank

    def __lt__(self, other: Down) -> bool:
        return other.rank < self.rank
