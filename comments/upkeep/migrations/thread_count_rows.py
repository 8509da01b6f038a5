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
from collections.abc import Iterable, Mapping
from typing import Any

from comments.domain.counters import counting
from comments.store import reads
from comments.store.models import counter_rows
from comments.tree.counters import counter_repair, thread_counts


def complete(site_id: str) -> None:
    """Complete a website's rows of thread counts, unless they are already complete.

    Raises:
        errors.Overloaded: other processes keep correcting the counters, or the store is busy.
    """
    look = functools.partial(_compare, site_id)
    counter_repair.settle(look, functools.partial(_mending_writes, site_id))


def _mending_writes(site_id: str, step: int, missing: Mapping[counting.Scope, Any]) -> Any:
    """Add the missing counts; without any, the website has too many threads for such rows."""
    mend = counter_repair.site_writes if missing else counter_repair.closing_writes
    return mend(site_id, step, missing)


def _compare(site_id: str) -> counter_repair.Comparison | None:
    first = reads.get(counter_rows.site_counter_key(site_id))
    if thread_counts.is_complete(first):
        return None
    step = 0 if first is None else first.mended
    most = thread_counts.MOST * thread_counts.MOST_GROUPS
    where = (("site", "=", site_id),)
    if reads.count(reads.Query("Thread", where=where, limit=most + 1)) > most:
        return counter_repair.Comparison(step, {})
    here = counting.listings_scope(site_id)
    counted = listed_counts(reads.fetch(reads.Query("Counter", where=where)))
    pending = counter_repair.pending_numbers(counting.OF_LISTINGS).get(here, {})
    stored = thread_counts.stored_numbers(site_id, first)
    missing = counting.difference(counting.difference(counted, pending), stored)
    return counter_repair.Comparison(step, {here: missing})


def listed_counts(counters: Iterable[Any]) -> dict[str, int]:
    """Return the number of listed comments of each thread, given the threads' counters."""
    numbers: dict[str, int] = {}
    for message in counters:
        thread = message.properties["scope"].string_value.partition("/")[2]
        here = counter_rows.decode(message.properties["numbers"].string_value)
        digest = counting.thread_digest(thread)
        numbers[digest] = numbers.get(digest, 0) + here.get(counting.LISTED, 0)
    return {digest: number for digest, number in numbers.items() if number}
