"""Apply moderators' decisions about a comment: set its status, undo, pin it, or edit its text.

The commit of a decision also writes an audit log entry. If a decision's transaction runs again, it
recognizes its own commit by that entry. A retracted comment is never restored. Only a moderator's
decision restores a refused comment, and only while the comment's text is kept (`retention`).
"""

import dataclasses
from collections.abc import Callable
from datetime import datetime

from comments import errors
from comments.domain import records
from comments.domain.records import Status
from comments.events import audit_log, outbox
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.threads import naming
from comments.threads.comment_flags import OWNER, touch
from comments.tree.comment_writes import build_change, read_row
from comments.tree.values import ChangeResult, RenderedText
from comments.tree.visibility import Changed, change_status, previous_ruling

_PINNED = "pinned"
MOST_PINS = 3  # Maximum per thread; every first page contains all pinned comments


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """A moderator's decision: the person who decides, the time, and the conditions.

    `check` is first called with the comment, and raises an error to forbid the decision. `revision`
    is the revision that the moderator saw, or None for any revision. It is compared only if the
    decision changes something.
    """

    act: audit_log.Act
    now: datetime
    check: Callable[[records.Case], None]
    revision: int | None = None


def judge(comment_id: str, ruling: records.Ruling, decision: Decision) -> ChangeResult:
    """Set a comment's status according to a ruling, unless the comment already has this status.

    Raises:
        errors.NotFound: the comment does not exist.
        errors.Conflict: the comment was retracted, or cannot be hidden because readers do not see
            it now.
        errors.RevisionMismatch: the text has changed since the moderator saw it.
    """

    def verb(row: comment_rows.CommentRow) -> ChangeResult:
        if row.status == ruling.status:
            return ChangeResult(conversion.comment_record(row))
        _check_revision(row, decision)
        if ruling.status is Status.HIDDEN:
            _check_shown(row)
        before = conversion.comment_state(row)
        others = change_status(row, ruling, now=decision.now)
        return _decision_result(decision, [(before, row), *others], (before.status, row.status))

    return _once(comment_id, decision, verb)


def restore(comment_id: str, decision: Decision) -> ChangeResult:
    """Restore a comment's status from before the last decision, and the reason for that status.

    Raises:
        errors.NotFound: the comment does not exist.
        errors.Conflict: the comment was retracted, or there is no decision left to undo.
        errors.RevisionMismatch: the text has changed since the moderator saw it.
    """

    def verb(row: comment_rows.CommentRow) -> ChangeResult:
        _check_revision(row, decision)
        if not row.stood:
            raise errors.Conflict("nothing-to-restore")
        before = conversion.comment_state(row)
        others = change_status(row, previous_ruling(row), now=decision.now)
        row.stood = row.stood_for = ""
        return _decision_result(decision, [(before, row), *others], (before.status, row.status))

    return _once(comment_id, decision, verb)


def rewrite(comment_id: str, text: RenderedText, decision: Decision) -> ChangeResult:
    """Replace a comment's text, and mark the comment as edited by staff. The status stays.

    Raises:
        errors.NotFound: the comment does not exist.
        errors.Conflict: the comment was retracted.
        errors.RevisionMismatch: the text has changed since the moderator saw it.
    """

    def verb(row: comment_rows.CommentRow) -> ChangeResult:
        if row.body == text.body:
            return ChangeResult(conversion.comment_record(row))
        _check_revision(row, decision)
        before = conversion.comment_state(row)
        row.body, row.html, row.renderer = text.body, text.html, text.renderer
        row.edited, row.edited_by_staff = decision.now, True
        touch(row, was_listed=row.listed)
        kind = outbox.EventKind.EDITED
        return _decision_result(decision, [(before, row)], (row.status, row.status), kind)

    return _once(comment_id, decision, verb)


