"""Upgrade rows of older releases to the current form, a limited number of rows at a time.

This module owns the upgrade scans and the Job rows that store their positions. An interrupted scan
therefore continues, and a finished scan is not repeated. The scheduler calls `go_on` soon after
each process starts and while scans are unfinished; `repair --fix` runs every scan to its end.

A scan begins with its Job row, which `begin` writes when a new release starts, after the backup
(`store_upgrade`). A new store needs no scan, so `note_new` marks all scans as finished.

Until a scan reaches a row, the row is read in the form of the older release. The only effect is
that lists do not contain such a row: the list of threads by activity, and those of a category.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from comments.domain import records
from comments.events import backlog
from comments.store import ownership, reads, transactions
from comments.store.memory import per_process
from comments.store.models import event_rows
from comments.threads import activity, details
from comments.upkeep.migrations import period_rows, rerendering, store_format, thread_count_rows

AT_ONCE = 100  # Rows per step.
_DONE = "done"
_FINISHED = per_process.PerProcess(set[str])  # Scans that this process knows are finished.


class _Walk(NamedTuple):
    """A scan of the rows of one kind, in key order.

    `mend` upgrades the rows of one step, which it receives as messages. `purpose` describes the
    scan in reports.
    """

    job: str
    kind: str
    mend: Callable[[list[Any]], None]
    purpose: str


class PendingScan(NamedTuple):
    """An unfinished scan, and the number of rows that it has not read yet."""

    job: str
    purpose: str
    rows: int
    has_begun: bool


def pending_scans() -> list[PendingScan]:
    """Return the unfinished scans. Counting the rows costs one billed read per 1,000 rows."""
    return [
        PendingScan(walk.job, walk.purpose, _rows_left(walk, row), row is not None)
        for walk, row in zip(_WALKS, _jobs(), strict=True)
        if row is None or row.position != _DONE
    ]


def has_new() -> bool:
    """Return whether this release has scans that have not begun, or a newer format."""
    known = store_format.read()
    is_older = known is None or known.number < store_format.FORMAT
    return is_older or None in _jobs()


def begin() -> None:
    """Begin all scans of this release, and record its format. `go_on` then runs them."""
    transactions.transaction(functools.partial(_note, ""))


def note_new() -> None:
    """In a store without websites, record this release's format, and that no scan is needed."""
    if not reads.names("Site", limit=1):
        transactions.transaction(functools.partial(_note, _DONE))


def _note(position: str) -> None:
    known = store_format.read()
    jobs = zip(_WALKS, _jobs(), strict=True)
    put = [
        event_rows.JobRow(key=event_rows.job_key(walk.job), position=position)
        for walk, row in jobs
        if row is None
    ]
    if known is None or known.number < store_format.FORMAT:
        now = event_rows.JobRow(key=store_format.KEY, position=str(store_format.current()))
        put.append(now)
    transactions.apply(ownership.Writes("upgrades", put=tuple(put)))


def _jobs() -> list[Any]:
    return reads.get_multi([event_rows.job_key(walk.job) for walk in _WALKS])


def _rows_left(walk: _Walk, row: Any) -> int:
    return reads.count(_query(walk, "" if row is None else row.position))


def _query(walk: _Walk, seen: str, limit: int | None = None) -> reads.Query:
    where = (("__key__", ">", seen),) if seen else ()
    return reads.Query(walk.kind, where=where, order=("__key__",), limit=limit)


def go_on(*, steps: int | None) -> int:
    """Continue scans that have begun, for up to `steps` steps with rows; None means to their end.

    Return the number of rows read.

    Raises:
        errors.Overloaded: the store is busy; the next call continues the scans.
    """
    done = _FINISHED.get()
    looked_at, left = 0, math.inf if steps is None else steps
    for walk in _WALKS:
        while walk.job not in done and left > 0:
            row = reads.get(event_rows.job_key(walk.job))
            if row is None:
                break
            count = _step(walk, row.position)
            looked_at += count
            left -= bool(count)
            if not count:
                done.add(walk.job)
    return looked_at


def _step(walk: _Walk, seen: str) -> int:
    """Upgrade the next rows of a scan; return the number of rows, or 0 at the end."""
    if seen == _DONE:
        return 0
    messages = list(reads.fetch(_query(walk, seen, AT_ONCE)))
    walk.mend(messages)
    position = messages[-1].key.path[-1].name if messages else _DONE
    transactions.transaction(functools.partial(_move_on, walk, seen, position))
    return len(messages)


def _move_on(walk: _Walk, seen: str, position: str) -> None:
    """Store a scan's position unless another process has already advanced the scan."""
    key = event_rows.job_key(walk.job)
    row = reads.get(key)
    if ("" if row is None else row.position) == seen:
        job = event_rows.JobRow(key=key, position=position)
        transactions.apply(ownership.Writes("upgrades", put=(job,)))


def _add_naming_comments(found: list[Any]) -> None:
    """Store the id of the comment that names each thread, if it is missing (see `naming`)."""
    for message in found:
        if message.properties["named_by"].WhichOneof("value_type") != "string_value":
            backlog.note_erasure(_upgrade_thread(message, details.adoption_writes))


def _add_activity_times(found: list[Any]) -> None:
    """Store the time of each thread's newest comment, if it is missing."""
    for message in found:
        if message.properties["active"].WhichOneof("value_type") != "timestamp_value":
            _upgrade_thread(message, activity.adoption_writes)


def _add_category_terms(found: list[Any]) -> None:
    """Store the terms that find each thread's categories; `recategorize` adds its comments'."""
    for message in found:
        if message.properties["categories"].array_value.values:
            _upgrade_thread(message, details.term_writes)


def _upgrade_thread(
    message: Any, writes: Callable[[records.ThreadName], ownership.Writes]
) -> records.ThreadName:
    site, thread = (message.properties[field].string_value for field in ("site", "thread"))
    name = records.ThreadName(site, thread)
    transactions.transaction(lambda: transactions.apply(writes(name)))
    return name


def _count_threads(found: list[Any]) -> None:
    """Create the rows with the comment counts of each website's threads."""
    for message in found:
        thread_count_rows.complete(message.key.path[-1].name)


_WALKS = (
    _Walk(
        "upgrades/threads", "Thread", _add_naming_comments, "find the comments that name threads"
    ),
    _Walk(
        "upgrades/thread-activity", "Thread", _add_activity_times, "find when threads were active"
    ),
    _Walk("upgrades/thread-categories", "Thread", _add_category_terms, "file threads by category"),
    _Walk("upgrades/thread-counts", "Site", _count_threads, "count the comments of threads"),
    _Walk(
        "upgrades/periods-and-votes",
        "Day",
        period_rows.complete_days,
        "count comments by page and hour, and votes by day",
    ),
    _Walk(
        f"upgrades/text/{rerendering.VERSION}",
        "Comment",
        rerendering.rerender,
        "render comments again",
    ),
)
