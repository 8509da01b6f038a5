"""Compare a thread's title, address and state with the file (pure)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from comments.domain import records
from comments.domain.records import Status
from comments.jobs.importers.verification import comment_comparison
from comments.jobs.importers.verification.comment_comparison import FieldDifference
from comments.jobs.importers.verification.stored_comments import StoredComment, StoredThread
from comments.tree import values


class ThreadEvidence(Protocol):
    """What explains differences of a thread. The answers need reads, so they are asked for."""

    def contains(self, comment_id: str) -> bool:
        """Return whether the file has this comment in this thread."""

    def is_from_earlier_file(self, comment_id: str) -> bool:
        """Return whether an import of another file added a comment."""

    def is_decided(self) -> bool:
        """Return whether a moderator has changed the thread."""

    def existed(self) -> bool:
        """Return whether the thread is known to be older than the import of this file."""


class ApprovedComments(NamedTuple):
    """Whether a thread has approved comments in the file, and whether some of them are so here.

    `reasons` tells why comments that are approved in the file are not approved here.
    """

    in_file: bool = False
    in_store: bool = False
    reasons: frozenset[str] = frozenset()

    def with_comment(
        self,
        planned: records.ImportedComment,
        stored: StoredComment | None,
        found: Sequence[FieldDifference],
    ) -> "ApprovedComments":
        """Add a comment of the thread, with its differences."""
        is_approved = planned.status is Status.APPROVED
        fields = {"status", comment_comparison.MISSING}
        reasons = {each.reason for each in found if each.field in fields and is_approved}
        return ApprovedComments(
            self.in_file or is_approved,
            self.in_store or (stored is not None and stored.status == Status.APPROVED),
            self.reasons | reasons,
        )

    @property
    def reason(self) -> str:
        """Return why no comment is approved here."""
        if len(self.reasons) == 1 and "" not in self.reasons:
            return next(iter(self.reasons))
        return comment_comparison.NOT_APPROVED


def differences(
    planned: values.ImportedThread,
    stored: StoredThread,
    approved: ApprovedComments,
    evidence: ThreadEvidence,
) -> Iterator[FieldDifference]:
    """Yield the fields of a thread that differ."""
    for field, value, given in (
        ("title", stored.title, planned.title),
        ("url", stored.url, planned.url),
    ):
        if value == given:
            continue
        if field in stored.own:
            yield FieldDifference(field, value, given, comment_comparison.MODERATED)
        elif stored.named_by == "" and not approved.in_store:
            # Only approved comments name a thread.
            if value:
                yield FieldDifference(field, value, "")
            elif approved.in_file:
                yield FieldDifference(field, value, given, approved.reason)
        else:
            yield FieldDifference(field, value, given, _reason(stored.named_by, evidence))
    if stored.state != planned.state:
        reason = comment_comparison.EXISTED if evidence.existed() else ""
        reason = comment_comparison.MODERATED if evidence.is_decided() else reason
        yield FieldDifference("state", stored.state, planned.state.value, reason)


def _reason(named_by: str | None, evidence: ThreadEvidence) -> str:
    if named_by is None:
        return comment_comparison.OLDER_RELEASE
    if not named_by:
        return ""
    if not evidence.contains(named_by):
        return comment_comparison.NAMED_HERE
    is_earlier = evidence.is_from_earlier_file(named_by)
    return comment_comparison.EARLIER_FILE if is_earlier else ""
