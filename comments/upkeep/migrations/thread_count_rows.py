"""Complete the rows with the comment counts of a website's threads (`thread_counts`).

Deliveries add their changes to these rows even before the rows are complete. This module compares
incomplete rows with the threads' own counters, in one snapshot, and adds the difference, as a
recount does. A delivery that finds incomplete rows requests their completion; for example, the
first delivery of a new website does so. `upgrades` completes the rows for the websites of older
releases.

The difference is added only once, because adding it is a step of a repair (`counter_repair`).
Changes between the snapshot and the commit are not lost, because deliveries only add to the rows
and never overwrite them.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from comments import errors
from comments.domain.counters import counting
from comments.events import outbox
from comments.store import ownership, reads, transactions
from comments.store.models import counter_rows
from comments.tree.counters import counter_repair, thread_counts

_TRIES = 5  # Maximum attempts; other processes may correct the same counters.


class _MissingCounts(NamedTuple):
    """What to add to a website's rows; None if the website has too many threads for such rows."""

    step: int
    numbers: Mapping[str, int] | None


def complete(site_id: str) -> None:
    """Complete a website's rows of thread counts, unless they are already complete.

    Raises:
        errors.Overloaded: other processes keep correcting the counters, or the store is busy.
    """
    for _ in range(_TRIES):
        missing = transactions.snapshot(lambda: _missing_counts(site_id))
        if missing is None or _add_missing(site_id, missing):
            return
    raise errors.Overloaded("other processes are repairing the same counters")


def _add_missing(site_id: str, found: _MissingCounts) -> bool:
    mend: Callable[..., ownership.Writes] = counter_repair.closing_writes
    missing: dict[counting.Scope, Mapping[str, int]] = {}
    if found.numbers is not None:
        mend = counter_repair.site_writes
        missing = {counting.listings_scope(site_id): found.numbers}
    step = functools.partial(mend, site_id)
    return transactions.transaction(
        functools.partial(counter_repair.apply_step, step, found.step, missing)
    )


def _missing_counts(site_id: str) -> _MissingCounts | None:
    first = reads.get(counter_rows.site_counter_key(site_id))
    if thread_counts.is_complete(first):
        return None
    step = 0 if first is None else first.mended
    most = thread_counts.MOST * thread_counts.MOST_GROUPS
    where = (("site", "=", site_id),)
    if reads.count(reads.Query("Thread", where=where, limit=most + 1)) > most:
        return _MissingCounts(step, None)
    expected = counting.sums(
        listed_counts(reads.fetch(reads.Query("Counter", where=where))),
        {digest: -number for digest, number in _pending_counts(site_id).items()},
    )
    stored = thread_counts.stored_numbers(site_id, first)
    negative = {digest: -number for digest, number in stored.items()}
    return _MissingCounts(step, counting.sums(expected, negative))


def listed_counts(counters: Iterable[Any]) -> dict[str, int]:
    """Return the number of listed comments of each thread, given the threads' counters."""
    numbers: dict[str, int] = {}
    for message in counters:
        thread = message.properties["scope"].string_value.partition("/")[2]
        here = counter_rows.decode(message.properties["numbers"].string_value)
        digest = counting.thread_digest(thread)
        numbers[digest] = numbers.get(digest, 0) + here.get(counting.LISTED, 0)
    return {digest: number for digest, number in numbers.items() if number}


def _pending_counts(site_id: str) -> dict[str, int]:
    """Return what undelivered events will add."""
    sums = counting.total(
        counting.increments(counting.OF_LISTINGS, change.old, change.new)
        for event in outbox.pending_events(outbox.COUNTERS)
        for change in event.changes
    )
    return counting.by_scope(sums).get(counting.listings_scope(site_id), {})
