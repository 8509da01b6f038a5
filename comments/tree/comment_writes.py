"""Provide the common steps of operations on comments: load rows, flag them, build a change."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from comments import errors
from comments.domain import counting, records
from comments.domain.counting import CountedChange as Counted
from comments.events import backlog, outbox
from comments.store import ownership, reads
from comments.store.models import comment_rows, conversion
from comments.tree.counters import in_transaction
from comments.tree.threads import naming
from comments.tree.values import ChangeResult

OWNER = "tree"
# Deadlines for compaction. A change that removes text is due immediately: the change's deadline is
# in the past by any clock. Any other change is due after `FOLD_AFTER`.
AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
IN_TIME = timedelta(seconds=backlog.FOLD_AFTER)


def existing(comment_id: str) -> comment_rows.CommentRow:
    """Read the row of a comment.

    Raises:
        errors.NotFound: the comment does not exist.
    """
    row = reads.get(comment_rows.comment_key(comment_id)) if comment_id else None
    if row is None:
        raise errors.NotFound("comment", comment_id)
    found: comment_rows.CommentRow = row
    return found


def parent_row(row: comment_rows.CommentRow) -> comment_rows.CommentRow | None:
    """Return the row of a comment's parent, or None for a root.

    Raises:
        errors.Conflict: the parent is missing; `repair` corrects such a thread.
    """
    parent_id = conversion.parent_id(row)
    if parent_id is None:
        return None
    parent = reads.get(comment_rows.comment_key(parent_id))
    if parent is None:
        raise errors.Conflict("thread-damaged")
    found: comment_rows.CommentRow = parent
    return found


def touch(row: comment_rows.CommentRow, *, was_listed: bool) -> None:
    """Record a change that readers can see.

    `was_listed` tells whether readers saw the row before the change.
    """
    row.revision += 1
    row.text_revision = None  # The text has the row's revision.
    # A row that readers never saw and do not see now need not be compacted, so even ten thousand
    # held comments cost nothing.
    row.unfolded = row.unfolded or row.listed or row.shelved
    # A bucket may contain the text that this change removed.
    row.rewrites = row.unfolded
    row.fold_by = at_once(row)
    if was_listed or row.listed:
        row.changed = changed_at(row)


def touch_around_text(row: comment_rows.CommentRow, *, now: datetime) -> None:
    """Record a visible change that does not affect the comment's text.

    No text is removed, so no bucket has to be rewritten at once.
    """
    text_revision = row.text_revision or row.revision
    row.revision += 1
    row.text_revision = text_revision
    if not row.unfolded and (row.listed or row.shelved):
        row.unfolded, row.fold_by = True, now + IN_TIME


def flagged_as_moved(row: comment_rows.CommentRow) -> comment_rows.CommentRow:
    """Let readers use the ordered query until the next compaction of the row's thread."""
    raise_revision(row)
    row.unfolded = row.moved = True
    row.fold_by = at_once(row)
    return row


def raise_revision(row: comment_rows.CommentRow) -> None:
    """Raise the revision of a comment, but not that of its text."""
    text_revision = row.text_revision or row.revision
    row.revision += 1
    row.text_revision = text_revision


def at_once(row: comment_rows.CommentRow) -> datetime | None:
    """Return the deadline for immediate compaction, or None for an unflagged row."""
    return AT_ONCE if row.unfolded else None


def changed_at(row: comment_rows.CommentRow) -> datetime | None:
    """Return the time of the last change to the row that readers could see.

    This time never goes back, even if clocks differ.
    """
    written: tuple[datetime | None, ...] = (row.changed, row.created, row.edited)
    return records.newest(written)


def changed_rows(
    kind: outbox.EventKind,
    changed: Sequence[tuple[counting.CountedState, comment_rows.CommentRow]],
    *,
    now: datetime,
    detail: str = "",
) -> ChangeResult:
    """Build the change to the first row and to the other rows that changed with it.

    `changed` contains each row with its old state.

    `detail` is stored with the event of the change.
    """
    row = changed[0][1]
    name = records.ThreadName(row.site, row.thread_id)
    # Name the thread first: the naming comment is counted under the categories that it sets.
    named = naming.follow(name, changed)
    counted = [Counted(before, conversion.comment_state(after)) for before, after in changed]
    event = outbox.event_id(row.key.id(), row.revision)
    writes = (
        ownership.Writes(OWNER, put=(*(after for _, after in changed), *named)),
        in_transaction.entered(name, counted),
        outbox.tell(kind, event, counted, now=now, detail=detail),
    )
    return ChangeResult(conversion.comment_record(row), writes, event)
