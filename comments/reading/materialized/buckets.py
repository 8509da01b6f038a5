"""The materialised thread: buckets, and the directory that names them (pure).

Owns their stored forms and the arithmetic over them. A *bucket* is a run of the listed thread in
reading order, each row as the bytes readers get; it is written once and never changed. The
*directory* has a line for each bucket and a *tail*: rows that changed since, which stand beside the
buckets until they are worth rewriting. Rows of the tail win over rows of buckets.

    bucket     zlib(msgpack [entry...])        entry [hash, id, revision, json]
    directory  zlib(msgpack [lines, tail, clearing, dead, changed, best, about, replaced])
    line       [key, first, last, count, heads, roots]
    mark       [hash, id, revision, json, held]        json "" for a row that is no longer listed
    best       [ranking, top]        keys of what `ranking` draws; nil while nothing has an upvote
    about      [title, url, by]      what the thread shows of itself, for pages that show it

`heads` make subtree sizes exact without reading buckets: for each comment above the bucket's first
row, how many rows of the bucket stand below it, as [length of its hash, rows]. They depend on the
bucket alone, so a line changes only with its bucket. `roots` are the discussions that begin in the
bucket, as [hash, place]. `held` says whether the buckets hold the row too, so sizes need not look.
`clearing` are the rows that were taken in while their flag `unfolded` stands: [id, revision,
listed]. `dead` are buckets of directories before this one, to be deleted. `replaced` are rankings
of directories before this one, with the moment until which cursors may name them: [ranking, until].

Stored bytes are for ever: golden tests hold these forms.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from comments.domain import records, sorthash

_OVERHEAD = 200  # bytes of Python around a line or a row, roughly
_ROOT = 100  # and around a discussion


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One listed row. `json` is its fragment (`presentation.fragment`)."""

    sort_hash: str
    id: str
    revision: int
    json: bytes


class Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row that differs from the buckets. Without `json` readers no longer see it."""

    sort_hash: str
    id: str
    revision: int
    json: bytes
    held: bool

    @property
    def entry(self) -> Entry:
        """The row as it is listed."""
        return Entry(self.sort_hash, self.id, self.revision, self.json)


class Line(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the directory knows of one bucket."""

    key: str
    first: str
    last: str
    count: int
    heads: tuple[tuple[int, int], ...]
    packed_roots: msgspec.Raw

    @property
    def roots(self) -> tuple[tuple[str, int], ...]:
        """The discussions that begin in the bucket, with the place of each.

        They stay packed until somebody asks: a page in reading order never does, and they are most
        of a large directory.
        """
        return _ROOTS.decode(self.packed_roots)

    @property
    def begins(self) -> int:
        """At most how many discussions begin in the bucket. Unpacks nothing."""
        return min(self.count, len(memoryview(self.packed_roots)))


class Clearing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row that the directory holds at a revision while its flag still stands."""

    id: str
    revision: int
    is_listed: bool


class Best(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The keys of the directory's ranking, and of the bucket that holds its first rows."""

    ranking: str
    top: str


