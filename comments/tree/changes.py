"""Change existing comments: edit, retract, count votes."""

from collections.abc import Callable
from datetime import datetime

from comments import errors
from comments.domain import records
from comments.domain.moderation import classifier_verdicts
from comments.domain.records import Status
from comments.events import outbox
from comments.store.models import comment_rows, conversion
from comments.threads.comment_flags import touch, touch_around_text
from comments.tree.comment_writes import build_change, read_row
from comments.tree.values import ChangeResult, RenderedText
from comments.tree.visibility import (
    change_status,
    has_listed_below,
    set_ruling,
    settle_tombstones,
)


def edit(
    comment_id: str,
    text: RenderedText,
    *,
    now: datetime,
    check: Callable[[records.Comment], records.Ruling | None],
    detail: str = "",
) -> ChangeResult:
    """Replace a comment's text, unless `check` raises an error.

    `check` gets the stored comment and returns the ruling on the new text, or None to keep the
    status. `detail` is stored with the event of the change.

    Raises:
        errors.NotFound: the comment does not exist or was retracted.
        errors.Conflict: a moderator rejected or hid the comment.
    """
    row = read_row(comment_id)
    ruling = check(conversion.comment_record(row))
    if row.status == Status.RETRACTED:
        raise errors.NotFound("comment", comment_id)
    # Compare only the bodies: HTML from a new renderer is not an edit (`rerendering`).
    if row.body == text.body:
        return ChangeResult(conversion.comment_record(row))
    if row.status in {Status.REJECTED, Status.HIDDEN}:
        raise errors.Conflict("comment-removed")
    before = conversion.comment_state(row)
    row.body, row.html, row.renderer = text.body, text.html, text.renderer
    row.edited, row.edited_by_staff = now, False
    if ruling is None or ruling.status == row.status:
        if ruling is not None and classifier_verdicts.awaited_classifiers(row.rule or ""):
            # Without the new ruling, a classifier's approval of the old text would publish the new
            # text.
            set_ruling(row, ruling)
        touch(row, was_listed=row.listed)
        return build_change(outbox.EventKind.EDITED, [(before, row)], now=now, detail=detail)
    others = change_status(row, ruling, now=now)
    return build_change(outbox.EventKind.EDITED, [(before, row), *others], now=now, detail=detail)


def retract(
    comment_id: str, *, now: datetime, check: Callable[[records.Comment], None]
) -> ChangeResult:
    """Erase a comment's content and author. The comment's place, number and replies stay.

    As long as a listed comment is below a retracted comment, the retracted comment stays listed as
    a tombstone. When no listed comment is left below, the comment and the tombstones above it are
    unlisted. Retracting a comment again changes nothing.

    Raises:
        errors.NotFound: the comment does not exist.
    """
    row = read_row(comment_id)
    check(conversion.comment_record(row))
    if row.status == Status.RETRACTED:
        return ChangeResult(conversion.comment_record(row))
    before = conversion.comment_state(row)
    erase_content(row)
    row.edited, was_listed = now, row.listed
    row.listed = row.child_count > 0 and has_listed_below(row, without="")
    touch(row, was_listed=was_listed)
    settled = () if row.listed else settle_tombstones(row)
    return build_change(outbox.EventKind.RETRACTED, [(before, row), *settled], now=now)


def count_votes(comment_id: str, cast: tuple[int, int], *, now: datetime) -> ChangeResult:
    """Store the number of votes cast for and against a comment, in addition to imported votes.

    Readers see this change like any other change. No text is removed, so no bucket has to be
    rewritten. A retracted comment has no votes.

    Raises:
        errors.NotFound: the comment does not exist.
    """
    row = read_row(comment_id)
    votes = _vote_numbers(row, cast)
    known = (row.up, row.down, row.score, row.cast_up or 0, row.cast_down or 0)
    if row.status == Status.RETRACTED or known == votes:
        return ChangeResult(conversion.comment_record(row))
    before = conversion.comment_state(row)
    row.up, row.down, row.score, row.cast_up, row.cast_down = votes
    touch_around_text(row, now=now)
    return build_change(outbox.EventKind.VOTED, [(before, row)], now=now)


def _vote_numbers(
    row: comment_rows.CommentRow, cast: tuple[int, int]
) -> tuple[int, int, int, int, int]:
    up = row.up - (row.cast_up or 0) + cast[0]
    down = row.down - (row.cast_down or 0) + cast[1]
    return up, down, up - down, *cast


def erase_content(row: comment_rows.CommentRow) -> None:
    """Erase a comment's text, author, votes and pin, and the reasons for its status."""
    row.status = Status.RETRACTED.value
    row.body = row.html = row.renderer = ""
    row.author_name = row.author_website = row.author_email = row.author_id = ""
    row.origin, row.by_staff, row.edited_by_staff = None, False, False
    row.came_from = ""
    row.rule = row.why = row.reasons = row.stood = row.stood_for = row.brought = ""
    row.judged, row.pinned = None, False
    row.up = row.down = row.score = row.cast_up = row.cast_down = 0