def pin(comment_id: str, decision: Decision, *, is_pinned: bool) -> ChangeResult:
    """Pin a comment for readers, or unpin it.

    Pinning also removes the pins of the thread's comments that readers no longer see.

    Raises:
        errors.NotFound: the comment does not exist.
        errors.Conflict: the comment was retracted, readers do not see it, or the thread already has
            `MOST_PINS` pinned comments.
        errors.RevisionMismatch: the text has changed since the moderator saw it.
    """

    def verb(row: comment_rows.CommentRow) -> ChangeResult:
        if bool(row.pinned) == is_pinned:
            return ChangeResult(conversion.comment_record(row))
        _check_revision(row, decision)
        if is_pinned:
            _check_shown(row)
        before = conversion.comment_state(row)
        thread, gone = _pins(row, is_pinned=is_pinned)
        row.pinned = is_pinned
        touch(row, was_listed=row.listed)
        if row.listed:
            row.changed = records.newest([row.changed, decision.now])
        texts = ("", _PINNED) if is_pinned else (_PINNED, "")
        change = _decision_result(decision, [(before, row)], texts)
        pins = ownership.Writes(OWNER, put=(thread, *gone))
        return dataclasses.replace(change, writes=(*change.writes, pins))

    return _once(comment_id, decision, verb)


def _pins(
    row: comment_rows.CommentRow, *, is_pinned: bool
) -> tuple[comment_rows.ThreadRow, list[comment_rows.CommentRow]]:
    """Change the list of pins in a thread. Return the thread's row, and rows that lose their pin.

    Raises:
        errors.Conflict: the thread already has `MOST_PINS` pinned comments that readers see.
    """
    thread = reads.get(comment_rows.thread_key_of(row.thread))
    others = [comment_id for comment_id in thread.pins if comment_id != row.key.id()]
    rows = reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in others])
    pinned = [other for other in rows if other is not None and other.pinned]
    shown = [other for other in pinned if other.status == Status.APPROVED]
    gone = [other for other in pinned if other.status != Status.APPROVED] if is_pinned else []
    if is_pinned and len(shown) >= MOST_PINS:
        raise errors.Conflict("too-many-pins", limit=MOST_PINS)
    for other in gone:
        other.pinned = False
    kept = [other.key.id() for other in (shown if is_pinned else pinned)]
    thread.pins = [*kept, row.key.id()] if is_pinned else kept
    naming.forget(thread)
    return thread, gone


def _once(
    comment_id: str, decision: Decision, verb: Callable[[comment_rows.CommentRow], ChangeResult]
) -> ChangeResult:
    """Run `verb`, unless an earlier run applied the decision and the response was lost.

    An applied run may have changed the state that the current run checks, so a run that is refused
    also looks for the audit log entry.
    """
    row = read_row(comment_id)
    if transactions.may_have_run() and audit_log.is_done(decision.act):
        return ChangeResult(conversion.comment_record(row))
    try:
        decision.check(conversion.case_record(row))
        if row.status == Status.RETRACTED:
            raise errors.Conflict("comment-retracted")
        return verb(row)
    except errors.FlatthreadError:
        if audit_log.is_done(decision.act):
            return ChangeResult(conversion.comment_record(row))
        raise


def _check_revision(row: comment_rows.CommentRow, decision: Decision) -> None:
    revision, seen = decision.revision, conversion.comment_record(row)
    if revision is not None and not seen.has_text_of(revision):
        raise errors.RevisionMismatch(revision, seen.revision)


def _check_shown(row: comment_rows.CommentRow) -> None:
    if row.status != Status.APPROVED:
        raise errors.Conflict("comment-not-shown")


def _decision_result(
    decision: Decision,
    changed: list[Changed],
    said: tuple[str, str],
    kind: outbox.EventKind = outbox.EventKind.JUDGED,
) -> ChangeResult:
    """Build the change to the first row and the rows changed with it, and its audit log entry."""
    row, now = changed[0][1], decision.now
    change = build_change(kind, changed, now=now)
    note = audit_log.entry_writes(
        decision.act, row.site, row.key.id(), before=said[0], after=said[1], now=now
    )
    return ChangeResult(change.comment, (*change.writes, note), change.event)
