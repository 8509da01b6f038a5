"""Check and repair one thread completely: its tree, comments, pages, votes and counters.

The command `repair` and the console's page of a stored thread use this module, so both find and
repair the same. The counters of sites and authors belong to several threads; `recount.site`
compares these.
"""

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.sites import site_settings
from comments.upkeep.integrity import recount, repair, thread_audit


class StoredFault(NamedTuple):
    """A stored value that differs from its expected value.

    `place` names its place, outermost part first. Only a person can solve a fault that is not
    `mendable`.
    """

    kind: str
    place: dict[str, str]
    stored: object
    expected: object
    mendable: bool = True


def find_faults(name: records.ThreadName) -> list[StoredFault]:
    """Compare everything that is stored about a thread with its sources; write nothing.

    Raises:
        errors.Overloaded: the thread cannot be read in time.
    """
    faults = [
        StoredFault(
            problem.field,
            {"site": name.site, "thread": name.id, "comment": problem.comment},
            problem.stored,
            problem.expected,
            problem.mendable,
        )
        for problem in repair.find_problems(site_settings.scheme_of(name.site), name)
    ]

    def tell(difference: recount.Difference) -> None:
        # `find_problems` has already compared the score with the comment's votes.
        if difference.name != "score":
            faults.append(counter_fault(difference))

    recount.thread(name, tell=tell, fixes=False)
    return faults


def mend(
    name: records.ThreadName,
    compact: Callable[[list[records.ThreadName]], object],
    *,
    now: datetime,
) -> None:
    """Repair a thread that has faults. If the call is interrupted, repeat it.

    `compact` compacts threads; the scheduler, which does that, imports this room.

    Raises:
        errors.Overloaded: people change the thread faster than it can be repaired.
    """
    problems = repair.fix(site_settings.scheme_of(name.site), name)
    left = [problem.field for problem in problems if not problem.mendable]
    thread_audit.note(name, left, now=now)
    if any(problem.of_pages for problem in problems):
        # If another process is compacting the thread, it also compacts the repaired comments.
        with contextlib.suppress(errors.Overloaded):
            compact([name])
    recount.thread(name, tell=lambda _: None, fixes=True)


def counter_fault(difference: recount.Difference) -> StoredFault:
    """Return the fault of a counter that differs."""
    scope = difference.scope
    place = {field: part for field, part in scope._asdict().items() if field != "kind" and part}
    kind = f"{scope.kind} {difference.name}"
    if scope.kind == counting.LISTINGS:  # Each name is the digest of a thread
        kind, place = scope.kind, {**place, "thread": difference.name}
    return StoredFault(kind, place, difference.stored, difference.expected)
