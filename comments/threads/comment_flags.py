"""Flag changed comments: raise their revisions and set when their thread must be compacted."""

from datetime import UTC, datetime, timedelta

from comments.domain import records
from comments.events import backlog
from comments.store.models import comment_rows

OWNER = "tree"
# Deadlines for compaction. A change that removes text is due immediately: the change's deadline is
# in the past by any clock. Any other change is due after `FOLD_AFTER`.
AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
IN_TIME = timedelta(seconds=backlog.FOLD_AFTER)


def touch(row: comment_rows.CommentRow, *, was_listed: bool) -> None:
    """Record a change that readers can see.

    `was_listed` is true if readers saw the row before the change.
    """
    row.revision += 1
    row.text_revision = None  # The text and the row have the same revision again.
    # A row that readers never saw and do not see now need not be compacted, so even ten thousand
    # held comments cost nothing.
    row.unfolded = row.unfolded or row.listed or row.shelved
    # A bucket may contain the text that this change removed.
    row.rewrites = row.unfolded
    row.fold_by = compaction_deadline(row)
    if was_listed or row.listed:
        row.changed = change_time(row)


def touch_around_text(row: comment_rows.CommentRow, *, now: datetime) -> None:
    """Record a visible change that does not affect the comment's text.

    No text is removed, so no bucket has to be rewritten at once.
    """
    raise_revision(row)
    if not row.unfolded and (row.listed or row.shelved):
        row.unfolded, row.fold_by = True, now + IN_TIME


def flag_as_moved(row: comment_rows.CommentRow) -> comment_rows.CommentRow:
    """Let readers use the ordered query until the next compaction of the row's thread."""
    raise_revision(row)
    row.unfolded = row.moved = True
    row.fold_by = compaction_deadline(row)
    return row


def raise_revision(row: comment_rows.CommentRow) -> None:
    """Raise the revision of a comment, but not the revision of its text."""
    text_revision = row.text_revision or row.revision
    row.revision += 1
    row.text_revision = text_revision


def compaction_deadline(row: comment_rows.CommentRow) -> datetime | None:
    """Return the deadline for immediate compaction, or None for an unflagged row."""
    return AT_ONCE if row.unfolded else None


def change_time(row: comment_rows.CommentRow) -> datetime | None:
    """Return the time of the row's last change that readers could see.

    This time never goes back, even if clocks differ.
    """
    written: tuple[datetime | None, ...] = (row.changed, row.created, row.edited)
    return records.newest(written)
