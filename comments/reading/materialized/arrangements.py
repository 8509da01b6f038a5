"""Represent orders of whole discussions as ranges of positions in reading order (pure).

Every order of discussions is a sequence of ranges: `thread` is one range, `recent` is the ranges of
the discussions in reverse, and `best` is the ranges of the ranked discussions followed by the rest.
The directory determines where each discussion starts. The position of a comment in an order, and
the comments at a position, are therefore known without reading other pages. Positions count from
0. All positions refer to one view, so they include changes that are not compacted yet.
"""

import abc
import bisect
import functools
import itertools
from collections.abc import Iterator

from comments.domain.ids import sorthash
from comments.reading.materialized import buckets, merged_view, ranking


class Arrangement(abc.ABC):
    """An order of a view's comments."""

    def __init__(self, view: merged_view.View) -> None:
        self._view = view

    def ranges(self, offset: int, limit: int) -> list[range]:
        """Return the ranges of the comments, without the first `offset` comments."""
        parts: list[range] = []
        left = limit
        for stretch in self._from(offset):
            if left <= 0:
                break
            part = stretch[:left]
            left -= len(part)
            if part:
                parts.append(part)
        return parts

    @abc.abstractmethod
    def _from(self, offset: int) -> Iterator[range]:
        """Yield the ranges in this order, without the first `offset` comments."""

    @abc.abstractmethod
    def position(self, sort_hash: str, start: int) -> int:
        """Return the position of a hash in this order.

        `start` is the position of the hash in reading order.
        """

    def _discussion(self, root: str) -> range:
        start = self._view.start_of_root(root)
        return range(start, start + self._view.size_of_root(root))


class Reading(Arrangement):
    """The discussions in reading order."""

    def _from(self, offset: int) -> Iterator[range]:
        yield range(offset, self._view.total)

    def position(self, sort_hash: str, start: int) -> int:  # noqa: ARG002 - other orders need it
        """Return the position in reading order."""
        return start


class Recent(Arrangement):
    """The discussions in reverse order."""

    def __init__(self, view: merged_view.View, scheme: sorthash.Scheme) -> None:
        super().__init__(view)
        self._scheme = scheme

    def _from(self, offset: int) -> Iterator[range]:
        view = self._view
        roots = view.roots(self._scheme)
        # The discussion at this position in reading order contains the first comment.
        wanted = view.total - 1 - offset
        place = bisect.bisect_right(roots, wanted, key=view.start_of_root)
        for root in reversed(roots[:place]):
            discussion = self._discussion(root)
            skipped = max(0, offset - (view.total - discussion.stop))
            yield discussion[skipped:]

    def position(self, sort_hash: str, start: int) -> int:
        """Count the comments of newer discussions and those before the hash in its discussion."""
        own = self._discussion(buckets.root_of(self._scheme, sort_hash))
        return self._view.total - own.stop + start - own.start


class Best(Arrangement):
    """Ranked discussions, best first, and then all others in reading order."""

    def __init__(
        self, view: merged_view.View, scheme: sorthash.Scheme, ranked: ranking.Ranking
    ) -> None:
        super().__init__(view)
        self._scheme = scheme
        self._ranking = ranked

    @functools.cached_property
    def _ranked_ranges(self) -> list[range]:
        return [self._discussion(discussion.sort_hash) for discussion in self._ranking.ranked]

    @functools.cached_property
    def _before(self) -> list[int]:
        """Return prefix sums: the number of comments before each ranked discussion."""
        return [0, *itertools.accumulate(map(len, self._ranked_ranges))]

    def _from(self, offset: int) -> Iterator[range]:
        ranked = self._before[-1]
        if offset < ranked:
            place = bisect.bisect_right(self._before, offset) - 1
            yield self._ranked_ranges[place][offset - self._before[place] :]
            yield from self._ranked_ranges[place + 1 :]
        yield from _without_first(self._unranked_ranges(), max(0, offset - ranked))

    def _unranked_ranges(self) -> Iterator[range]:
        """Yield the ranges between the ranked discussions, in reading order."""
        end = 0
        for discussion in sorted(self._ranked_ranges, key=lambda each: each.start):
            yield range(end, discussion.start)
            end = max(end, discussion.stop)
        yield range(end, self._view.total)

    def position(self, sort_hash: str, start: int) -> int:
        """Count the comments before the hash in this order."""
        root = buckets.root_of(self._scheme, sort_hash)
        place = self._ranking.places.get(root)
        if place is not None:
            return self._before[place] + start - self._ranked_ranges[place].start
        earlier = sum(
            len(discussion) for discussion in self._ranked_ranges if discussion.start < start
        )
        return self._before[-1] + start - earlier


def _without_first(ranges: Iterator[range], count: int) -> Iterator[range]:
    for stretch in ranges:
        yield stretch[count:]
        count = max(0, count - len(stretch))
