"""What the verbs share: rows as they are made, placed and marked, and what a change writes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from comments import errors
from comments.domain import counting, records
from comments.domain.counting import Change as Counted
from comments.events import backlog, outbox
from comments.store import ownership, reads
from comments.store.models import comment_rows, conversion
from comments.tree.counters import in_transaction
from comments.tree.threads import naming
from comments.tree.values import Change

OWNER = "tree"
# By when a row is to be folded: a moment that is over by any clock, for what takes something away,
# and so long after any other change.
AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
IN_TIME = timedelta(seconds=backlog.FOLD_AFTER)


def existing(comment_id: str) -> comment_rows.Comment:
    """The row of a comment.

    Raises:
        errors.NotFound: there is no such comment.
    """
    row = reads.get(comment_rows.comment_key(comment_id)) if comment_id else None
    if row is None:
        raise errors.NotFound("comment", comment_id)
    found: comment_rows.Comment = row
    return found


def parent_row(row: comment_rows.Comment) -> comment_rows.Comment | None:
    """The row above one, None for a root.

    Raises:
        errors.Conflict: it is not there; `repair` mends such a thread.
    """
    parent_id = conversion.parent_id(row)
    if parent_id is None:
        return None
    parent = reads.get(comment_rows.comment_key(parent_id))
    if parent is None:
        raise errors.Conflict("the thread is damaged here: run repair", code="thread-damaged")
    found: comment_rows.Comment = parent
    return found


def touch(row: comment_rows.Comment, *, was_listed: bool) -> None:
    """Mark a change readers can see. `was_listed`: they saw the row before it."""
    row.revision += 1
    row.text_revision = None  # this one
    # What readers neither saw nor see is nothing to fold: ten thousand held comments cost nobody.
    row.unfolded = row.unfolded or row.listed or row.shelved
    # A bucket may hold what this change took away.
    row.rewrites = row.unfolded
    row.fold_by = at_once(row)
    if was_listed or row.listed:
        row.changed = changed_at(row)


def at_once(row: comment_rows.Comment) -> datetime | None:
    """By when a row that cannot wait is to be folded: a moment that is over. None if it is."""
    return AT_ONCE if row.unfolded else None


def changed_at(row: comment_rows.Comment) -> datetime | None:
    """When readers last got to see another state of the row. Never back, whose clock it may be."""
    written: tuple[datetime | None, ...] = (row.changed, row.created, row.edited)
    return records.newest(written)


def changed_rows(
    kind: outbox.Kind,
    changed: Sequence[tuple[counting.State, comment_rows.Comment]],
    *,
    now: datetime,
    detail: str = "",
) -> Change:
    """The change of the first row and of those that changed with it, each with its state before.

    `detail` is what its event says beside that.
    """
    row = changed[0][1]
    name = records.ThreadName(row.site, row.thread_id)
    # First: a comment that names its thread is counted under the categories that it brings.
    named = naming.follow(name, changed)
    counted = [Counted(before, conversion.comment_state(after)) for before, after in changed]
    event = outbox.event_id(row.key.id(), row.revision)
    writes = (
        ownership.Writes(OWNER, put=(*(after for _, after in changed), *named)),
        in_transaction.entered(name, counted),
        outbox.tell(kind, event, counted, now=now, detail=detail),
    )
    return Change(conversion.comment_record(row), writes, event)
