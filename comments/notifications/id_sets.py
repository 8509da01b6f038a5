"""Large sets of ids: sorted runs, the marks upon them, and the lists that name the runs (pure).

Owns the stored forms of a set and the arithmetic over them. A *segment* is a sorted run of ids. A
*mark* says of one id that it belongs to the set or that it does not, and overrides what a segment
or an older mark says. A *directory* has a line for each segment; one that is too large for its
entity is cut into segments of lines, and has a line for each of those.

    segment    zlib(msgpack [id...])           sorted, no id twice
    lines      zlib(msgpack [line...])         in the order of their ids
    line       [key, first, count]             count: all ids below it
    directory  zlib(msgpack [depth, lines])    depth 0: the lines name segments of ids

The order is that of the ids' UTF-8, which is that of Python's strings and of a Datastore's keys.

What must stay true: everything here takes and gives iterators, in order, so that no set has to be
in memory. Stored bytes are for ever: golden tests hold these forms.
"""

import bisect
import heapq
import itertools
import operator
import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

# An id, and whether it belongs to the set.
Mark = tuple[str, bool]

_OVERHEAD = 5  # bytes msgpack puts before a text, at most
_FAST = 1  # of zlib: random ids gain little from more


class Line(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a directory knows of one segment."""

    key: str
    first: str
    count: int


class Directory(msgspec.Struct, frozen=True, array_like=True):
    """The top of a set. With `depth` above 0 its lines name segments of lines."""

    depth: int = 0
    lines: tuple[Line, ...] = ()

    @property
    def count(self) -> int:
        """How many ids the segments hold."""
        return sum(line.count for line in self.lines)


def signed(present: Iterable[str], absent: Iterable[str]) -> Iterator[Mark]:
    """The marks of one generation, where each id is in one of two sorted lists."""
    return heapq.merge(((each, True) for each in present), ((each, False) for each in absent))


def overlaid(older: Iterable[Mark], newer: Iterable[Mark]) -> Iterator[Mark]:
    """Marks of two generations as one: of an id that both have, the newer one."""
    # A merge is stable, so the newer mark of an id stands behind the older one.
    both = heapq.merge(older, newer, key=_id)
    for _, marks in itertools.groupby(both, key=_id):
        *_, last = marks
        yield last


def changed(ids: Iterable[str], marks: Iterable[Mark]) -> Iterator[str]:
    """The ids of a set under its marks."""
    stored = ((each, True) for each in ids)
    return (each for each, belongs in overlaid(stored, marks) if belongs)


def gain(ids: Iterable[str], marks: Sequence[Mark]) -> int:
    """How many ids more the marks make of a set, or fewer."""
    named = {each for each, _ in marks}
    return sum(belongs for _, belongs in marks) - sum(each in named for each in ids)


def runs(ids: Iterable[str], most: int) -> Iterator[list[str]]:
    """Cut ids into runs of about `most` bytes.

    A run passes `most` by less than one id; of several, none but the last is below half of it.
    """
    run: list[str] = []
    total = 0
    for each in ids:
        run.append(each)
        total += _weight(each)
        if total > 2 * most:
            first = _reaching(run, most)
            yield run[:first]
            run = run[first:]
            total = size(run)
    # What is left is cut evenly, so that no crumb stays behind.
    number = -(-total // most)
    while run:
        first = _reaching(run, -(-total // number))
        yield run[:first]
        run = run[first:]
        total, number = size(run), max(1, number - 1)


def size(ids: Iterable[str]) -> int:
    """The bytes of ids in a segment, before compression."""
    return sum(map(_weight, ids))


def _weight(each: str) -> int:
    return len(each.encode()) + _OVERHEAD


def _reaching(run: Sequence[str], most: int) -> int:
    """How many ids from the first on reach `most` bytes; all, if they do not."""
    sums = itertools.accumulate(map(_weight, run))
    return 1 + next((place for place, total in enumerate(sums) if total >= most), len(run) - 1)


def place_of(lines: Sequence[Line], each: str) -> int:
    """The place of the line in whose range an id lies; an id below all lies in the first."""
    return max(0, bisect.bisect_right(lines, each, key=lambda line: line.first) - 1)


def spans(lines: Iterable[Line]) -> Iterator[tuple[Line, str | None]]:
    """Each line with the first id of the next one, None behind the last."""
    one, other = itertools.tee(lines)
    next(other, None)
    ends: Iterator[str | None] = (line.first for line in other)
    return zip(one, itertools.chain(ends, [None]), strict=False)


class Ahead(Iterator[Mark]):
    """Marks that are taken range by range."""

    def __init__(self, marks: Iterable[Mark]) -> None:
        self._marks = iter(marks)
        self._next = next(self._marks, None)

    def __next__(self) -> Mark:
        if self._next is None:
            raise StopIteration
        mark, self._next = self._next, next(self._marks, None)
        return mark

    def is_before(self, end: str | None) -> bool:
        """Whether there is a mark below `end`; None is the end of all."""
        return self._next is not None and (end is None or self._next[0] < end)

    def until(self, end: str | None) -> Iterator[Mark]:
        """Take the marks below `end`."""
        while self.is_before(end):
            yield next(self)


def encode_ids(ids: Sequence[str]) -> bytes:
    """Write a segment."""
    return _packed(ids)


def decode_ids(stored: bytes) -> list[str]:
    """Read a segment."""
    return _IDS.decode(zlib.decompress(stored))


def encode_lines(lines: Sequence[Line]) -> bytes:
    """Write a segment of lines."""
    return _packed(lines)


def decode_lines(stored: bytes) -> tuple[Line, ...]:
    """Read a segment of lines."""
    return _LINES.decode(zlib.decompress(stored))


def encode_directory(directory: Directory) -> bytes:
    """Write a directory."""
    return _packed(directory)


def decode_directory(stored: bytes) -> Directory:
    """Read a directory."""
    return _DIRECTORY.decode(zlib.decompress(stored))


def _packed(value: object) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(value), _FAST)


_id = operator.itemgetter(0)
_IDS = msgspec.msgpack.Decoder(list[str])
_LINES = msgspec.msgpack.Decoder(tuple[Line, ...])
_DIRECTORY = msgspec.msgpack.Decoder(Directory)
