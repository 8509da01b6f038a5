"""Apply one decision to all comments that a filter finds, as a job that survives a crash.

    bulk_decisions.start(wanted, verb, actor, now=now)
    bulk_decisions.go_on(site, job_id, now=now, steps=bulk_decisions.STEPS)

A job first collects the comments that match when it starts, newest first, with their revisions.
Then it decides about them in slices. Each decision is a transaction of `decisions`, with the
collected revision. A comment that was edited or decided about in the meantime is therefore left as
it is. An undo goes through the same comments and restores those that nobody has changed since.

The id of a decision's entry in the audit log is a digest of the job and the comment, so the entry
exists exactly if the job made the decision. If a process dies, the next one repeats the last slice:
this changes nothing that was already changed, and counts the same comments.

    Job  "bulk/{site}/{id}": a `BulkJob` as JSON
    Job  "bulk-part/{site}/{id}/{number}": collected comments, as JSON [[id, revision], ...]
"""

import contextlib
import dataclasses
import functools
import hashlib
import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.domain.records import Verb
from comments.events import audit_log, backlog
from comments.moderation import decisions, review_queue
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, event_rows, moderation_rows, schema

# Decisions to restore are missing, because they cannot be undone.
VERBS = (Verb.APPROVE, Verb.REJECT, Verb.SPAM, Verb.HIDE, Verb.HOLD)
MOST = 50_000  # Maximum number of comments of a job.
TERM = timedelta(days=30)  # Time for which a job can be undone, and its rows are kept.
STEPS = 8  # Slices per call in a server, which must have time for other work too.
SLICE = 25  # Decisions between two commits of the job's progress.
_COLLECTED_AT_ONCE = 500
_ID = re.compile("[0-9a-f]{16}")
_JOBS, _PARTS = "bulk/", "bulk-part/"
_BEHIND = "\U0010ffff"
_OWNER = "bulk_decisions"
_Part = list[tuple[str, int]]


class BulkJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision about all comments of a filter.

    `wanted` is None when all comments are collected; `after` is the last one examined. `parts` is
    the number of rows with collected comments, and `total` the number of comments in them. `part`
    and `offset` are the place of the next comment. `seen` comments were handled, and in `done` of
    them the decision was made; during and after an undo, these numbers count the undo. `decided`
    keeps the number of decisions for the time after an undo has begun. `ended` is the time when the
    decisions, or the undo by `undoer`, came to their end.
    """

    id: str
    verb: Verb
    actor: records.Actor
    began: datetime
    reason: str = ""
    wanted: review_queue.QueueFilter | None = None
    after: review_queue.Position | None = None
    parts: int = 0
    total: int = 0
    part: int = 0
    offset: int = 0
    seen: int = 0
    done: int = 0
    decided: int = 0
    is_cancelled: bool = False
    undoer: records.Actor | None = None
    ended: datetime | None = None

    @property
    def state(self) -> str:
        """One of "collecting", "deciding", "decided", "cancelled", "undoing" and "undone"."""
        if self.undoer is not None:
            return "undoing" if self.ended is None else "undone"
        if self.ended is None:
            return "deciding" if self.wanted is None else "collecting"
        return "cancelled" if self.is_cancelled else "decided"

    def may_be_undone(self, now: datetime) -> bool:
        """Return whether an undo can begin."""
        return self.undoer is None and self.ended is not None and now < self.ended + TERM


def start(
    wanted: review_queue.QueueFilter,
    verb: Verb,
    actor: records.Actor,
    *,
    now: datetime,
    reason: str = "",
) -> BulkJob:
    """Start a job for the comments that a filter finds and that exist at `now`.

    Raises:
        errors.BadInput: the reason is too long or is not a single line.
        errors.Conflict: another job of the site is not finished.
    """
    audit_log.Act(actor, verb.value, reason)  # Checks the reason.
    ended = min(now, wanted.before) if wanted.before else now
    wanted = dataclasses.replace(wanted, before=ended)
    job = BulkJob(secrets.token_hex(8), verb, actor, now, reason, wanted)

    def body() -> None:
        if any(other.ended is None and other.id != job.id for other in jobs(wanted.site)):
            raise errors.Conflict("bulk-running")
        transactions.apply(_job_writes(wanted.site, job))

    transactions.transaction(body)
    backlog.note_bulk(records.BulkDecision(wanted.site, job.id))
    return job


def jobs(site: str) -> list[BulkJob]:
    """Return the jobs of a site, newest first."""
    return sorted(
        (job for _, job in _jobs_beginning_with(f"{_JOBS}{site}/")),
        key=lambda job: job.began,
        reverse=True,
    )


def get(site: str, job_id: str) -> BulkJob:
    """Read a job.

    Raises:
        errors.NotFound: the site has no such job.
    """
    row = reads.get(_job_key(site, job_id)) if _ID.fullmatch(job_id) else None
    if row is None:
        raise errors.NotFound("job", job_id)
    return decoders.json(BulkJob).decode(row.position)


def cancel(site: str, job_id: str, *, now: datetime) -> BulkJob:
    """Stop a job after the slice that is being decided. What was decided stays.

    Raises:
        errors.NotFound: the site has no such job.
        errors.Conflict: the job has ended, or it is being undone.
    """

    def change(job: BulkJob) -> BulkJob:
        if job.ended is not None or job.undoer is not None:
            raise errors.Conflict("bulk-ended")
        return msgspec.structs.replace(job, is_cancelled=True, wanted=None, after=None, ended=now)

    return _change(site, job_id, change)


def undo(site: str, job_id: str, actor: records.Actor, *, now: datetime) -> BulkJob:
    """Begin to undo a job.

    Raises:
        errors.NotFound: the site has no such job.
        errors.Conflict: the job is running, was undone, or ended more than `TERM` ago.
    """

    def change(job: BulkJob) -> BulkJob:
        if not job.may_be_undone(now):
            raise errors.Conflict("bulk-not-undoable")
        # A slice that another process decides at this moment is not counted in `seen` yet.
        return msgspec.structs.replace(
            job, undoer=actor, ended=None, total=min(job.total, job.seen + SLICE),
            part=0, offset=0, seen=0, done=0, decided=job.done,
        )  # fmt: skip

    job = _change(site, job_id, change)
    backlog.note_bulk(records.BulkDecision(site, job_id))
    return job


def go_on(
    site: str,
    job_id: str,
    *,
    now: datetime,
    steps: int | None = None,
    progress: Callable[[BulkJob], None] = lambda _: None,
) -> BulkJob:
    """Continue a job for up to `steps` slices; None means until its end.

    Raises:
        errors.NotFound: the site has no such job.
        errors.Overloaded: the store did not respond in time; a later call continues.
    """
    job = get(site, job_id)
    taken = 0
    while job.ended is None and taken != steps:
        if job.wanted is None:
            job = _decide_slice(site, job, now)
        else:
            job = _collect(site, job, job.wanted, now)
        taken += 1
        progress(job)
    return job


def run_part(decision: records.BulkDecision, *, now: datetime) -> None:
    """Run the next part of a job in a server, and report that more is left to do.

    Raises:
        errors.Overloaded: the store did not respond in time; a later call continues.
    """
    try:
        job = go_on(decision.site, decision.id, now=now, steps=STEPS)
    except errors.NotFound:  # The site was erased.
        return
    if job.ended is None:
        backlog.note_bulk(decision)


def unfinished_jobs() -> list[records.BulkDecision]:
    """List the jobs of all sites that have work to do."""
    return [
        records.BulkDecision(site, job.id)
        for site, job in _jobs_beginning_with(_JOBS)
        if job.ended is None
    ]


def expire(now: datetime) -> int:
    """Delete jobs that can no longer be undone; return their number."""
    old = [
        (site, job)
        for site, job in _jobs_beginning_with(_JOBS)
        if job.ended is not None and now >= job.ended + TERM
    ]
    for site, job in old:
        keys = [_part_key(site, job, number) for number in range(job.parts)]
        writes = ownership.Writes(_OWNER, delete=(*keys, _job_key(site, job.id)))
        transactions.transaction(functools.partial(transactions.apply, writes))
    return len(old)


def _collect(site: str, job: BulkJob, wanted: review_queue.QueueFilter, now: datetime) -> BulkJob:
    """Collect the next comments that match."""
    places = review_queue.places(wanted, job.after, _COLLECTED_AT_ONCE)
    if wanted.is_search:
        cases = review_queue.read_cases(places)
        part = [
            (case.comment.id, case.comment.revision)
            for case in cases
            if case is not None and wanted.matches(case)
        ]
    else:
        part = [(name, revision) for _, revision, name in places]
    part = part[: MOST - job.total]
    total = job.total + len(part)
    is_last = len(places) < _COLLECTED_AT_ONCE or total >= MOST

    def change(stored: BulkJob) -> BulkJob:
        if (stored.after, stored.ended) != (job.after, job.ended) or stored.wanted is None:
            return stored  # Another process has collected these comments, or the job was cancelled.
        if part:
            row = event_rows.JobRow(
                key=_part_key(site, job, job.parts), position=msgspec.json.encode(part).decode()
            )
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return msgspec.structs.replace(
            stored,
            wanted=None if is_last else wanted,
            after=None if is_last else places[-1],
            parts=job.parts + bool(part),
            total=total,
            ended=now if is_last and not total else None,
        )

    return _change(site, job.id, change)


def _decide_slice(site: str, job: BulkJob, now: datetime) -> BulkJob:
    """Decide about the next comments, or restore them, and count those that were changed."""
    row = reads.get(_part_key(site, job, job.part))
    part: _Part = [] if row is None else decoders.json(_Part).decode(row.position)
    chosen = part[job.offset : job.offset + min(SLICE, job.total - job.seen)]
    for comment_id, revision in chosen:
        # Leave comments that were changed, or to which the decision does not apply.
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            _decide(site, job, comment_id, revision, now)
    phase = "decide" if job.undoer is None else "undo"
    entries = [moderation_rows.audit_key(_entry(job, name, phase)) for name, _ in chosen]
    made = sum(entry is not None for entry in reads.get_multi(entries))
    is_part_over = job.offset + len(chosen) >= len(part)
    seen = job.seen + len(chosen)

    def change(stored: BulkJob) -> BulkJob:
        if (stored.undoer, stored.seen) != (job.undoer, job.seen):
            return stored  # Another process has handled this slice.
        return msgspec.structs.replace(
            stored,
            part=job.part + is_part_over,
            offset=0 if is_part_over else job.offset + len(chosen),
            seen=seen,
            done=job.done + made,
            ended=stored.ended or (now if seen >= job.total or row is None else None),
        )

    return _change(site, job.id, change)


def _decide(site: str, job: BulkJob, comment_id: str, revision: int, now: datetime) -> None:
    entry = _entry(job, comment_id, "decide")
    if job.undoer is None:
        decisions.decide(
            site, comment_id, job.verb, job.actor,
            now=now, reason=job.reason, revision=revision, entry=entry,
        )  # fmt: skip
    else:
        undone = _entry(job, comment_id, "undo")
        decisions.undo(site, entry, job.undoer, now=now, reason=job.reason, entry=undone)


def _entry(job: BulkJob, comment_id: str, phase: str) -> str:
    """Return the id of the audit log entry for the job's decision about a comment."""
    text = f"bulk/{job.id}/{comment_id}/{phase}"
    return comment_rows.comment_id(hashlib.sha256(text.encode()).digest())


