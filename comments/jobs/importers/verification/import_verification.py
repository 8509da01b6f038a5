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
from collections.abc import Callable
from datetime import UTC, datetime

from comments.domain import records, sorthash
from comments.domain.crypto import guest_addresses
from comments.jobs.importers.checking import checked_import, import_report, write_order
from comments.jobs.importers.verification import (
    comment_comparison,
    import_history,
    stored_comments,
    verification_report,
)
from comments.jobs.importers.verification.comment_comparison import FieldDifference
from comments.jobs.importers.verification.stored_comments import StoredComment
from comments.jobs.importers.verification.thread_verification import Evidence, ThreadVerification
from comments.jobs.importers.verification.verification_report import ImportDifference

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


def verify(
    plan: checked_import.CheckedImport,
    *,
    scheme: sorthash.Scheme,
    secret: str = "",
    progress: Callable[[int], None] = lambda _: None,
) -> verification_report.Verification:
    """Compare all comments of a checked file with the store, without writing anything.

    This function calls `progress` with the number of comments in each compared batch. `scheme` is
    the scheme of the site. Mail addresses are decrypted with `secret` and compared; without it,
    they are not compared.

    Raises:
        errors.Overloaded: the store did not respond in time.
    """
    plan.settle_ids(progress)
    history = import_history.ImportHistory(plan.site)
    address_of = _decryption(secret) if secret else None
    evidence = Evidence(plan, plan.file().digest, scheme, history, address_of)
    verifier = _Verifier(evidence)
    threads = iter(plan.threads)
    for batch in plan.batches():
        ids = [comment.id for given in batch for comment in given.nodes]
        stored = stored_comments.read([given.name for given in batch], ids)
        rows = iter(stored.comments)
        history.refresh()
        for given, row in zip(batch, stored.threads, strict=True):
            if verifier.thread is None or verifier.thread.planned.name != given.name:
                verifier.begin(ThreadVerification(evidence, next(threads), given), row)
            else:
                verifier.thread.begin(row)
            for comment in given.nodes:
                verifier.add(comment, next(rows))
        progress(len(ids))
    verifier.end()
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
        self._depths: dict[str, int] = {}

    def begin(self, *, is_there: bool) -> None:
        """Count a thread, if it is there."""
        self.threads += is_there
        self._depths = {}

    def add(self, comment: records.ImportedComment | records.Comment) -> None:
        """Count a comment of the thread."""
        self.comments += 1
        depth = self._depths[comment.id] = self._depths.get(comment.reply_to or "", 0) + 1
        self.depth = max(self.depth, depth)
        if comment.author.id:
            self.authors.add(comment.author.id)
        data = comment.html.encode(errors="surrogatepass")
        self._texts.update(f"{comment.id} {len(data)} ".encode() + data)

    def totals(self) -> verification_report.ContentTotals:
        return verification_report.ContentTotals(
            self.comments, self.threads, len(self.authors), self.depth, self._texts.hexdigest()
        )


class _Verifier:
    """What is found in all threads. `thread` is the current one."""

    def __init__(self, evidence: Evidence) -> None:
        self.thread: ThreadVerification | None = None
        self._evidence = evidence
        self._file, self._store = _Side(), _Side()
        self._groups = verification_report.DifferenceGroups()
        self._other_ids: dict[str, str] = {}  # the stored ids of authors that differ, by id
        self._differing: list[tuple[FieldDifference, ImportDifference]] = []

    def begin(self, thread: ThreadVerification, row: stored_comments.StoredThread | None) -> None:
        """End the current thread, and begin the next one."""
        self.end()
        self.thread = thread
        self._file.begin(is_there=True)
        self._store.begin(is_there=row is not None)
        thread.begin(row)

    def add(self, planned: records.ImportedComment, stored: StoredComment | None) -> None:
        """Compare the next comment of the thread."""
        self._file.add(planned)
        if stored is not None:
            self._store.add(stored.row)
        if self.thread is not None:
            for found, node in self.thread.add(planned, stored):
                self._add(found, node, planned.id)

    def end(self) -> None:
        """Compare what is known at the end of a thread."""
        if self.thread is not None:
            for found, node in self.thread.end():
                self._add(found, node, "" if node is None else self._evidence.plan.id_of(node.id))

    def _add(self, found: FieldDifference, node: write_order.Node | None, comment_id: str) -> None:
        """Add a difference; an author id waits until all ids of the file are known."""
        thread = "" if self.thread is None else self.thread.planned.name.id
        source, line = ("", 0) if node is None else (node.id, node.line)
        where = ImportDifference(thread, comment_id, source, line, None, None)
        if comment_comparison.has_other_secret(found):
            expected, stored = str(found.expected), str(found.stored)
            if self._other_ids.setdefault(expected, stored) == stored:
                self._differing.append((found, where))
                return
        self._groups.add(found, where)

    def result(self) -> verification_report.Verification:
        self._add_author_ids()
        plan = self._evidence.plan
        report, groups = plan.report, self._groups.found()
        notes = Counter(_LEFT_OUT[note.kind] for note in report.notes if note.kind in _LEFT_OUT)
        tallies = {
            tally.text: tally.count
            for tally in report.tallies
            if tally.kind == import_report.LEFT_OUT
        }
        history, digest = self._evidence.history, self._evidence.digest
        return verification_report.Verification(
            file=report.file,
            site=plan.site,
            unit=report.unit,
            in_file=self._file.totals(),
            in_store=self._store.totals(),
            differences=groups,
            left_out={**notes, **tallies},
            other_comments=max(0, stored_comments.count_comments(plan.site) - self._store.comments),
            other_threads=max(0, stored_comments.count_threads(plan.site) - self._store.threads),
            is_unfinished=bool(groups) and history.is_unfinished(digest),
        )

    def _add_author_ids(self) -> None:
        """Add the differing author ids. Another secret gives each author another id."""
        stored = Counter(self._other_ids.values())
        for found, where in self._differing:
            other = str(found.stored)
            is_other_secret = stored[other] == 1 and other not in self._file.authors
            reason = comment_comparison.OTHER_KEY if is_other_secret else ""
            self._groups.add(found._replace(reason=reason), where)
