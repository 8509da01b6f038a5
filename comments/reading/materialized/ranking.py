"""Rank discussions for the order `best` by the votes on their first comments (pure).

This module owns the formula, the stored formats of a ranking and of its first rows, and the
iteration in the order `best`. A *ranking* lists the discussions that have an upvote, best first.
All other discussions follow in thread order, so discussions that are newer than the ranking come
last. Retracted discussions have no rows. A ranking is written once, under a key that contains the
attempt's token, and never changed. A cursor names its ranking, so pages from the same ranking
neither skip nor repeat comments.

    ranking   zlib(msgpack [[hash, up, down]...])
    top       zlib(msgpack [[entry, below]...])        entry as in `buckets`

The *top* contains the first rows in the order `best`, as of one directory. It also contains the
number of rows below each of these rows, so the first page needs no bucket. `compactor` rewrites the
top when it compacts a change to a discussion that the top shows.

The formula is the lower bound of Wilson's score interval for the share up/(up+down) at 95 %
confidence (E. B. Wilson, "Probable inference", JASA 22, 1927; for comments: E. Miller, "How Not To
Sort By Average Rating", 2009). A discussion with 90 upvotes in 100 votes therefore ranks above a
discussion with a single upvote. In a tie, the older discussion comes first. Without an upvote, the
score is 0 regardless of the downvotes, so the discussion is treated like a discussion without
votes.

Stored data outlives releases, so these formats must not change; golden tests check this.
"""

from __future__ import annotations

import functools
import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from comments.domain import decoders
from comments.domain.ids import sorthash
from comments.reading.materialized import buckets, merged_view

KEPT = 3600.0  # Seconds for which a replaced ranking is kept, for cursors that name it.
# Additional seconds, because the process that replaces a ranking and the process that deletes it
# may run on machines whose clocks differ by this much.
SKEW = 600.0
TOP_ROWS = 101  # A first page of 100 rows, and one more row to detect a next page.
TOP_BYTES = 256 * 1024  # Maximum bytes of the JSON of these rows before compression.
MOST_LISTED = 1_000  # Maximum number of hashes in the directory, at most 6 bytes each.
MOST = 50_000  # Maximum number of discussions; Datastore's limit for an entity is 1 MiB.
_Z = 1.959963984540054  # The 97.5 % quantile of the normal distribution.


class RankedDiscussion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A discussion's hash and the votes on its first comment."""

    sort_hash: str
    up: int
    down: int


class TopRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row and the number of rows below it when the top was written."""

    entry: buckets.ListedEntry
    below: int


class Ranking(msgspec.Struct, frozen=True, dict=True):
    """A decoded ranking."""

    ranked: tuple[RankedDiscussion, ...] = ()

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """Return the index of each ranked discussion, by hash."""
        return {discussion.sort_hash: place for place, discussion in enumerate(self.ranked)}


def score(up: int, down: int) -> float:
    """Return the score of these votes, from 0 to 1: the lower bound of Wilson's interval."""
    cast = up + down
    if up <= 0:
        return 0.0
    share, spread = up / cast, _Z * _Z / cast
    middle = share + spread / 2
    return (middle - _Z * math.sqrt((share * (1 - share) + spread / 4) / cast)) / (1 + spread)


def update(base: Ranking, votes: Mapping[str, tuple[int, int]]) -> Ranking:
    """Update a ranking with new votes. `votes` contains the changed discussions' votes, by hash."""
    known = {discussion.sort_hash: discussion for discussion in base.ranked}
    for sort_hash, (up, down) in votes.items():
        known.pop(sort_hash, None)
        if up > 0:
            known[sort_hash] = RankedDiscussion(sort_hash, up, down)
    best = sorted(known.values(), key=lambda each: (-score(each.up, each.down), each.sort_hash))
    return Ranking(tuple(best[:MOST]))


def listed_hashes(ranking: Ranking) -> tuple[str, ...]:
    """Return the ranked hashes for the directory, or nothing if there are more than `MOST_LISTED`.

    A page in the order `best` then needs no read for its ranking.
    """
    hashes = tuple(discussion.sort_hash for discussion in ranking.ranked)
    return hashes if len(hashes) <= MOST_LISTED else ()


def of_hashes(hashes: Iterable[str]) -> Ranking:
    """Return the ranking that a directory lists. The numbers of votes are unknown and set to 0."""
    return Ranking(tuple(RankedDiscussion(sort_hash, 0, 0) for sort_hash in hashes))


def rows(
    view: merged_view.View,
    scheme: sorthash.Scheme,
    ranking: Ranking,
    *,
    after: str,
    limit: int,
) -> Iterator[tuple[buckets.ListedEntry, int]]:
    """Yield the rows after a hash ("" for the start), each with the number of rows below it.

    `limit` is the number of rows that the caller will use. The buckets of these rows are loaded in
    one call.
    """
    if after:
        high = sorthash.subtree_range(buckets.root_of(scheme, after))[1]
        yield from _rows_with_counts(view, after + "\0", high, limit)
    following = list(_following_roots(view, scheme, ranking, after))
    view.read_discussions(following, limit)
    for root in following:
        yield from _rows_with_counts(view, *sorthash.subtree_range(root), limit)


