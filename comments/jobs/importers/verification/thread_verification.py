"""Verify one thread of a file: its comments, their places, and its title, address and state."""

from collections.abc import Iterator
from typing import NamedTuple

from comments.domain import records, sorthash
from comments.domain.records import Status
from comments.events import audit_log
from comments.jobs.importers.checking import checked_import, source_pages, write_order
from comments.jobs.importers.verification import (
    comment_comparison,
    import_history,
    tree_comparison,
)
from comments.jobs.importers.verification.comment_comparison import FieldDifference
from comments.jobs.importers.verification.stored_comments import StoredComment, StoredThread
from comments.store.models import comment_rows
from comments.tree import status_changes, values

# An earlier import of another file does not explain a contradiction within a row.
_WITHIN_ROW = {"number", "sort_hash", "shape"}


class Evidence(NamedTuple):
    """What explains differences: the file, its digest, the site's scheme, and earlier imports."""

    plan: checked_import.CheckedImport
    digest: str
    scheme: sorthash.Scheme
    history: import_history.ImportHistory
    address_of: comment_comparison.AddressOf | None

    def is_from_earlier_file(self, comment_id: str) -> bool:
        """Return whether an import of another file added a comment."""
        run = self.history.run_of(comment_id)
        return run is not None and run.digest != self.digest

    def is_undone(self, comment_id: str) -> bool:
        """Return whether the import of a comment was undone; its journal ends with the undo."""
        run = self.history.run_of(comment_id)
        return self.history.is_undone(self.digest) if run is None else run.is_erased


