"""Undo an import: remove exactly the comments and threads that it added.

    import_undo.start(site, import_id, act, now=now)
    import_undo.go_on(site, import_id, now=now)

`undo_steps` implements the phases of an undo. When an import can no longer be undone, `expire`
deletes its journal.

Every undo that has begun is completed: while the import's row has `undoing` but not `undone`, each
server process that finds the row continues the undo (`scheduler`). An undo sends no mail and no
webhooks.
"""

import functools
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from comments import errors
from comments.domain import records
from comments.events import audit_log, backlog
from comments.store import reads, transactions
from comments.store.models import event_rows
from comments.transfer.importing import import_journal, undo_steps
from comments.tree.bulk import bulk_removal, job_writes

VERB = "undo-import"
SUBJECT = "import:"
STEPS = 40  # Transactions per call in a server, which must have time for other work too.
_EXPIRED_AT_ONCE = 20  # Maximum number of batches per query.


class UndoProgress(NamedTuple):
    """The progress of an undo: its import, and what is left after one call.

    `waiting` contains the threads whose last comment waits for a compaction. `is_left` tells
    whether the call ended because it reached its limit of transactions.
    """

    found: import_journal.Import
    waiting: tuple[records.ThreadName, ...] = ()
    is_left: bool = False


class UndoPreview(NamedTuple):
    """The numbers of comments and threads that an undo will find.

    `answered` comments will stay as tombstones, because comments that the import did not add reply
    to them. `threads`, `entries` and `counters` are the numbers of threads, audit log entries and
    counters that will be deleted.
    """

    comments: int
    answered: int
    threads: int
    entries: int = 0
    counters: tuple[str, ...] = ()


def start(
    site: str, import_id: str, act: audit_log.Act, *, now: datetime, steps: int = STEPS
) -> UndoProgress:
    """Begin an undo and run its first steps; the worker of this process continues it at once.

    If the undo has already begun, this function continues it. `act` names the person for the audit
    log.

    Raises:
        errors.ImportRefused: see `begin`.
        errors.Overloaded: the store did not respond in time. The undo may have begun.
    """
    begin(site, import_id, act, now=now)
    try:
        return go_on(site, import_id, now=now, steps=steps)
    finally:
        backlog.note_undo(records.ImportUndo(site, import_id))


def begin(site: str, import_id: str, act: audit_log.Act, *, now: datetime) -> import_journal.Import:
    """Begin an undo, and record it in the audit log.

    If this function returns without an error, the undo will be completed.

    Raises:
        errors.ImportRefused: the site has no such import, it was undone or can no longer be undone,
            or an import into the site is running.
    """
    return transactions.transaction(functools.partial(_begin, site, import_id, act, now))


def _begin(site: str, import_id: str, act: audit_log.Act, now: datetime) -> import_journal.Import:
    stored = import_journal.get(site, import_id)
    if stored.is_being_undone:
        return stored
    check(site, stored, now)
    begun = msgspec.structs.replace(stored, undoing=now, removed=0, kept=0, waiting=0)
    noted = audit_log.entry_writes(
        act, site, f"{SUBJECT}{import_id}", before="imported", after="undone", now=now
    )
    transactions.apply(import_journal.import_writes(site, begun), noted)
    return begun


def check(site: str, found: import_journal.Import, now: datetime) -> None:
    """Check that an import can be undone now.

    Raises:
        errors.ImportRefused: see `begin`.
    """
    if found.undone is not None:
        raise errors.ImportRefused(
            f"The import {found.id} was undone already, at {_format_minute(found.undone)}."
        )
    if found.is_being_undone:
        return
    running = next(
        (other for other in import_journal.all_imports(site) if other.may_still_run(now)), None
    )
    if running is not None:
        raise errors.ImportRefused(
            f"The import {running.id} of {running.file} into {site} is still running. Wait until "
            f"it ends, or stop it and try again after {import_journal.LATE} seconds."
        )
    if now >= found.ends:
        raise errors.ImportRefused(
            f"The import {found.id} could be undone until {_format_minute(found.ends)}, "
            f"{import_journal.TERM.days} days after it began. Moderate or retract its comments "
            "instead."
        )


