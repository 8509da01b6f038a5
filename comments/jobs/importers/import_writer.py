"""Import an export: first make a plan without storing anything, then write the comments.

    with import_writer.plan(format.read, path, site=site, scheme=scheme, secret=secret) as plan:
        show(plan.report)
        import_writer.write(plan, scheme=scheme, now=now, progress=advance)

Threads are written in turn, with comments in the order of `write_order`. Each batch is one
transaction, which also updates the counters of its threads. A batch contains as many comments as a
commit may, of one thread or of several: a commit costs more than a comment, and most threads are
short.

Invariants:

1. An invalid file is refused before anything is stored.
2. Comments that already exist are skipped. A repeated import adds nothing; repeating an interrupted
   import adds the missing comments in their places.
3. An import sends no mail and no webhooks.
4. The transaction that adds comments also writes them to the import's journal (`import_journal`).
5. The votes on a comment are stored before or with the comment, and only if it does not exist yet,
   so a repeated import never overwrites later votes.
"""

import functools
import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from comments import errors
from comments.domain import imported_ids, records, sorthash
from comments.events import backlog
from comments.jobs.importers import import_journal, import_source
from comments.jobs.importers.checking import import_plan, page_mapping, spool, write_order
from comments.jobs.importers.checking.import_report import ImportReport
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree import bulk_append, values

T = TypeVar("T")

# The maximum number of comments in a batch.
BATCH = 200
# The maximum number of entities that a batch writes, without its events, its row in the journal and
# the ancestors of its first comment. Every Datastore version accepts 500 in a transaction.
BATCH_WRITES = 450
_OF_COMMENT = 2  # the comment and its author's row in the thread
_OF_THREAD = 2  # the thread and its counter
# The maximum bytes of text in a batch. A transaction is limited to 10 MiB, and each text is stored
# about twice.
BATCH_BYTES = 3 << 20
_LOOKUP = 500
_READ = 500  # items between two reports of the first pass's progress
# An import takes a while, so it outlasts a store that is busy for minutes.
_TRIES = 10  # of a batch, each of which ends with the store's own deadline
_PAUSE = 5.0  # seconds between two tries


class ImportSummary(msgspec.Struct, frozen=True):
    """The numbers of added comments, of comments that already existed, and of threads."""

    added: int
    present: int
    threads: int


class CheckedImport:
    """A checked export. This object owns a temporary file, so use it in a `with` statement.

    With `keeps_ids`, comments keep the ids in the file, unless another site has a comment with the
    same id, which `check` finds out.
    """

    def __init__(  # noqa: PLR0913 - one for each part of a plan
        self,
        store: spool.Spool,
        *,
        site: records.Site,
        system: str,
        threads: tuple[import_plan.PlannedThread, ...],
        report: ImportReport,
        mapping: tuple[str, ...],
        keeps_ids: bool = False,
    ) -> None:
        self.threads = threads
        self.report = report
        self._mapping = mapping
        self.is_compared = False  # set by `check`
        self._spool = store
        self.site = site.id
        self._system = system
        self._keeps_ids = keeps_ids
        self._new_ids: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def id_of(self, source_id: str) -> str:
        """Return the comment id for an id in the other system."""
        if not self._keeps_ids:
            return imported_ids.comment_id(self.site, self._system, source_id)
        return self._new_ids.get(source_id, source_id)

    def settle_ids(self) -> None:
        """Choose other ids for comments whose ids belong to comments of other sites."""
        if not self._keeps_ids:
            return
        ids = (node.id for thread in self.threads for node in thread.nodes)
        while part := list(itertools.islice(ids, _LOOKUP)):
            rows = reads.read([(("Comment", each),) for each in part])
            for each, row in zip(part, rows, strict=True):
                if row is not None and row.properties["site"].string_value != self.site:
                    other = imported_ids.comment_id(self.site, imported_ids.OWN, each)
                    self._new_ids[each] = other

    def file(self) -> import_journal.ImportedFile:
        """Describe the file for the journal, with a digest of its bytes."""
        path = Path(self.report.file)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return import_journal.ImportedFile(
            self._system, path.name, digest, self.report.comments, self._mapping
        )

    def batches(self) -> Iterator[list[values.ImportedThread]]:
        """Yield the threads with their comments in writing order, in one batch per transaction."""
        batch = _Batch()
        for thread in map(self._named, self.threads):
            if not batch.begin(thread):
                yield batch.threads
                batch = _Batch()
                batch.begin(thread)
            for node in thread.nodes:
                if not batch.takes(node):
                    yield batch.threads
                    batch = _Batch()
                    batch.begin(thread)
                batch.add(node, self._comment(node))
        if batch.threads:
            yield batch.threads

    def _comment(self, node: write_order.Node) -> records.ImportedComment:
        """Return a comment with the ids under which it and the comment above it are stored."""
        comment = self._spool.get(node.place)
        kept = comment.kept
        if kept is not None:
            kept = msgspec.structs.replace(kept, number=node.number)
        return msgspec.structs.replace(
            comment,
            id=self.id_of(node.id),
            reply_to=None if node.answers is None else self.id_of(node.answers),
            status=node.status,
            kept=kept,
        )

    def _named(self, thread: import_plan.PlannedThread) -> import_plan.PlannedThread:
        """Return a thread with the id and the time of the comment that names it."""
        kept = thread.kept
        if kept is None or not kept.named_by:
            return thread
        by = next((node for node in thread.nodes if node.id == kept.named_by), None)
        kept = msgspec.structs.replace(
            kept,
            named_by="" if by is None else self.id_of(by.id),
            named_at=None if by is None else by.created,
        )
        return msgspec.structs.replace(thread, kept=kept)


