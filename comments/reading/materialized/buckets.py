"""Define the stored formats of buckets and directories, and compute positions and sizes (pure).

A *bucket* contains consecutive listed rows in reading order, including the JSON that readers get. A
bucket is written once and never changed. The *directory* has a line for each bucket, and a *tail*,
which contains changed rows until rewriting a bucket is worth the cost. Tail rows override bucket
rows.

    bucket     zlib(msgpack [entry...])        entry [hash, id, revision, json]
    directory  zlib(msgpack [lines, tail, clearing, dead, changed, best, about, replaced,
               pinned, shape, scheme, times])
    line       [key, first, last, count, heads, roots]
    mark       [hash, id, revision, json, held]        json "" for a row that is no longer listed
    best       [ranking, top, ranked]    see `ranking`; nil while no discussion has an upvote
    about      [title, url, by]      the thread's heading, and the comment that set it

- `heads` makes it possible to compute exact subtree sizes without reading buckets. `heads` contains
  a pair for each ancestor of the bucket's first row: [length of the ancestor's hash, number of the
  ancestor's descendants in the bucket]. `heads` depends only on the bucket, so a line changes only
  with its bucket.
- `roots` lists the discussions that begin in the bucket: [hash, index].
- `held` is true if a bucket also contains the row, so sizes are known without reading the bucket.
- `clearing` lists the compacted rows with `unfolded` flags that are still set: [id, revision,
  listed].
- `dead` lists the buckets that earlier directories named and that must be deleted.
- `replaced` lists rankings of earlier directories, with the times when cursors that name them
  expire: [ranking, until].
- `pinned` lists the pinned comments in reading order: [hash, id].
- `shape` and `scheme` belong to the tree that the directory shows (`tree/schemes/scheme_change`).
  `scheme` is in its stored form. In directories of older releases, `scheme` is "", which means the
  site's scheme.
- `times` is the index of a long thread's comments by time (`time_index`), otherwise nil.

Stored data outlives releases, so these formats must not change; golden tests check this.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from comments.domain import decoders, records
from comments.domain.ids import sorthash
from comments.reading.materialized import time_index

_OVERHEAD = 200  # Approximate bytes of Python objects for a line or a row.
_ROOT = 100  # Approximate bytes of Python objects for a discussion.


class ListedEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One listed row. `json` is the row's fragment (`presentation.fragment`)."""

    sort_hash: str
    id: str
    revision: int
    json: bytes


class ChangedEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row that differs from the buckets. If `json` is empty, the row is no longer listed."""

    sort_hash: str
    id: str
    revision: int
    json: bytes
    held: bool

    @property
    def entry(self) -> ListedEntry:
        """Return this row as a listed row."""
        return ListedEntry(self.sort_hash, self.id, self.revision, self.json)


class BucketSummary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The directory's description of one bucket."""

    key: str
    first: str
    last: str
    count: int
    heads: tuple[tuple[int, int], ...]
    packed_roots: msgspec.Raw

    @property
    def roots(self) -> tuple[tuple[str, int], ...]:
        """Return the discussions that begin in the bucket, with their indexes.

        The discussions stay packed until they are needed, because they make up most of a large
        directory, and pages in reading order never use them.
        """
        return _ROOTS.decode(self.packed_roots)

    @property
    def begins(self) -> int:
        """Return an upper bound for the bucket's number of discussions, without unpacking them."""
        return min(self.count, len(memoryview(self.packed_roots)))


class Clearing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row that the directory contains at this revision, and that is still flagged."""

    id: str
    revision: int
    is_listed: bool


class RankingKeys(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The keys of the directory's ranking and of the bucket with the ranking's first rows.

    `ranked` contains the hashes of the ranked discussions, best first, so that pages need not read
    the ranking. `ranked` is empty if there are too many ranked discussions, or if an older release
    wrote the directory.
    """

    ranking: str
    top: str
    ranked: tuple[str, ...] = ()