class ThreadVerification:
    """The comparison of one thread, whose comments may come in several batches.

    Call `begin` with the thread's row before the comments of each batch. The methods yield each
    difference with the comment that has it, or None for the thread.
    """

    def __init__(
        self, evidence: Evidence, planned: source_pages.PlannedThread, given: values.ImportedThread
    ) -> None:
        self.planned = planned
        self._given = given
        self._evidence = evidence
        self._nodes: dict[str, write_order.Node] = {}
        self._rest = iter(planned.nodes)
        self._stored: StoredThread | None = None
        self._tree: tree_comparison.TreeComparison | None = None
        self._is_reshaped = self._is_moving = self._has_comments = False
        # Whether comments are approved in the file, whether some are so here, and why not.
        self._approved_in_file = self._approved_here = False
        self._reasons: set[str] = set()

    def begin(self, row: StoredThread | None) -> None:
        """Take the thread's row as it was read with the next comments."""
        scheme = self._evidence.scheme
        if self._tree is None:
            scheme = scheme if row is None else row.tree_scheme(scheme)
            self._tree = tree_comparison.TreeComparison(scheme)
            self._levels = scheme.levels
            self._is_reshaped = row is not None and row.shape > 0
        elif row is not None and self._stored is not None and row.shape != self._stored.shape:
            self._is_moving = True  # The scheme changed between two batches.
        self._stored = row

    def add(
        self, planned: records.ImportedComment, stored: StoredComment | None
    ) -> Iterator[tuple[FieldDifference, write_order.Node | None]]:
        """Compare the next comment."""
        node = self._nodes[planned.id] = next(self._rest)
        if stored is None:
            reason = comment_comparison.UNDONE if self._evidence.is_undone(planned.id) else ""
            missing = FieldDifference(comment_comparison.MISSING, None, planned.id, reason)
            found = [self._explained(missing, planned.id, node)]
        else:
            self._has_comments = True
            fields = self._fields(planned, stored)
            found = [self._explained(each, planned.id, node) for each in fields]
        self._note_approval(planned, stored, found)
        places = (self._explained(each, planned.id, node) for each in self._place(planned, stored))
        for each in (*found, *places):
            yield each, node

    def end(self) -> Iterator[tuple[FieldDifference, write_order.Node | None]]:
        """Compare the order of the comments, and the thread itself."""
        if self._stored is not None:
            yield from ((each, None) for each in self._of_thread(self._stored))
        elif self._has_comments:
            is_undone = self._evidence.history.is_undone(self._evidence.digest)
            reason = comment_comparison.UNDONE if is_undone else ""
            yield FieldDifference("thread", None, self.planned.name.id, reason), None
        if self._is_moving:
            yield FieldDifference("places", None, None, comment_comparison.MOVING), None
        elif self._tree is not None:
            is_arranged = self._levels == self._evidence.scheme.levels
            for comment_id, found in self._tree.order(
                None if is_arranged else self._ranks,
                self._run_of,
                lambda: self._evidence.history.without_journal(self._evidence.plan.system),
                is_reshaped=self._is_reshaped,
            ):
                yield found, self._nodes[comment_id]

    def _run_of(self, comment_id: str) -> tuple[object, ...] | None:
        run = self._evidence.history.run_of(comment_id)
        return None if run is None else run[:3]

    def _ranks(self) -> dict[str, int]:
        nodes = write_order.arrange(self.planned.nodes, self._levels)
        return {self._evidence.plan.id_of(node.id): rank for rank, node in enumerate(nodes)}

    def _note_approval(
        self,
        planned: records.ImportedComment,
        stored: StoredComment | None,
        found: list[FieldDifference],
    ) -> None:
        self._approved_here |= stored is not None and stored.status == Status.APPROVED
        if planned.status is Status.APPROVED:
            self._approved_in_file = True
            fields = {"status", comment_comparison.MISSING}
            self._reasons.update(each.reason for each in found if each.field in fields)

    def _fields(
        self, planned: records.ImportedComment, stored: StoredComment
    ) -> Iterator[FieldDifference]:
        history = self._evidence.history
        for found in comment_comparison.differences(
            planned,
            stored,
            first_revision=history.first_revision(planned.id),
            address_of=self._evidence.address_of,
        ):
            reason = found.reason
            if reason == comment_comparison.ERASED and self._evidence.is_undone(planned.id):
                reason = comment_comparison.UNDONE
            # While the journal has the comment, its address is kept.
            if found.field == "address" and not stored.row.author.email and not reason:
                run = history.run_of(planned.id)
                reason = comment_comparison.EXPIRED if run is None else ""
            yield found._replace(reason=reason)
        yield from self._pin(planned, stored)

    def _pin(
        self, planned: records.ImportedComment, stored: StoredComment
    ) -> Iterator[FieldDifference]:
        is_pinned = stored.row.pinned
        is_listed = self._stored is not None and planned.id in self._stored.pins
        is_shown = planned.status is Status.APPROVED or planned.kept is not None
        expected = planned.pinned and is_shown and stored.status != Status.RETRACTED
        if is_pinned != expected:
            yield FieldDifference("pinned", is_pinned, expected, self._pin_reason(stored))
        if is_pinned and not is_listed:
            yield FieldDifference("pins of the thread", None, planned.id)

    def _pin_reason(self, stored: StoredComment) -> str:
        site = self._evidence.plan.site
        log = audit_log.log(site, subject=stored.row.id, limit=audit_log.MOST)
        verbs = {records.Verb.PIN.value, records.Verb.UNPIN.value}
        if any(entry.verb in verbs for entry in log):
            return comment_comparison.MODERATED
        if stored.row.pinned or self._stored is None:
            return ""
        if stored.status != Status.APPROVED:
            return comment_comparison.MODERATED
        is_full = len(self._stored.pins) >= status_changes.MOST_PINS
        return comment_comparison.PIN_LIMIT if is_full else ""

    def _place(
        self, planned: records.ImportedComment, stored: StoredComment | None
    ) -> Iterator[FieldDifference]:
        name = self.planned.name
        row = None if stored is None else stored.row
        if row is not None and row.site != name.site:
            yield FieldDifference("site", row.site, name.site)
        if (
            row is not None
            and stored is not None
            and (stored.thread_key != comment_rows.thread_key_name(name) or row.thread != name.id)
        ):
            yield FieldDifference("thread", row.thread, name.id)
            row = None
        if self._tree is None or self._is_moving:
            return
        if row is not None and self._stored is not None and row.shape != self._stored.shape:
            yield FieldDifference("shape", row.shape, self._stored.shape)
        yield from self._tree.add(planned.id, planned.reply_to, row)

    def _explained(
        self, found: FieldDifference, comment_id: str, node: write_order.Node
    ) -> FieldDifference:
        """Add the reason that the import of this file has not added the comment."""
        if found.reason or found.field in _WITHIN_ROW:
            return found
        if self._evidence.plan.is_untrusted_copy(node.id):
            return found._replace(reason=comment_comparison.EXISTED_HERE)
        if comment_comparison.has_other_secret(found):
            return found
        is_earlier = self._evidence.is_from_earlier_file(comment_id)
        return found._replace(reason=comment_comparison.EARLIER_FILE) if is_earlier else found

    def _of_thread(self, stored: StoredThread) -> Iterator[FieldDifference]:
        """Yield the fields of the thread that differ."""
        for field, value, given in (
            ("title", stored.title, self._given.title),
            ("url", stored.url, self._given.url),
        ):
            if value == given:
                continue
            if field in stored.own:
                yield FieldDifference(field, value, given, comment_comparison.MODERATED)
            elif stored.named_by == "" and not self._approved_here:
                # Only approved comments name a thread.
                if value:
                    yield FieldDifference(field, value, "")
                elif self._approved_in_file:
                    yield FieldDifference(field, value, given, self._unnamed_reason())
            else:
                yield FieldDifference(field, value, given, self._named_reason(stored.named_by))
        if stored.state != self._given.state:
            reason = comment_comparison.EXISTED if self._existed(stored) else ""
            reason = comment_comparison.MODERATED if self._is_decided() else reason
            yield FieldDifference("state", stored.state, self._given.state.value, reason)

    def _unnamed_reason(self) -> str:
        """Return why no comment is approved here."""
        if len(self._reasons) == 1 and "" not in self._reasons:
            return next(iter(self._reasons))
        return comment_comparison.NOT_APPROVED

    def _named_reason(self, named_by: str | None) -> str:
        """Return why another comment, or the same one with other data, named the thread."""
        if named_by is None:
            return comment_comparison.OLDER_RELEASE
        if not named_by:
            return ""
        if named_by not in self._nodes:
            return comment_comparison.NAMED_HERE
        is_earlier = self._evidence.is_from_earlier_file(named_by)
        return comment_comparison.EARLIER_FILE if is_earlier else ""

    def _is_decided(self) -> bool:
        """Return whether a moderator has changed the thread."""
        name = self.planned.name
        subject = f"thread:{comment_rows.thread_key_name(name)}"
        return bool(audit_log.log(name.site, subject=subject, limit=1))

    def _existed(self, stored: StoredThread) -> bool:
        """Return whether the thread is known to be older than the import of this file."""
        history = self._evidence.history
        made = history.run_that_made(self.planned.name.id)
        if made is not None:
            return made.digest != self._evidence.digest
        if any(history.run_of(each) is not None for each in self._nodes):
            return True
        # An import gives a new thread its own time, except for threads of an export of Flatthread.
        created = None if self._given.kept else stored.created
        return history.is_older(created, self._evidence.digest)