def _change(site: str, job_id: str, change: Callable[[BulkJob], BulkJob]) -> BulkJob:
    def body() -> BulkJob:
        stored = get(site, job_id)
        changed = change(stored)
        if changed != stored:
            transactions.apply(_job_writes(site, changed))
        return changed

    return transactions.transaction(body)


def _job_writes(site: str, job: BulkJob) -> ownership.Writes:
    row = event_rows.JobRow(key=_job_key(site, job.id), position=msgspec.json.encode(job).decode())
    return ownership.Writes(_OWNER, put=(row,))


def _jobs_beginning_with(start: str) -> list[tuple[str, BulkJob]]:
    """Return jobs with their sites."""
    where = (("__key__", ">", start), ("__key__", "<", f"{start}{_BEHIND}"))
    rows = reads.fetch(reads.Query("Job", where, ("__key__",)))
    return [
        (
            row.key.path[-1].name.split("/")[1],
            decoders.json(BulkJob).decode(row.properties["position"].string_value),
        )
        for row in rows
    ]


def _job_key(site: str, job_id: str) -> schema.RowKey:
    return event_rows.job_key(f"{_JOBS}{site}/{job_id}")


def _part_key(site: str, job: BulkJob, number: int) -> schema.RowKey:
    return event_rows.job_key(f"{_PARTS}{site}/{job.id}/{number:06}")
