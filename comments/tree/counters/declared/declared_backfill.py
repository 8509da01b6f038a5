"""Count existing comments in new declared counters, and delete the numbers of removed counters.

The process that declares a counter runs this job for the counter's website. If the process ends
before the job ends, another process continues the job (`finish`). A recount compares complete
counters in the same way.

In one snapshot, the job compares the stored numbers with the expected numbers: the sums over all
comments, minus the amounts that undelivered events will add. The job then adds the differences in
parts, with one transaction for each part.

A delivery changes the stored and the pending numbers by the same amount. A difference therefore
stays the same until a job adds it, no matter how many changes happen in between. Each part is added
only if the part before it was the last correction of the website's numbers. Otherwise, the job
compares again. A counter is complete only after the last part of a comparison that includes it.
Numbers of a removed generation are never written again, so they can be deleted in any number of
transactions.
"""

import functools
import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from comments import errors
from comments.domain.counters import counting, declared_counters
from comments.domain.counters.declared_counters import DeclaredCounter
from comments.events import outbox
from comments.store import reads, transactions
from comments.store.models import conversion
from comments.tree.counters.declared import declarations, declared_counts

AT_ONCE = 100  # Maximum number of stored numbers per transaction.
PATIENCE = timedelta(minutes=10)  # Time for a process to finish before another process takes over.
_TRIES = 5  # Maximum attempts, because other processes may correct the same numbers.


class CountDifference(NamedTuple):
    """A number of a complete counter that differs from its expected value."""

    counter: str
    place: declared_counters.CountPlace
    stored: int
    expected: int


class _Comparison(NamedTuple):
    mended: str
    missing: Mapping[str, int]
    incomplete: frozenset[int]
    differences: Sequence[CountDifference]


Tell = Callable[[CountDifference], None]


def complete(site_id: str) -> None:
    """Complete a website's counters, and delete the numbers of its removed counters.

    Raises:
        errors.Overloaded: other processes keep correcting the numbers, or the store is busy.
    """
    for generation in declarations.of_site(site_id).removed:
        while declared_counts.delete_some(site_id, generation, AT_ONCE):
            pass
        declarations.forget_removed(site_id, generation)
    if not declarations.of_site(site_id).is_settled:
        recount(site_id, tell=lambda _: None, fixes=True)
    declarations.end_job(site_id)


def finish(*, now: datetime) -> None:
    """Continue the unfinished jobs of processes that have ended."""
    before = now - PATIENCE
    for site_id in declarations.unsettled_sites(before):
        if declarations.begin_job(site_id, before=before, now=now):
            complete(site_id)


def recount(site_id: str, *, tell: Tell, fixes: bool) -> int:
    """Compare a website's counters with its comments; return the number of differences.

    Incomplete counters have no differences. With `fixes`, correct the differences and complete the
    incomplete counters.

    Raises:
        errors.Overloaded: other processes keep correcting the numbers, or the store is busy.
    """
    for _ in range(_TRIES):
        comparison = transactions.snapshot(lambda: _compare(site_id))
        if not fixes or _mend(site_id, comparison):
            for difference in comparison.differences:
                tell(difference)
            return len(comparison.differences)
    raise errors.Overloaded("other processes are repairing the same counters")


def _compare(site_id: str) -> _Comparison:
    known = declarations.of_site(site_id)
    counters = known.counters
    if not counters:
        return _Comparison(known.mended, {}, frozenset(), ())
    expected = _expected_numbers(site_id, counters)
    stored = declared_counts.stored_amounts(site_id, counters)
    names = sorted({*expected, *stored})
    pairs = {name: (stored.get(name, 0), expected.get(name, 0)) for name in names}
    missing = {name: new - old for name, (old, new) in pairs.items() if new != old}
    complete = {
        counter.generation: counter.declaration.name for counter in counters if counter.is_complete
    }
    differences = tuple(
        CountDifference(complete[generation], declared_counters.place_of(name), *pairs[name])
        for name in missing
        if (generation := declared_counters.generation_of(name)) in complete
    )
    incomplete = frozenset(counter.generation for counter in counters if not counter.is_complete)
    return _Comparison(known.mended, missing, incomplete, differences)


def _expected_numbers(site_id: str, counters: Sequence[DeclaredCounter]) -> dict[str, int]:
    """Return the expected stored numbers, without the amounts of undelivered events."""
    query = reads.Query("Comment", where=(("site", "=", site_id),))
    changes = (
        counting.CountedChange(None, conversion.state_from_message(message))
        for message in reads.fetch(query)
    )
    expected = declared_counters.increments(counters, changes)
    for name, amount in declared_counts.pending_amounts(site_id, counters, outbox.COUNTERS).items():
        expected[name] = expected.get(name, 0) - amount
    return expected


def _mend(site_id: str, found: _Comparison) -> bool:
    """Add the missing amounts, in parts; return False if another process corrected the numbers."""
    names = list(found.missing)
    parts = [names[start : start + AT_ONCE] for start in range(0, len(names), AT_ONCE)]
    if not parts and found.incomplete:
        parts = [[]]
    repair = secrets.token_hex(8)
    steps = [found.mended, *(f"{repair}.{number}" for number in range(len(parts)))]
    return all(
        transactions.transaction(
            functools.partial(
                declared_counts.mend,
                site_id,
                previous,
                mended,
                {name: found.missing[name] for name in part},
                found.incomplete if part is parts[-1] else (),
            )
        )
        for part, (previous, mended) in zip(parts, itertools.pairwise(steps), strict=True)
    )
