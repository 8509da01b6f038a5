"""Check threads slowly, one after another, and remember those with problems.

A raw change of rows could go unnoticed for months. The audit therefore checks all threads in the
order of their keys, in the same way as `repair` without `--fix`. The audit writes only to its own
Job row, which all processes share. The number of its reads per hour is limited; a thread with more
comments than this limit is skipped.

A process claims a thread, and the reads for it, in one transaction. Therefore all processes
together stay below the limit, and no two of them check the same thread. A failed check is not
repeated until the next pass.
"""

import functools
import logging
import time
from collections.abc import Sequence
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import event_rows
from comments.upkeep.integrity import repair

SECONDS = 2.0  # Seconds after which a process begins no further check in the same round
MOST_FOUND = 20  # Maximum number of threads with problems to remember
_OVERHEAD = 20  # Estimated reads for a thread's row, directory, ranking and counts
_BUCKET_ROWS = 16  # The estimate assumes at least this number of comments per bucket

_log = logging.getLogger("flatthread")


class AuditedThread(msgspec.Struct, frozen=True):
    """A thread with problems: the fields that differ, and when they were found."""

    site: str
    thread: str
    fields: tuple[str, ...]
    at: datetime


class AuditState(msgspec.Struct, frozen=True):
    """The state of the audit.

    `after` is the key name of the last claimed thread, and "" before a new pass. `reads` is the
    number of reads claimed in the hour `hour`, which is counted in hours since 1970. `checked` and
    `skipped` are numbers of threads.
    """

    after: str = ""
    hour: int = 0
    reads: int = 0
    checked: int = 0
    skipped: int = 0
    last: datetime | None = None
    found: tuple[AuditedThread, ...] = ()


class _Next(msgspec.Struct, frozen=True):
    """The next thread of the pass, and the estimated number of reads to check it."""

    key_name: str
    name: records.ThreadName
    cost: int


def state() -> AuditState | None:
    """Return the state of the audit, or None if it has never run."""
    row = reads.get(event_rows.job_key("audit"))
    return None if row is None else _STATE.decode(row.position)


def check_threads(reads_per_hour: int, *, now: datetime) -> int:
    """Check threads for about `SECONDS` seconds, or until the reads of this hour are used up.

    Return the number of threads that were checked. With 0 reads, the audit is off.
    """
    end = time.monotonic() + SECONDS
    checked = 0
    while reads_per_hour and time.monotonic() < end:
        candidate = _next()
        if candidate is None or not _claim(candidate, reads_per_hour, now):
            break
        if candidate.cost <= reads_per_hour:
            checked += _check(candidate.name, now)
    return checked


def note(name: records.ThreadName, fields: Sequence[str], *, now: datetime) -> None:
    """Remember which fields of a thread differ; if none do, forget the thread."""
    stored = state()
    is_known = stored is not None and any(_is_of_thread(entry, name) for entry in stored.found)
    if fields or is_known:
        transactions.transaction(functools.partial(_note, name, tuple(fields), now))


def forget(site: str) -> int:
    """Forget the threads of an erased site; return their number."""

    def body() -> int:
        stored = state() or AuditState()
        others = tuple(entry for entry in stored.found if entry.site != site)
        is_there = stored.after.startswith((f"{site}/", f"{site}#"))
        number = len(stored.found) - len(others) + is_there
        if number:
            # A pass that has arrived at the site begins again.
            after = "" if is_there else stored.after
            _store_state(msgspec.structs.replace(stored, after=after, found=others))
        return number

    return transactions.transaction(body)


def _check(name: records.ThreadName, now: datetime) -> bool:
    try:
        problems = repair.find_problems(site_settings.scheme_of(name.site), name)
    except errors.Overloaded as error:
        _log.warning("The audit could not check %s %s: %s", name.site, name.id, error)
        return False
    fields = tuple(dict.fromkeys(problem.field for problem in problems))
    transactions.transaction(functools.partial(_note, name, fields, now, is_audit=True))
    if problems:
        _log.warning(
            "The audit found %d problems in the thread %s of %s: %s. To repair them, run "
            "`flatthread repair --fix --site %s`.",
            len(problems), name.id, name.site, ", ".join(fields), name.site,
        )  # fmt: skip
    return True


def _next() -> _Next | None:
    """Return the thread after the last one that was claimed, or the first thread."""
    stored = state() or AuditState()
    candidate = _first_after(stored.after) or _first_after("")
    if candidate is None:
        return None
    key_name, name = candidate
    count = reads.count(reads.Query("Comment", where=(("thread", "=", key_name),)))
    return _Next(key_name, name, _OVERHEAD + count + count // _BUCKET_ROWS + count // 1000)


def _first_after(key_name: str) -> tuple[str, records.ThreadName] | None:
    where = (("__key__", ">", key_name),) if key_name else ()
    query = reads.Query("Thread", where=where, order=("__key__",), limit=1)
    for message in reads.fetch(query):
        site, thread = (message.properties[field].string_value for field in ("site", "thread"))
        return message.key.path[-1].name, records.ThreadName(site, thread)
    return None


def _claim(found: _Next, reads_per_hour: int, now: datetime) -> bool:
    """Claim a thread; return False if the hour's reads are used up or another process has it."""
    before = state() or AuditState()

    def body() -> bool:
        stored = state() or AuditState()
        if stored.after != before.after:
            return False
        hour = int(now.timestamp()) // 3600
        used = stored.reads if stored.hour == hour else 0
        is_too_large = found.cost > reads_per_hour
        cost = _OVERHEAD if is_too_large else found.cost
        if used + cost > reads_per_hour:
            return False
        changed = msgspec.structs.replace(
            stored,
            after=found.key_name,
            hour=hour,
            reads=used + cost,
            skipped=stored.skipped + is_too_large,
        )
        _store_state(changed)
        return True

    return transactions.transaction(body)


def _note(
    name: records.ThreadName, fields: tuple[str, ...], now: datetime, *, is_audit: bool = False
) -> None:
    stored = state() or AuditState()
    entries = tuple(entry for entry in stored.found if not _is_of_thread(entry, name))
    if fields:
        entries = (*entries, AuditedThread(name.site, name.id, fields, now))[-MOST_FOUND:]
    checked = stored.checked + is_audit
    last = now if is_audit else stored.last
    _store_state(msgspec.structs.replace(stored, found=entries, checked=checked, last=last))


def _store_state(changed: AuditState) -> None:
    row = event_rows.JobRow(
        key=event_rows.job_key("audit"), position=msgspec.json.encode(changed).decode()
    )
    transactions.apply(ownership.Writes("thread_audit", put=(row,)))


def _is_of_thread(found: AuditedThread, name: records.ThreadName) -> bool:
    return (found.site, found.thread) == (name.site, name.id)


_STATE = decoders.json(AuditState)
