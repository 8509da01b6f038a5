"""Write the comments of a checked import (`checked_import`) to the store.

    with checked_import.plan(format.read, path, site=site, scheme=scheme, secret=secret) as plan:
        import_writer.write(plan, scheme=scheme, now=now, progress=advance)

Threads are written one after the other, with their comments in the order of `write_order`. Each
batch is one transaction, which also updates the counters of its threads.

Invariant: A transaction that adds comments also records them in the import's journal
(`import_journal`) (test_import_journal.py::test_the_journal_contains_what_each_commit_added).

Nothing is stored if a comment in the file is already stored in a different thread. Comments that
already exist do not change, and their votes do not change either: votes are stored before or with
their comment, and only if the comment does not exist yet. An import sends no mail and no webhooks.
"""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.events import backlog
from comments.store import ownership, transactions
from comments.transfer.checking import checked_import
from comments.transfer.importing import import_journal, running_import
from comments.tree import values
from comments.tree.bulk import bulk_append

T = TypeVar("T")

# An import takes long, so it should survive a store that is busy for several minutes.
_TRIES = 10  # Attempts to write a batch; each attempt ends with the store's own deadline
_PAUSE = 5.0  # Seconds between two attempts


class ImportSummary(msgspec.Struct, frozen=True):
    """The numbers of added comments, of comments that already existed, and of threads."""

    added: int
    present: int
    threads: int


def write(  # noqa: PLR0913 - one for each thing that a caller may watch
    plan: checked_import.CheckedImport,
    *,
    scheme: sorthash.Scheme,
    now: datetime,
    progress: Callable[[int], None] = lambda _: None,
    told: Callable[[Sequence[str]], None] = lambda _: None,
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    prepare: Callable[[running_import.RunningImport], None] | None = None,
) -> ImportSummary:
    """Store the comments of the plan that are not stored yet.

    This function calls `progress` with the number of comments in each finished batch, and `told`
    with the events of each batch. The counters of the site and of its authors change when these
    events are delivered. While the store is busy, the function retries; before each attempt, it
    calls `wait` with the number of seconds to wait. `now` is the time of the import; `clock`
    returns the times that the progress records. `prepare` applies everything that a file contains
    besides comments, and records it in the journal.

    Raises:
        errors.BadImport: comments in the file are already stored in other threads; nothing was
            written.
        errors.ImportRefused: the import is being undone.
        errors.Overloaded: the store did not respond for minutes; running the import again
            continues it.
    """
    check(plan)
    if not plan.threads and prepare is None:
        return ImportSummary(0, 0, 0)
    journal = running_import.RunningImport(plan.site, plan.file(), now, clock)
    _try_repeatedly(journal.begin, wait)
    if prepare is not None:
        prepare(journal)
    added = 0
    for number, batch in enumerate(plan.batches()):
        for early in _early_votes(batch):
            _try_repeatedly(early, wait)
        run = _Run(journal, number, batch, scheme=scheme, now=now)
        imported = _try_repeatedly(run.write, wait)
        added += imported.added_count
        told(imported.events)
        done = sum(len(thread.nodes) for thread in batch)
        progress(done)
        journal.advance(done)
    _try_repeatedly(journal.end, wait)
    return ImportSummary(added, plan.report.comments - added, len(plan.threads))


def _early_votes(batch: Sequence[values.ImportedThread]) -> Iterator[Callable[[], None]]:
    """Yield transactions that store votes on comments with more votes than a batch may write.

    If the import ends before the comment is stored, the next run stores these votes again.
    """
    for thread in batch:
        for node in thread.nodes:
            cast = () if node.kept is None else node.kept.votes[bulk_append.VOTES_AT_ONCE :]
            for start in range(0, len(cast), bulk_append.VOTES_AT_ONCE):
                part = cast[start : start + bulk_append.VOTES_AT_ONCE]
                early = functools.partial(bulk_append.early_vote_writes, thread.name, node.id, part)
                yield functools.partial(_apply, early)


def _apply(writes: Callable[[], ownership.Writes]) -> None:
    transactions.transaction(lambda: transactions.apply(writes()))


def _try_repeatedly(step: Callable[[], T], wait: Callable[[float], None]) -> T:
    for _ in range(_TRIES - 1):
        try:
            return step()
        except errors.StorageFault:
            raise
        except errors.Overloaded:
            wait(_PAUSE)
    return step()


class _Run:
    """The attempts to write one batch, and what attempts without a response may have added."""

    def __init__(
        self,
        journal: running_import.RunningImport,
        number: int,
        batch: Sequence[values.ImportedThread],
        *,
        scheme: sorthash.Scheme,
        now: datetime,
    ) -> None:
        self._journal = journal
        self._number = number
        self._batch = batch
        self._scheme = scheme
        self._now = now
        self._runs: list[values.Imported] = []

    def write(self) -> values.Imported:
        """Write the batch, in one transaction."""
        earlier = list(self._runs)

        def body() -> None:
            imported = self._import_batch()
            if not transactions.may_have_run():
                self._runs[:] = earlier
            self._runs.append(imported)

        # Imports and posts in the same thread take turns. A batch with several threads does not
        # take turns, because it would have to wait for all of them.
        first = self._batch[0].name
        line = f"{first.site}/{first.id}" if len(self._batch) == 1 else ""
        transactions.transaction(body, line=line)
        # If the response to a commit is lost, the next attempt finds the comments already stored
        # and adds none. The attempt that added the most is therefore the one that was committed.
        # All other attempts were aborted.
        applied = max(self._runs, key=lambda run: run.added_count)
        for event in applied.events:
            backlog.tell(event)
        for name, count in applied.by_thread.items():
            backlog.note_changes(name, changes=count)
        return applied

    def _import_batch(self) -> values.Imported:
        imported = bulk_append.append_imported(
            self._scheme,
            self._batch,
            now=self._now,
            run=self._journal.id,
            revision=self._journal.revision,
        )
        closed = {
            thread.name for thread in self._batch if thread.state is records.ThreadState.CLOSED
        }
        batch = import_journal.Batch(
            imported.ids,
            tuple(name.id for name in imported.made),
            tuple(name.id for name in imported.made if name in closed),
            settings={
                thread.name.id: values.ThreadSettings(
                    policy=thread.kept.policy or "", own=thread.kept.own
                )
                for thread in self._batch
                if thread.kept is not None and thread.name in imported.made
            },
        )
        noted = self._journal.batch_writes(self._number, batch, self._now)
        transactions.apply(*imported.writes, noted)
        return imported


def check(
    plan: checked_import.CheckedImport, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Check that no comment in the plan is stored in a different thread, without storing anything.

    A comment is in a different thread if the site's rules for page ids have changed, or if the
    export of a different website on the same system was imported into this site. Replies could then
    be in other threads than the comments that they answer. If the website has no threads yet,
    nothing needs to be compared. Further calls for the same plan do nothing. This function calls
    `progress` with 0 after each lookup.

    Raises:
        errors.BadImport: comments in the file are already stored in other threads, or two comments
            would get the same id.
        errors.UndoRunning: an earlier import is being undone, so stored comments will be removed.
    """
    if plan.is_compared:
        return
    import_journal.check_no_undo(plan.site)
    plan.settle_ids(progress)
    if plan.misplaced is not None:
        raise plan.misplaced
    plan.is_compared = True