def top_rows(
    view: merged_view.View,
    scheme: sorthash.Scheme,
    ranking: Ranking,
    top: Sequence[TopRow],
    *,
    limit: int,
) -> Iterator[tuple[buckets.ListedEntry, int]]:
    """Yield the rows from the start, like `rows`, but use the rows in `top` first.

    `top` and `ranking` must belong to the view's directory.
    """
    below = {row.entry.sort_hash: row.below for row in top}
    groups = {
        root: [row.entry for row in group]
        for root, group in itertools.groupby(top, lambda row: buckets.root_of(scheme, _hash(row)))
    }
    last = ""
    for root in _top_roots(view, scheme, ranking, list(groups)):
        if root not in groups:
            yield from _rows_with_counts(view, *sorthash.subtree_range(root), limit)
            continue
        entries = groups[root]
        last = entries[-1].sort_hash
        # Changed rows after the last row of the top are yielded with the rest of that row's
        # discussion.
        high = last + "\0" if entries[-1] is top[-1].entry else sorthash.subtree_range(root)[1]
        for entry in view.patch(entries, root, high):
            known = below.get(entry.sort_hash, 0)
            yield entry, known + view.growth_below(entry.sort_hash)
    yield from rows(view, scheme, ranking, after=last, limit=limit)


def top(view: merged_view.View, scheme: sorthash.Scheme, ranking: Ranking) -> list[TopRow]:
    """Make the top of a ranking from a view of the directory without a delta."""
    shown: list[TopRow] = []
    size = 0
    for entry, below in itertools.islice(
        rows(view, scheme, ranking, after="", limit=TOP_ROWS), TOP_ROWS
    ):
        size += len(entry.json)
        if shown and size > TOP_BYTES:
            break
        shown.append(TopRow(entry, below))
    return shown


def may_affect_top(
    scheme: sorthash.Scheme, ranking: Ranking, top: Sequence[TopRow], hashes: Iterable[str]
) -> bool:
    """Return whether changes to the rows at these hashes may affect the top of this ranking."""
    if len(top) < TOP_ROWS:
        return True
    shown = {buckets.root_of(scheme, _hash(row)) for row in top}
    changed = {buckets.root_of(scheme, sort_hash) for sort_hash in hashes}
    last = buckets.root_of(scheme, _hash(top[-1]))
    return not shown.isdisjoint(changed) or any(_stand_before(ranking, changed, last))


def _top_roots(
    view: merged_view.View, scheme: sorthash.Scheme, ranking: Ranking, shown: Sequence[str]
) -> Iterator[str]:
    """Yield the discussions of a top, merged with discussions that are now listed again."""
    # A discussion that was held or hidden keeps its hash, which may sort before the hashes in the
    # top.
    last = shown[-1] if shown else ""
    returned = set(_stand_before(ranking, view.changed_roots(scheme), last)).difference(shown)
    ranked = [root for root in shown if root in ranking.places]
    yield from ranked
    yield from sorted(returned.union(shown[len(ranked) :]))


def _stand_before(ranking: Ranking, roots: Iterable[str], last: str) -> Iterator[str]:
    """Yield the unranked discussions among `roots` that precede `last`, if `last` is unranked."""
    if last in ranking.places:
        return
    yield from (root for root in roots if root not in ranking.places and root < last)


def encode(ranking: Ranking) -> bytes:
    """Encode a ranking in the stored format."""
    return zlib.compress(msgspec.msgpack.encode(ranking.ranked))


def decode(stored: bytes) -> Ranking:
    """Decode a stored ranking."""
    return Ranking(_RANKED.decode(zlib.decompress(stored)))


def encode_top(top: Sequence[TopRow]) -> bytes:
    """Encode a top in the stored format."""
    return zlib.compress(msgspec.msgpack.encode(top))


def decode_top(stored: bytes) -> tuple[TopRow, ...]:
    """Decode a stored top."""
    return _TOP.decode(zlib.decompress(stored))


def _following_roots(
    view: merged_view.View, scheme: sorthash.Scheme, ranking: Ranking, after: str
) -> Iterator[str]:
    """Yield the discussions that follow a hash: first ranked discussions, then all others."""
    root = buckets.root_of(scheme, after)
    place = ranking.places.get(root)
    if not after or place is not None:
        for discussion in ranking.ranked[0 if place is None else place + 1 :]:
            if view.size_of_root(discussion.sort_hash):
                yield discussion.sort_hash
        root = ""
    for other in view.roots(scheme):
        if other > root and other not in ranking.places and view.size_of_root(other):
            yield other


def _rows_with_counts(
    view: merged_view.View, low: str, high: str, limit: int
) -> Iterator[tuple[buckets.ListedEntry, int]]:
    for entry in view.rows(low, high, limit=limit):
        yield entry, view.below(entry.sort_hash)


def _hash(row: TopRow) -> str:
    return row.entry.sort_hash


_RANKED = decoders.msgpack(tuple[RankedDiscussion, ...])
_TOP = decoders.msgpack(tuple[TopRow, ...])
