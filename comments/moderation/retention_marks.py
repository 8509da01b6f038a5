"""Mark refused comments with the start of their retention period.

This module owns the kind ErasureDue. A comment that a moderator or a rule marked as spam, rejected
or shadowed keeps its text, so that the decision can be undone. `retention` erases the text after
the retention period. The mark is written when the event of the change is delivered, so posts and
decisions do not write it. Comments that were imported as spam or rejected get no mark, because this
service did not refuse them.

    ErasureDue  key: comment id; `since`

A mark is only a hint. `retention` checks the comment itself, which may have been approved,
retracted or refused again since the mark was written.
"""

from collections.abc import Sequence
from datetime import datetime

from comments.domain.records import Status
from comments.events import outbox
from comments.store import ownership, reads
from comments.store.models import moderation_rows

_OWNER = "retention_marks"
REFUSED = frozenset({Status.SPAM, Status.REJECTED, Status.SHADOWED})
TOLD_OF = outbox.OF_COMMENTS - {outbox.EventKind.IMPORTED}


def mark_writes(events: Sequence[outbox.Event]) -> ownership.Writes:
    """Mark the comments that were refused, in the transaction that completes their events."""
    rows: dict[str, moderation_rows.ErasureDueRow] = {}
    for event in events:
        old, new = event.changes[0] if event.changes else (None, None)
        if new is not None and new.status in REFUSED and (old is None or old.status != new.status):
            rows[event.comment] = moderation_rows.ErasureDueRow(
                key=moderation_rows.erasure_key(event.comment), since=event.at
            )
    return ownership.Writes(_OWNER, put=tuple(rows.values()))


def due_comments(before: datetime, limit: int) -> list[str]:
    """Return the ids of comments that were marked before a given time, oldest first."""
    return reads.names("ErasureDue", (("since", "<=", before),), order=("since",), limit=limit)


def postponement_writes(comment_id: str, since: datetime) -> ownership.Writes:
    """Move a comment's mark to the later time when the comment was refused again."""
    row = moderation_rows.ErasureDueRow(key=moderation_rows.erasure_key(comment_id), since=since)
    return ownership.Writes(_OWNER, put=(row,))


def removal_writes(comment_id: str) -> ownership.Writes:
    """Remove a comment's mark."""
    return ownership.Writes(_OWNER, delete=(moderation_rows.erasure_key(comment_id),))


def deletion_writes(comment_ids: Sequence[str]) -> ownership.Writes:
    """Remove the marks of deleted or erased comments."""
    rows = reads.get_multi([moderation_rows.erasure_key(comment_id) for comment_id in comment_ids])
    return ownership.Writes(_OWNER, delete=tuple(row.key for row in rows if row is not None))
