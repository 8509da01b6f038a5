"""Provide the common steps of operations on comments: load rows, build a change."""

from collections.abc import Sequence
from datetime import datetime

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.domain.counters.counting import CountedChange as Counted
from comments.events import outbox
from comments.store import ownership, reads
from comments.store.models import comment_rows, conversion
from comments.threads import naming
from comments.threads.comment_flags import OWNER
from comments.tree.counters import in_transaction
from comments.tree.values import ChangeResult


def read_row(comment_id: str) -> comment_rows.CommentRow:
    """Read the row of a comment.

    Raises:
        errors.NotFound: the comment does not exist.
    """
    row = reads.get(comment_rows.comment_key(comment_id)) if comment_id else None
    if row is None:
        raise errors.NotFound("comment", comment_id)
    known: comment_rows.CommentRow = row
    return known


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
    known: comment_rows.CommentRow = parent
    return known


def build_change(
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
        in_transaction.counter_writes(name, counted),
        outbox.event_writes(kind, event, counted, now=now, detail=detail),
    )
    return ChangeResult(conversion.comment_record(row), writes, event)
