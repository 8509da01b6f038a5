"""The classic layouts of comments in a document store, to compare with Flatthread's.

The module contains three ways from textbooks and manuals (`bucketed` is the fourth and `nested` the
fifth), each in its best form: raw protobuf messages without an object mapper, packed texts, and
transactions where a change reads before it writes.

    Paths      one entity per comment, ordered by a materialized path of times and slugs
    Embedded   all comments in one entity, in reading order, packed
    Adjacency  one entity per comment with its parent's id, and one query per parent

Invariants:

1. Each layout returns a page, the whole thread and a subtree with the same comments in the same
   order as a traversal of the parent links, including after posts and edits
   (`tests/system/project/test_benchmark_layouts.py`).
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import ClassVar

import msgspec

from benchmarks.layouts.packed import (
    Placed,
    edited,
    end_below,
    fragment,
    in_order,
    pack,
    place_of,
    unpack,
)
from benchmarks.raw_client import Client
from benchmarks.threads.conversations import Said
from comments.store.wire import queries
from emulator import protobufs

THREAD = "page"
_SEPARATOR, _BEHIND = "/", "0"  # "0" is the character after the separator.
_ABOVE = "\U0010ffff"


@dataclasses.dataclass
class Layout:
    """The common part of the layouts: the client."""

    client: Client
    name: ClassVar[str] = ""
    indexes: ClassVar[tuple[tuple[str, ...], ...]] = ()


_TEXTS = ("author_name", "author_website", "author_email", "author_id", "body", "html")


def write(entity: protobufs.Entity, said: Said, indexed: dict[str, str]) -> protobufs.Entity:
    """Fill the entity of one comment; only queried properties are indexed."""
    values = entity.properties
    for name in (*_TEXTS, "status"):
        values[name].string_value = getattr(said, name)
    values["created"].timestamp_value.FromDatetime(said.created)
    values["score"].integer_value = said.score
    values["revision"].integer_value = said.revision
    for value in values.values():
        value.exclude_from_indexes = True
    for name, text in indexed.items():
        values[name].string_value = text
    return entity


def read(entity: protobufs.Entity) -> Said:
    """Return the comment in an entity."""
    values = entity.properties
    return Said(
        entity.key.path[-1].name,
        values["parent"].string_value or None,
        *(values[name].string_value for name in _TEXTS),
        values["created"].timestamp_value.ToDatetime(UTC),
        score=values["score"].integer_value,
        revision=values["revision"].integer_value,
    )


class Documents(Layout):
    """The common part of the layouts that store one entity per comment."""

    kind: ClassVar[str] = ""

    def edit(self, comment_id: str, html: str) -> None:
        """Replace a text."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            entity = self.client.get(self.kind, [comment_id], transaction)[comment_id]
            for name in ("body", "html"):
                entity.properties[name].string_value = html
            entity.properties["revision"].integer_value += 1
            yield entity

        self.client.transact(body)


