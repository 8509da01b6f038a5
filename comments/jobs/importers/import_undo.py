"""Undo an import: remove exactly the comments and threads that it added.

    import_undo.start(site, import_id, act, now=now)
    import_undo.go_on(site, import_id, now=now)

An undo has three phases, each in transactions of bounded size, from the last batch of the journal
to the first one:

1. **Erase** all comments of the import (`bulk_removal.erase`). From each commit on, readers see a
   tombstone or nothing.
2. **Delete** the rows of erased comments that no other comment needs (`bulk_removal.delete`), and
   the directory of a thread without comments. A comment with replies by people or of a later import
   stays, without its content, even if an undo removes those replies later. The last comment of a
   thread waits for a compaction, so an undo usually needs several calls of `go_on`.
3. **End**: delete the batches of the journal, the threads that the import made and that have no
   comments left, and the counters and entries of the audit log that it added.

Invariants:

1. Each step checks the stored rows, and its commit also counts the removed comments. The undo can
   therefore be interrupted anywhere and continued by any process, and several processes can share
   it.
2. An undo that has begun ends: while the import's row has `undoing` but not `undone`, each server
   process that finds it continues it (`scheduler`).
3. Phase 2 begins when all comments are erased. Nobody can answer an erased comment, and no import
   begins meanwhile, so no comment becomes necessary after the search for replies.
4. An undo sends no mail and no webhooks.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

import msgspec

from comments import errors
from comments.domain import records
from comments.events import audit_log, backlog
from comments.jobs.importers import import_journal
from comments.jobs.migrations import declared_backfill
from comments.moderation import reports, retention_marks
from comments.moderation.classifiers import classifier_answers
from comments.posting import cast_vote
from comments.reading.compaction import leftovers
from comments.store import reads, transactions
from comments.store.models import comment_rows, event_rows, vote_rows
from comments.tree import bulk_removal, values
from comments.tree.counters import declarations, sharding

VERB = "undo-import"
SUBJECT = "import:"
STEPS = 40  # Transactions per call for a server, so that its other work continues in between.
_PASSES = 100  # Maximum passes over the journal in one call.

T = TypeVar("T", bulk_removal.Erasure, bulk_removal.Deletion)
Told = Callable[[Sequence[str]], None]


class UndoProgress(NamedTuple):
    """The progress of an undo: its import, and the number of comments that one call erased.

    `waiting` contains the threads whose last comment waits for a compaction. `is_left` tells
    whether the call ended because of its limit.
    """

    found: import_journal.Import
    erased: int = 0
    waiting: tuple[records.ThreadName, ...] = ()
    is_left: bool = False


class UndoPreview(NamedTuple):
    """The numbers of comments and threads that an undo will find.

    `answered` of the comments stay as tombstones, because comments that the import did not add
    answer them. `threads` will be deleted, as will `entries` of the audit log, and `counters`.
    """

    comments: int
    answered: int
    threads: int
    entries: int = 0
    counters: tuple[str, ...] = ()


def start(
    site: str, import_id: str, act: audit_log.Act, *, now: datetime, steps: int = STEPS
) -> UndoProgress:
    """Begin an undo and run its first steps; this process's worker continues it at once.

    An undo that has begun is continued. `act` names the person, for the audit log.

    Raises:
        errors.ImportRefused: see `begin`.
        errors.Overloaded: the store did not respond in time. The undo may have begun.
    """
    begin(site, import_id, act, now=now)
    try:
        return go_on(site, import_id, now=now, steps=steps)
    finally:
        backlog.undoing(records.ImportUndo(site, import_id))


def begin(site: str, import_id: str, act: audit_log.Act, *, now: datetime) -> import_journal.Import:
    """Begin an undo, and note it in the audit log. Without an error, it will be completed.

    Raises:
        errors.ImportRefused: the site has no such import, it was undone or can no longer be undone,
            or an import into the site is running.
    """
    return transactions.transaction(functools.partial(_begin, site, import_id, act, now))


def _begin(site: str, import_id: str, act: audit_log.Act, now: datetime) -> import_journal.Import:
    found = import_journal.get(site, import_id)
    if found.is_being_undone:
        return found
    check(site, found, now)
    begun = msgspec.structs.replace(found, undoing=now, removed=0, kept=0, waiting=0)
    noted = audit_log.noted(
        act, site, f"{SUBJECT}{import_id}", before="imported", after="undone", now=now
    )
    transactions.apply(import_journal.store(site, begun), noted)
    return begun


def check(site: str, found: import_journal.Import, now: datetime) -> None:
    """Check that an import can be undone now.

    Raises:
        errors.ImportRefused: see `begin`.
    """
    if found.undone is not None:
        raise errors.ImportRefused(
            f"The import {found.id} was undone already, at {_shown(found.undone)}."
        )
    if found.is_being_undone:
        return
    running = next((each for each in import_journal.every(site) if each.goes_on(now)), None)
    if running is not None:
        raise errors.ImportRefused(
            f"The import {running.id} of {running.file} into {site} is still running. Wait until "
            f"it ends, or stop it and try again after {import_journal.LATE} seconds."
        )
    if now >= found.ends:
        raise errors.ImportRefused(
            f"The import {found.id} could be undone until {_shown(found.ends)}, "
            f"{import_journal.TERM.days} days after it began. Moderate or retract its comments "
            "instead."
        )


def preview(site: str, import_id: str) -> UndoPreview:
    """Count what an undo will find, without changing anything."""
    batches = [batch for _, batch in import_journal.batches(site, import_id)]
    ours = {each for batch in batches for each in batch.ids}
    made = {records.ThreadName(site, each) for batch in batches for each in batch.threads}
    names: dict[records.ThreadName, None] = {}
    stored = 0
    for batch in batches:
        rows = _stored(batch.ids)
        stored += len(rows)
        names.update(dict.fromkeys(map(_thread_of, rows)))
    needed = {name: bulk_removal.needed(name, ours) for name in names}
    return UndoPreview(
        stored,
        sum(len(each) for each in needed.values() if each is not None),
        sum(name in made and found is None for name, found in needed.items()),
        sum(len(batch.entries) for batch in batches),
        _counters(site, import_id),
    )


def go_on(
    site: str,
    import_id: str,
    *,
    now: datetime,
    steps: int | None = None,
    told: Told = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> UndoProgress:
    """Continue an undo that has begun, for up to `steps` transactions; None for no limit.

    This function calls `told` with the events of each step, and `progress` with the number of its
    comments.

    Raises:
        errors.ImportRefused: the site has no such import.
        errors.Overloaded: the store did not respond in time; a later call continues.
    """
    undo = _Undo(site, import_id, now, told)
    is_left = False
    try:
        for number, done in enumerate(undo.steps(), 1):
            progress(done)
            if steps is not None and number >= steps:
                is_left = True
                break
    finally:
        # A compaction of a large thread takes long, so tell each thread only once.
        for name in undo.threads:
            backlog.erased(name)
    waiting = () if is_left else tuple(undo.waiting)
    return UndoProgress(import_journal.get(site, import_id), undo.erased, waiting, is_left)


def unfinished() -> list[records.ImportUndo]:
    """List every undo that has begun and is not complete."""
    return [records.ImportUndo(site, each.id) for site, each in import_journal.being_undone()]


def finish(*, now: datetime, steps: int = STEPS) -> bool:
    """Continue every undo that has begun; return whether one of them has more to do at once."""
    found = [go_on(each.site, each.id, now=now, steps=steps) for each in unfinished()]
    return any(each.is_left for each in found)


class _Undo:
    """One call's part of an undo."""

    def __init__(self, site: str, import_id: str, now: datetime, told: Told) -> None:
        self._site = site
        self._id = import_id
        self._now = now
        self._told = told
        self.erased = 0
        self.waiting: list[records.ThreadName] = []
        self.threads: dict[records.ThreadName, None] = {}
        self._answers: dict[records.ThreadName, dict[str, set[str]]] = {}

    def steps(self) -> Iterator[int]:
        """Run the undo, and yield the number of comments after each transaction."""
        if not import_journal.get(self._site, self._id).is_being_undone:
            return
        names = import_journal.batch_names(self._site, self._id)[::-1]
        for name in names:
            yield from self._erase(name)
        yield from self._delete_all(names)
        if self.waiting:
            transactions.transaction(self._note_waiting)
        else:
            for name in names:
                self._end(name)
                yield 0
            self._remove_counters()
            transactions.transaction(self._mark)

    def _delete_all(self, names: Sequence[str]) -> Iterator[int]:
        """Delete the comments of all batches, until none of the others can be deleted now."""
        for _ in range(_PASSES):
            self.waiting = []
            kept = deleted = 0
            for name in names:
                for found in self._delete(name):
                    self.waiting += found.waiting
                    kept += found.kept
                    deleted += len(found.ids)
                    if found.ids:
                        yield len(found.ids)
            # A comment may have been kept for one that was deleted after it.
            if not (kept and deleted):
                return

    def _erase(self, name: str) -> Iterator[int]:
        batch = self._batch(name)
        if batch is None or batch.is_erased:
            return
        ids = batch.ids[::-1]
        for first in range(0, len(ids), bulk_removal.AT_ONCE):
            part = ids[first : first + bulk_removal.AT_ONCE]
            is_last = first + len(part) == len(ids)
            if not is_last and not any(row.source for row in _stored(part)):
                continue  # An earlier call has erased these.
            found = self._applied(functools.partial(self._erased, name, part, is_last=is_last))
            self.erased += len(found.ids)
            for each in found.voted:
                backlog.voted(records.VotedComment(each))
            yield len(found.ids)

    def _erased(self, name: str, ids: Sequence[str], *, is_last: bool) -> bulk_removal.Erasure:
        found = bulk_removal.erase(ids, now=self._now, run=self._id)
        row = reads.get(event_rows.import_batch_key(name))
        if row is None:
            return bulk_removal.Erasure()
        batch = msgspec.structs.replace(import_journal.content(row), is_erased=is_last)
        transactions.apply(
            *found.writes,
            import_journal.put(row, batch),
            retention_marks.without(ids),
            reports.without(ids),
            classifier_answers.without(ids),
        )
        return found

    def _delete(self, name: str) -> Iterator[bulk_removal.Deletion]:
        batch = self._batch(name)
        ids = () if batch is None else batch.ids[::-1]
        for first in range(0, len(ids), bulk_removal.AT_ONCE):
            part = ids[first : first + bulk_removal.AT_ONCE]
            stored = [row for row in _stored(part) if bulk_removal.is_erased(row)]
            if not stored:
                continue
            self._delete_votes(part)
            answers = self._answers_in({_thread_of(row) for row in stored})
            here = [row.key.id() for row in stored]
            found = self._applied(functools.partial(self._deleted, here, answers))
            for each in answers.values():
                each.difference_update(found.ids)
            yield found

    def _delete_votes(self, ids: Sequence[str]) -> None:
        """Delete the remaining votes on erased comments."""
        keys = [vote_rows.votes_due_key(each) for each in ids]
        for due in reads.get_multi(keys):
            if due is not None:
                cast_vote.count(due.key.id(), now=self._now)

    def _answers_in(self, names: set[records.ThreadName]) -> dict[str, set[str]]:
        """Return the comments that others than their children answer, in these threads."""
        self._answers = {
            name: self._answers[name] if name in self._answers else bulk_removal.answers(name)
            for name in names
        }
        return {key: ids for found in self._answers.values() for key, ids in found.items()}

    def _deleted(self, ids: Sequence[str], answers: bulk_removal.Answered) -> bulk_removal.Deletion:
        found = bulk_removal.delete(ids, answers, now=self._now, run=self._id)
        stored = import_journal.get(self._site, self._id)
        changed = msgspec.structs.replace(
            stored,
            removed=stored.removed + len(found.ids),
            revision=max(stored.revision, found.revision),
        )
        transactions.apply(*found.writes)
        if found.ids:
            transactions.apply(
                import_journal.store(self._site, changed),
                *map(leftovers.of_thread, found.emptied),
                retention_marks.without(found.ids),
                reports.without(found.ids),
                classifier_answers.without(found.ids),
            )
        return found

    def _end(self, name: str) -> None:
        """Delete the threads that a batch made, if they are empty, and then the batch."""
        batch = self._batch(name)
        if batch is None:
            return
        for thread in batch.threads:
            found = records.ThreadName(self._site, thread)
            made = batch.settings_of(thread)
            sharding.gather(found)
            transactions.transaction(functools.partial(_delete_thread, found, made))
        transactions.transaction(functools.partial(self._ended, name))

    def _ended(self, name: str) -> None:
        row = reads.get(event_rows.import_batch_key(name))
        if row is None:
            return
        batch = import_journal.content(row)
        stored = import_journal.get(self._site, self._id)
        changed = msgspec.structs.replace(stored, kept=stored.kept + len(_stored(batch.ids)))
        transactions.apply(
            import_journal.store(self._site, changed),
            import_journal.gone(row),
            audit_log.without(batch.entries),
        )

    def _remove_counters(self) -> None:
        names = _counters(self._site, self._id)
        for name in names:
            with contextlib.suppress(errors.NotFound):  # Another process has removed it.
                declarations.remove(self._site, name, now=self._now)
        if names:
            declared_backfill.run(self._site)

    def _note_waiting(self) -> None:
        stored = import_journal.get(self._site, self._id)
        if stored.waiting != len(self.waiting):
            noted = msgspec.structs.replace(stored, waiting=len(self.waiting))
            transactions.apply(import_journal.store(self._site, noted))

    def _mark(self) -> None:
        stored = import_journal.get(self._site, self._id)
        if stored.is_being_undone and not import_journal.batch_names(self._site, self._id):
            undone = msgspec.structs.replace(stored, undone=self._now)
            transactions.apply(import_journal.store(self._site, undone))

    def _batch(self, name: str) -> import_journal.Batch | None:
        row = reads.get(event_rows.import_batch_key(name))
        return None if row is None else import_journal.content(row)

    def _applied(self, body: Callable[[], T]) -> T:
        """Run a step, and report its events and threads."""
        runs: list[T] = []

        def noted() -> None:
            runs.append(body())

        transactions.transaction(noted)
        # If the answer to a commit is lost, the next run finds nothing left to do.
        found = max(runs, key=lambda run: len(run.ids))
        self._told(found.events)
        for event in found.events:
            backlog.tell(event)
        self.threads.update(dict.fromkeys(found.threads))
        return found


def _counters(site: str, import_id: str) -> tuple[str, ...]:
    """Return the counters that an import declared and that nobody has changed since."""
    declared = import_journal.get(site, import_id).counters
    known = declarations.of_site(site).counters
    return tuple(each.declaration.name for each in known if each.declaration in declared)


def _delete_thread(name: records.ThreadName, made: values.ThreadSettings) -> None:
    transactions.apply(*bulk_removal.delete_thread(name, made))


def _stored(ids: Sequence[str]) -> list[comment_rows.CommentRow]:
    rows = reads.get_multi([comment_rows.comment_key(each) for each in ids])
    return [row for row in rows if row is not None]


def _thread_of(row: comment_rows.CommentRow) -> records.ThreadName:
    return records.ThreadName(row.site, row.thread_id)


def _shown(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="minutes")
