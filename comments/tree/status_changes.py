"""What moderators do to a comment: give it another status, take that back, pin it.

Every verb notes who decided it in the commit that does it, and recognises its own commit by that
note when it runs again. What was retracted never comes back. What was refused comes back by a
moderator only, and only while its text is kept (`retention`).
"""

import dataclasses
from collections.abc import Callable
from datetime import datetime

from comments import errors
from comments.domain import records
from comments.domain.records import Status
from comments.events import audit_log, outbox
from comments.store import transactions
from comments.store.models import comment_rows, conversion
from comments.tree.comment_writes import changed_rows, existing, touch
from comments.tree.values import Change
from comments.tree.visibility import Changed, with_status

_PINNED = "pinned"


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """Who decides, when, and under which terms.

    `check` sees the comment first, and raises if it may not be. `revision` is what was seen of the
    comment, None for whatever it is: asked only where something changes.
    """

    act: audit_log.Act
    now: datetime
    check: Callable[[records.Case], None]
    revision: int | None = None


def judge(comment_id: str, ruling: records.Ruling, decision: Decision) -> Change:
    """Give a comment the status of a ruling. One that has it already is left as it is.

    Raises:
        errors.NotFound: there is no such comment.
        errors.Conflict: it was retracted, or it is to be hidden and readers do not see it anyway.
        errors.RevisionMismatch: it is not what was seen of it.
    """

    def verb(row: comment_rows.Comment) -> Change:
        if row.status == ruling.status:
            return Change(conversion.comment_record(row))
        _check_revision(row, decision)
        if ruling.status is Status.HIDDEN:
            _check_shown(row)
        before = conversion.comment_state(row)
        others = with_status(row, ruling, now=decision.now)
        return _decided(decision, [(before, row), *others], (before.status, row.status))

    return _once(comment_id, decision, verb)


def restore(comment_id: str, decision: Decision) -> Change:
    """Give a comment back the status it had before the last decision.

    Raises:
        errors.NotFound: there is no such comment.
        errors.Conflict: it was retracted, or nothing was decided about it since that was undone.
        errors.RevisionMismatch: it is not what was seen of it.
    """

    def verb(row: comment_rows.Comment) -> Change:
        _check_revision(row, decision)
        if not row.stood:
            raise errors.Conflict("there is no decision to undo", code="nothing-to-restore")
        before = conversion.comment_state(row)
        others = with_status(row, records.Ruling(Status(row.stood)), now=decision.now)
        row.stood = ""
        return _decided(decision, [(before, row), *others], (before.status, row.status))

    return _once(comment_id, decision, verb)


def pin(comment_id: str, decision: Decision, *, is_pinned: bool) -> Change:
    """Mark a comment for readers, or take the mark away.

    Raises:
        errors.NotFound: there is no such comment.
        errors.Conflict: it was retracted, or readers do not see it.
        errors.RevisionMismatch: it is not what was seen of it.
    """

    def verb(row: comment_rows.Comment) -> Change:
        if bool(row.pinned) == is_pinned:
            return Change(conversion.comment_record(row))
        _check_revision(row, decision)
        if is_pinned:
            _check_shown(row)
        before = conversion.comment_state(row)
        row.pinned = is_pinned
        touch(row, was_listed=row.listed)
        if row.listed:
            row.changed = records.newest([row.changed, decision.now])
        said = ("", _PINNED) if is_pinned else (_PINNED, "")
        return _decided(decision, [(before, row)], said)

    return _once(comment_id, decision, verb)


def _once(
    comment_id: str, decision: Decision, verb: Callable[[comment_rows.Comment], Change]
) -> Change:
    """Run a verb, unless it was applied already by an earlier run whose answer was lost.

    That run may have moved what this one looks at, so a refusal looks for it too.
    """
    row = existing(comment_id)
    if transactions.may_have_run() and audit_log.is_done(decision.act):
        return Change(conversion.comment_record(row))
    try:
        decision.check(conversion.case_record(row))
        if row.status == Status.RETRACTED:
            raise errors.Conflict("the comment was retracted", code="comment-retracted")
        return verb(row)
    except errors.FlatthreadError:
        if audit_log.is_done(decision.act):
            return Change(conversion.comment_record(row))
        raise


def _check_revision(row: comment_rows.Comment, decision: Decision) -> None:
    revision, seen = decision.revision, conversion.comment_record(row)
    if revision is not None and not seen.has_text_of(revision):
        raise errors.RevisionMismatch(revision, seen.revision)


def _check_shown(row: comment_rows.Comment) -> None:
    if row.status != Status.APPROVED:
        raise errors.Conflict("readers do not see this comment", code="comment-not-shown")


def _decided(decision: Decision, changed: list[Changed], said: tuple[str, str]) -> Change:
    """The change of the first row and of those that changed with it, and the note of it."""
    row, now = changed[0][1], decision.now
    change = changed_rows(outbox.Kind.JUDGED, changed, now=now)
    note = audit_log.noted(
        decision.act, row.site, row.key.id(), before=said[0], after=said[1], now=now
    )
    return Change(change.comment, (*change.writes, note), change.event)