class Paths(Documents):
    """One entity per comment; the path of a comment is the parent's path plus a time and a slug."""

    name = "path"
    kind = "Path"
    indexes = (("Path", "thread", "path"),)

    def fill(self, thread: Sequence[Said]) -> None:
        """Store a thread."""
        paths: dict[str | None, str] = {None: ""}
        entities = []
        for said in thread:
            paths[said.id] = self._path(paths[said.parent], said)
            entities.append(self._entity(said, paths[said.id]))
        self.client.put(entities)

    def page(self, limit: int) -> list[bytes]:
        """Return the first comments."""
        return [self._fragment(entity) for entity in self._range("", _ABOVE, limit)]

    def whole(self) -> list[bytes]:
        """Return all comments."""
        return [self._fragment(entity) for entity in self._range("", _ABOVE)]

    def subtree(self, comment_id: str) -> list[bytes]:
        """Return a comment's descendants."""
        entity = self.client.get(self.kind, [comment_id])[comment_id]
        path = entity.properties["path"].string_value
        found = self._range(path + _SEPARATOR, path + _BEHIND)
        return [self._fragment(entity) for entity in found]

    def post(self, said: Said) -> None:
        """Store a reply."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            parent = self.client.get(self.kind, [str(said.parent)], transaction)[str(said.parent)]
            yield self._entity(said, self._path(parent.properties["path"].string_value, said))

        self.client.transact(body)

    def _range(self, low: str, high: str, limit: int | None = None) -> Iterator[protobufs.Entity]:
        where = (("thread", "=", THREAD), ("path", ">=", low), ("path", "<", high))
        return self.client.run(queries.Query(self.kind, where, ("path",), limit=limit))

    def _entity(self, said: Said, path: str) -> protobufs.Entity:
        indexed = {"thread": THREAD, "path": path}
        entity = write(self.client.entity(self.kind, said.id), said, indexed)
        entity.properties["parent"].string_value = said.parent or ""
        entity.properties["parent"].exclude_from_indexes = True
        return entity

    @staticmethod
    def _path(above: str, said: Said) -> str:
        own = f"{said.created:%Y.%m.%d.%H.%M.%S}:{said.id[:4]}"
        return f"{above}{_SEPARATOR}{own}" if above else own

    @staticmethod
    def _fragment(entity: protobufs.Entity) -> bytes:
        return fragment(read(entity), entity.properties["path"].string_value.count(_SEPARATOR))


class Adjacency(Documents):
    """One entity per comment, with its parent's id; readers query for each comment's children."""

    name = "adjacency"
    kind = "Link"
    indexes = (("Link", "thread", "parent", "created"),)

    def fill(self, thread: Sequence[Said]) -> None:
        """Store a thread."""
        self.client.put(map(self._entity, thread))

    def page(self, limit: int) -> list[bytes]:
        """Return the first comments."""
        return [fragment(*each) for each in itertools.islice(self._below("", 0, limit), limit)]

    def whole(self) -> list[bytes]:
        """Return all comments."""
        return [fragment(*each) for each in self._below("", 0)]

    def subtree(self, comment_id: str) -> list[bytes]:
        """Return a comment's descendants.

        Finding a comment's level requires a lookup of every comment above it.
        """
        level, above = 0, comment_id
        while above:
            entity = self.client.get(self.kind, [above])[above]
            above = entity.properties["parent"].string_value
            level += 1
        return [fragment(*each) for each in self._below(comment_id, level)]

    def post(self, said: Said) -> None:
        """Store a reply."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            if self.client.get(self.kind, [str(said.parent)], transaction):
                yield self._entity(said)

        self.client.transact(body)

    def _below(
        self, parent: str, level: int, limit: int | None = None
    ) -> Iterator[tuple[Said, int]]:
        """Yield a comment's descendants, without Python recursion because threads can be deep."""
        open_ = [self._children(parent, limit)]
        while open_:
            said = next(open_[-1], None)
            if said is None:
                open_.pop()
                continue
            yield said, level + len(open_) - 1
            open_.append(self._children(said.id, limit))

    def _children(self, parent: str, limit: int | None) -> Iterator[Said]:
        where = (("thread", "=", THREAD), ("parent", "=", parent))
        query = queries.Query(self.kind, where, ("created",), limit=limit)
        return map(read, self.client.run(query))

    def _entity(self, said: Said) -> protobufs.Entity:
        indexed = {"thread": THREAD, "parent": said.parent or ""}
        entity = write(self.client.entity(self.kind, said.id), said, indexed)
        entity.properties["created"].exclude_from_indexes = False
        return entity


class Embedded(Layout):
    """All comments of a thread in one entity."""

    name = "embedded"

    def fill(self, thread: Sequence[Said]) -> None:
        """Store a thread.

        Raises:
            TooLarge: The entity would be larger than the store allows.
        """
        self.client.put([self._entity(in_order(thread))])

    def page(self, limit: int) -> list[bytes]:
        """Return the first comments."""
        return [fragment(placed.said, placed.level) for placed in self._load()[:limit]]

    def whole(self) -> list[bytes]:
        """Return all comments."""
        return [fragment(placed.said, placed.level) for placed in self._load()]

    def subtree(self, comment_id: str) -> list[bytes]:
        """Return a comment's descendants."""
        run = self._load()
        place = place_of(run, comment_id)
        below = run[place + 1 : end_below(run, place + 1, run[place].level)]
        return [fragment(placed.said, placed.level) for placed in below]

    def post(self, said: Said) -> None:
        """Store a reply after all existing replies of its parent."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            run = self._load(transaction)
            place = place_of(run, str(said.parent))
            level = run[place].level
            run.insert(end_below(run, place + 1, level), Placed(level + 1, said))
            yield self._entity(run)

        self.client.transact(body)

    def edit(self, comment_id: str, html: str) -> None:
        """Replace a text."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            run = self._load(transaction)
            place = place_of(run, comment_id)
            run[place] = Placed(run[place].level, edited(run[place].said, html))
            yield self._entity(run)

        self.client.transact(body)

    def _load(self, transaction: bytes = b"") -> list[Placed]:
        entity = self.client.get("Embedded", [THREAD], transaction)[THREAD]
        return unpack(entity.properties["comments"].blob_value)

    def _entity(self, run: Sequence[Placed]) -> protobufs.Entity:
        entity = self.client.entity("Embedded", THREAD)
        entity.properties["comments"].blob_value = pack(run)
        entity.properties["comments"].exclude_from_indexes = True
        return entity


class Plain(Embedded):
    """The same layout without packing, to find the maximum size. Only written."""

    name = "embedded, not packed"

    def _entity(self, run: Sequence[Placed]) -> protobufs.Entity:
        entity = self.client.entity("Embedded", THREAD)
        entity.properties["comments"].blob_value = msgspec.msgpack.encode(run)
        entity.properties["comments"].exclude_from_indexes = True
        return entity
