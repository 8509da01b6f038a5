"""Compute the places of a thread's comments from their links and numbers (pure).

The source of truth for a comment's place is its parent link and its number. The link cannot be true
if the parent is missing or the links form a circle. Then the comment that this one answers
(`reply_to`) determines the parent: the parent is that comment or, at the deepest level, that
comment's parent. If the answered comment is missing too, this comment becomes a root. If two
siblings have the same number, the older sibling keeps the number, and the other sibling gets a new
one. Numbers are never reused.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Status
from comments.tree import values

Rows = Mapping[str, records.Comment]


def places(scheme: sorthash.Scheme, rows: Rows) -> dict[str, values.TreePlace]:
    """Compute each comment's place, by id."""
    children: dict[str | None, list[records.Comment]] = {}
    for row_id, parent in _parents(scheme, rows).items():
        children.setdefault(parent, []).append(rows[row_id])
    by_id: dict[str, values.TreePlace] = {}
    waiting: list[tuple[str | None, str, int]] = [(None, "", 0)]
    while waiting:
        parent, above, level = waiting.pop()
        for row, number in _numbered_siblings(children.get(parent, []), parent):
            sort_hash = sorthash.child(scheme, above, number)
            by_id[row.id] = values.TreePlace(
                id=row.id,
                was_at=row.revision,
                parent=parent,
                number=number,
                level=level,
                sort_hash=sort_hash,
                slug=sorthash.slug(scheme, sort_hash),
                status=row.status.value,
                listed=row.status is Status.APPROVED,
                child_count=0,
            )
            waiting.append((row.id, sort_hash, level + 1))
    return _with_descendants(by_id)


def least_root_count(found: Mapping[str, values.TreePlace]) -> int:
    """Return the minimum value of the counter that numbers the thread's roots."""
    return max((place.number + 1 for place in found.values() if place.parent is None), default=0)


def _parents(scheme: sorthash.Scheme, rows: Rows) -> dict[str, str | None]:
    """Return each comment's parent: the stored parent if it can be true, otherwise another one."""
    parents = {row.id: row.parent for row in rows.values()}
    lost = [row for row in rows.values() if _is_lost(scheme, rows, row)]
    for row in lost:
        parents[row.id] = None
    lost += _cut_circles(rows, parents)
    for row in sorted(lost, key=_age):
        parents[row.id] = _parent_from_answer(scheme, rows, parents, row)
    return parents


def _is_lost(scheme: sorthash.Scheme, rows: Rows, row: records.Comment) -> bool:
    """Return whether a comment's parent is missing or contradicts the comment that it answers."""
    if row.parent is not None and row.parent not in rows:
        return True
    answered = rows.get(row.reply_to or "")
    if answered is None or row.parent == answered.id:
        return False
    # At the deepest level, a reply has the same parent as the comment that it answers. If the
    # levels of a scheme were raised, such replies keep their places.
    return row.parent != answered.parent or (answered.parent is None and scheme.levels > 1)


def _cut_circles(rows: Rows, parents: dict[str, str | None]) -> list[records.Comment]:
    """Cut each circle of links, usually at its oldest comment; return the comments at the cuts."""
    rooted: set[str] = set()
    cut: list[records.Comment] = []
    for start in sorted(rows.values(), key=_age):
        path: dict[str, None] = {}
        ancestor: str | None = start.id
        while ancestor is not None and ancestor not in rooted:
            if ancestor in path:
                parents[ancestor] = None
                cut.append(rows[ancestor])
                break
            path[ancestor] = None
            ancestor = parents[ancestor]
        rooted.update(path)
    return cut


def _parent_from_answer(
    scheme: sorthash.Scheme,
    rows: Rows,
    parents: Mapping[str, str | None],
    row: records.Comment,
) -> str | None:
    """Return the parent that follows from the comment that `row` answers; None for a root."""
    if row.reply_to is None or row.reply_to not in rows:
        return None
    above: list[str] = []
    ancestor: str | None = row.reply_to
    while ancestor is not None:
        above.append(ancestor)
        ancestor = parents[ancestor]
    if row.id in above:
        return None  # The answered comment is a descendant of this one
    is_deepest = len(above) >= scheme.levels
    return parents[row.reply_to] if is_deepest else row.reply_to


def _age(row: records.Comment) -> tuple[object, ...]:
    return (row.created, row.id)


def _numbered_siblings(
    siblings: Sequence[records.Comment], parent: str | None
) -> Iterator[tuple[records.Comment, int]]:
    """Yield siblings with their numbers.

    Numbers that are duplicates or too small are replaced.

    Comments that were already children of this parent take precedence over comments that were
    moved.
    """
    first = 0 if parent is None else 1
    siblings = sorted(
        siblings, key=lambda row: (row.number, row.parent != parent, row.created, row.id)
    )
    free = max((row.number for row in siblings), default=first - 1) + 1
    taken: set[int] = set()
    for row in siblings:
        number = row.number
        if number in taken or number < first:
            number, free = max(free, first), max(free, first) + 1
        taken.add(number)
        yield row, number


def _with_descendants(places: dict[str, values.TreePlace]) -> dict[str, values.TreePlace]:
    """Add the values that depend on descendants: `listed` and the child counters."""
    listed = {place.id for place in places.values() if place.listed}
    counters: dict[str, int] = {}
    for place in sorted(places.values(), key=lambda place: -place.level):
        if place.parent is not None:
            counters[place.parent] = max(counters.get(place.parent, 0), place.number)
            if place.id in listed:
                listed.add(place.parent)
    return {
        place.id: dataclasses.replace(
            place, listed=place.id in listed, child_count=counters.get(place.id, 0)
        )
        for place in places.values()
    }
