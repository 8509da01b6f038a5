"""Count earlier comments by page, person and hour, and votes by day (`counting.OF_PERIODS`).

Deliveries count new comments from the first start of this release. This module compares the numbers
of one day with the day's comments, in one snapshot, and adds the difference, as a recount does. The
difference is added only once, because adding it is a step of a repair (`counter_repair`).
"""

import functools
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from comments.domain.counters import counting
from comments.events import outbox
from comments.store import reads
from comments.store.models import comment_rows, conversion, counter_rows
from comments.tree.counters import counter_repair

_AT_ONCE = 100  # Comments per lookup.

_Scopes = dict[counting.Scope, dict[str, int]]


def complete(site_id: str, day: str) -> None:
    """Complete the numbers of a day, such as "2026-01-31".

    Raises:
        errors.Overloaded: other processes keep correcting the counters, or the store is busy.
    """
    look = functools.partial(_compare, site_id, day)
    counter_repair.settle(look, functools.partial(counter_repair.site_writes, site_id))


def _compare(site_id: str, day: str) -> counter_repair.Comparison | None:
    first = reads.get(counter_rows.site_counter_key(site_id))
    numbers = _expected_numbers(site_id, day)
    for scope, stored in _stored_numbers(site_id, day):
        numbers[scope] = counting.difference(numbers.get(scope, {}), stored)
    missing = {scope: more for scope, more in numbers.items() if more}
    step = 0 if first is None else first.mended
    return counter_repair.Comparison(step, missing) if missing else None


def _expected_numbers(site_id: str, day: str) -> _Scopes:
    """Count the comments of a day, without what undelivered events will count."""
    counted = [
        counting.increments(counting.OF_PERIODS, None, state) for state in _states(site_id, day)
    ]
    pending = [
        counting.increments(counting.OF_PERIODS, *(_on(day, state, site_id) for state in change))
        for event in outbox.pending_events(outbox.COUNTERS)
        for change in event.changes
    ]
    negative = [{key: -number for key, number in added.items()} for added in pending]
    return counting.by_scope(counting.total([*counted, *negative]))


def _on(
    day: str, state: counting.CountedState | None, site_id: str
) -> counting.CountedState | None:
    """Return a state if it is counted on this day of this website."""
    return state if state and (state.site, state.day) == (site_id, day) else None


def _states(site_id: str, day: str) -> Iterator[counting.CountedState]:
    """Yield the approved comments of a day."""
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    query = reads.Query(
        "Comment",
        where=(
            ("site", "=", site_id),
            ("status", "=", counting.APPROVED),
            ("created", ">=", begin),
            ("created", "<=", begin + timedelta(days=1, microseconds=-1)),
        ),
        order=("-created",),
        projection=("created", "revision"),
    )
    keys = [comment_rows.comment_key(message.key.path[-1].name) for message in reads.fetch(query)]
    for start in range(0, len(keys), _AT_ONCE):
        for row in reads.get_multi(keys[start : start + _AT_ONCE]):
            if row is not None:
                yield conversion.comment_state(row)


def _stored_numbers(site_id: str, day: str) -> Iterator[tuple[counting.Scope, Mapping[str, int]]]:
    """Yield the stored numbers of a day in the rows of its month, and its votes."""
    votes = counting.day_scope(site_id, day)
    numbers = counter_rows.numbers_of(reads.get(counter_rows.statistics_key(votes)))
    yield votes, {name: numbers.get(name, 0) for name in ("up", "down")}
    first, last = (counter_rows.month_key(site_id, day[:7], edge) for edge in ("", "~"))
    where = (("__key__", ">=", first), ("__key__", "<", last))
    for message in reads.fetch(reads.Query("Month", where=where, order=("__key__",))):
        scope = counter_rows.statistics_scope("Month", message.key.path[-1].name)
        numbers = counter_rows.decode(message.properties["numbers"].string_value)
        yield (
            scope,
            {name: number for name, number in numbers.items() if name[1:3] == day[8:]},
        )


def _negative_days() -> Iterator[tuple[str, str]]:
    """Yield the websites and days that have negative numbers."""
    for message in reads.fetch(reads.Query("Month", order=("__key__",))):
        scope = counter_rows.statistics_scope("Month", message.key.path[-1].name)
        numbers = counter_rows.decode(message.properties["numbers"].string_value)
        for name, number in numbers.items():
            if number < 0:
                yield scope.place, f"{scope.day}-{name[1:3]}"


def complete_days(found: list[Any]) -> None:
    """Complete the numbers of whole websites' days, given the messages of Day rows.

    Without messages, complete the days whose comments were all removed before the scan reached
    them. They have no Day rows any more, but negative numbers.
    """
    if not found:
        for site, day in set(_negative_days()):
            complete(site, day)
    for message in found:
        scope = counter_rows.statistics_scope("Day", message.key.path[-1].name)
        if not scope.category:
            complete(scope.place, scope.day)
