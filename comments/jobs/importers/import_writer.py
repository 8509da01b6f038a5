"""Import an export: first make a plan without storing anything, then write the comments.

    with import_writer.plan(disqus.read, path, site=site, scheme=scheme, secret=secret) as plan:
        show(plan.report)
        import_writer.write(plan, scheme=scheme, now=now, progress=advance)

Threads are written one at a time, with comments in the order of `write_order`. Each batch is one
transaction, which also updates the counters.

Invariants:

1. An invalid file is refused before anything is stored.
2. Comments that already exist are skipped. A repeated import adds nothing; repeating an interrupted
   import adds the missing comments in their places.
3. An import sends no mail and no webhooks.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

import msgspec

from comments import errors
from comments.domain import records, sorthash
from comments.events import backlog
from comments.jobs.importers import import_plan, import_source, spool
from comments.jobs.importers.import_report import ImportReport
from comments.store import reads, transactions
from comments.store.models import comment_rows
from comments.tree import bulk_append

# The maximum number of comments in a batch. A transaction is limited to 500 entities, and a batch
# also writes parents that are already stored.
BATCH = 100
# The maximum bytes of text in a batch. A transaction is limited to 10 MiB, and each text is stored
# about twice.
BATCH_BYTES = 3 << 20
_LOOKUP = 500


class ImportSummary(msgspec.Struct, frozen=True):
    """The numbers of added comments, of comments that already existed, and of threads."""

    added: int
    present: int
    threads: int


class CheckedImport:
    """A checked export. This object owns a temporary file, so use it in a `with` statement."""

    def __init__(
        self,
        store: spool.Spool,
        *,
        site: records.Site,
        system: str,
        threads: tuple[import_plan.PlannedThread, ...],
        report: ImportReport,
    ) -> None:
        self.threads = threads
        self.report = report
        self.is_compared = False  # set by `check`
        self._spool = store
        self._site = site
        self._system = system

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def id_of(self, source_id: str) -> str:
        """Return the comment id for an id in the other system."""
        return import_plan.comment_id(self._site.id, self._system, source_id)

    def batches(self, thread: import_plan.PlannedThread) -> Iterator[list[records.ImportedComment]]:
        """Yield a thread's comments in writing order, in one batch per transaction."""
        batch: list[records.ImportedComment] = []
        size = 0
        for node in thread.nodes:
            length = node.place[1]
            if batch and (len(batch) == BATCH or size + length > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            reply_to = None if node.answers is None else self.id_of(node.answers)
            comment = self._spool.get(node.place)
            batch.append(msgspec.structs.replace(comment, reply_to=reply_to, status=node.status))
            size += length
        yield batch


def plan(
    reader: import_source.Reader,
    path: Path,
    *,
    site: records.Site,
    scheme: sorthash.Scheme,
    secret: str,
) -> CheckedImport:
    """Read and check a whole export without storing anything. Author ids are derived with `secret`.

    Raises:
        errors.BadImport: the file is invalid; the error names the line.
    """
    store = spool.Spool()
    try:
        reading = import_plan.FirstPass(path, site, store, secret=secret)
        for item in reader(path):
            reading.take(item)
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
    )
    return CheckedImport(store, site=site, system=reading.system, threads=threads, report=report)


def write(
    plan: CheckedImport,
    *,
    scheme: sorthash.Scheme,
    now: datetime,
    progress: Callable[[int], None] = lambda _: None,
    told: Callable[[Sequence[str]], None] = lambda _: None,
) -> ImportSummary:
    """Store those comments of the plan that are not yet stored.

    This function calls `progress` with the number of comments in each finished batch, and `told`
    with the events of each batch. The counters of the site and its authors change when these events
    are delivered.

    Raises:
        errors.BadImport: comments in the file are already stored in other threads; nothing was
            written.
        errors.Overloaded: the store did not respond; running the import again continues it.
    """
    check(plan)
    added = 0
    for thread in plan.threads:
        for batch in plan.batches(thread):
            new, events = _write_batch(scheme, thread, batch, now)
            added += new
            told(events)
            progress(len(batch))
    return ImportSummary(added, plan.report.comments - added, len(plan.threads))


def _write_batch(
    scheme: sorthash.Scheme,
    thread: import_plan.PlannedThread,
    batch: list[records.ImportedComment],
    now: datetime,
) -> tuple[int, Sequence[str]]:
    added = [0]
    events: list[str] = []

    def body() -> None:
        imported = bulk_append.append_imported(
            scheme,
            thread.name,
            batch,
            title=thread.title,
            url=thread.url,
            state=thread.state,
            now=now,
        )
        transactions.apply(*imported.writes)
        # If the response to a commit is lost, the next run finds the comments already stored and
        # adds 0.
        added.append(imported.added)
        events.extend(imported.events)

    transactions.transaction(body, line=f"{thread.name.site}/{thread.name.id}")
    for event in dict.fromkeys(events):
        backlog.tell(event)
    if max(added):
        backlog.changed(thread.name, changes=max(added))
    return max(added), events


def check(plan: CheckedImport) -> None:
    """Check that no comment in the plan is stored in a different thread, without storing anything.

    A comment is in a different thread if the site's rules for page ids have changed, or if the
    export of a different website on the same system was imported into this site. Replies would then
    cross threads. Further calls for the same plan do nothing.

    Raises:
        errors.BadImport: comments in the file are already stored in other threads.
    """
    if plan.is_compared:
        return
    for thread in plan.threads:
        expected = comment_rows.thread_key_name(thread.name)
        for start in range(0, len(thread.nodes), _LOOKUP):
            nodes = thread.nodes[start : start + _LOOKUP]
            rows = reads.get_multi(
                [comment_rows.comment_key(plan.id_of(node.id)) for node in nodes]
            )
            for node, row in zip(nodes, rows, strict=True):
                if row is not None and row.thread != expected:
                    raise errors.BadImport(
                        str(plan.report.file),
                        node.line,
                        f"comment {node.id} belongs to thread {thread.name.id} but is already "
                        f"stored in thread {row.thread_id}. Import the exports of different "
                        "websites into different sites.",
                    )
    plan.is_compared = True
