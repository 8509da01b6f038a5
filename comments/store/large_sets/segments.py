"""Represent a large set as sorted segments, marks that override them, and directories (pure).

This module owns the stored forms of a set and the operations on them. A *segment* is a sorted run
of ids. A *mark* states whether one id belongs to the set, and overrides segments and older marks. A
*directory* has one line per segment. A directory that is too large for its entity is divided into
segments of lines, and then has one line for each of these segments.

    segment    zlib(msgpack [id...])           sorted, without duplicates
    lines      zlib(msgpack [line...])         in the order of their ids
    line       [key, first, count]             count: the number of ids below the line
    directory  zlib(msgpack [depth, lines])    depth 0: the lines name segments of ids

Ids are sorted by their UTF-8 bytes, which is also the order of Python's strings and Datastore's
keys.

Functions take and return sets as sorted iterators, so memory never contains a whole set.
"""

import bisect
import heapq
import itertools
import operator
import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from comments.domain import decoders

# A mark: an id, and whether the id belongs to the set.
Mark = tuple[str, bool]

_OVERHEAD = 5  # The maximum number of bytes that msgpack puts before a text.
_FAST = 1  # Zlib's compression level; higher levels gain little for random ids.


class SegmentSummary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A line of a directory: the description of one segment."""

    key: str
    first: str
    count: int


class SetDirectory(msgspec.Struct, frozen=True, array_like=True):
    """The top level of a set.

    If `depth` is above 0, each line names a segment that contains lines.
    """

    depth: int = 0
    lines: tuple[SegmentSummary, ...] = ()

    @property
    def count(self) -> int:
        """Return the number of ids in the segments."""
        return sum(line.count for line in self.lines)


def merge_signed(present: Iterable[str], absent: Iterable[str]) -> Iterator[Mark]:
    """Merge two sorted lists of ids into the marks of one generation."""
    return heapq.merge(
        ((member, True) for member in present), ((member, False) for member in absent)
    )


def overlaid(older: Iterable[Mark], newer: Iterable[Mark]) -> Iterator[Mark]:
    """Merge the marks of two generations; for an id in both, take the newer mark."""
    # The merge is stable, so an id's newer mark comes after its older mark.
    both = heapq.merge(older, newer, key=_id)
    for _, marks in itertools.groupby(both, key=_id):
        *_, last = marks
        yield last


def apply_marks(ids: Iterable[str], marks: Iterable[Mark]) -> Iterator[str]:
    """Apply marks to a set's stored ids, and yield the resulting ids."""
    stored = ((member, True) for member in ids)
    return (member for member, belongs in overlaid(stored, marks) if belongs)


def gain(ids: Iterable[str], marks: Sequence[Mark]) -> int:
    """Return by how many ids the marks change the size of a set."""
    named = {member for member, _ in marks}
    return sum(belongs for _, belongs in marks) - sum(member in named for member in ids)


def runs(ids: Iterable[str], most: int) -> Iterator[list[str]]:
    """Divide ids into runs of about `most` bytes.

    A run exceeds `most` by less than one id. If there are several runs, only the last can be
    smaller than half of `most`.
    """
    run: list[str] = []
    total = 0
    for member in ids:
        run.append(member)
        total += _weight(member)
        if total > 2 * most:
            first = _count_reaching(run, most)
            yield run[:first]
            run = run[first:]
            total = size(run)
    # Divide the remainder evenly to avoid a tiny last run.
    number = -(-total // most)
    while run:
        first = _count_reaching(run, -(-total // number))
        yield run[:first]
        run = run[first:]
        total, number = size(run), max(1, number - 1)


def size(ids: Iterable[str]) -> int:
    """Return the uncompressed size of ids in a segment, in bytes."""
    return sum(map(_weight, ids))


def _weight(each: str) -> int:
    return len(each.encode()) + _OVERHEAD


def _count_reaching(run: Sequence[str], most: int) -> int:
    """Return how many ids, starting with the first, are needed to reach `most` bytes.

    If all ids together are smaller than `most`, return the number of all ids.
    """
    sums = itertools.accumulate(map(_weight, run))
    return 1 + next((place for place, total in enumerate(sums) if total >= most), len(run) - 1)


def place_of(lines: Sequence[SegmentSummary], each: str) -> int:
    """Return the index of the line whose range contains an id.

    The first range has no lower bound.
    """
    return max(0, bisect.bisect_right(lines, each, key=lambda line: line.first) - 1)


def spans(lines: Iterable[SegmentSummary]) -> Iterator[tuple[SegmentSummary, str | None]]:
    """Pair each line with the first id of the next line, and the last line with None."""
    one, other = itertools.tee(lines)
    next(other, None)
    ends: Iterator[str | None] = (line.first for line in other)
    return zip(one, itertools.chain(ends, [None]), strict=False)


class Ahead(Iterator[Mark]):
    """An iterator over marks that can be consumed range by range."""

    def __init__(self, marks: Iterable[Mark]) -> None:
        self._marks = iter(marks)
        self._next = next(self._marks, None)

    def __next__(self) -> Mark:
        if self._next is None:
            raise StopIteration
        mark, self._next = self._next, next(self._marks, None)
        return mark

    def is_before(self, end: str | None) -> bool:
        """Return whether a mark below `end` remains; None means that there is no limit."""
        return self._next is not None and (end is None or self._next[0] < end)

    def until(self, end: str | None) -> Iterator[Mark]:
        """Yield the marks below `end`."""
        while self.is_before(end):
            yield next(self)


def encode_ids(ids: Sequence[str]) -> bytes:
    """Encode a segment in the stored form."""
    return _pack(ids)


def decode_ids(stored: bytes) -> list[str]:
    """Decode a stored segment."""
    return _IDS.decode(zlib.decompress(stored))


def encode_lines(lines: Sequence[SegmentSummary]) -> bytes:
    """Encode a segment of lines in the stored form."""
    return _pack(lines)


def decode_lines(stored: bytes) -> tuple[SegmentSummary, ...]:
    """Decode a stored segment of lines."""
    return _LINES.decode(zlib.decompress(stored))


def encode_directory(directory: SetDirectory) -> bytes:
    """Encode a directory in the stored form."""
    return _pack(directory)


def decode_directory(stored: bytes) -> SetDirectory:
    """Decode a stored directory."""
    return _DIRECTORY.decode(zlib.decompress(stored))


def _pack(value: object) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(value), _FAST)


_id = operator.itemgetter(0)
_IDS = decoders.msgpack(list[str])
_LINES = decoders.msgpack(tuple[SegmentSummary, ...])
_DIRECTORY = decoders.msgpack(SetDirectory)
