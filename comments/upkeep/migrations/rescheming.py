"""Move a site to another scheme of sort hashes, in a job that can be interrupted at any point.

The scheme of a site (levels, width, digits) applies only to its new threads, because each thread
stores its own scheme. The job records its progress in a journal, which is a Job row. The job has
three phases:

1. **Stamp.** Threads of older releases store no scheme, so the scheme of their site applies to
   them. Each of these threads now stores the site's current scheme explicitly.
2. One transaction gives the site the new scheme and begins the next phase. From then on, new
   threads get the new scheme, because the transaction that creates a thread reads the site's row.
3. **Switch.** Threads move one at a time, in key order. The transaction that moves a thread
   (`scheme_change.switch`) also advances the journal. Afterwards the thread is compacted.

A thread that cannot move keeps its scheme, and otherwise works as before. The journal lists the
threads that keep their scheme. The finished journal is kept until the site's next job.

Readers see either the previous or the new tree of a thread, because one commit moves the whole
thread. A thread that is created before step 2 has the previous scheme. Phase 3 finds it, because
its scan begins later. A step does nothing if the journal has changed since the step read the
journal, so two processes can share a job. `finish` continues jobs whose processes have ended.
"""

from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.domain.ids import sorthash
from comments.events import audit_log, backlog
from comments.reading.compaction import compactor
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows, event_rows, schema
from comments.tree.schemes import scheme_change

PREFIX = "rescheme/"
AT_ONCE = 100  # Threads to stamp per transaction
MOST_KEPT = 100  # Maximum number of threads that the journal names
SECONDS = 240.0  # Maximum seconds to move one thread; the service aborts transactions after 270 s.
_OWNER = "rescheming"
_TRIES = 3


class KeptThread(msgspec.Struct, frozen=True):
    """A thread that keeps its scheme, and the code of the error that prevented the move."""

    thread: str
    code: str


class Progress(msgspec.Struct, frozen=True):
    """The journal: the new scheme, the phase, and the key name after which its scan continues.

    `threads` is the number of switched threads, `moved` the number of those whose comments moved,
    and `renamed` the number of comments with a new slug. `left` is the number of threads that keep
    their scheme; `kept` names up to `MOST_KEPT` of them.
    """

    scheme: str
    phase: Literal["stamp", "switch", "done"] = "stamp"
    after: str = ""
    threads: int = 0
    moved: int = 0
    renamed: int = 0
    left: int = 0
    kept: tuple[KeptThread, ...] = ()


_PROGRESS = decoders.json(Progress)


def begin(
    site_id: str, scheme: sorthash.Scheme, actor: records.Actor, *, now: datetime
) -> Progress:
    """Begin a job and record it; if the same job is unfinished, return its progress.

    Raises:
        errors.NotFound: the site does not exist.
        errors.Conflict: the site is being moved to a different scheme.
    """
    stored = sorthash.encode_scheme(scheme)
    act = audit_log.Act(actor, "set-scheme")

    def body() -> Progress:
        site, journal = reads.get_multi([comment_rows.site_key(site_id), _key(site_id)])
        if site is None:
            raise errors.NotFound("site", site_id)
        known = None if journal is None else _PROGRESS.decode(journal.position)
        if known is not None and known.phase != "done":
            if known.scheme != stored:
                raise errors.Conflict("rescheme-running")
            return known
        made = Progress(stored)
        before = sorthash.encode_scheme(site_settings.stored_scheme(site))
        note = audit_log.entry_writes(act, site_id, "site", before=before, after=stored, now=now)
        transactions.apply(_journal_writes(site_id, made), note)
        return made

    return transactions.transaction(body)


def progress(site_id: str) -> Progress | None:
    """Return the progress of a site's current or last job; None if there never was one."""
    row = reads.get(_key(site_id))
    return None if row is None else _PROGRESS.decode(row.position)


def run_to_end(site_id: str) -> Progress | None:
    """Run a site's job to its end."""
    while step(site_id) is not None:
        pass
    return progress(site_id)


def step(site_id: str) -> Progress | None:
    """Run the next step of a site's job; return None if no job is unfinished."""
    seen = progress(site_id)
    if seen is None or seen.phase == "done":
        return None
    if seen.phase == "stamp":
        return _stamp(site_id, seen)
    return _switch_next(site_id, seen)


def finish(*, steps: int) -> int:
    """Continue all unfinished jobs for up to `steps` steps; return the number of steps."""
    done = 0
    for site_id in _unfinished_sites():
        while done < steps and step(site_id) is not None:
            done += 1
    return done