def preview(site: str, import_id: str) -> UndoPreview:
    """Count the comments and threads that an undo will find, without changing anything."""
    batches = [batch for _, batch in import_journal.batches(site, import_id)]
    ours = {comment_id for batch in batches for comment_id in batch.ids}
    made = {records.ThreadName(site, thread_id) for batch in batches for thread_id in batch.threads}
    names: dict[records.ThreadName, None] = {}
    stored = 0
    for batch in batches:
        rows = bulk_removal.stored_rows(batch.ids)
        stored += len(rows)
        names.update(dict.fromkeys(map(undo_steps.thread_of, rows)))
    needed = {name: bulk_removal.needed_comments(name, ours) for name in names}
    return UndoPreview(
        stored,
        sum(len(ids) for ids in needed.values() if ids is not None),
        sum(name in made and ids is None for name, ids in needed.items()),
        sum(len(batch.entries) for batch in batches),
        undo_steps.unchanged_counters(site, import_id),
    )


def go_on(
    site: str,
    import_id: str,
    *,
    now: datetime,
    steps: int | None = None,
    told: Callable[[Sequence[str]], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> UndoProgress:
    """Continue an undo for up to `steps` transactions; None means no limit.

    This function calls `told` with the events of each step, and `progress` with the number of
    comments in the step.

    Raises:
        errors.ImportRefused: the site has no such import.
        errors.Overloaded: the store did not respond in time; a later call continues.
    """
    undo = undo_steps.UndoSteps(site, import_id, now, told)
    is_left = False
    try:
        for number, done in enumerate(undo.steps(), 1):
            progress(done)
            if steps is not None and number >= steps:
                is_left = True
                break
    finally:
        # Compacting a large thread takes long, so note each thread only once.
        for name in undo.threads:
            backlog.note_erasure(name)
    waiting = () if is_left else tuple(undo.waiting)
    return UndoProgress(import_journal.get(site, import_id), waiting, is_left)


def unfinished_undos() -> list[records.ImportUndo]:
    """List every undo that has begun and is not complete."""
    return [
        records.ImportUndo(site, stored.id) for site, stored in import_journal.unfinished_undos()
    ]


def finish(*, now: datetime, steps: int = STEPS) -> bool:
    """Continue every undo that has begun; return whether any of them has more work to do now."""
    results = [go_on(undo.site, undo.id, now=now, steps=steps) for undo in unfinished_undos()]
    return any(result.is_left for result in results)


def expire(now: datetime) -> int:
    """Erase the addresses of imports whose term has ended, and delete their journals.

    The addresses of imported authors are stored encrypted, like those of guests. `retention` erases
    the address of a guest some time after the comment was created. An imported comment may already
    be older than that when it is stored. The address is therefore erased `import_journal.TERM`
    after the import.

    Return the number of batches that were processed.

    Raises:
        errors.Overloaded: the store is busy; the next call continues.
    """
    number = 0
    before = now - import_journal.TERM
    while names := import_journal.old_batches(before, _EXPIRED_AT_ONCE):
        for name in names:
            transactions.transaction(functools.partial(_expire, name, before))
        number += len(names)
    return number


def _expire(name: str, before: datetime) -> None:
    row = reads.get(event_rows.import_batch_key(name))
    if row is None or row.at is None or row.at > before:
        return
    batch = import_journal.decode_batch(row)
    if import_journal.get(*import_journal.import_of(name)).is_being_undone:
        # The undo still needs the batch. Therefore the undo itself erases the addresses and deletes
        # the batch.
        row.at = None
        transactions.apply(import_journal.batch_writes(row, batch))
        return
    transactions.apply(
        job_writes.address_erasure_writes(batch.ids), import_journal.batch_deletion_writes(row)
    )


def _format_minute(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="minutes")
