"""A thread as readers see it now: buckets, the tail and the delta as one list (pure).

A view is a directory with the rows that differ from its buckets. It answers what the one ordered
query over the listed rows would answer, and reads only the buckets it needs: rows of a range,
sizes of subtrees, positions, discussions. Every answer is exact.

What must stay true: `marks` hold, for each row that differs, whether the buckets hold it
(`Mark.held`); sizes rest on that and never on reading a bucket to find out.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import heapq
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from comments.domain import sorthash
from comments.reading.materialized import buckets

# Reads buckets by their keys, in one call.
Load = Callable[[Sequence[str]], Sequence[buckets.Bucket]]
_hash_of = operator.attrgetter("sort_hash")


def weight_of(mark: buckets.Mark) -> int:
    """What a row that differs adds to the number of rows in the buckets: -1, 0 or 1."""
    return bool(mark.json) - mark.held


class View:
    """One thread at one moment. Not for several threads at once. `changed`: its newest change."""

    def __init__(
        self,
        directory: buckets.Directory,
        marks: Iterable[buckets.Mark],
        load: Load,
        *,
        changed: datetime | None = None,
    ) -> None:
        self.directory = directory
        self.changed = changed
        self._lines = directory.content.lines
        self._marks = sorted(marks, key=_hash_of)
        self._hashes = [mark.sort_hash for mark in self._marks]
        # What the marks before each one add to the buckets' rows, and at the end all of them.
        self._weights = [0, *itertools.accumulate(map(weight_of, self._marks))]
        self._load = load
        self._read: dict[int, buckets.Bucket] = {}

    @functools.cached_property
    def tag(self) -> str:
        """A digest of all the view shows: the directory's version and the rows that differ.

        Views of one tag answer alike, in every process. Reads no bucket.
        """
        made_of = msgspec.msgpack.encode((self.directory.version, self.changed, self._states))
        return hashlib.sha256(made_of).hexdigest()[:32]

    @functools.cached_property
    def _states(self) -> list[tuple[str, int, bool, bool]]:
        return [(mark.id, mark.revision, bool(mark.json), mark.held) for mark in self._marks]

    @property
    def total(self) -> int:
        """How many rows there are."""
        return (self.directory.before[-1] if self._lines else 0) + self._weights[-1]

    @property
    def is_patched(self) -> bool:
        """Whether a row differs from what the directory holds, its tail included."""
        tail = {mark.id: mark.revision for mark in self.directory.content.tail}
        return any(tail.get(mark.id) != mark.revision for mark in self._marks)

    def mark_of(self, comment_id: str) -> buckets.Mark | None:
        """How a row differs from the buckets; None where it does not."""
        return next((mark for mark in self._marks if mark.id == comment_id), None)

    @functools.cached_property
    def _replaced(self) -> frozenset[str]:
        return frozenset(mark.id for mark in self._marks)

    def rows(
        self, low: str = "", high: str = sorthash.ABOVE, *, limit: int | None = None
    ) -> Iterator[buckets.Entry]:
        """Yield the rows with low <= hash < high in reading order.

        `limit` is how many will be taken: their buckets are read in one call.
        """
        if self._lines and limit is not None:
            self._expect(low, high, limit)
        elif self._lines:
            self._need(range(self.directory.line_of(low), len(self._lines)), high)
        yield from self.patched(self._stored(low, high), low, high)

    def patched(
        self, entries: Iterable[buckets.Entry], low: str, high: str
    ) -> Iterator[buckets.Entry]:
        """Yield the rows of a range from those that the directory's stored forms hold of it."""
        stored = (entry for entry in entries if entry.id not in self._replaced)
        first, last = self._between(low, high)
        changed = (
            buckets.Entry(mark.sort_hash, mark.id, mark.revision, mark.json)
            for mark in self._marks[first:last]
            if mark.json
        )
        return heapq.merge(stored, changed, key=_hash_of)

    def below(self, sort_hash: str) -> int:
        """How many rows stand below a comment."""
        low, high = sorthash.subtree_range(sort_hash)
        first, last = self._between(low + "\0", high)
        weight = self._weights[last] - self._weights[first]
        if not self._lines:
            return weight
        return self.directory.below(sort_hash, self._bucket_of(sort_hash)) + weight

    def weight(self, low: str, high: str) -> int:
        """What the rows that differ add to the buckets' rows with low <= hash < high."""
        first, last = self._between(low, high)
        return self._weights[last] - self._weights[first]

    def changes(self, low: str, high: str) -> list[tuple[str, int, bool, bool]]:
        """What differs from the buckets in a range, as it stands in the tag."""
        first, last = self._between(low, high)
        return self._states[first:last]

    def count(self, low: str, high: str) -> int:
        """How many rows there are with low <= hash < high. Reads the buckets that it cuts."""
        return self._before(high) - self._before(low) + self.weight(low, high)

    def _before(self, sort_hash: str) -> int:
        """How many rows of buckets come before a hash."""
        place = self.directory.line_of(sort_hash)
        if place < 0:
            return 0
        line = self.directory.lines[place]
        if line.first < sort_hash <= line.last:
            return self.directory.position(sort_hash, self._bucket(place))
        return self.directory.before[place + (sort_hash > line.last)]

    def grown_below(self, sort_hash: str) -> int:
        """How many rows more stand below a comment than the directory and its tail say."""
        low, high = sorthash.subtree_range(sort_hash)
        first, last = self._between(low + "\0", high)
        return self._growth[last] - self._growth[first]

    @functools.cached_property
    def _growth(self) -> list[int]:
        tail = {mark.id: weight_of(mark) for mark in self.directory.content.tail}
        grown = (weight_of(mark) - tail.get(mark.id, 0) for mark in self._marks)
        return [0, *itertools.accumulate(grown)]

    def read_discussions(self, roots: Iterable[str], limit: int) -> None:
        """Read the buckets that the first `limit` rows of discussions can take, in one call."""
        lines, before = self.directory.lines, self.directory.before
        places: set[int] = set()
        for root in roots:
            if limit <= 0:
                break
            low, high = sorthash.subtree_range(root)
            first = max(0, self.directory.line_of(low))
            for place in range(first, len(lines)):
                is_enough = place > first and before[place] - before[first + 1] >= limit
                if is_enough or lines[place].first >= high:
                    break
                places.add(place)
            limit -= self.size_of_root(root)
        self._need(sorted(places), sorthash.ABOVE)

    def stretch(self, sort_hash: str) -> tuple[str, str, int]:
        """The range of hashes around one for which one bucket is read, and how many rows follow."""
        lines = self.directory.lines
        place = self.directory.line_of(sort_hash)
        low = lines[place].first if place > 0 else ""
        high = lines[place + 1].first if place + 1 < len(lines) else sorthash.ABOVE
        until = self.directory.before[place + 1] + self._weights[self._between("", high)[1]]
        return low, high, self.total - until

    def read(self, hashes: Iterable[str]) -> None:
        """Read the buckets that hold these hashes, in one call."""
        self._need(sorted({self.directory.line_of(each) for each in hashes}), sorthash.ABOVE)

    def position(self, sort_hash: str) -> int:
        """How many rows come before a hash."""
        before = self.directory.position(sort_hash, self._bucket_of(sort_hash))
        return before + self._weights[bisect.bisect_left(self._hashes, sort_hash)]

    def roots(self, scheme: sorthash.Scheme) -> list[str]:
        """The discussions' hashes in reading order, some of which may have lost their last row."""
        return sorted(self.changed_roots(scheme).union(self.directory.roots))

    def changed_roots(self, scheme: sorthash.Scheme) -> set[str]:
        """The hashes of discussions that have a row which differs from the buckets."""
        return {buckets.root_of(scheme, mark.sort_hash) for mark in self._marks if mark.json}

    def size_of_root(self, root: str) -> int:
        """How many rows a discussion has, its root among them. Reads no bucket."""
        known = self._root_order
        place = bisect.bisect_left(known, root)
        stored = 0
        if place < len(known) and known[place] == root:
            ends = (*self._root_positions[place + 1 : place + 2], self.directory.before[-1])
            stored = ends[0] - self._root_positions[place]
        first, last = self._between(*sorthash.subtree_range(root))
        return stored + self._weights[last] - self._weights[first]

    @functools.cached_property
    def _root_order(self) -> list[str]:
        return list(self.directory.roots)

    @functools.cached_property
    def _root_positions(self) -> list[int]:
        return list(self.directory.roots.values())

    def _between(self, low: str, high: str) -> tuple[int, int]:
        return bisect.bisect_left(self._hashes, low), bisect.bisect_left(self._hashes, high)

    def _bucket_of(self, sort_hash: str) -> buckets.Bucket | None:
        place = self.directory.line_of(sort_hash)
        return None if place < 0 else self._bucket(place)

    def _bucket(self, place: int) -> buckets.Bucket:
        if place not in self._read:
            self._need((place,), sorthash.ABOVE)
        return self._read[place]

    def _stored(self, low: str, high: str) -> Iterator[buckets.Entry]:
        """Yield the rows of buckets in a range, reading each bucket when it is reached."""
        if not self._lines:
            return
        for place in range(max(0, self.directory.line_of(low)), len(self.directory.lines)):
            if self.directory.lines[place].first >= high:
                return
            bucket = self._bucket(place)
            first = bisect.bisect_left(bucket.hashes, low)
            last = bisect.bisect_left(bucket.hashes, high)
            yield from bucket.entries[first:last]

    def _expect(self, low: str, high: str, limit: int) -> None:
        """Read the buckets that the first `limit` rows of a range can take, as far as is known."""
        first = self.directory.line_of(low)
        # Where in its bucket the range begins is known once that is read: a second call at most.
        wanted = limit + self.directory.position(low, self._bucket(first))
        wanted += sum(weight_of(mark) < 0 for mark in self._marks)
        last = bisect.bisect_left(self.directory.before, wanted)
        self._need(range(first, min(last, len(self.directory.lines))), high)

    def _need(self, places: Iterable[int], high: str) -> None:
        lines = self.directory.lines
        missing = [
            place
            for place in places
            if place >= 0 and place not in self._read and lines[place].first < high
        ]
        if missing:
            found = self._load([lines[place].key for place in missing])
            self._read.update(zip(missing, found, strict=True))
