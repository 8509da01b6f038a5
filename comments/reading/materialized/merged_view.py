"""Merge buckets, tail and delta into one list: the thread as readers see it (pure).

A view is a directory plus *marks*, the rows that differ from its buckets. A view's results (the
rows of a range, subtree sizes, positions, discussions) are the same as the results of the ordered
query over the listed rows. A view loads only the buckets that it needs.

Each mark records whether the buckets also contain its row (`ChangedEntry.held`), so no bucket is
ever loaded only to find this out.
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

from comments.domain import presentation
from comments.domain.ids import sorthash
from comments.reading.materialized import buckets, time_index

# A function that loads buckets by key in one call.
Load = Callable[[Sequence[str]], Sequence[buckets.Bucket]]
_hash_of = operator.attrgetter("sort_hash")


def weight_of(mark: buckets.ChangedEntry) -> int:
    """Return by how much a mark changes the number of bucket rows: -1, 0 or 1."""
    return bool(mark.json) - mark.held


class View:
    """A thread at one moment. `changed` is the time of its newest change.

    `shifts` are the changes of the delta to the directory's time index.

    Views are not thread-safe.
    """

    def __init__(
        self,
        directory: buckets.Directory,
        marks: Iterable[buckets.ChangedEntry],
        load: Load,
        *,
        changed: datetime | None = None,
        shifts: Sequence[time_index.Shift] = (),
    ) -> None:
        self.directory = directory
        self.changed = changed
        self._shifts = shifts
        self._lines = directory.content.lines
        self._marks = sorted(marks, key=_hash_of)
        self._hashes = [mark.sort_hash for mark in self._marks]
        # Prefix sums: for each mark, by how much all earlier marks change the number of rows.
        self._weights = [0, *itertools.accumulate(map(weight_of, self._marks))]
        self._load = load
        self._read: dict[int, buckets.Bucket] = {}

    @functools.cached_property
    def times(self) -> time_index.TimeIndex | None:
        """Return the index of the rows by time, or None if the directory has none."""
        index = self.directory.content.times
        return index and time_index.update(index, self._shifts)

    @functools.cached_property
    def tag(self) -> str:
        """Return a digest of the directory's version, the newest change and the marks.

        Views with the same tag give the same results in every process. No bucket is loaded.
        """
        made_of = msgspec.msgpack.encode((self.directory.version, self.changed, self._states))
        return hashlib.sha256(made_of).hexdigest()[:32]

    @functools.cached_property
    def _states(self) -> list[tuple[str, int, bool, bool]]:
        return [(mark.id, mark.revision, bool(mark.json), mark.held) for mark in self._marks]

    @property
    def shape(self) -> int:
        """Return the shape of the tree that the view shows."""
        return self.directory.content.shape

    def scheme(self, site: sorthash.Scheme) -> sorthash.Scheme:
        """Return the scheme of the view's hashes, given the site's scheme."""
        stored = self.directory.content.scheme
        return sorthash.decode_scheme(stored) if stored else site

    @property
    def total(self) -> int:
        """Return the number of rows."""
        return (self.directory.before[-1] if self._lines else 0) + self._weights[-1]

    @property
    def is_patched(self) -> bool:
        """Return whether any row differs from the directory's buckets and tail."""
        tail = {mark.id: mark.revision for mark in self.directory.content.tail}
        return any(tail.get(mark.id) != mark.revision for mark in self._marks)

    def mark_of(self, comment_id: str) -> buckets.ChangedEntry | None:
        """Return the mark of a row, or None if the row does not differ from the buckets."""
        return next((mark for mark in self._marks if mark.id == comment_id), None)

    @functools.cached_property
    def pinned_entries(self) -> list[buckets.ListedEntry]:
        """Return the pinned comments that readers see, in reading order. Load their buckets."""
        stored = self.directory.content.pinned
        hashes = [
            sort_hash for sort_hash, comment_id in stored if comment_id not in self._marked_ids
        ]
        self.load_buckets(hashes)
        entries = [row for sort_hash in hashes for row in self.rows(sort_hash, sort_hash + "\0")]
        entries += [mark.entry for mark in self._marks if presentation.is_pinned(mark.json)]
        return sorted(entries, key=_hash_of)

    @functools.cached_property
    def _marked_ids(self) -> frozenset[str]:
        return frozenset(mark.id for mark in self._marks)

    def rows(
        self, low: str = "", high: str = sorthash.ABOVE, *, limit: int | None = None
    ) -> Iterator[buckets.ListedEntry]:
        """Yield the rows with low <= hash < high in reading order.

        `limit` is the number of rows that the caller will use. Only the buckets of these rows are
        loaded.
        """
        if self._lines and limit is not None:
            self._expect(low, high, limit)
        elif self._lines:
            self._load_missing(range(self.directory.line_of(low), len(self._lines)), high)
        yield from self.patch(self._bucket_rows(low, high), low, high)

    def patch(
        self, entries: Iterable[buckets.ListedEntry], low: str, high: str
    ) -> Iterator[buckets.ListedEntry]:
        """Apply the marks to the bucket rows of a range. Yield the result in reading order."""
        stored = (entry for entry in entries if entry.id not in self._marked_ids)
        first, last = self._between(low, high)
        changed = (
            buckets.ListedEntry(mark.sort_hash, mark.id, mark.revision, mark.json)
            for mark in self._marks[first:last]
            if mark.json
        )
        return heapq.merge(stored, changed, key=_hash_of)

    def below(self, sort_hash: str) -> int:
        """Count the rows below a comment."""
        low, high = sorthash.subtree_range(sort_hash)
        first, last = self._between(low + "\0", high)
        weight = self._weights[last] - self._weights[first]
        place = self.directory.line_of(sort_hash)
        if place < 0:
            return weight
        return self.directory.below(sort_hash, place, self._bucket(place)) + weight

    def weight(self, low: str, high: str) -> int:
        """Return by how much the marks change the number of rows with low <= hash < high."""
        first, last = self._between(low, high)
        return self._weights[last] - self._weights[first]

    def changes(self, low: str, high: str) -> list[tuple[str, int, bool, bool]]:
        """Return the marks in a range, in the form that the tag uses."""
        first, last = self._between(low, high)
        return self._states[first:last]

    def count(self, low: str, high: str) -> int:
        """Count the rows with low <= hash < high. Load only the buckets at the two ends."""
        return self._before(high) - self._before(low) + self.weight(low, high)

    def _before(self, sort_hash: str) -> int:
        """Count the bucket rows before a hash."""
        place = self.directory.line_of(sort_hash)
        if place < 0:
            return 0
        line = self.directory.lines[place]
        if line.first < sort_hash <= line.last:
            return self.directory.position(sort_hash, self._bucket(place))
        return self.directory.before[place + (sort_hash > line.last)]

    def growth_below(self, sort_hash: str) -> int:
        """Return the number of rows added below a comment since the directory was written."""
        low, high = sorthash.subtree_range(sort_hash)
        first, last = self._between(low + "\0", high)
        return self._growth[last] - self._growth[first]

    @functools.cached_property
    def _growth(self) -> list[int]:
        tail = {mark.id: weight_of(mark) for mark in self.directory.content.tail}
        grown = (weight_of(mark) - tail.get(mark.id, 0) for mark in self._marks)
        return [0, *itertools.accumulate(grown)]

    def read_discussions(self, roots: Iterable[str], limit: int) -> None:
        """Load, in one call, the buckets that may contain the first `limit` rows of discussions."""
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
        self._load_missing(sorted(places), sorthash.ABOVE)

    def at(self, ranges: Sequence[range]) -> Iterator[buckets.ListedEntry]:
        """Yield the rows at these positions in reading order, range by range.

        Positions count from 0 and must be below `total`. All necessary buckets, and no other
        buckets, are loaded in one call.
        """
        stretches = [self._stretch(positions) for positions in ranges]
        if self._lines:
            places = {place for first, last, _ in stretches for place in range(first, last)}
            self._load_missing(sorted(places), sorthash.ABOVE)
        for wanted, (first, last, skipped) in zip(ranges, stretches, strict=True):
            firsts = self.directory.firsts
            low = firsts[first] if first else ""
            # The end must be exact, because looking for a row beyond the end could load one more
            # bucket.
            high = firsts[last] if last < len(firsts) else sorthash.ABOVE
            rows = self.patch(self._bucket_rows(low, high), low, high)
            yield from itertools.islice(rows, skipped, skipped + len(wanted))

    def _stretch(self, wanted: range) -> tuple[int, int, int]:
        """Return a range's first and end lines, and how many rows to skip in the first line."""
        lines = range(max(1, len(self._lines)))
        first = bisect.bisect_right(lines, wanted.start, key=self._before_line) - 1
        last = bisect.bisect_left(lines, wanted.stop, key=self._before_line)
        return first, last, wanted.start - self._before_line(first)

    def _before_line(self, place: int) -> int:
        """Count the rows before a line's range. No rows precede the first range."""
        if not place:
            return 0
        directory = self.directory
        marks = bisect.bisect_left(self._hashes, directory.firsts[place])
        return directory.before[place] + self._weights[marks]

    def start_of_root(self, root: str) -> int:
        """Count the rows before a discussion, without loading a bucket."""
        place = bisect.bisect_left(self._root_order, root)
        ends = (*self._root_positions[place : place + 1], self.directory.before[-1])
        return ends[0] + self._weights[bisect.bisect_left(self._hashes, root)]

    def stretch(self, sort_hash: str) -> tuple[str, str, int]:
        """Return the range of a hash's bucket, and the number of rows after that range."""
        lines = self.directory.lines
        place = self.directory.line_of(sort_hash)
        low = lines[place].first if place > 0 else ""
        high = lines[place + 1].first if place + 1 < len(lines) else sorthash.ABOVE
        until = self.directory.before[place + 1] + self._weights[self._between("", high)[1]]
        return low, high, self.total - until

    def load_buckets(self, hashes: Iterable[str]) -> None:
        """Load the buckets for these hashes in one call."""
        self._load_missing(
            sorted({self.directory.line_of(sort_hash) for sort_hash in hashes}), sorthash.ABOVE
        )

    def position(self, sort_hash: str) -> int:
        """Count the rows before a hash."""
        before = self.directory.position(sort_hash, self._bucket_of(sort_hash))
        return before + self._weights[bisect.bisect_left(self._hashes, sort_hash)]

    def roots(self, scheme: sorthash.Scheme) -> list[str]:
        """List discussions' hashes in reading order. Some discussions may no longer have rows."""
        return sorted(self.changed_roots(scheme).union(self.directory.roots))

    def changed_roots(self, scheme: sorthash.Scheme) -> set[str]:
        """Return the hashes of the discussions with a listed row among the marks."""
        return {buckets.root_of(scheme, mark.sort_hash) for mark in self._marks if mark.json}

    def size_of_root(self, root: str) -> int:
        """Count the rows of a discussion, including its root, without loading a bucket."""
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
            self._load_missing((place,), sorthash.ABOVE)
        return self._read[place]

    def _bucket_rows(self, low: str, high: str) -> Iterator[buckets.ListedEntry]:
        """Yield the bucket rows of a range. Load each bucket when the iteration reaches it."""
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
        """Load the buckets that may contain the first `limit` rows of a range."""
        first = self.directory.line_of(low)
        # The number of rows before the range is known only after the range's first bucket is
        # loaded, so loading takes up to two calls.
        wanted = limit + self.directory.position(low, self._bucket(first))
        wanted += sum(weight_of(mark) < 0 for mark in self._marks)
        last = bisect.bisect_left(self.directory.before, wanted)
        self._load_missing(range(first, min(last, len(self.directory.lines))), high)

    def _load_missing(self, places: Iterable[int], high: str) -> None:
        lines = self.directory.lines
        missing = [
            place
            for place in places
            if place >= 0 and place not in self._read and lines[place].first < high
        ]
        if missing:
            loaded = self._load([lines[place].key for place in missing])
            self._read.update(zip(missing, loaded, strict=True))
