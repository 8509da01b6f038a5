"""Verify that the store has the comments of a file as the file has them.

    with checked_import.plan(...) as plan:
        found = import_verification.verify(plan, scheme=site.scheme)

What people did here since the import is no fault: such differences have a reason
(`comment_comparison`). Differences without one are counted in `Verification.unexplained`.

The comparison shares the readers, the plan and the conversion of texts with the import, so it
cannot find their faults. The tests of the formats find those with independent readers.
"""

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from comments.domain import records, sorthash
from comments.domain.crypto import guest_addresses
from comments.domain.records import Status
from comments.events import audit_log
from comments.jobs.importers.checking import checked_import, import_plan, import_report, write_order
from comments.jobs.importers.verification import (
    comment_comparison,
    import_history,
    stored_comments,
    thread_comparison,
    tree_comparison,
    verification_result,
)
from comments.jobs.importers.verification.comment_comparison import FieldDifference
from comments.jobs.importers.verification.stored_comments import StoredComment, StoredThread
from comments.jobs.importers.verification.verification_result import ImportDifference
from comments.store.models import comment_rows
from comments.tree import status_changes, values

# The notes about items of the file that are left out, and what the items are.
_LEFT_OUT = {
    import_report.NO_NAME: "threads without a usable link or id, with their comments",
    import_report.DELETED: "deleted threads, with their comments",
    import_report.NO_THREAD: "comments whose thread is not in the file",
    import_report.REPEATED: "items with the id of an earlier item",
    import_report.OTHER: "items with the id of an earlier item, but other content",
    import_report.DOUBLED: "posts that were sent twice, after the first",
    import_report.OTHER_ITEMS: "items that are not comments",
}
_AUTHORS = 20_000  # the maximum number of decrypted addresses in memory
# An earlier import of another file does not explain a contradiction within a row.
_WITHIN_ROW = {"number", "sort_hash", "shape"}


def verify(
    plan: checked_import.CheckedImport,
    *,
    scheme: sorthash.Scheme,
    secret: str = "",
    progress: Callable[[int], None] = lambda _: None,
) -> verification_result.Verification:
    """Compare all comments of a checked file with the store, without writing anything.

    This function calls `progress` with the number of comments in each compared batch. `scheme` is
    the scheme of the site. Mail addresses are decrypted with `secret` and compared; without it,
    they are not compared.

    Raises:
        errors.Overloaded: the store did not respond in time.
    """
    plan.settle_ids(progress)
    verifier = _Verifier(plan, scheme, secret)
    threads = iter(plan.threads)
    current: _ThreadVerifier | None = None
    for batch in plan.batches():
        ids = [comment.id for given in batch for comment in given.nodes]
        stored = stored_comments.read([given.name for given in batch], ids)
        rows = iter(stored.comments)
        verifier.history.refresh()
        for given, row in zip(batch, stored.threads, strict=True):
            if current is None or current.planned.name != given.name:
                if current is not None:
                    current.end()
                current = _ThreadVerifier(verifier, next(threads), given)
            current.begin(row)
            for comment in given.nodes:
                current.add(comment, next(rows))
        progress(len(ids))
    if current is not None:
        current.end()
    return verifier.result()


def _decryption(secret: str) -> Callable[[str], str]:
    """Return a function that decrypts addresses. Comments of one author often share their bytes."""
    now = datetime.now(UTC)
    return functools.lru_cache(_AUTHORS)(
        lambda stored: guest_addresses.address(stored, secret, now=now)
    )


class _Side:
    """The totals of the file or of the store."""

    def __init__(self) -> None:
        self.comments = self.threads = self.depth = 0
        self.authors = set[str]()
        self._texts = hashlib.sha256()

    def add(self, author: str, depth: int, comment_id: str, html: str) -> None:
        self.comments += 1
        self.depth = max(self.depth, depth)
        if author:
            self.authors.add(author)
        data = html.encode(errors="surrogatepass")
        self._texts.update(f"{comment_id} {len(data)} ".encode() + data)

    def totals(self) -> verification_result.ContentTotals:
        return verification_result.ContentTotals(
            self.comments, self.threads, len(self.authors), self.depth, self._texts.hexdigest()
        )