class Replaced(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ranking that no directory names any more, and until when it is kept."""

    ranking: str
    until: datetime


class Content(msgspec.Struct, frozen=True, array_like=True):
    """What a directory says. `changed` is the newest change that it has taken in."""

    lines: tuple[Line, ...] = ()
    tail: tuple[Mark, ...] = ()
    clearing: tuple[Clearing, ...] = ()
    dead: tuple[str, ...] = ()
    changed: datetime | None = None
    best: Best | None = None
    about: records.ThreadHeading | None = None
    replaced: tuple[Replaced, ...] = ()


class Bucket(msgspec.Struct, frozen=True, dict=True):
    """A bucket that was read."""

    entries: tuple[Entry, ...]

    @functools.cached_property
    def hashes(self) -> list[str]:
        """The rows' hashes, in order."""
        return [entry.sort_hash for entry in self.entries]

    def count(self, low: str, high: str) -> int:
        """How many rows lie in low <= hash < high."""
        return bisect.bisect_left(self.hashes, high) - bisect.bisect_left(self.hashes, low)


class Directory(msgspec.Struct, frozen=True, dict=True):
    """A directory that was read, with what it adds up to. `version` is its attempt's token.

    `said` is its content, or the stored form of it, which is unpacked when somebody asks.
    """

    version: str
    said: Content | bytes = Content()

    @functools.cached_property
    def content(self) -> Content:
        """What it says."""
        return self.said if isinstance(self.said, Content) else decode_content(self.said)

    @property
    def weight(self) -> int:
        """About how many bytes it takes in a process, with what is worked out about it."""
        size = sum(_OVERHEAD + line.begins * _ROOT for line in self.lines)
        size += sum(_OVERHEAD + len(mark.json) for mark in self.content.tail)
        return size + _OVERHEAD * len(self.content.clearing)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The buckets in reading order."""
        return self.content.lines

    @functools.cached_property
    def clearing(self) -> dict[str, Clearing]:
        """The rows that were taken in and whose flags stand or stood, by id."""
        return {each.id: each for each in self.content.clearing}

    @functools.cached_property
    def taken_in(self) -> dict[str, int]:
        """The revisions at which flagged rows were taken in, by id."""
        return {each.id: each.revision for each in self.content.clearing}

    def holds(self, comment_id: str, revision: int) -> bool:
        """Whether a flagged row was taken in at this revision."""
        return self.taken_in.get(comment_id) == revision

    @functools.cached_property
    def firsts(self) -> list[str]:
        """The first hash of each bucket."""
        return [line.first for line in self.lines]

    @functools.cached_property
    def before(self) -> list[int]:
        """How many rows of buckets come before each line, and at the end how many there are."""
        return [0, *itertools.accumulate(line.count for line in self.lines)]

    @functools.cached_property
    def roots(self) -> dict[str, int]:
        """The position of each discussion's first row among all rows of buckets, in order."""
        return {
            root: before + place
            for line, before in zip(self.lines, self.before, strict=False)
            for root, place in line.roots
        }

    def beyond(self, place: int) -> Mapping[str, int]:
        """The rows of all buckets behind a line, below each comment above the next line's first."""
        return self._beyond[place]

    @functools.cached_property
    def _beyond(self) -> list[dict[str, int]]:
        beyond: list[dict[str, int]] = [{} for _ in self.lines]
        for place in range(len(self.lines) - 2, -1, -1):
            following = self.lines[place + 1]
            for length, count in following.heads:
                above = following.first[:length]
                # Rows beyond the next bucket count if the next bucket ends below the same comment.
                more = beyond[place + 1].get(above, 0) if following.last.startswith(above) else 0
                beyond[place][above] = count + more
        return beyond

    def line_of(self, sort_hash: str) -> int:
        """The place of the line in whose range a hash lies; -1 if there are no buckets."""
        if not self.lines:
            return -1
        return max(0, bisect.bisect_right(self.firsts, sort_hash) - 1)

    def below(self, sort_hash: str, bucket: Bucket | None) -> int:
        """How many rows of buckets lie below a hash, itself left out.

        `bucket` is that of `line_of`; None if there are no buckets.
        """
        if bucket is None:
            return 0
        low, high = sorthash.subtree_range(sort_hash)
        within = bucket.count(low + "\0", high)
        return within + self._beyond[self.line_of(sort_hash)].get(sort_hash, 0)

    def position(self, sort_hash: str, bucket: Bucket | None) -> int:
        """How many rows of buckets come before a hash. `bucket` is that of `line_of`."""
        if bucket is None:
            return 0
        place = bisect.bisect_left(bucket.hashes, sort_hash)
        return self.before[self.line_of(sort_hash)] + place


def line(scheme: sorthash.Scheme, key: str, entries: Sequence[Entry], previous: str) -> Line:
    """Describe a bucket. `previous` is the hash of the row before it, "" for none."""
    first = entries[0].sort_hash
    bucket = Bucket(tuple(entries))
    heads = tuple(
        (len(above), bucket.count(*sorthash.subtree_range(above)))
        for above in sorthash.ancestors(scheme, first)
    )
    return Line(
        key=key,
        first=first,
        last=entries[-1].sort_hash,
        count=len(entries),
        heads=heads,
        packed_roots=pack_roots(tuple(_roots(scheme, entries, previous))),
    )


def pack_roots(roots: Sequence[tuple[str, int]]) -> msgspec.Raw:
    """Discussions as a line holds them."""
    return msgspec.Raw(msgspec.msgpack.encode(roots))


def _roots(
    scheme: sorthash.Scheme, entries: Iterable[Entry], previous: str
) -> Iterator[tuple[str, int]]:
    open_root = root_of(scheme, previous)
    for place, entry in enumerate(entries):
        # Most rows are replies: their root is open, and needs no parsing.
        if open_root and entry.sort_hash.startswith(open_root):
            continue
        open_root = root_of(scheme, entry.sort_hash)
        yield open_root, place


def root_of(scheme: sorthash.Scheme, sort_hash: str) -> str:
    """The hash of the discussion that a hash belongs to."""
    return next(sorthash.segments(scheme, sort_hash), "")


def encode_bucket(entries: Sequence[Entry]) -> bytes:
    """Write a bucket."""
    return zlib.compress(msgspec.msgpack.encode(entries))


def decode_bucket(stored: bytes) -> Bucket:
    """Read a bucket."""
    return Bucket(_ENTRIES.decode(zlib.decompress(stored)))


def encode_content(content: Content) -> bytes:
    """Write what a directory says."""
    return zlib.compress(msgspec.msgpack.encode(content))


def decode_content(stored: bytes) -> Content:
    """Read what a directory says."""
    return _CONTENT.decode(zlib.decompress(stored))


_ENTRIES = msgspec.msgpack.Decoder(tuple[Entry, ...])
_ROOTS = msgspec.msgpack.Decoder(tuple[tuple[str, int], ...])
_CONTENT = msgspec.msgpack.Decoder(Content)
