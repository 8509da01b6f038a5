"""Verify that the store contains the comments of a file unchanged.

    with checked_import.plan(...) as plan:
        found = import_verification.verify(plan)

Changes that people made since the import are not faults; such differences have a reason
(`comment_comparison`). Differences without a reason are counted in
`Verification.unexplained_count`.

The comparison uses the same readers, plan and text conversion as the import, so it cannot find
faults in them. The tests of the formats find such faults by comparing with independent readers.
"""

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from comments.domain import records
from comments.domain.crypto import guest_addresses
from comments.transfer.checking import checked_import, import_report
from comments.transfer.verification import (
    comment_comparison,
    import_history,
    stored_comments,
    verification_report,
)
from comments.transfer.verification.stored_comments import StoredComment
from comments.transfer.verification.thread_comparison import Evidence, Found, ThreadComparison

# Kinds of notes about items that an import leaves out, and the names of such items.
_LEFT_OUT = {
    import_report.NO_NAME: "threads without a usable link or id, with their comments",
    import_report.DELETED: "deleted threads, with their comments",
    import_report.NO_THREAD: "comments whose thread is not in the file",
    import_report.REPEATED: "items with the id of an earlier item",
    import_report.OTHER: "items with the id of an earlier item, but other content",
    import_report.DOUBLED: "posts that were sent twice, after the first",
    import_report.OTHER_ITEMS: "items that are not comments",
}
_AUTHORS = 20_000  # The maximum number of decrypted addresses in memory


def verify(
    plan: checked_import.CheckedImport,
    *,
    secret: str = "",
    progress: Callable[[int], None] = lambda _: None,
) -> verification_report.Verification:
    """Compare all comments of a checked file with the store, without writing anything.

    This function calls `progress` with the number of comments in each compared batch. Mail
    addresses are decrypted with `secret` and compared; without it, they are not compared.

    Raises:
        errors.Overloaded: the store did not respond in time.
    """
    if not plan.is_compared:
        plan.settle_ids(progress)
    history = import_history.ImportHistory(plan.site, plan.system, plan.file().digest)
    address_of = _decryption(secret) if secret else None
    verifier = _Verifier(Evidence(plan, history, address_of))
    threads = iter(plan.threads)
    for batch in plan.batches():
        ids = [comment.id for given in batch for comment in given.nodes]
        stored = stored_comments.read([given.name for given in batch], ids)
        rows = iter(stored.comments)
        history.refresh()
        for given, row in zip(batch, stored.threads, strict=True):
            if not verifier.is_in(given.name):
                verifier.begin(ThreadComparison(verifier.evidence, next(threads), given))
            verifier.row = row
            for comment in given.nodes:
                verifier.add(comment, next(rows))
        progress(len(ids))
    verifier.end()
    return verifier.result()


def _decryption(secret: str) -> Callable[[str], str]:
    """Return a function that decrypts addresses.

    Comments of one author often have the same encrypted bytes, so results are cached.
    """
    now = datetime.now(UTC)
    return functools.lru_cache(_AUTHORS)(
        lambda stored: guest_addresses.address(stored, secret, now=now)
    )


class _Side:
    """The totals of one side: the file or the store."""

    def __init__(self) -> None:
        self.comments = self.threads = 0
        self._texts = hashlib.sha256()

    def add(self, comment: records.ImportedComment | records.Comment) -> None:
        self.comments += 1
        data = comment.html.encode(errors="surrogatepass")
        self._texts.update(f"{comment.id} {len(data)} ".encode() + data)

    def totals(self) -> verification_report.ContentTotals:
        return verification_report.ContentTotals(
            self.comments, self.threads, self._texts.hexdigest()
        )


class _Verifier:
    """Collects the findings in all threads. `row` is the stored row of the current thread."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.row: stored_comments.StoredThread | None = None
        self._thread: ThreadComparison | None = None
        self._file, self._store = _Side(), _Side()
        self._groups = verification_report.DifferenceGroups()

    def is_in(self, name: records.ThreadName) -> bool:
        """Return whether a thread is the current one."""
        return self._thread is not None and self._thread.name == name

    def begin(self, thread: ThreadComparison) -> None:
        """End the current thread, and begin the next one."""
        self.end()
        self._thread = thread

    def add(self, planned: records.ImportedComment, stored: StoredComment | None) -> None:
        """Compare the next comment of the thread."""
        self._file.add(planned)
        if stored is not None:
            self._store.add(stored.row)
        if self._thread is not None:
            self._take(self._thread.add(planned, stored, self.row))

    def end(self) -> None:
        """Compare what is known only at the end of a thread."""
        if self._thread is not None:
            self._file.threads += 1
            self._store.threads += self.row is not None
            self._take(self._thread.end(self.row))

    def _take(self, found: Iterable[Found]) -> None:
        thread = "" if self._thread is None else self._thread.name.id
        for difference, node in found:
            comment = "" if node is None else self.evidence.plan.id_of(node.id)
            source, line = ("", 0) if node is None else (node.id, node.line)
            self._groups.add(
                difference.field,
                difference.reason,
                verification_report.ImportDifference(
                    thread, comment, source, line, difference.stored, difference.expected
                ),
            )

    def result(self) -> verification_report.Verification:
        if self.evidence.has_confused_authors():
            self._groups.refute(comment_comparison.OTHER_KEY)
        plan, groups = self.evidence.plan, self._groups.groups()
        report = plan.report
        notes = Counter(_LEFT_OUT[note.kind] for note in report.notes if note.kind in _LEFT_OUT)
        tallies = {
            text: tally.count
            for (kind, text), tally in sorted(report.tallies.items(), key=lambda each: each[0])
            if kind == import_report.LEFT_OUT
        }
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
            is_unfinished=bool(groups) and self.evidence.history.is_unfinished,
        )
