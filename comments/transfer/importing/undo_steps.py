"""The steps of an undo, from the last batch of the journal to the first one.

Each step is a transaction of bounded size:

1. **Erase** all comments of the import (`bulk_removal.erase`). From each commit on, readers see a
   tombstone or nothing.
2. **Delete** the rows of erased comments that no other comment needs (`bulk_removal.delete`), and
   the directory of a thread without comments. If a person or a later import replied to a comment,
   the comment stays, without its content, even if an undo later removes those replies. The last
   comment of a thread cannot be deleted before a compaction, so an undo usually needs several calls
   of `import_undo.go_on`.
3. **End**: delete the batches of the journal; then delete the threads that the import created and
   that have no comments left, and the counters and audit log entries that the import added.

Invariant: Each step checks the stored rows, and the commit that removes comments also counts them,
so any process can continue an undo at any step
(test_undo_steps.py::test_an_undo_whose_answers_are_lost_removes_and_counts_each_comment_once).

Phase 2 begins when all comments are erased. Nobody can reply to an erased comment, and no import
can begin during an undo, so no comment becomes necessary after the search for replies.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import records
from comments.events import audit_log, backlog
from comments.moderation import reports, retention_marks
from comments.moderation.classifiers import classifier_answers
from comments.posting import cast_vote
from comments.reading.compaction import leftovers
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, event_rows, vote_rows
from comments.transfer.importing import import_journal
from comments.tree import values
from comments.tree.bulk import bulk_removal
from comments.tree.counters import sharding
from comments.tree.counters.declared import declarations, declared_backfill

_PASSES = 100  # Maximum passes over the journal in one call.

ReportErased = Callable[[Sequence[str]], None]


class UndoSteps:
    """The part of an undo that one call does.

    `told` is called with the events of each step. `waiting` contains the threads whose last comment
    waits for a compaction, and `threads` contains all changed threads.
    """

    def __init__(self, site: str, import_id: str, now: datetime, told: ReportErased) -> None:
        self._site = site
        self._id = import_id
        self._now = now
        self._told = told
        self.waiting: list[records.ThreadName] = []
        self.threads: dict[records.ThreadName, None] = {}
        self._answers: dict[records.ThreadName, dict[str, set[str]]] = {}

    def steps(self) -> Iterator[int]:
        """Run the undo; after each transaction, yield the number of comments in it."""
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
        """Delete the comments of all batches, until no more of them can be deleted now."""
        for _ in range(_PASSES):
            self.waiting = []
            kept = deleted = 0
            for name in names:
                for removal in self._delete(name):
                    self.waiting += removal.waiting
                    kept += removal.kept
                    deleted += len(removal.ids)
                    if removal.ids:
                        yield len(removal.ids)
            # A comment may have been kept because of another one that was deleted after it.
            if not (kept and deleted):
                return

    def _erase(self, name: str) -> Iterator[int]:
        batch = import_journal.get_batch(name)
        if batch is None or batch.is_erased:
            return
        for part in _parts(batch):
            is_last = part[-1] == batch.ids[0]
            if not is_last and not any(row.source for row in bulk_removal.stored_rows(part)):
                continue  # An earlier call has already erased these comments.
            removal = self._run_step(
                functools.partial(self._erase_part, name, part, is_last=is_last)
            )
            for comment_id in removal.voted:
                backlog.note_vote(records.VotedComment(comment_id))
            yield len(removal.ids)

    def _erase_part(self, name: str, ids: Sequence[str], *, is_last: bool) -> bulk_removal.Removal:
        removal = bulk_removal.erase(ids, now=self._now, run=self._id)
        row = reads.get(event_rows.import_batch_key(name))
        if row is None:
            return bulk_removal.Removal()
        batch = msgspec.structs.replace(import_journal.decode_batch(row), is_erased=is_last)
        transactions.apply(
            *removal.writes, import_journal.batch_writes(row, batch), *_remark_writes(ids)
        )
        return removal

    def _delete(self, name: str) -> Iterator[bulk_removal.Removal]:
        for part in _parts(import_journal.get_batch(name)):
            stored = [row for row in bulk_removal.stored_rows(part) if bulk_removal.is_erased(row)]
            if not stored:
                continue
            self._delete_votes(part)
            answers = self._answers_in({thread_of(row) for row in stored})
            here = [row.key.id() for row in stored]
            removal = self._run_step(functools.partial(self._delete_comments, here, answers))
            for ids in answers.values():
                ids.difference_update(removal.ids)
            yield removal

    def _delete_votes(self, ids: Sequence[str]) -> None:
        """Delete the remaining votes on erased comments."""
        keys = [vote_rows.votes_due_key(comment_id) for comment_id in ids]
        for due in reads.get_multi(keys):
            if due is not None:
                cast_vote.count(due.key.id(), now=self._now)

    def _answers_in(self, names: set[records.ThreadName]) -> dict[str, set[str]]:
        """Return the comments in these threads to which others than their children reply."""
        self._answers = {
            name: self._answers[name] if name in self._answers else bulk_removal.answers(name)
            for name in names
        }
        return {key: ids for answers in self._answers.values() for key, ids in answers.items()}

    def _delete_comments(
        self, ids: Sequence[str], answers: bulk_removal.Answered
    ) -> bulk_removal.Removal:
        removal = bulk_removal.delete(ids, answers, now=self._now, run=self._id)
        stored = import_journal.get(self._site, self._id)
        transactions.apply(*removal.writes)
        if removal.ids:
            transactions.apply(
                import_journal.change_writes(
                    self._site,
                    stored,
                    removed=stored.removed + len(removal.ids),
                    revision=max(stored.revision, removal.revision),
                ),
                *map(leftovers.deletion_writes, removal.emptied),
                *_remark_writes(removal.ids),
            )
        return removal

    def _end(self, name: str) -> None:
        """Delete the empty threads that a batch created, and then the batch."""
        batch = import_journal.get_batch(name)
        if batch is None:
            return
        for thread in batch.threads:
            thread_name = records.ThreadName(self._site, thread)
            sharding.gather(thread_name)
            delete = functools.partial(_delete_thread, thread_name, batch.settings_of(thread))
            transactions.transaction(delete)
        transactions.transaction(functools.partial(self._delete_batch, name))

    def _delete_batch(self, name: str) -> None:
        row = reads.get(event_rows.import_batch_key(name))
        if row is None:
            return
        batch = import_journal.decode_batch(row)
        stored = import_journal.get(self._site, self._id)
        kept = stored.kept + len(bulk_removal.stored_rows(batch.ids))
        transactions.apply(
            import_journal.change_writes(self._site, stored, kept=kept),
            import_journal.batch_deletion_writes(row),
            audit_log.removal_writes(batch.entries),
        )

    def _remove_counters(self) -> None:
        names = unchanged_counters(self._site, self._id)
        for name in names:
            with contextlib.suppress(errors.NotFound):  # Already removed by another process.
                declarations.remove(self._site, name, now=self._now)
        if names:
            declared_backfill.complete(self._site)

    def _note_waiting(self) -> None:
        stored = import_journal.get(self._site, self._id)
        if stored.waiting != len(self.waiting):
            noted = import_journal.change_writes(self._site, stored, waiting=len(self.waiting))
            transactions.apply(noted)

    def _mark(self) -> None:
        stored = import_journal.get(self._site, self._id)
        if stored.is_being_undone and not import_journal.batch_names(self._site, self._id):
            transactions.apply(import_journal.change_writes(self._site, stored, undone=self._now))

    def _run_step(self, body: Callable[[], bulk_removal.Removal]) -> bulk_removal.Removal:
        """Run a step, and report its events and threads."""
        runs: list[bulk_removal.Removal] = []

        def note() -> None:
            runs.append(body())

        transactions.transaction(note)
        # If the response to a commit is lost, the next attempt finds nothing left to do.
        removal = max(runs, key=lambda run: len(run.ids))
        self._told(removal.events)
        for event in removal.events:
            backlog.tell(event)
        self.threads.update(dict.fromkeys(removal.threads))
        return removal


def unchanged_counters(site: str, import_id: str) -> tuple[str, ...]:
    """Return the counters that an import declared and that nobody has changed since."""
    declared = import_journal.get(site, import_id).counters
    known = declarations.of_site(site).counters
    return tuple(counter.declaration.name for counter in known if counter.declaration in declared)


def thread_of(row: comment_rows.CommentRow) -> records.ThreadName:
    """Return the thread of a comment's row."""
    return records.ThreadName(row.site, row.thread_id)


def _parts(batch: import_journal.Batch | None) -> Iterator[Sequence[str]]:
    """Yield a batch's comments from last to first, in parts for one transaction each."""
    ids = () if batch is None else batch.ids[::-1]
    for first in range(0, len(ids), bulk_removal.AT_ONCE):
        yield ids[first : first + bulk_removal.AT_ONCE]


def _remark_writes(ids: Sequence[str]) -> tuple[ownership.Writes, ...]:
    """Return the writes that delete marks, reports and classifier answers about comments."""
    return (
        retention_marks.deletion_writes(ids),
        reports.deletion_writes(ids),
        classifier_answers.deletion_writes(ids),
    )


def _delete_thread(name: records.ThreadName, made: values.ThreadSettings) -> None:
    transactions.apply(*bulk_removal.thread_deletion_writes(name, made))
