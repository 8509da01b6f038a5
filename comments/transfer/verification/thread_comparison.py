"""Compare one thread of a file with the stored thread: its comments, title, address and state."""

import itertools
from collections import defaultdict
from collections.abc import Iterator

from comments.domain import records
from comments.domain.ids import author_ids
from comments.domain.records import Status
from comments.events import audit_log
from comments.store.models import comment_rows
from comments.transfer.checking import checked_import, source_pages, write_order
from comments.transfer.verification import comment_comparison, import_history
from comments.transfer.verification.comment_comparison import FieldDifference
from comments.transfer.verification.stored_comments import StoredComment, StoredThread
from comments.tree import status_changes, values

Found = tuple[FieldDifference, write_order.Node | None]


class Evidence:
    """The data that can explain differences.

    `authors` contains the ids that the file's authors have in the comments compared so far.
    """

    def __init__(
        self,
        plan: checked_import.CheckedImport,
        history: import_history.ImportHistory,
        address_of: comment_comparison.AddressOf | None,
    ) -> None:
        self.plan = plan
        self.history = history
        self.address_of = address_of
        self.authors: set[str] = set()
        self._stored_ids: dict[str, str] = {}
        self._expected_ids: dict[str, str] = {}

    def has_other_key(self, found: FieldDifference) -> bool:
        """Return whether a different secret of the service explains a difference.

        A different secret gives each author a different id, which is the same in all comments of
        the author.
        """
        expected, stored = str(found.expected), str(found.stored)
        is_imported = all(author.startswith(author_ids.IMPORTED) for author in (expected, stored))
        return (
            found.field == comment_comparison.AUTHOR_ID
            and is_imported
            and self._stored_ids.setdefault(expected, stored) == stored
            and self._expected_ids.setdefault(stored, expected) == expected
        )

    def has_confused_authors(self) -> bool:
        """Return whether an id that a different secret seemed to explain is an id in the file.

        Call this method after all comments have been compared.
        """
        return not self.authors.isdisjoint(self._expected_ids)


