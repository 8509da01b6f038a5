"""Find and repair damage in stored trees.

Parent links and numbers determine every hash, level, slug and listing. For a whole thread, this
module recomputes these values, compares them with the stored values and corrects the differences.
`find_problems` writes nothing. `fix` writes in transactions of at most `_BATCH` comments, each of
which leaves a valid state. If `fix` is interrupted, run it again. After a complete run,
`find_problems` finds nothing unless new damage has occurred.

Links and numbers are the source of truth. If two siblings have the same number, the older sibling
keeps the number and the other sibling gets a new number. A comment whose parent is missing becomes
a root, and so does one comment of each cycle. Counters are raised to the highest assigned number
and never lowered, because a number is never assigned twice.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from comments.domain import records, sorthash
from comments.domain.records import Status
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree import job_writes, values

_BATCH = 100
SECONDS = 240.0  # Seconds for reading one thread; the service aborts transactions after 270 s.


@dataclasses.dataclass(frozen=True, slots=True)
class FieldMismatch:
    """A field that differs from its recomputed value.

    `comment` is "" for a field of the thread itself.
    """

    thread: records.ThreadName
    comment: str
    field: str
    stored: object
    expected: object


def threads(site: str) -> Iterator[records.ThreadName]:
    """Yield the names of a site's threads."""
    query = reads.Query("Thread", where=(("site", "=", site),))
    for entity in reads.walk(query):
        yield records.ThreadName(site, entity.properties["thread"].string_value)


def find_problems(scheme: sorthash.Scheme, name: records.ThreadName) -> list[FieldMismatch]:
    """Compare a thread with the values recomputed from its links and numbers, without writing."""
    rows = _stored(name)
    thread = reads.get(comment_rows.thread_key(name))
    root_count = 0 if thread is None else int(thread.child_count)
    problems: list[FieldMismatch] = []
    places = _places(conversion.scheme_of(thread, scheme), rows)
    for row in rows.values():
        place = places[row.id]
        pairs = {field: (getattr(row, field), getattr(place, field)) for field in _FIELDS}
        pairs["child_count"] = (row.child_count, max(row.child_count, place.child_count))
        problems += [
            FieldMismatch(name, row.id, field, *pair)
            for field, pair in pairs.items()
            if pair[0] != pair[1]
        ]
    expected = max(root_count, _roots_needed(places))
    if root_count != expected:
        problems.append(FieldMismatch(name, "", "child_count", root_count, expected))
    return problems


_FIELDS = ("parent", "number", "level", "sort_hash", "slug", "listed")


def fix(scheme: sorthash.Scheme, name: records.ThreadName) -> int:
    """Repair a thread and return the number of problems that were found."""
    problems = find_problems(scheme, name)
    if not problems:
        return 0
    thread = reads.get(comment_rows.thread_key(name))
    places = _places(conversion.scheme_of(thread, scheme), _stored(name))
    wrong = [places[key] for key in dict.fromkeys(p.comment for p in problems) if key in places]
    # Write parents before children, so that a partial repair is correct from the root down.
    wrong.sort(key=lambda place: place.level)
    for start in range(0, len(wrong), _BATCH):
        _mend(name, wrong[start : start + _BATCH])
    needed = _roots_needed(places)
    transactions.transaction(lambda: transactions.apply(job_writes.mend_thread(name, needed)))
    return len(problems)


def _mend(name: records.ThreadName, places: Sequence[values.TreePlace]) -> None:
    transactions.transaction(lambda: transactions.apply(*job_writes.mend(name, places)))


def _stored(name: records.ThreadName) -> dict[str, records.Comment]:
    query = reads.Query(
        "Comment",
        where=(("thread", "=", comment_rows.thread_key_name(name)),),
        order=("sort_hash",),
    )

    def read() -> dict[str, records.Comment]:
        rows = (conversion.comment_from_message(entity) for entity in reads.fetch(query))
        return {row.id: row for row in rows}

    with connection.within(SECONDS):
        return transactions.at_one_moment(read)


def _roots_needed(places: dict[str, values.TreePlace]) -> int:
    return max((p.number + 1 for p in places.values() if p.parent is None), default=0)


def _places(
    scheme: sorthash.Scheme, rows: dict[str, records.Comment]
) -> dict[str, values.TreePlace]:
    """Recompute each comment's place from links and numbers alone."""
    children = _children(rows)
    places: dict[str, values.TreePlace] = {}
    waiting: list[tuple[str | None, str, int]] = [(None, "", 0)]
    while waiting:
        parent, above, level = waiting.pop()
        for row, number in _numbered(children.get(parent, []), parent):
            sort_hash = sorthash.child(scheme, above, number)
            places[row.id] = values.TreePlace(
                id=row.id,
                was_below=row.parent,
                was=row.number,
                parent=parent,
                number=number,
                level=level,
                sort_hash=sort_hash,
                slug=sorthash.slug(scheme, sort_hash),
                listed=row.status is Status.APPROVED,
                child_count=0,
            )
            waiting.append((row.id, sort_hash, level + 1))
    return _settled(places)


def _children(rows: dict[str, records.Comment]) -> dict[str | None, list[records.Comment]]:
    """Group comments by parent. A comment whose links lead to no root becomes a root."""
    children: dict[str | None, list[records.Comment]] = {}
    rooted = _rooted(rows)
    for row in rows.values():
        children.setdefault(row.parent if row.id in rooted else None, []).append(row)
    return children


def _rooted(rows: dict[str, records.Comment]) -> set[str]:
    """Return the comments whose links lead to a root.

    A cycle is usually cut at its oldest comment.
    """
    rooted: set[str] = set()
    cut: set[str] = set()
    for start in sorted(rows.values(), key=lambda row: (row.created, row.id)):
        path: dict[str, None] = {}
        row: records.Comment | None = start
        while row is not None and row.id not in rooted and row.id not in cut:
            if row.id in path or (row.parent is not None and row.parent not in rows):
                cut.add(row.id)
                break
            path[row.id] = None
            row = None if row.parent is None else rows[row.parent]
        rooted.update(step for step in path if step not in cut)
    return rooted


def _numbered(
    siblings: list[records.Comment], parent: str | None
) -> Iterator[tuple[records.Comment, int]]:
    """Yield siblings with their numbers.

    Numbers that are duplicate or too small are replaced.

    Comments that already were children of this parent take precedence over moved comments.
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


def _settled(places: dict[str, values.TreePlace]) -> dict[str, values.TreePlace]:
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