class _Batch:
    """The comments of one transaction, by thread, with their number and size."""

    def __init__(self) -> None:
        self.threads: list[values.ImportedThread] = []
        self.comments = 0
        self._writes = 0
        self._bytes = 0
        self._thread: import_plan.PlannedThread | None = None
        self._nodes: list[records.ImportedComment] = []

    def begin(self, thread: import_plan.PlannedThread) -> bool:
        """Add the next comments to this thread. Return False if a thread without comments is full.

        Only an export of Flatthread contains threads without comments.
        """
        self._thread, self._nodes = thread, []
        if thread.nodes:
            return True
        if self._writes + _OF_THREAD > BATCH_WRITES:
            return False
        self._writes += _OF_THREAD
        self._add_thread(thread)
        return True

    def takes(self, node: write_order.Node) -> bool:
        """Return whether the batch can take one more comment; an empty batch takes any comment."""
        return not self.comments or (
            self.comments < BATCH
            and self._writes + self._writes_of_next(node) <= BATCH_WRITES
            and self._bytes + node.place[1] <= BATCH_BYTES
        )

    def add(self, node: write_order.Node, comment: records.ImportedComment) -> None:
        self._writes += self._writes_of_next(node)
        self._bytes += node.place[1]
        self.comments += 1
        if not self._nodes and self._thread is not None:
            self._add_thread(self._thread)
        self._nodes.append(comment)

    def _add_thread(self, given: import_plan.PlannedThread) -> None:
        self.threads.append(
            values.ImportedThread(
                given.name, self._nodes, given.title, given.url, given.state, given.kept
            )
        )

    def _writes_of_next(self, node: write_order.Node) -> int:
        # In preorder, a parent is in the batch too, or is an ancestor of the batch's first comment.
        of_comment = _OF_COMMENT + min(node.more, bulk_append.VOTES_AT_ONCE)
        return of_comment if self._nodes else of_comment + _OF_THREAD