class ThreadComparison:
    """The comparison of one thread; its comments may be in several batches.

    The methods yield each difference together with its comment, or with None if it concerns the
    thread.
    """

    def __init__(
        self, evidence: Evidence, planned: source_pages.PlannedThread, given: values.ImportedThread
    ) -> None:
        self.name = planned.name
        self._given = given
        self._evidence = evidence
        self._history = evidence.history
        self._ids: set[str] = set()
        self._rest = iter(planned.nodes)
        self._siblings: dict[str | None, list[tuple[write_order.Node, int]]] = defaultdict(list)
        # Whether comments are stored, whether any is approved in the file, and whether any is
        # approved in the store.
        self._has_comments = self._is_approved_in_file = self._is_approved = False

    def add(
        self,
        planned: records.ImportedComment,
        stored: StoredComment | None,
        thread: StoredThread | None,
    ) -> Iterator[Found]:
        """Compare the next comment. `thread` is the thread's row as of the same moment."""
        node = next(self._rest)
        if not self._evidence.plan.is_copy(node.id):
            self._ids.add(planned.id)
        self._is_approved_in_file |= planned.status is Status.APPROVED
        if stored is None:
            missing = FieldDifference(comment_comparison.MISSING, None, planned.id)
            yield self._with_reason(missing, planned.id, node), node
            return
        self._has_comments = True
        self._evidence.authors.add(planned.author.id)
        self._is_approved |= stored.status == Status.APPROVED
        self._siblings[stored.row.parent].append((node, stored.row.number))
        fields = comment_comparison.differences(
            self.name,
            planned,
            stored,
            first_revision=self._history.first_revision(planned.id),
            address_of=self._evidence.address_of,
        )
        for difference in itertools.chain(fields, _pin_difference(planned, stored, thread)):
            yield self._with_reason(difference, planned.id, node), node

    def end(self, thread: StoredThread | None) -> Iterator[Found]:
        """Compare the order of the comments, and the thread itself."""
        if thread is not None:
            yield from ((difference, None) for difference in self._thread_differences(thread))
        elif self._has_comments:
            reason = comment_comparison.UNDONE if self._history.has_been_undone else ""
            yield FieldDifference("thread", None, self.name.id, reason), None
        for siblings in self._siblings.values():
            if any(one[1] >= other[1] for one, other in itertools.pairwise(siblings)):
                yield from self._order_differences(
                    siblings, is_moved=thread is not None and thread.shape > 0
                )

    def _with_reason(
        self, found: FieldDifference, comment_id: str, node: write_order.Node
    ) -> FieldDifference:
        """Add a reason that the comment's own row does not show."""
        is_missing = found.field == comment_comparison.MISSING
        is_erased = found.reason == comment_comparison.ERASED
        if (is_missing or is_erased) and self._history.is_undone(comment_id):
            return found._replace(reason=comment_comparison.UNDONE)
        if found.reason:
            return found
        if self._evidence.has_other_key(found):
            return found._replace(reason=comment_comparison.OTHER_KEY)
        run = self._history.run_of(comment_id)
        # While the journal contains the comment, its address is kept.
        if found.field == "address" and found.stored == "none" and run is None:
            return found._replace(reason=comment_comparison.EXPIRED)
        is_other = self._history.is_from_other_file(comment_id)
        if is_other or self._evidence.plan.is_copy(node.id):
            return found._replace(reason=comment_comparison.EARLIER)
        return found

    def _order_differences(
        self, siblings: list[tuple[write_order.Node, int]], *, is_moved: bool
    ) -> Iterator[Found]:
        """Yield each stored sibling that precedes a comment that comes earlier in the file.

        Each import adds its comments in the order of its file, after the comments of earlier
        imports.
        """
        numbers = {node.id: number for node, number in siblings}
        right = write_order.sort_siblings([node for node, _ in siblings])
        ranks = {node.id: rank for rank, node in enumerate(right, start=1)}
        stored = sorted(right, key=lambda node: numbers[node.id])
        wrong = [
            (place, node)
            for place, (node, after) in enumerate(itertools.pairwise(stored), start=1)
            if ranks[node.id] > ranks[after.id] or numbers[node.id] == numbers[after.id]
        ]
        is_known = (
            is_moved
            or len(wrong) < self._history.orders
            or any(self._evidence.plan.is_copy(node.id) for node in right)
        )
        reason = comment_comparison.REORDERED if is_known else ""
        for place, node in wrong:
            yield FieldDifference("order", place, ranks[node.id], reason), node

    def _thread_differences(self, thread: StoredThread) -> Iterator[FieldDifference]:
        given = self._given
        named = (("title", thread.title, given.title), ("url", thread.url, given.url))
        # A thread takes its title and address only from approved comments.
        is_unnamed = thread.named_by == "" and not self._is_approved
        for field, value, titled in named:
            is_empty = is_unnamed and not self._is_approved_in_file and field not in thread.own
            if value != titled and (value or not is_empty):
                reason = self._naming_reason(field, value, thread)
                yield FieldDifference(field, value, titled, reason)
        if thread.state != given.state:
            reason = "" if self._history.has_made(self.name.id) else comment_comparison.EXISTED
            reason = comment_comparison.MODERATED if self._is_decided() else reason
            yield FieldDifference("state", thread.state, given.state.value, reason)

    def _naming_reason(self, field: str, value: str, thread: StoredThread) -> str:
        """Return why the title or address comes from a moderator, another comment or no comment."""
        if field in thread.own:
            return comment_comparison.MODERATED
        if thread.named_by is None:
            return comment_comparison.OLDER_RELEASE
        if not thread.named_by:
            return "" if self._is_approved or value else comment_comparison.NOT_APPROVED
        is_other = self._history.is_from_other_file(thread.named_by)
        is_known = thread.named_by not in self._ids or is_other
        return comment_comparison.NAMED_HERE if is_known else ""

    def _is_decided(self) -> bool:
        """Return whether a moderator has changed the thread."""
        subject = f"thread:{comment_rows.thread_key_name(self.name)}"
        return bool(audit_log.log(self.name.site, subject=subject, limit=1))


def _pin_difference(
    planned: records.ImportedComment, stored: StoredComment, thread: StoredThread | None
) -> Iterator[FieldDifference]:
    is_shown = planned.status is Status.APPROVED or planned.kept is not None
    expected = planned.pinned and is_shown and stored.status != Status.RETRACTED
    if stored.row.pinned == expected:
        return
    is_full = thread is not None and len(thread.pins) >= status_changes.MOST_PINS
    log = audit_log.log(stored.row.site, subject=stored.row.id, limit=audit_log.MOST)
    is_decided = any(entry.verb in {records.Verb.PIN, records.Verb.UNPIN} for entry in log)
    # Pinning another comment removes the pin of a comment that readers do not see.
    is_unseen = expected and stored.status != Status.APPROVED
    reason = comment_comparison.PIN_LIMIT if is_full and expected else ""
    reason = comment_comparison.MODERATED if is_decided or is_unseen else reason
    yield FieldDifference("pinned", stored.row.pinned, expected, reason)
