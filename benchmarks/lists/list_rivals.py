"""The classic ways to store a large list in a document store, for comparison with Flatthread's.

The module contains five ways, each in its best form: raw protobuf messages without an object
mapper, and transactions where a change reads before it writes. Datastore cannot append to an entity
without reading it. In this module, each append of the original stores is therefore a read and a
write of the entity.

    Text         all ids in one text; a removed id is cut out
    Tombstones   the same, but removed ids are written at the head and cut out when they are a
                 quarter of the list
    TwoLists     one text of added ids, one of removed ids; merged in the same way
    Log          "+id" and "-id" in sequence, rewritten at twice the minimum length
    Rows         one entity per id, queried by its list

Invariants:

1. After any sequence of changes, each way contains the same ids as a Python set would, even if a
   removed id is added again (`tests/system/project/test_benchmark_lists.py`).
"""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import ClassVar

from benchmarks.raw_client import Client
from comments.store.wire import queries
from emulator import protobufs

LIST = "a list"
_SEPARATOR = "\n"
_SHARE = 4  # Rewrite the list when one id in this many has been removed.
_LEAST = 4096  # Bytes; a smaller log is never rewritten.


@dataclasses.dataclass
class Way:
    """The common part of the ways: the client, and texts with ids in entities of their own."""

    client: Client
    name: ClassVar[str] = ""

    def _load(self, names: Iterable[str], transaction: bytes = b"") -> list[str]:
        names = list(names)
        found = self.client.get("Text", names, transaction)
        return [
            found[name].properties["ids"].string_value if name in found else "" for name in names
        ]

    def _text(self, name: str, text: str) -> protobufs.Entity:
        entity = self.client.entity("Text", name)
        entity.properties["ids"].string_value = text
        entity.properties["ids"].exclude_from_indexes = True
        return entity


class Text(Way):
    """Stores all ids in one text."""

    name = "one text"

    def fill(self, ids: Iterable[str]) -> None:
        """Store a list."""
        self.client.put([self._text(LIST, _joined(ids))])

    def change(self, follower: str, *, follows: bool) -> None:
        """Add or remove an id."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            (text,) = self._load([LIST], transaction)
            if follows and not _holds(text, follower):
                yield self._text(LIST, text + follower + _SEPARATOR)
            elif not follows and _holds(text, follower):
                yield self._text(LIST, _without(text, follower))

        self.client.transact(body)

    def contains(self, follower: str) -> bool:
        """Return whether the list contains an id."""
        (text,) = self._load([LIST])
        return _holds(text, follower)

    def every(self) -> list[str]:
        """Return all ids."""
        (text,) = self._load([LIST])
        return text.split()

    def count(self) -> int:
        return len(self.every())


class TwoLists(Way):
    """Stores one text with added ids and one with removed ids."""

    name = "two lists"
    texts: ClassVar[tuple[str, str]] = ("joined", "left")

    def fill(self, ids: Iterable[str]) -> None:
        """Store a list."""
        self.client.put(self._stored(_joined(ids), ""))

    def change(self, follower: str, *, follows: bool) -> None:
        """Add or remove an id."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            joined, left = old = self._read(transaction)
            if follows and _holds(left, follower):
                left = _without(left, follower)
            elif follows and not _holds(joined, follower):
                joined += follower + _SEPARATOR
            elif not follows and _holds(joined, follower) and not _holds(left, follower):
                left = follower + _SEPARATOR + left
            if len(left) * _SHARE > len(joined):
                joined, left = _joined(_difference(joined, left)), ""
            yield from self._changed(old, (joined, left))

        self.client.transact(body)

    def contains(self, follower: str) -> bool:
        """Return whether the list contains an id."""
        joined, left = self._read()
        return _holds(joined, follower) and not _holds(left, follower)

    def every(self) -> list[str]:
        """Return all ids."""
        return _difference(*self._read())

    def count(self) -> int:
        return len(self.every())

    def _read(self, transaction: bytes = b"") -> tuple[str, str]:
        joined, left = self._load(self.texts, transaction)
        return joined, left

    def _stored(self, joined: str, left: str) -> list[protobufs.Entity]:
        return [
            self._text(name, text) for name, text in zip(self.texts, (joined, left), strict=True)
        ]

    def _changed(self, old: tuple[str, str], new: tuple[str, str]) -> Iterator[protobufs.Entity]:
        pairs = zip(self._stored(*new), old, new, strict=True)
        return (entity for entity, before, after in pairs if before != after)