class ReplacedRanking(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ranking that the directory no longer uses, and the time when it expires."""

    ranking: str
    until: datetime


class DirectoryContent(msgspec.Struct, frozen=True, array_like=True):
    """The content of a directory. `changed` is the time of the newest included change."""

    lines: tuple[BucketSummary, ...] = ()
    tail: tuple[ChangedEntry, ...] = ()
    clearing: tuple[Clearing, ...] = ()
    dead: tuple[str, ...] = ()
    changed: datetime | None = None
    best: RankingKeys | None = None
    about: records.ThreadHeading | None = None
    replaced: tuple[ReplacedRanking, ...] = ()
    pinned: tuple[tuple[str, str], ...] = ()
    shape: int = 0
    scheme: str = ""
    times: time_index.TimeIndex | None = None


class Bucket(msgspec.Struct, frozen=True, dict=True):
    """A decoded bucket."""

    entries: tuple[ListedEntry, ...]

    @functools.cached_property
    def hashes(self) -> list[str]:
        """Return the rows' hashes, in order."""
        return [entry.sort_hash for entry in self.entries]

    def count(self, low: str, high: str) -> int:
        """Count the rows with low <= hash < high."""
        return bisect.bisect_left(self.hashes, high) - bisect.bisect_left(self.hashes, low)


class Directory(msgspec.Struct, frozen=True, dict=True):
    """A directory and values that are derived from it.

    `version` is the token of the attempt that wrote the directory.

    `said` is the decoded content, or the stored content until it is first used.
    """

    version: str
    said: DirectoryContent | bytes = DirectoryContent()

    @functools.cached_property
    def content(self) -> DirectoryContent:
        """Return the decoded content."""
        return self.said if isinstance(self.said, DirectoryContent) else decode_content(self.said)

    @property
    def weight(self) -> int:
        """Return the approximate memory use in bytes, including the derived values."""
        size = sum(_OVERHEAD + line.begins * _ROOT for line in self.lines)
        size += sum(_OVERHEAD + len(mark.json) for mark in self.content.tail)
        return size + _OVERHEAD * len(self.content.clearing)

    @property
    def lines(self) -> tuple[BucketSummary, ...]:
        """Return the lines of the buckets, in reading order."""
        return self.content.lines

    @property
    def total(self) -> int:
        """Return the number of rows that readers see without a delta."""
        tail = sum(bool(mark.json) - mark.held for mark in self.content.tail)
        return self.before[-1] + tail

    @functools.cached_property
    def rows_to_clear(self) -> dict[str, Clearing]:
        """Return, by id, the compacted rows that were flagged when the directory was written."""
        return {mark.id: mark for mark in self.content.clearing}

    @functools.cached_property
    def compacted_revisions(self) -> dict[str, int]:
        """Return, by id, the revisions at which flagged rows were compacted."""
        return {mark.id: mark.revision for mark in self.content.clearing}

    def has_compacted(self, comment_id: str, revision: int) -> bool:
        """Return whether a flagged row was compacted at this revision."""
        return self.compacted_revisions.get(comment_id) == revision

    @functools.cached_property
    def firsts(self) -> list[str]:
        """Return the first hash of each bucket."""
        return [line.first for line in self.lines]

    @functools.cached_property
    def before(self) -> list[int]:
        """Return the number of bucket rows before each line, followed by the total number."""
        return [0, *itertools.accumulate(line.count for line in self.lines)]

    @functools.cached_property
    def roots(self) -> dict[str, int]:
        """Return, by hash, the position of each discussion's first row among all bucket rows."""
        return {
            root: before + place
            for line, before in zip(self.lines, self.before, strict=False)
            for root, place in line.roots
        }

    def beyond(self, place: int) -> Mapping[str, int]:
        """Count descendants in all buckets after a line.

        Returns:
            A count for each ancestor of the next line's first row, by the ancestor's hash.
        """
        return self._beyond[place]

    @functools.cached_property
    def _beyond(self) -> list[dict[str, int]]:
        beyond: list[dict[str, int]] = [{} for _ in self.lines]
        for place in range(len(self.lines) - 2, -1, -1):
            following = self.lines[place + 1]
            for length, count in following.heads:
                above = following.first[:length]
                # If the next bucket ends below the same comment, add the comment's rows after that
                # bucket.
                more = beyond[place + 1].get(above, 0) if following.last.startswith(above) else 0
                beyond[place][above] = count + more
        return beyond

    def line_of(self, sort_hash: str) -> int:
        """Return the index of the line for a hash, or -1 if there are no buckets."""
        if not self.lines:
            return -1
        return max(0, bisect.bisect_right(self.firsts, sort_hash) - 1)

    def below(self, sort_hash: str, place: int, bucket: Bucket) -> int:
        """Count the bucket rows below a hash, excluding the row at the hash itself.

        `place` is `line_of(sort_hash)`, and `bucket` is the bucket of this line.
        """
        low, high = sorthash.subtree_range(sort_hash)
        return bucket.count(low + "\0", high) + self._beyond[place].get(sort_hash, 0)

    def position(self, sort_hash: str, bucket: Bucket | None) -> int:
        """Count the bucket rows before a hash. `bucket` is the bucket at `line_of(sort_hash)`."""
        if bucket is None:
            return 0
        place = bisect.bisect_left(bucket.hashes, sort_hash)
        return self.before[self.line_of(sort_hash)] + place


def line(
    scheme: sorthash.Scheme, key: str, entries: Sequence[ListedEntry], previous: str
) -> BucketSummary:
    """Make a bucket's line. `previous` is the hash of the row before the bucket, or ""."""
    first = entries[0].sort_hash
    bucket = Bucket(tuple(entries))
    heads = tuple(
        (len(above), bucket.count(*sorthash.subtree_range(above)))
        for above in sorthash.ancestors(scheme, first)
    )
    return BucketSummary(
        key=key,
        first=first,
        last=entries[-1].sort_hash,
        count=len(entries),
        heads=heads,
        packed_roots=pack_roots(tuple(_roots(scheme, entries, previous))),
    )


def pack_roots(roots: Sequence[tuple[str, int]]) -> msgspec.Raw:
    """Encode the discussions that a line lists."""
    return msgspec.Raw(msgspec.msgpack.encode(roots))


def _roots(
    scheme: sorthash.Scheme, entries: Iterable[ListedEntry], previous: str
) -> Iterator[tuple[str, int]]:
    open_root = root_of(scheme, previous)
    for place, entry in enumerate(entries):
        # Most rows are below the root of the previous row, so their hashes need not be parsed.
        if open_root and entry.sort_hash.startswith(open_root):
            continue
        open_root = root_of(scheme, entry.sort_hash)
        yield open_root, place


def root_of(scheme: sorthash.Scheme, sort_hash: str) -> str:
    """Return the hash of the root above a hash. For a root, return the hash itself."""
    return next(sorthash.segments(scheme, sort_hash), "")


def encode_bucket(entries: Sequence[ListedEntry]) -> bytes:
    """Encode a bucket's rows in the stored format."""
    return zlib.compress(msgspec.msgpack.encode(entries))


def decode_bucket(stored: bytes) -> Bucket:
    """Decode a stored bucket."""
    return Bucket(_ENTRIES.decode(zlib.decompress(stored)))


def encode_content(content: DirectoryContent) -> bytes:
    """Encode a directory's content in the stored format."""
    return zlib.compress(msgspec.msgpack.encode(content))


def decode_content(stored: bytes) -> DirectoryContent:
    """Decode a stored directory's content."""
    return _CONTENT.decode(zlib.decompress(stored))


_ENTRIES = decoders.msgpack(tuple[ListedEntry, ...])
_ROOTS = decoders.msgpack(tuple[tuple[str, int], ...])
_CONTENT = decoders.msgpack(DirectoryContent)
