"""Correct counters, exactly once, by the differences that a recount found.

This module owns the steps of a repair: a comparison in one snapshot, and the addition of what it
found missing, in transactions of bounded size. The first Counter of a thread or website stores the
number of corrections, and each repair names the step that it performs. If two recounts are
concurrent, only one makes corrections, and the steps of an interrupted recount are not repeated.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.events import outbox
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, counter_rows, schema
from comments.tree.counters import from_events, thread_counts

AT_ONCE = 100  # Maximum number of scopes per transaction.
_TRIES = 5  # Maximum attempts; other processes may correct the same counters


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison: the next step of the repairs, and the amounts to add by scope."""

    mended: int
    missing: Mapping[counting.Scope, Mapping[str, int]]


T = TypeVar("T", bound=Comparison | None)


class MendedMeanwhile(Exception):
    """The counters have been corrected since they were compared.

    `mended` is the current number of corrections.
    """

    def __init__(self, mended: int) -> None:
        super().__init__(mended)
        self.mended = mended


def thread_writes(
    name: records.ThreadName, step: int, missing: Mapping[counting.Scope, counter_rows.Numbers]
) -> ownership.Writes:
    """Add the numbers that a recount found missing in a thread and in its authors' rows.

    Raises:
        MendedMeanwhile: `step` is not the next step.
    """
    here = counting.thread_scope(comment_rows.thread_key_name(name))
    authors = [scope for scope in missing if scope != here]
    keys = [counter_rows.participation_key(name, scope.author) for scope in authors]
    thread, first, *stored = reads.get_multi(
        [comment_rows.thread_key(name), counter_rows.thread_counter_key(name, 0), *keys]
    )
    first = _next_step(first or counter_rows.thread_counter(name, 0), step)
    first.shards = 1 if thread is None else thread.shards or 1
    more = dict(missing.get(here, {}))
    put: list[schema.StoredRow] = []
    gone: list[schema.RowKey] = []
    for scope, key, row in zip(authors, keys, stored, strict=True):
        old = counter_rows.numbers_of(row)
        new = counting.sums(old, missing[scope])
        more = counting.sums(more, counting.presence(old, new))
        if new:
            put.append(counter_rows.participation(key, name.site, scope.author, new))
        else:
            gone.append(key)
    put.append(
        counter_rows.with_numbers(first, counting.sums(counter_rows.numbers_of(first), more))
    )
    return ownership.Writes(counter_rows.OWNER, put=tuple(put), delete=tuple(gone))


def site_writes(
    site: str, step: int, missing: Mapping[counting.Scope, counter_rows.Numbers]
) -> ownership.Writes:
    """Add the numbers that a recount found missing in a website, its statistics and its authors.

    Raises:
        MendedMeanwhile: `step` is not the next step.
    """
    key = counter_rows.site_counter_key(site)
    first = reads.get(key) or counter_rows.site_counter(site)
    mended = _next_step(first, step).mended
    writes = from_events.sum_writes({counting.site_scope(site): {}, **missing})
    others = [row for row in writes.put if row.key != key]
    counted: Any = next((row for row in writes.put if row.key == key), first)
    counted.mended = mended
    if counting.listings_scope(site) in missing:
        # All missing numbers are now in the rows of thread counts.
        thread_counts.mark_complete(counted)
    return ownership.Writes(counter_rows.OWNER, put=(*others, counted), delete=writes.delete)


def closing_writes(site: str, step: int, _missing: object) -> ownership.Writes:
    """Record that a website has too many threads for rows of thread counts.

    Raises:
        MendedMeanwhile: `step` is not the next step.
    """
    writes = site_writes(site, step, {})
    first: Any = writes.put[-1]
    thread_counts.close(first)
    return writes


def settle(look: Callable[[], T], mend: Callable[..., ownership.Writes]) -> T:
    """Compare in a snapshot, add the missing amounts by `mend`, and return the comparison.

    If another process corrects the counters first, compare again. If `look` returns None, nothing
    has to be corrected.

    Raises:
        errors.Overloaded: other processes keep correcting the counters, or the store is busy.
    """
    for _ in range(_TRIES):
        comparison = transactions.snapshot(look)
        if comparison is None or _mend(comparison, mend):
            return comparison
    raise errors.Overloaded("other processes are repairing the same counters")


def _mend(found: Comparison, mend: Callable[..., ownership.Writes]) -> bool:
    missing = list(found.missing.items())
    parts = [dict(missing[n : n + AT_ONCE]) for n in range(0, len(missing), AT_ONCE)] or [{}]
    return all(
        transactions.transaction(functools.partial(_apply_step, mend, found.mended + number, part))
        for number, part in enumerate(parts)
    )


def pending_numbers(
    registry: counting.Registry[counting.CountedState],
) -> dict[counting.Scope, dict[str, int]]:
    """Return what undelivered events will add to counters."""
    return counting.by_scope(
        counting.total(
            counting.increments(registry, change.old, change.new)
            for event in outbox.pending_events(outbox.COUNTERS)
            for change in event.changes
        )
    )


def _apply_step(mend: Callable[..., ownership.Writes], step: int, missing: object) -> bool:
    """Apply a step in the current transaction; return False if another process was first."""
    try:
        transactions.apply(mend(step, missing))
    except MendedMeanwhile as other:
        # If the row is one step ahead, either an earlier run of this transaction committed but its
        # response was lost, or another process found the same difference. In both cases, the
        # difference was added once.
        return other.mended == step + 1
    return True


def _next_step(row: counter_rows.CounterRow, step: int) -> counter_rows.CounterRow:
    if row.mended != step:
        raise MendedMeanwhile(row.mended)
    row.mended = step + 1
    return row
