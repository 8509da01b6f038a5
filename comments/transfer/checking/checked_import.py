"""A checked import: a file that was read and checked completely before anything is stored.

    with checked_import.plan(format.read, path, site=site, scheme=scheme, secret=secret) as plan:
        show(plan.report)

A checked import yields the comments to store, with their ids, in batches.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

import msgspec

from comments.domain import records
from comments.domain.ids import imported_ids, sorthash
from comments.store import reads
from comments.transfer import import_source
from comments.transfer.checking import (
    import_batches,
    import_plan,
    import_report,
    page_mapping,
    source_pages,
    write_order,
)
from comments.transfer.parsing import imported_file
from comments.tree import values

_LOOKUP = 250  # Comments per query; each comment is looked up under two ids
_READ = 500  # Items read between two calls of `progress`


class CheckedImport:
    """A file that was read and checked, ready to be imported.

    This object owns a temporary file, so use it in a `with` statement.

    With `keeps_ids`, the file is a trusted export of Flatthread. The comments keep their ids,
    except those whose id belongs to a comment of another site (`settle_ids`).
    """

    def __init__(
        self,
        reading: import_plan.FirstPass,
        threads: tuple[source_pages.PlannedThread, ...],
        report: import_report.ImportReport,
    ) -> None:
        self.threads = threads
        self.report = report
        self.is_compared = False  # Set by `import_writer.check`
        self.site = reading.site.id
        self.system = reading.system
        self._mapping = reading.mapping.texts
        self._spool = reading.spool
        self._keeps_ids = reading.keeps_ids
        self._is_untrusted = self.system == imported_ids.OWN and not self._keeps_ids
        self._settled: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def id_of(self, source_id: str) -> str:
        """Return the comment id for an id in the other system."""
        settled = self._settled.get(source_id)
        if settled is not None:
            return settled
        return source_id if self._keeps_ids else self._derived_id(source_id)

    def _derived_id(self, source_id: str) -> str:
        return imported_ids.comment_id(self.site, self.system, source_id)

    def settle_ids(self, progress: Callable[[int], None] = lambda _: None) -> None:
        """Choose the ids for the comments of a Flatthread export, depending on the stored comments.

        If this site already has a comment, under the id in the file or under the id derived from
        it, the comment is not added again. Whether an operator or an owner imported it makes no
        difference. If the id in the file belongs to another site's comment, the derived id is used.
        This method calls `progress` with 0 after each lookup, because no comment is stored yet.

        Raises:
            errors.BadImport: a comment would get the id of another comment in the file.
        """
        if self.system != imported_ids.OWN:
            return
        ids = (node.id for thread in self.threads for node in thread.nodes)
        while part := list(itertools.islice(ids, _LOOKUP)):
            derived = [self._derived_id(source_id) for source_id in part]
            rows = reads.read([(("Comment", comment_id),) for comment_id in (*part, *derived)])
            sites = [None if row is None else row.properties["site"].string_value for row in rows]
            for number, source_id in enumerate(part):
                own, other = sites[number], sites[number + len(part)]
                if own == self.site:
                    self._settled[source_id] = source_id
                elif own is not None or other == self.site:
                    self._settled[source_id] = derived[number]
            progress(0)
        if self._keeps_ids:
            self._check_new_ids()

    def _check_new_ids(self) -> None:
        new = {
            stored: source_id for source_id, stored in self._settled.items() if stored != source_id
        }
        for node in (node for thread in self.threads for node in thread.nodes):
            if node.id in new and self.id_of(node.id) == node.id:
                raise self.report.bad(
                    node.line,
                    f"comment {node.id} has the id that comment {new[node.id]} would get, because "
                    "another site has a comment with that id. Import the file with --untrusted.",
                )

    def is_untrusted_copy(self, source_id: str) -> bool:
        """Return whether the site has a comment of an untrusted file under its own id."""
        return self._is_untrusted and self._settled.get(source_id) == source_id

    def file(self) -> imported_file.ImportedFile:
        """Describe the file for the journal."""
        path = Path(self.report.file)
        of_file = imported_file.untrusted_digest if self._is_untrusted else imported_file.digest
        return imported_file.ImportedFile(
            self.system, path.name, of_file(path), self.report.comments, self._mapping
        )

    def batches(self) -> Iterator[list[values.ImportedThread]]:
        """Yield the threads with their comments in writing order, in one batch per transaction."""
        batch = import_batches.ImportBatch()
        for thread in map(self._with_naming_comment, self.threads):
            # Only an export of Flatthread contains threads without comments.
            for node in thread.nodes or (None,):
                if not batch.has_room_for(thread, node):
                    yield batch.threads
                    batch = import_batches.ImportBatch()
                batch.add(thread, node, None if node is None else self._comment(node))
        if batch.threads:
            yield batch.threads

    def _comment(self, node: write_order.Node) -> records.ImportedComment:
        """Return a comment with its stored id and the stored id of the comment above it."""
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

    def _with_naming_comment(
        self, thread: source_pages.PlannedThread
    ) -> source_pages.PlannedThread:
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

    `unit` names what the line numbers in the report count (`format_registry.Format`). `mapping`
    moves pages to other addresses (`page_mapping`). This function calls `progress` with the number
    of units that were read since the previous call.

    Raises:
        errors.BadImport: the file is invalid; the error names the line.
        errors.ImportRefused: a mapping is invalid.
    """
    report = import_report.ImportReport(str(path), unit)
    pages = page_mapping.PageMapping(mapping, site.origins)
    reading = import_plan.FirstPass(site, report, secret=secret, mapping=pages)
    try:
        read = 0
        for number, item in enumerate(reader(path)):
            reading.take(item)
            if number % _READ == 0 and item.line > read:
                progress(item.line - read)
                read = item.line
        threads = reading.threads(scheme.levels)
    except BaseException:
        reading.spool.close()
        raise
    report.threads, report.empty_pages = len(threads), reading.empty_pages()
    report.statuses.update(node.status.value for thread in threads for node in thread.nodes)
    return CheckedImport(reading, threads, report)