class Tombstones(TwoLists):
    """Stores one text: the removed ids, an empty line, then all added ids."""

    name = "tombstones"

    def _read(self, transaction: bytes = b"") -> tuple[str, str]:
        (text,) = self._load([LIST], transaction)
        left, _, joined = text.partition(_SEPARATOR * 2)
        return joined, left + _SEPARATOR if left else ""

    def _stored(self, joined: str, left: str) -> list[protobufs.Entity]:
        return [self._text(LIST, left.rstrip(_SEPARATOR) + _SEPARATOR * 2 + joined)]

    def _changed(self, old: tuple[str, str], new: tuple[str, str]) -> Iterator[protobufs.Entity]:
        return iter(self._stored(*new) if new != old else ())


class Log(Way):
    """Stores all changes, one per line."""

    name = "log"

    def fill(self, ids: Iterable[str]) -> None:
        """Store a list."""
        self.client.put([self._log(_lines(ids))])

    def change(self, follower: str, *, follows: bool) -> None:
        """Add or remove an id."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            stored = self.client.get("Text", [LIST], transaction)
            text, short = "", 0
            if stored:
                text = stored[LIST].properties["ids"].string_value
                short = stored[LIST].properties["short"].integer_value
            text += f"{'+' if follows else '-'}{follower}{_SEPARATOR}"
            if len(text) > max(_LEAST, 2 * short):
                yield self._log(_lines(_replayed(text)))
            else:
                yield self._log(text, short)

        self.client.transact(body)

    def contains(self, follower: str) -> bool:
        """Return whether the list contains an id."""
        text = _SEPARATOR + self._load([LIST])[0]
        lines = (f"{_SEPARATOR}{sign}{follower}{_SEPARATOR}" for sign in "+-")
        joined, left = map(text.rfind, lines)
        return joined > left

    def every(self) -> list[str]:
        """Return all ids."""
        (text,) = self._load([LIST])
        return list(_replayed(text))

    def count(self) -> int:
        return len(self.every())

    def _log(self, text: str, short: int | None = None) -> protobufs.Entity:
        """Return the log, with the length that it had after the last rewrite."""
        entity = self._text(LIST, text)
        entity.properties["short"].integer_value = len(text) if short is None else short
        entity.properties["short"].exclude_from_indexes = True
        return entity


class Rows(Way):
    """One entity per id."""

    name = "rows"

    def fill(self, ids: Iterable[str]) -> None:
        """Store a list."""
        self.client.put(map(self._row, ids))

    def change(self, follower: str, *, follows: bool) -> None:
        """Add or remove an id."""
        if follows:
            self.client.write(upsert=self._row(follower))
        else:
            self.client.write(delete=self._row(follower).key)

    def contains(self, follower: str) -> bool:
        """Return whether the list contains an id."""
        return bool(self.client.get("Row", [f"{LIST}/{follower}"]))

    def every(self) -> list[str]:
        """Return all ids."""
        query = queries.Query("Row", (("list", "=", LIST),), ("__key__",), keys_only=True)
        found = self.client.run(query)
        return [entity.key.path[0].name.removeprefix(f"{LIST}/") for entity in found]

    def count(self) -> int:
        return self.client.count(queries.Query("Row", (("list", "=", LIST),)))

    def _row(self, follower: str) -> protobufs.Entity:
        entity = self.client.entity("Row", f"{LIST}/{follower}")
        entity.properties["list"].string_value = LIST
        return entity


def _joined(ids: Iterable[str]) -> str:
    return "".join(f"{each}{_SEPARATOR}" for each in ids)


def _holds(text: str, follower: str) -> bool:
    return f"{_SEPARATOR}{follower}{_SEPARATOR}" in _SEPARATOR + text


def _without(text: str, follower: str) -> str:
    """Return the text without the line for the id."""
    line = f"{_SEPARATOR}{follower}{_SEPARATOR}"
    return (_SEPARATOR + text).replace(line, _SEPARATOR, 1)[len(_SEPARATOR) :]


def _difference(joined: str, left: str) -> list[str]:
    gone = set(left.split())
    return [each for each in joined.split() if each not in gone]


def _lines(ids: Iterable[str]) -> str:
    return "".join(f"+{each}{_SEPARATOR}" for each in ids)


def _replayed(text: str) -> Iterable[str]:
    """Return the ids of a log, in the order of their addition."""
    ids: dict[str, None] = {}
    for line in text.split():
        if line[0] == "+":
            ids.setdefault(line[1:])
        else:
            ids.pop(line[1:], None)
    return ids