class _Verifier:
    """What is found in all threads."""

    def __init__(
        self, plan: checked_import.CheckedImport, scheme: sorthash.Scheme, secret: str
    ) -> None:
        self.plan = plan
        self.address_of = _decryption(secret) if secret else None
        self.scheme = scheme
        self.digest = plan.file().digest
        self.history = import_history.ImportHistory(plan.site)
        self.file, self.store = _Side(), _Side()
        self.groups = verification_result.DifferenceGroups()
        self._other_ids: dict[str, str] = {}  # the stored ids of authors that differ, by id
        self._differing: list[tuple[FieldDifference, ImportDifference]] = []

    def add(self, found: FieldDifference, where: ImportDifference) -> None:
        """Add a difference; an author id waits until all ids of the file are known."""
        if comment_comparison.has_other_secret(found):
            expected, stored = str(found.expected), str(found.stored)
            if self._other_ids.setdefault(expected, stored) == stored:
                self._differing.append((found, where))
                return
        self.groups.add(found, where)

    def result(self) -> verification_result.Verification:
        self._add_author_ids()
        report = self.plan.report
        notes = Counter(_LEFT_OUT[note.kind] for note in report.notes if note.kind in _LEFT_OUT)
        tallies = {
            tally.text: tally.count
            for tally in report.tallies
            if tally.kind == import_report.LEFT_OUT
        }
        comments = stored_comments.count_comments(self.plan.site)
        threads = stored_comments.count_threads(self.plan.site)
        groups = self.groups.found()
        return verification_result.Verification(
            file=report.file,
            site=self.plan.site,
            unit=report.unit,
            in_file=self.file.totals(),
            in_store=self.store.totals(),
            differences=groups,
            left_out={**notes, **tallies},
            other_comments=max(0, comments - self.store.comments),
            other_threads=max(0, threads - self.store.threads),
            is_unfinished=bool(groups) and self.history.is_unfinished(self.digest),
        )

    def _add_author_ids(self) -> None:
        """Add the differing author ids. Another secret gives each author another id."""
        stored = Counter(self._other_ids.values())
        for found, where in self._differing:
            other = str(found.stored)
            is_other_secret = stored[other] == 1 and other not in self.file.authors
            reason = comment_comparison.OTHER_KEY if is_other_secret else ""
            self.groups.add(found._replace(reason=reason), where)