def _stamp(site_id: str, seen: Progress) -> Progress | None:
    ids = [message.key.path[-1].name for message in _threads(site_id, seen.after, AT_ONCE)]
    is_last = len(ids) < AT_ONCE
    phase: Literal["stamp", "switch"] = "switch" if is_last else "stamp"
    after = "" if is_last else ids[-1]
    moved_on = msgspec.structs.replace(seen, phase=phase, after=after)

    def body() -> None:
        site = _site_if_unchanged(site_id, seen)
        if site is None:
            return
        transactions.apply(scheme_change.stamp_writes(ids, site_settings.stored_scheme(site)))
        if is_last:
            scheme = sorthash.decode_scheme(seen.scheme)
            transactions.apply(site_settings.scheme_writes(site, scheme))
        transactions.apply(_journal_writes(site_id, moved_on))

    transactions.transaction(body)
    site_settings.COPIES.get().drop(site_id)
    return moved_on


def _switch_next(site_id: str, seen: Progress) -> Progress | None:
    messages = _threads(site_id, seen.after, 1)
    if not messages:
        moved_on = msgspec.structs.replace(seen, phase="done", after="")
        _move_on(site_id, seen, moved_on)
        return moved_on
    key, thread = messages[0].key.path[-1].name, messages[0].properties["thread"].string_value
    name = records.ThreadName(site_id, thread)
    after = msgspec.structs.replace(seen, after=key, threads=seen.threads + 1)
    try:
        moved_on = _switch(name, seen, after)
    except errors.Conflict as error:
        kept = (*seen.kept, KeptThread(thread, error.code))[:MOST_KEPT]
        moved_on = msgspec.structs.replace(seen, after=key, left=seen.left + 1, kept=kept)
        _move_on(site_id, seen, moved_on)
    if moved_on.moved > seen.moved:
        _compact(name, sorthash.decode_scheme(seen.scheme))
    return moved_on


def _switch(name: records.ThreadName, seen: Progress, after: Progress) -> Progress:
    """Move a thread and advance the journal in one transaction."""

    def body() -> tuple[Progress, tuple[str, ...]]:
        if _site_if_unchanged(name.site, seen) is None:
            return after, ()
        scheme = sorthash.decode_scheme(seen.scheme)
        change = scheme_change.switch(name, scheme, now=datetime.now(UTC))
        moved_on = msgspec.structs.replace(
            after, moved=seen.moved + change.is_change, renamed=seen.renamed + change.renamed
        )
        transactions.apply(_journal_writes(name.site, moved_on))
        return moved_on, change.events

    with connection.within(SECONDS):
        moved_on, events = transactions.transaction(body, line=f"{name.site}/{name.id}")
    for event in events:
        backlog.tell(event)
    return moved_on


def _compact(name: records.ThreadName, scheme: sorthash.Scheme) -> None:
    """Compact a thread that has moved, so that reading its pages becomes cheap again.

    Until then, and also if this process ends here, pages come from the ordered query. Any process
    finds the thread by the flag of the moved comment.
    """
    backlog.note_changes(name)
    for _ in range(_TRIES):
        if compactor.compact(scheme, name) is not None:
            return


def _move_on(site_id: str, seen: Progress, moved_on: Progress) -> None:
    def body() -> None:
        if _site_if_unchanged(site_id, seen) is not None:
            transactions.apply(_journal_writes(site_id, moved_on))

    transactions.transaction(body)


def _site_if_unchanged(site_id: str, seen: Progress) -> comment_rows.SiteRow | None:
    """Return the site's row if the journal has not changed since it was read, otherwise None."""
    site, journal = reads.get_multi([comment_rows.site_key(site_id), _key(site_id)])
    if journal is None or _PROGRESS.decode(journal.position) != seen:
        return None
    row: comment_rows.SiteRow | None = site
    return row


def _threads(site_id: str, after: str, limit: int) -> list[Any]:
    where: list[tuple[str, str, object]] = [("site", "=", site_id)]
    if after:
        where.append(("__key__", ">", after))
    return list(reads.fetch(reads.Query("Thread", where=where, order=("__key__",), limit=limit)))


def _key(site_id: str) -> schema.RowKey:
    return event_rows.job_key(f"{PREFIX}{site_id}")


def _journal_writes(site_id: str, position: Progress) -> ownership.Writes:
    row = event_rows.JobRow(key=_key(site_id), position=msgspec.json.encode(position).decode())
    return ownership.Writes(_OWNER, put=(row,))


def _unfinished_sites() -> list[str]:
    where = (("__key__", ">=", PREFIX), ("__key__", "<", PREFIX.replace("/", "0")))
    query = reads.Query("Job", where=where, order=("__key__",))
    return [
        message.key.path[-1].name.removeprefix(PREFIX)
        for message in reads.fetch(query)
        if _PROGRESS.decode(message.properties["position"].string_value).phase != "done"
    ]
