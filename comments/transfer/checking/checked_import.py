"""A checked import: a file that was read and checked completely before anything is stored.

    with checked_import.plan(format.read, path, site=site, scheme=scheme, secret=secret) as plan:
        show(plan.report)

A checked import yields the comments to store, with their ids, in batches.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.ids import imported_ids, sorthash
from comments.store import reads
from comments.store.models import comment_rows
from comments.threads import thread_info
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
from comments.tree.bulk import stored_copies

_LOOKUP = 250  # Comments per lookup; each comment is looked up under up to two ids
_Absent = tuple[source_pages.PlannedThread, list[write_order.Node]]
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
        self.misplaced: errors.BadImport | None = None
        self.site = reading.site.id
        self.system = reading.system
        self._mapping = reading.mapping.texts
        self._spool = reading.spool
        self._keeps_ids = reading.keeps_ids
        self._is_untrusted = self.system == imported_ids.OWN and not self._keeps_ids
        self._settled: dict[str, str] = {}
        # The numbers in WXR that Flatthread wrote are not those of WordPress's own comments.
        self._former = {
            node.id: node.former
            for thread in threads
            for node in thread.nodes
            if node.former not in {"", node.id}
        }

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
        former = self._former.get(source_id)
        system = self.system if former is None else imported_ids.OWN
        return imported_ids.comment_id(self.site, system, former or source_id)

    def settle_ids(self, progress: Callable[[int], None] = lambda _: None) -> None:
        """Find the comments that the site has already, and use their ids; nothing is stored.

        A comment in the file is on the site under its derived id, under the id that the file gives
        (`write_order.Node.former`), or as a copy on the same page (`stored_copies`). An operator's
        and an owner's import of an export find the same comments. If the id in an export of
        Flatthread belongs to another site's comment, the derived id is used. If a comment is stored
        on another page, `misplaced` is the error. This method calls `progress` with 0 after each
        lookup.

        Raises:
            errors.BadImport: a comment would get the id of another comment in the file.
        """
        if self.system != imported_ids.OWN and not thread_info.has_threads(self.site):
            return
        nodes = ((thread, node) for thread in self.threads for node in thread.nodes)
        absent: dict[records.ThreadName, _Absent] = {}
        while part := list(itertools.islice(nodes, _LOOKUP)):
            derived = [self._derived_id(node.id) for _, node in part]
            ids = list(dict.fromkeys((*derived, *(n.former for _, n in part if n.former))))
            stored = dict(zip(ids, reads.read([(("Comment", key),) for key in ids]), strict=True))
            for (thread, node), new in zip(part, derived, strict=True):
                if not self._settle(thread, node, new, stored):
                    absent.setdefault(thread.name, (thread, []))[1].append(node)
            progress(0)
        self._settle_copies(absent, progress)
        if self._keeps_ids:
            self._check_new_ids()

    def _settle(
        self,
        thread: source_pages.PlannedThread,
        node: write_order.Node,
        derived: str,
        stored: Mapping[str, Any],
    ) -> bool:
        """Return whether the site has a comment under one of its ids, and settle which one."""
        page = comment_rows.thread_key_name(thread.name)
        for comment_id in (derived, node.former):
            row = stored.get(comment_id)
            if row is None or row.properties["site"].string_value != self.site:
                continue
            if row.properties["thread"].string_value != page:
                if self.system != imported_ids.OWN and comment_id == node.former:
                    continue
                other = row.properties["thread_id"].string_value
                self.misplaced = self.misplaced or self.report.bad(
                    node.line,
                    f"comment {node.id} belongs to thread {thread.name.id} but is already "
                    f"stored in thread {other}. If an earlier import used other page mappings, "
                    "use the same ones. Import the exports of different websites into different "
                    "sites.",
                )
            self._use(node, comment_id)
            return True
        if stored.get(node.former) is not None and self._keeps_ids:
            self._settled[node.id] = derived
        return False

    def _settle_copies(
        self, absent: Mapping[records.ThreadName, _Absent], progress: Callable[[int], None]
    ) -> None:
        """Find copies of comments in those of their threads that the site has."""
        names = iter(absent)
        while part := list(itertools.islice(names, _LOOKUP)):
            for name, info in zip(part, thread_info.get_many(part), strict=True):
                if info is None:
                    continue
                thread, nodes = absent[name]
                taken = {self.id_of(node.id) for node in thread.nodes}
                comments = [self._spool.get(node.place) for node in nodes]
                copies = stored_copies.find(name, comments, taken)
                for node, copy in zip(nodes, copies, strict=True):
                    if copy:
                        self._use(node, copy)
                progress(0)

    def _use(self, node: write_order.Node, comment_id: str) -> None:
        self.report.count(import_report.PRESENT, "comments", node.line)
        if self.id_of(node.id) != comment_id:
            self._settled[node.id] = comment_id

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

    def is_copy(self, source_id: str) -> bool:
        """Return whether the site has a comment from another source than this file."""
        return self._settled.get(source_id) not in {None, self._derived_id(source_id)}

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