class _ThreadVerifier:
    """The comparison of one thread, whose comments may come in several batches."""

    def __init__(
        self,
        verifier: _Verifier,
        planned: import_plan.PlannedThread,
        given: values.ImportedThread,
    ) -> None:
        self.planned = planned
        self._given = given
        self._all = verifier
        self._nodes = iter(planned.nodes)
        self._stored: StoredThread | None = None
        self._tree: tree_comparison.TreeComparison | None = None
        self._is_reshaped = self._is_moving = False
        self._depths: dict[str, int] = {}
        self._stored_depths: dict[str, int] = {}
        self._approved = thread_comparison.ApprovedComments()
        verifier.file.threads += 1

    def begin(self, row: StoredThread | None) -> None:
        """Take the thread's row as it was read with the next comments."""
        scheme = self._all.scheme if row is None else row.tree_scheme(self._all.scheme)
        if self._tree is None:
            self._tree = tree_comparison.TreeComparison(scheme)
            self._levels = scheme.levels
            self._all.store.threads += row is not None
            self._is_reshaped = row is not None and row.shape > 0
        elif row is not None and self._stored is not None and row.shape != self._stored.shape:
            self._is_moving = True  # The scheme changed between two batches.
        self._stored = row

    def add(self, planned: records.ImportedComment, stored: StoredComment | None) -> None:
        """Compare the next comment."""
        node = next(self._nodes)
        where = self._where(planned.id, node)
        self._count(planned, stored)
        if stored is None:
            found = [self._missing(planned.id)]
        else:
            fields = self._fields(planned, stored)
            found = [self._explained(each, planned.id, node) for each in fields]
        self._approved = self._approved.with_comment(planned, stored, found)
        place = (self._explained(each, planned.id, node) for each in self._place(planned, stored))
        for each in (*found, *place):
            self._all.add(each, where)

    def end(self) -> None:
        """Compare the order of the comments, and the thread itself."""
        if self._stored is not None:
            for found in thread_comparison.differences(
                self._given, self._stored, self._approved, self
            ):
                self._all.add(found, self._where("", None))
        elif self._stored_depths:
            is_undone = self._all.history.is_undone(self._all.digest)
            reason = comment_comparison.UNDONE if is_undone else ""
            missing = FieldDifference("thread", None, self.planned.name.id, reason)
            self._all.add(missing, self._where("", None))
        if self._tree is None:
            return
        if self._is_moving:
            moving = FieldDifference("places", None, None, comment_comparison.MOVING)
            self._all.add(moving, self._where("", None))
            return
        is_arranged = self._levels == self._all.scheme.levels
        nodes: dict[str, write_order.Node] = {}
        for comment_id, found in self._tree.order(
            None if is_arranged else self._ranks,
            self._run_of,
            lambda: self._all.history.without_journal(self._all.plan.system),
            is_reshaped=self._is_reshaped,
        ):
            nodes = nodes or {self._all.plan.id_of(each.id): each for each in self.planned.nodes}
            self._all.add(found, self._where(comment_id, nodes[comment_id]))

    def contains(self, comment_id: str) -> bool:
        return comment_id in self._depths

    def is_from_earlier_file(self, comment_id: str) -> bool:
        run = self._all.history.run_of(comment_id)
        return run is not None and run.digest != self._all.digest

    def is_decided(self) -> bool:
        name = self.planned.name
        subject = f"thread:{comment_rows.thread_key_name(name)}"
        return bool(audit_log.log(name.site, subject=subject, limit=1))

    def existed(self) -> bool:
        made = self._all.history.run_that_made(self.planned.name.id)
        if made is not None:
            return made.digest != self._all.digest
        if any(self._all.history.run_of(each) is not None for each in self._depths):
            return True
        # An import gives a new thread its own time, except for threads of an export of Flatthread.
        created = None if self._stored is None or self._given.kept else self._stored.created
        return self._all.history.is_older(created, self._all.digest)

    def _run_of(self, comment_id: str) -> tuple[object, ...] | None:
        run = self._all.history.run_of(comment_id)
        return None if run is None else run[:3]

    def _ranks(self) -> dict[str, int]:
        nodes = write_order.arrange(self.planned.nodes, self._levels)
        return {self._all.plan.id_of(node.id): rank for rank, node in enumerate(nodes)}

    def _where(self, comment_id: str, node: write_order.Node | None) -> ImportDifference:
        source, line = ("", 0) if node is None else (node.id, node.line)
        return ImportDifference(self.planned.name.id, comment_id, source, line, None, None)

    def _count(self, planned: records.ImportedComment, stored: StoredComment | None) -> None:
        """Add a comment to the totals."""
        depth = 1 if planned.reply_to is None else self._depths[planned.reply_to] + 1
        self._depths[planned.id] = depth
        self._all.file.add(planned.author.id, depth, planned.id, planned.html)
        if stored is not None:
            above = self._stored_depths.get(stored.reply_to or "", 0)
            self._stored_depths[planned.id] = above + 1
            self._all.store.add(stored.author_id, above + 1, stored.id, stored.html)

    def _missing(self, comment_id: str) -> FieldDifference:
        reason = comment_comparison.UNDONE if self._is_undone(comment_id) else ""
        return FieldDifference(comment_comparison.MISSING, None, comment_id, reason)

    def _is_undone(self, comment_id: str) -> bool:
        """Return whether the import of a comment was undone; its journal ends with the undo."""
        run = self._all.history.run_of(comment_id)
        return self._all.history.is_undone(self._all.digest) if run is None else run.is_erased

    def _fields(
        self, planned: records.ImportedComment, stored: StoredComment
    ) -> Iterator[FieldDifference]:
        evidence = comment_comparison.CommentEvidence(
            self._all.history.first_revision(planned.id), self._all.address_of
        )
        for found in comment_comparison.differences(planned, stored, evidence):
            reason = found.reason
            if reason == comment_comparison.ERASED and self._is_undone(planned.id):
                reason = comment_comparison.UNDONE
            # While the journal has the comment, its address is kept.
            if found.field == "address" and not stored.author_email and not reason:
                run = self._all.history.run_of(planned.id)
                reason = comment_comparison.EXPIRED if run is None else ""
            yield found._replace(reason=reason)
        yield from self._pin(planned, stored)

    def _pin(
        self, planned: records.ImportedComment, stored: StoredComment
    ) -> Iterator[FieldDifference]:
        is_listed = self._stored is not None and planned.id in self._stored.pins
        is_shown = planned.status is Status.APPROVED or planned.kept is not None
        expected = planned.pinned and is_shown
        if stored.status == Status.RETRACTED:
            expected = False
        if stored.is_pinned != expected:
            yield FieldDifference("pinned", stored.is_pinned, expected, self._pin_reason(stored))
        if stored.is_pinned and not is_listed:
            yield FieldDifference("pins of the thread", None, planned.id)

    def _pin_reason(self, stored: StoredComment) -> str:
        log = audit_log.log(self._all.plan.site, subject=stored.id, limit=audit_log.MOST)
        verbs = {records.Verb.PIN.value, records.Verb.UNPIN.value}
        if any(entry.verb in verbs for entry in log):
            return comment_comparison.MODERATED
        if stored.is_pinned or self._stored is None:
            return ""
        if stored.status != Status.APPROVED:
            return comment_comparison.MODERATED
        is_full = len(self._stored.pins) >= status_changes.MOST_PINS
        return comment_comparison.PIN_LIMIT if is_full else ""

    def _place(
        self, planned: records.ImportedComment, stored: StoredComment | None
    ) -> Iterator[FieldDifference]:
        name = self.planned.name
        if stored is not None and stored.site != name.site:
            yield FieldDifference("site", stored.site, name.site)
        if stored is not None and (
            stored.thread_key != comment_rows.thread_key_name(name) or stored.thread != name.id
        ):
            yield FieldDifference("thread", stored.thread, name.id)
            stored = None
        if self._tree is None or self._is_moving:
            return
        if stored is not None and self._stored is not None and stored.shape != self._stored.shape:
            yield FieldDifference("shape", stored.shape, self._stored.shape)
        yield from self._tree.add(planned.id, planned.reply_to, stored)

    def _explained(
        self, found: FieldDifference, comment_id: str, node: write_order.Node
    ) -> FieldDifference:
        """Add the reason that the import of this file has not added the comment."""
        if found.reason or found.field in _WITHIN_ROW:
            return found
        if self._all.plan.is_untrusted_copy(node.id):
            return found._replace(reason=comment_comparison.EXISTED_HERE)
        if comment_comparison.has_other_secret(found):
            return found
        is_earlier = self.is_from_earlier_file(comment_id)
        return found._replace(reason=comment_comparison.EARLIER_FILE) if is_earlier else found
