"""Which comments were refused, and since when: their texts are kept for a term only.

Owns the kind ErasureDue. A comment that a moderator or a rule made spam or rejected keeps its text,
so that this can be undone; `retention` erases it when the term is over. The mark is made from the
event of the change, so no post and no decision writes it. What an import brought as spam or
rejected has none: nobody here refused it.

    ErasureDue  key: comment id; `since`

A mark promises nothing: whoever comes for it looks at the comment, which may have been approved,
taken back, or refused again since.
"""

from collections.abc import Sequence
from datetime import datetime

from comments.domain.records import Status
from comments.events import outbox
from comments.store import ownership, reads
from comments.store.models import moderation_rows

_OWNER = "retention_marks"
REFUSED = frozenset({Status.SPAM, Status.REJECTED, Status.SHADOWED})
TOLD_OF = outbox.OF_COMMENTS - {outbox.Kind.IMPORTED}


def from_events(events: Sequence[outbox.Event]) -> ownership.Writes:
    """Mark what was refused, in the transaction that notes the events as done."""
    rows: dict[str, moderation_rows.ErasureDue] = {}
    for event in events:
        old, new = event.changes[0] if event.changes else (None, None)
        if new is not None and new.status in REFUSED and (old is None or old.status != new.status):
            rows[event.comment] = moderation_rows.ErasureDue(
                key=moderation_rows.erasure_key(event.comment), since=event.at
            )
    return ownership.Writes(_OWNER, put=tuple(rows.values()))


def due(before: datetime, limit: int) -> list[str]:
    """The ids of comments that were marked before a moment, the oldest first."""
    query = reads.Query(
        "ErasureDue",
        where=(("since", "<=", before),),
        order=("since",),
        limit=limit,
        keys_only=True,
    )
    return [message.key.path[-1].name for message in reads.fetch(query)]


def later(comment_id: str, since: datetime) -> ownership.Writes:
    """Mark a comment anew, which was refused again since."""
    row = moderation_rows.ErasureDue(key=moderation_rows.erasure_key(comment_id), since=since)
    return ownership.Writes(_OWNER, put=(row,))


def ended(comment_id: str) -> ownership.Writes:
    """Take the mark of a comment away."""
    return ownership.Writes(_OWNER, delete=(moderation_rows.erasure_key(comment_id),))
