"""A classic layout between one entity per comment and one entity per thread: counted buckets.

The head lists the buckets in reading order, with the number of comments in each bucket. Adding up
the counts finds a page, and an index over the ids in each bucket finds a comment.

Invariants:

1. The head's counts match the buckets, so the head and the buckets always change in one
   transaction.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

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
from benchmarks.layouts.rivals import THREAD, Layout
from benchmarks.threads.conversations import Said
from comments.store.wire import queries
from emulator import protobufs

BUCKET = 100  # The number of comments in a new bucket.
FULL = 128  # A larger bucket is split in two.


class _Count(msgspec.Struct, array_like=True):
    """A bucket in the head: its name, its number of comments, and its first comment's level."""

    name: str
    count: int


class _Head(msgspec.Struct, array_like=True):
    """The buckets in reading order; `made` is the number for the next new bucket."""

    counts: list[_Count]
    made: int

    def add(self, place: int, count: int) -> str:
        """Add a new bucket and return the bucket's name."""
        name = f"{THREAD}#{self.made}"
        self.made += 1
        self.counts.insert(place, _Count(name, count))
        return name

    def place(self, name: str) -> int:
        """Return the position of a bucket."""
        return next(place for place, each in enumerate(self.counts) if each.name == name)

    def names(self, first: int, last: int | None = None) -> list[str]:
        """Return the names of consecutive buckets."""
        return [each.name for each in self.counts[first:last]]


class Buckets(Layout):
    """Buckets of about 100 consecutive comments, and a head with their counts.

    A change to a comment rewrites the comment's bucket. An index over the ids in each bucket finds
    a comment's bucket. If two writers create a bucket at the same time, they conflict at the head,
    so only one bucket is created.
    """

    name = "buckets"

    def fill(self, thread: Sequence[Said]) -> None:
        """Store a thread."""
        order = in_order(thread)
        head = _Head([], 0)
        entities = []
        for first in range(0, len(order), BUCKET):
            run = order[first : first + BUCKET]
            entities.append(self._bucket(head.add(len(head.counts), len(run)), run))
        self.client.put([*entities, self._head(head)])

    def page(self, limit: int, skip: int = 0) -> list[bytes]:
        """Return a page, found by adding up the counts."""
        head = self._load_head()
        ends = list(itertools.accumulate(each.count for each in head.counts))
        first = next((place for place, end in enumerate(ends) if end > skip), len(ends))
        last = next((place for place, end in enumerate(ends) if end >= skip + limit), len(ends))
        before = ends[first - 1] if first else 0
        run = self._load(head.names(first, last + 1))[skip - before :][:limit]
        return [fragment(placed.said, placed.level) for placed in run]

    def whole(self) -> list[bytes]:
        """Return all comments."""
        run = self._load(self._load_head().names(0))
        return [fragment(placed.said, placed.level) for placed in run]

    def subtree(self, comment_id: str) -> list[bytes]:
        """Return a comment's descendants, read from its bucket and the following buckets."""
        name, run = self._find(comment_id)
        place = place_of(run, comment_id)
        level, below = run[place].level, run[place + 1 :]
        end = end_below(below, 0, level)
        if end == len(below):
            head = self._load_head()
            for following in head.names(head.place(name) + 1):
                below += self._load([following])
                end = end_below(below, end, level)
                if end < len(below):
                    break
        return [fragment(placed.said, placed.level) for placed in below[:end]]

    def post(self, said: Said) -> None:
        """Store a reply after all existing replies of its parent."""
        self.client.transact(lambda transaction: self._insert(said, transaction))

    def edit(self, comment_id: str, html: str) -> None:
        """Replace a text."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            name, run = self._find(comment_id, transaction)
            place = place_of(run, comment_id)
            run[place] = Placed(run[place].level, edited(run[place].said, html))
            yield self._bucket(name, run)

        self.client.transact(body)

    def _insert(self, said: Said, transaction: bytes) -> Iterator[protobufs.Entity]:
        head = self._load_head(transaction)
        name, run = self._find(str(said.parent), transaction)
        place = place_of(run, str(said.parent))
        level = run[place].level
        end = end_below(run, place + 1, level)
        number = head.place(name)
        while end == len(run) and number + 1 < len(head.counts):
            following = self._load(head.names(number + 1, number + 2), transaction)
            if following[0].level <= level:
                break  # The reply becomes the last comment of the previous bucket.
            number, run, end = number + 1, following, end_below(following, 0, level)
        run.insert(end, Placed(level + 1, said))
        name = head.counts[number].name
        if len(run) > FULL:
            run, rest = run[: len(run) // 2], run[len(run) // 2 :]
            yield self._bucket(head.add(number + 1, len(rest)), rest)
        head.counts[number].count = len(run)
        yield self._bucket(name, run)
        yield self._head(head)

    def _find(self, comment_id: str, transaction: bytes = b"") -> tuple[str, list[Placed]]:
        """Return the bucket of a comment."""
        query = queries.Query("Bucket", (("ids", "=", comment_id),), limit=1)
        entity = next(iter(self.client.run(query, transaction)))
        return entity.key.path[-1].name, unpack(entity.properties["comments"].blob_value)

    def _load(self, names: Sequence[str], transaction: bytes = b"") -> list[Placed]:
        found = self.client.get("Bucket", names, transaction)
        return [
            placed
            for name in names
            for placed in unpack(found[name].properties["comments"].blob_value)
        ]

    def _load_head(self, transaction: bytes = b"") -> _Head:
        entity = self.client.get("Head", [THREAD], transaction)[THREAD]
        return msgspec.msgpack.decode(entity.properties["counts"].blob_value, type=_Head)

    def _head(self, head: _Head) -> protobufs.Entity:
        entity = self.client.entity("Head", THREAD)
        entity.properties["counts"].blob_value = msgspec.msgpack.encode(head)
        entity.properties["counts"].exclude_from_indexes = True
        return entity

    def _bucket(self, name: str, run: Sequence[Placed]) -> protobufs.Entity:
        entity = self.client.entity("Bucket", name)
        entity.properties["comments"].blob_value = pack(run)
        entity.properties["comments"].exclude_from_indexes = True
        ids: Any = entity.properties["ids"].array_value.values
        for placed in run:
            ids.add(string_value=placed.id)
        return entity
