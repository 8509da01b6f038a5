"""Compare the places and the order of a thread's comments with the file (pure).

The links to the answered comments determine the parents and levels (`tree`), and the order of the
file's siblings determines their numbers. Numbers have gaps where people or other imports added
comments, so only their order is compared.
"""

import bisect
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

from comments.domain import records, sorthash
from comments.jobs.importers.verification import comment_comparison
from comments.jobs.importers.verification.comment_comparison import FieldDifference


class _Sibling(NamedTuple):
    """A stored comment and its number among the replies to its parent."""

    id: str
    number: int


class TreeComparison:
    """The comparison of one thread. Add the comments in the order of the file."""

    def __init__(self, scheme: sorthash.Scheme) -> None:
        self._scheme = scheme
        self._parents: dict[str, str | None] = {}
        self._levels: dict[str, int] = {}
        self._hashes: dict[str | None, str] = {None: ""}
        self._siblings: dict[str | None, list[_Sibling]] = defaultdict(list)

    def add(
        self, comment_id: str, reply_to: str | None, stored: records.Comment | None
    ) -> Iterator[FieldDifference]:
        """Add a comment, which is stored unless None; yield the differences of its place."""
        parent, level = reply_to, 0 if reply_to is None else self._levels[reply_to] + 1
        if reply_to is not None and level == self._scheme.levels:
            parent, level = self._parents[reply_to], level - 1
        self._parents[comment_id], self._levels[comment_id] = parent, level
        if stored is None:
            return
        if stored.parent != parent:
            yield FieldDifference("parent", stored.parent, parent)
        if stored.level != level:
            yield FieldDifference("level", stored.level, level)
        number = stored.number
        above = self._hashes.get(parent)
        if above is not None:
            sort_hash, number = self._place(above, stored)
            self._hashes[comment_id] = sort_hash
            if sort_hash != stored.sort_hash:
                yield FieldDifference("sort_hash", stored.sort_hash, sort_hash)
            elif number != stored.number:
                yield FieldDifference("number", stored.number, number)
        self._siblings[parent].append(_Sibling(comment_id, number))

    def _place(self, above: str, stored: records.Comment) -> tuple[str, int]:
        """Return a comment's sort hash and number.

        If the two contradict each other, the permalink decides.
        """
        try:
            by_number = sorthash.child(self._scheme, above, stored.number)
        except sorthash.BadSortHash:
            by_number = ""
        if stored.sort_hash == by_number:
            return by_number, stored.number
        try:
            numbers = sorthash.to_numbers(self._scheme, stored.sort_hash)
            by_hash = sorthash.child(self._scheme, above, numbers[-1])
            is_named = sorthash.slug(self._scheme, stored.sort_hash) == stored.slug
        except sorthash.BadSortHash:
            return by_number, stored.number
        if by_hash == stored.sort_hash and (is_named or not by_number):
            return by_hash, numbers[-1]
        return by_number, stored.number

    def order(
        self,
        ranks: Callable[[], dict[str, int]] | None,
        run_of: Callable[[str], Hashable],
        unknown_runs: Callable[[], int],
        *,
        is_reshaped: bool,
    ) -> Iterator[tuple[str, FieldDifference]]:
        """Yield the comments that are not in the order of the file, by id.

        `ranks` returns the order of the file by id, if that is not the order of `add`. `run_of`
        tells which run of an import added a comment: a later run adds its comments after the
        existing ones. It returns None for a comment that one of `unknown_runs` imports added.
        """
        known = ranks() if ranks is not None else None
        for siblings in self._siblings.values():
            if known is not None:
                siblings.sort(key=lambda each: known[each.id])
            if _is_ascending(siblings):
                continue
            by_run: dict[Hashable, list[_Sibling]] = defaultdict(list)
            for each in siblings:
                by_run[run_of(each.id)].append(each)
            reason = comment_comparison.ADDED_LATER
            unknown = _in_runs(by_run.get(None, ()))
            if 1 < len(unknown) <= unknown_runs():
                del by_run[None]
                by_run.update(enumerate(unknown))
                reason = comment_comparison.ADDED_APART
            wrong = {each.id for run in by_run.values() for each in _misplaced(run)}
            yield from _out_of_order(siblings, wrong, reason, is_reshaped=is_reshaped)


def _is_ascending(siblings: Sequence[_Sibling]) -> bool:
    return all(one.number < other.number for one, other in itertools.pairwise(siblings))


def _in_runs(siblings: Sequence[_Sibling]) -> list[list[_Sibling]]:
    """Divide siblings into the fewest runs that could have added them one after another.

    Each run adds its comments in the order of the file, after those of the runs before it.
    """
    runs: list[list[_Sibling]] = []
    last = -1
    for rank, each in sorted(enumerate(siblings), key=lambda item: item[1].number):
        if not runs or rank < last:
            runs.append([])
        runs[-1].append(each)
        last = rank
    return runs


def _out_of_order(
    siblings: Sequence[_Sibling], wrong: Collection[str], explained: str, *, is_reshaped: bool
) -> Iterator[tuple[str, FieldDifference]]:
    """Yield the siblings in `wrong`, or if there are none, those that `explained` explains."""
    reason = comment_comparison.RESHAPED if is_reshaped else ""
    right = sorted(siblings, key=lambda each: each.number)
    places = {each.id: place for place, each in enumerate(right, start=1)}
    misplaced = {each.id for each in _misplaced(siblings)}
    for rank, each in enumerate(siblings, start=1):
        if each.id in wrong:
            yield each.id, FieldDifference("order", places[each.id], rank, reason)
        elif not wrong and each.id in misplaced:
            yield each.id, FieldDifference("order", places[each.id], rank, explained)


def _misplaced(siblings: Sequence[_Sibling]) -> list[_Sibling]:
    """Return the fewest siblings without which the numbers ascend."""
    ends: list[int] = []  # the least number that ends an ascending sequence of each length
    at: list[int] = []  # the sibling with that number
    before: list[int] = []
    for place, each in enumerate(siblings):
        length = bisect.bisect_left(ends, each.number)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(each.number)
            at.append(place)
        else:
            ends[length], at[length] = each.number, place
    kept = set[int]()
    place = at[-1] if at else -1
    while place >= 0:
        kept.add(place)
        place = before[place]
    return [each for place, each in enumerate(siblings) if place not in kept]