def plan(  # noqa: PLR0913 - one for each thing that a caller may choose
    reader: import_source.Reader,
    path: Path,
    *,
    site: records.Site,
    scheme: sorthash.Scheme,
    secret: str,
    unit: str = "line",
    mapping: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> CheckedImport:
    """Read and check a whole export without storing anything. Author ids are derived with `secret`.

    `unit` is what the reader counts in the file (`format_registry.Format`). `mapping` moves pages
    to other addresses (`page_mapping`). This function calls `progress` with the number of further
    units that were read.

    Raises:
        errors.BadImport: the file is invalid; the error names the line.
        errors.ImportRefused: a mapping is invalid.
    """
    pages = page_mapping.PageMapping(mapping, site.origins)
    store = spool.Spool()
    try:
        reading = import_plan.FirstPass(path, site, store, secret=secret, unit=unit, mapping=pages)
        read = 0
        for number, item in enumerate(reader(path)):
            reading.take(item)
            if number % _READ == 0 and item.line > read:
                progress(item.line - read)
                read = item.line
        threads = reading.threads(scheme.levels)
    except BaseException:
        store.close()
        raise
    report = ImportReport(
        file=str(path),
        comments=sum(len(thread.nodes) for thread in threads),
        threads=len(threads),
        statuses=import_plan.statuses(threads),
        notes=tuple(reading.notes),
        unit=unit,
        tallies=reading.tallies.counted(),
        empty_pages=reading.empty_pages(),
    )
    return CheckedImport(
        store,
        site=site,
        system=reading.system,
        threads=threads,
        report=report,
        mapping=pages.texts,
        keeps_ids=reading.keeps_ids,
    )


def write(  # noqa: PLR0913 - one for each thing that a caller may watch
    plan: CheckedImport,
    *,
    scheme: sorthash.Scheme,
    now: datetime,
    progress: Callable[[int], None] = lambda _: None,
    told: Callable[[Sequence[str]], None] = lambda _: None,
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> ImportSummary:
    """Store those comments of the plan that are not yet stored.

    This function calls `progress` with the number of comments in each finished batch, and `told`
    with the events of each batch. The counters of the site and its authors change when these events
    are delivered. While the store is busy, the function tries again, and calls `wait` with the
    seconds until then. `now` is the time of the import, and `clock` is the time of its progress.

    Raises:
        errors.BadImport: comments in the file are already stored in other threads; nothing was
            written.
        errors.ImportRefused: the import is being undone.
        errors.Overloaded: the store did not respond for minutes; running the import again
            continues it.
    """
    check(plan)
    if not plan.threads:
        return ImportSummary(0, 0, 0)
    journal = import_journal.ImportJournal(plan.site, plan.file(), now, clock)
    _patiently(journal.begin, wait)
    added = 0
    for number, batch in enumerate(plan.batches()):
        for early in _early_votes(batch):
            _patiently(early, wait)
        run = _Run(journal, number, batch, scheme=scheme, now=now)
        imported = _patiently(run.write, wait)
        added += imported.added
        told(imported.events)
        done = sum(len(thread.nodes) for thread in batch)
        progress(done)
        journal.advance(done)
    _patiently(journal.end, wait)
    return ImportSummary(added, plan.report.comments - added, len(plan.threads))


def _early_votes(batch: Sequence[values.ImportedThread]) -> Iterator[Callable[[], None]]:
    """Yield transactions that store the votes on comments with more votes than a batch may write.

    If the import ends before the comment is stored, the next run stores these votes again.
    """
    for thread in batch:
        for node in thread.nodes:
            cast = () if node.kept is None else node.kept.votes[bulk_append.VOTES_AT_ONCE :]
            for start in range(0, len(cast), bulk_append.VOTES_AT_ONCE):
                part = cast[start : start + bulk_append.VOTES_AT_ONCE]
                early = functools.partial(bulk_append.early_votes, thread.name, node.id, part)
                yield functools.partial(_applied, early)


def _applied(writes: Callable[[], ownership.Writes]) -> None:
    transactions.transaction(lambda: transactions.apply(writes()))


def _patiently(step: Callable[[], T], wait: Callable[[float], None]) -> T:
    for _ in range(_TRIES - 1):
        try:
            return step()
        except errors.Overloaded:
            wait(_PAUSE)
    return step()


class _Run:
    """The writing of one batch, and what its tries without an answer may have added."""

    def __init__(
        self,
        journal: import_journal.ImportJournal,
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
            imported = self._imported()
            if not transactions.may_have_run():
                self._runs[:] = earlier
            self._runs.append(imported)

        # Posts in one thread take turns with the import. A batch of several short threads waits for
        # none, because it would have to wait for all.
        first = self._batch[0].name
        line = f"{first.site}/{first.id}" if len(self._batch) == 1 else ""
        transactions.transaction(body, line=line)
        # If the response to a commit is lost, the next run finds the comments already stored and
        # adds none, so the run that added the most is the one that was applied. Earlier runs were
        # aborted.
        applied = max(self._runs, key=lambda run: run.added)
        for event in applied.events:
            backlog.tell(event)
        for name, count in applied.by_thread.items():
            backlog.changed(name, changes=count)
        return applied

    def _imported(self) -> values.Imported:
        imported = bulk_append.append_imported(
            self._scheme,
            self._batch,
            now=self._now,
            run=self._journal.id,
            revision=self._journal.revision,
        )
        closed = {each.name for each in self._batch if each.state is records.ThreadState.CLOSED}
        batch = import_journal.Batch(
            imported.ids,
            tuple(name.id for name in imported.made),
            tuple(name.id for name in imported.made if name in closed),
            settings={
                each.name.id: values.ThreadSettings(
                    policy=each.kept.policy or "", own=each.kept.own
                )
                for each in self._batch
                if each.kept is not None and each.name in imported.made
            },
        )
        noted = self._journal.batch(self._number, batch, self._now)
        transactions.apply(*imported.writes, noted)
        return imported


def check(plan: CheckedImport) -> None:
    """Check that no comment in the plan is stored in a different thread, without storing anything.

    A comment is in a different thread if the site's rules for page ids have changed, or if the
    export of a different website on the same system was imported into this site. Replies would then
    cross threads. A website without threads needs no comparison. Further calls for the same plan do
    nothing.

    Raises:
        errors.BadImport: comments in the file are already stored in other threads.
        errors.UndoRunning: an earlier import is being undone, so stored comments will be removed.
    """
    if plan.is_compared:
        return
    import_journal.check_no_undo(plan.site)
    plan.settle_ids()
    if _has_threads(plan.site):
        _compare(plan)
    plan.is_compared = True


def _has_threads(site: str) -> bool:
    query = reads.Query(
        "Thread", where=(("site", "=", site),), order=("-created",), limit=1, keys_only=True
    )
    return any(True for _ in reads.fetch(query))


def _compare(plan: CheckedImport) -> None:
    nodes = ((thread, node) for thread in plan.threads for node in thread.nodes)
    while part := list(itertools.islice(nodes, _LOOKUP)):
        ids = [plan.id_of(node.id) for _, node in part]
        stored = reads.read([(("Comment", comment_id),) for comment_id in ids])
        for (thread, node), message in zip(part, stored, strict=True):
            if message is None:
                continue
            if message.properties["thread"].string_value != comment_rows.thread_key_name(
                thread.name
            ):
                raise errors.BadImport(
                    str(plan.report.file),
                    node.line,
                    f"comment {node.id} belongs to thread {thread.name.id} but is already "
                    f"stored in thread {message.properties['thread_id'].string_value}. If an "
                    "earlier import used other page mappings (--map), use the same ones. Import "
                    "the exports of different websites into different sites.",
                    plan.report.unit,
                )
