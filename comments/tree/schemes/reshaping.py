"""Compute the tree of a thread under another scheme (pure).

The tree is determined by the links to the answered comments (`reply_to`) and by the order in which
replies arrived. A thread can therefore be moved to any number of levels and back.

Rules:

1. **Parent.** A reply is stored below the comment that it answers. If that comment is on the
   deepest level, the reply is stored as that comment's sibling. If the answered comment is not in
   the thread, the stored parent takes its place.
2. **Order.** Comments that were siblings keep their order. Otherwise, siblings are ordered by date,
   but a reply always comes after the comment that it answers. In a tie, the previous reading order
   decides. Posts and imports number comments in the same order, so a thread gets the order that it
   would have had under the new scheme from the beginning.
3. **Number.** In that order, a comment keeps its number if its parent stays the same and the number
   is greater than the previous sibling's number. Otherwise, its number follows the previous
   sibling's number. Roots start at 0, replies at 1. A child counter is only ever raised.

An independent recursive walk in the tests follows the same rules.
"""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Status

_Rank = tuple[datetime, str, str]


class NewPlace(NamedTuple):
    """The place of a comment under the new scheme."""

    parent: str | None
    number: int
    level: int
    sort_hash: str
    slug: str
    listed: bool
    child_count: int


def places(
    scheme: sorthash.Scheme, rows: Mapping[str, records.Comment], first: int = 0
) -> dict[str, NewPlace]:
    """Return the place of each comment of a thread, by comment id.

    `first` is the smallest number that a root may have.

    Raises:
        errors.Conflict: links form a cycle (`repair` corrects such a thread), or a comment has more
            replies than a segment of the scheme can number.
    """
    answers = answered_ids(rows)
    children, levels = _tree(scheme, rows, answers)
    placed: dict[str, NewPlace] = {}
    waiting: list[tuple[str | None, str]] = [(None, "")]
    while waiting:
        parent, above = waiting.pop()
        previous = first - 1 if parent is None else 0
        for row in _order_siblings(children.pop(parent, []), answers):
            is_free = row.parent == parent and row.number > previous
            previous = row.number if is_free else previous + 1
            try:
                sort_hash = sorthash.child(scheme, above, previous)
            except sorthash.BadSortHash as error:
                raise errors.Conflict("scheme-too-narrow") from error
            placed[row.id] = NewPlace(
                parent, previous, levels[row.id], sort_hash, sorthash.slug(scheme, sort_hash),
                listed=row.status is Status.APPROVED, child_count=row.child_count,
            )  # fmt: skip
            waiting.append((row.id, sort_hash))
    if len(placed) < len(rows):
        raise errors.Conflict("thread-damaged")
    return _settle(placed)


def needed_root_count(placed: Mapping[str, NewPlace]) -> int:
    """Return the smallest value of the root counter that is above all numbers of roots."""
    return max((place.number + 1 for place in placed.values() if place.parent is None), default=0)


def answered_ids(rows: Mapping[str, records.Comment]) -> dict[str, str | None]:
    """Return the comment that each comment of a thread answers; None for the roots."""
    return {
        row.id: next((key for key in (row.reply_to, row.parent) if key in rows), None)
        for row in rows.values()
    }


def _tree(
    scheme: sorthash.Scheme,
    rows: Mapping[str, records.Comment],
    answers: Mapping[str, str | None],
) -> tuple[dict[str | None, list[records.Comment]], dict[str, int]]:
    """Return the children of each comment, and the level of each comment reachable from a root."""
    replies: dict[str | None, list[records.Comment]] = defaultdict(list)
    for row in rows.values():
        replies[answers[row.id]].append(row)
    children: dict[str | None, list[records.Comment]] = defaultdict(list)
    levels: dict[str, int] = {}
    parents: dict[str, str | None] = {}
    waiting = replies.pop(None, [])
    while waiting:
        row = waiting.pop()
        parent = answers[row.id]
        if parent is not None and levels[parent] == scheme.levels - 1:
            parent = parents[parent]
        parents[row.id] = parent
        levels[row.id] = 0 if parent is None else levels[parent] + 1
        children[parent].append(row)
        waiting.extend(replies.pop(row.id, []))
    return children, levels


def _order_siblings(
    siblings: Sequence[records.Comment], answers: Mapping[str, str | None]
) -> list[records.Comment]:
    """Order siblings by rule 2: merge the previous groups of siblings by date."""
    before: dict[str, list[str]] = {}
    after: dict[str, list[records.Comment]] = defaultdict(list)
    ids = {row.id: row for row in siblings}
    last: dict[str | None, str] = {}
    for row in sorted(siblings, key=lambda row: (row.number, row.created, row.id)):
        answered = answers[row.id]
        # Former siblings are in order already, even if damage had put a reply before the comment
        # that it answers.
        is_new = answered in ids and ids[answered].parent != row.parent
        firsts = [
            previous
            for previous in (last.get(row.parent), answered if is_new else None)
            if previous
        ]
        before[row.id] = firsts
        for previous in firsts:
            after[previous].append(row)
        last[row.parent] = row.id
    ready = [(_rank(row), row) for row in siblings if not before[row.id]]
    heapq.heapify(ready)
    out: list[records.Comment] = []
    while ready:
        _, first = heapq.heappop(ready)
        out.append(first)
        for follower in after.pop(first.id, []):
            before[follower.id].remove(first.id)
            if not before[follower.id]:
                heapq.heappush(ready, (_rank(follower), follower))
    return out


def _rank(row: records.Comment) -> _Rank:
    return row.created, row.sort_hash, row.id


def _settle(placed: dict[str, NewPlace]) -> dict[str, NewPlace]:
    """Add the values that depend on the comments below: `listed` and the child counters."""
    for comment_id, place in sorted(placed.items(), key=lambda each: -each[1].level):
        if place.parent is None:
            continue
        parent, own = placed[place.parent], placed[comment_id]
        placed[place.parent] = parent._replace(
            listed=parent.listed or own.listed,
            child_count=max(parent.child_count, own.number),
        )
    return placed
