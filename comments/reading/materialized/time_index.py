"""Find the place of a time in a thread: how many comments are older, and how many newer (pure).

A page that is flat by time and starts at an offset must skip the comments before it. The store
reads the index entries that a query skips, so skipping 50,000 comments would cost 50 reads. The
directory of a long thread therefore has a *time index*: it divides the comments, in the order of
their times, into chunks of about `CHUNK_ROWS` comments and counts each chunk. A page adds up the
counts and skips comments only within one chunk.

A chunk begins at a time and contains all comments from this time up to the next chunk's time. The
index can therefore be updated without the comments: a comment that appears or disappears changes
one count. New comments are newer than all others and begin new chunks. Comments that appear between
older ones (`late`), for example from an import, make their chunk longer; after `MOST_LATE` of them,
the next compaction reads all times again.

The index counts the comments that the directory lists. `update` adds the changes of a delta.
"""

import bisect
import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

LEAST_ROWS = 2_000  # Comments of the shortest thread with a time index
CHUNK_ROWS = 500  # Skipping the comments of a chunk costs one read: a read skips 1,000.
MOST_LATE = 4_000

Shift = tuple[datetime, int]  # A comment's time; 1 if the comment appears, -1 if it disappears


class TimeChunk(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The comments from the time `since` on, up to the next chunk."""

    since: datetime
    count: int


class TimeIndex(msgspec.Struct, frozen=True, array_like=True):
    """The chunks, oldest first. No comment is newer than `newest`."""

    chunks: tuple[TimeChunk, ...]
    newest: datetime
    late: int = 0


class Start(NamedTuple):
    """A place in an order by time, and the number of comments before it.

    The comments before and after the place are separated by `time`: the comments of this time are
    on the newer side. The beginning of the order has no time.
    """

    time: datetime | None
    before: int


def of_times(times: Sequence[datetime]) -> TimeIndex | None:
    """Make the index of all comments from their times. A short thread needs no index."""
    if len(times) < LEAST_ROWS:
        return None
    ordered = sorted(times)
    return _append(TimeIndex((), ordered[0]), ordered)


def update(index: TimeIndex, shifts: Iterable[Shift]) -> TimeIndex:
    """Add the comments that appear, and subtract those that disappear."""
    since = [chunk.since for chunk in index.chunks]
    counts = [chunk.count for chunk in index.chunks]
    late, newer = index.late, []
    for time, change in shifts:
        if time > index.newest:
            newer.append(time)
            continue
        # Comments that are older than the first chunk belong to it.
        counts[max(0, bisect.bisect_right(since, time) - 1)] += change
        late += change > 0
    chunks = tuple(map(TimeChunk, since, counts))
    return _append(TimeIndex(chunks, index.newest, late), sorted(newer))


def recount(index: TimeIndex, times: Iterable[datetime]) -> TimeIndex:
    """Return the index with the counts of these comments, to compare it with the stored index."""
    empty = tuple(TimeChunk(chunk.since, 0) for chunk in index.chunks)
    counted = update(TimeIndex(empty, index.newest), ((time, 1) for time in times))
    return TimeIndex(counted.chunks, counted.newest, index.late)


def _append(index: TimeIndex, times: Iterable[datetime]) -> TimeIndex:
    """Append comments that are not older than any other comment, in the order of their times."""
    chunks, newest = list(index.chunks), index.newest
    for time in times:
        # Comments of the same time cannot be divided.
        if not chunks or (chunks[-1].count >= CHUNK_ROWS and time > newest):
            chunks.append(TimeChunk(time, 0))
        chunks[-1] = TimeChunk(chunks[-1].since, chunks[-1].count + 1)
        newest = time
    return TimeIndex(tuple(chunks), newest, index.late)


def is_due(index: TimeIndex | None, rows: int) -> bool:
    """Return whether an index must be made of all times, for a thread of this many rows."""
    return rows >= LEAST_ROWS if index is None else index.late > MOST_LATE


def starts(index: TimeIndex | None, *, newest_first: bool) -> list[Start]:
    """List the places at which chunks begin, in an order by time."""
    chunks = () if index is None else index.chunks
    before = list(itertools.accumulate((chunk.count for chunk in chunks), initial=0))
    places = [Start(chunk.since, count) for chunk, count in zip(chunks, before, strict=False)][1:]
    if newest_first:
        places = [Start(start.time, before[-1] - start.before) for start in reversed(places)]
    return [Start(None, 0), *places]
