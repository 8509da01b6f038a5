"""Import of another system's comments: a plan that stores nothing, then the writing.

    with importing.plan(disqus.read, path, site=site, scheme=scheme, secret=secret) as plan:
        show(plan.report)
        importing.write(plan, scheme=scheme, now=now, progress=advance)

A file that is refused was refused before anything was stored. Writing goes thread by thread in
the order of `write_order`, a batch in a transaction with its numbers, and skips what is there: run
again, it adds nothing; run again after it was interrupted, it adds the rest where it belongs.
Nothing is sent to anybody.
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
from comments.jobs.importers.import_report import Report
from comments.store import reads, transactions
from comments.store.models import comment_rows
from comments.tree import bulk_append

# A transaction may hold 500 entities; a batch also writes the parents it found stored.
BATCH = 100
# Bytes of texts in a batch. A transaction may hold 10 MiB, and each text is stored about twice.
BATCH_BYTES = 3 << 20
_LOOKUP = 500


class Summary(msgspec.Struct, frozen=True):
    """What a writing did: comments added, those that were there already, threads gone through."""

    added: int
    present: int
    threads: int


class Plan:
    """A checked file. Owns a temporary file: use it in `with`."""

    def __init__(
        self,
        store: spool.Spool,
        *,
        site: records.Site,
        system: str,
        threads: tuple[import_plan.Thread, ...],
        report: Report,
    ) -> None:
        self.threads = threads
        self.report = report
        self.is_compared = False  # with what is stored
        self._spool = store
        self._site = site
        self._system = system

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def id_of(self, source_id: str) -> str:
        """The comment id of a source id."""
        return import_plan.comment_id(self._site.id, self._system, source_id)

    def batches(self, thread: import_plan.Thread) -> Iterator[list[records.ImportedComment]]:
        """The comments of a thread in the order of writing, in pieces one transaction can hold."""
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
) -> Plan:
    """Read and check a whole export. Stores nothing. `secret` makes the ids of its authors.

    Raises:
        errors.BadImport: the file is refused; names the line.
    """
    store = spool.Spool()
    try:
        reading = import_plan.Reading(path, site, store, secret=secret)
        for item in reader(path):
            reading.take(item)
        threads = reading.threads(scheme.levels)
    except BaseException:
        store.close()
        raise
    report = Report(
        file=str(path),
        comments=sum(len(thread.nodes) for thread in threads),
        threads=len(threads),
        statuses=import_plan.statuses(threads),
        notes=tuple(reading.notes),
    )
    return Plan(store, site=site, system=reading.system, threads=threads, report=report)


def write(
    plan: Plan,
    *,
    scheme: sorthash.Scheme,
    now: datetime,
    progress: Callable[[int], None] = lambda _: None,
    told: Callable[[Sequence[str]], None] = lambda _: None,
) -> Summary:
    """Store what is not stored yet. `progress` is told how many comments each batch dealt with.

    `told` gets the events of each batch: until they are delivered, the numbers of the site and of
    its authors do not know of it.

    Raises:
        errors.Conflict: comments of the file are stored in other threads already. Nothing was
            stored.
        errors.Overloaded: the store did not answer; running again goes on from there.
    """
    check(plan)
    added = 0
    for thread in plan.threads:
        for batch in plan.batches(thread):
            new, events = _write_batch(scheme, thread, batch, now)
            added += new
            told(events)
            progress(len(batch))
    return Summary(added, plan.report.comments - added, len(plan.threads))


def _write_batch(
    scheme: sorthash.Scheme,
    thread: import_plan.Thread,
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
        # A body that runs again after a commit that was applied finds its own work and adds 0.
        added.append(imported.added)
        events.extend(imported.events)

    transactions.transaction(body, line=f"{thread.name.site}/{thread.name.id}")
    for event in dict.fromkeys(events):
        backlog.tell(event)
    if max(added):
        backlog.changed(thread.name, changes=max(added))
    return max(added), events


def check(plan: Plan) -> None:
    """Refuse before writing what can only be written in part. Stores nothing; once is enough.

    A comment's thread changes when the site's rules for page ids did, or when the ids belong to
    another export of the same system; replies would then answer across threads.

    Raises:
        errors.Conflict: comments of the file are stored in other threads already.
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
                    raise errors.Conflict(
                        f"{plan.report.file}:{node.line}: comment {node.id} belongs to "
                        f"{thread.name.id} but is stored in {row.thread_id} already; "
                        "the export of another website goes to a site of its own",
                        code="imported-elsewhere",
                    )
    plan.is_compared = True
