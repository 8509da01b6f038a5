"""Erase refused comments, reports and personal data after their retention period.

A comment that was marked as spam, rejected or shadowed keeps its text for `TERM`, so that a
moderator can undo the decision. After `TERM`, the comment and its votes are erased as if the author
had retracted the comment. Comments that were imported as spam or rejected are kept, because this
service did not refuse them. A comment's reports are deleted `TERM` after the last report.

Once a comment is older than `TERM`, its guest's mail address and the caller mark of the guest's
network (`caller_marks`) are erased. Mail does not need this address, because subscriptions store
their own copy (`subscriptions`). No property marks the comments that have an address, because such
a property would make every comment more expensive. Instead, a scan visits every comment once, in
order of creation, when the comment is old enough. A Job row stores the position of the scan. The
scan skips imported comments, because they may already be old when they are stored. Their addresses
are erased `TERM` after the import (`import_undo`).
"""

import functools
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from comments.domain import decoders, records
from comments.events import backlog
from comments.moderation import reports, retention_marks
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion, event_rows, schema
from comments.tree import changes, values, votes
from comments.tree.bulk import job_writes

TERM = timedelta(days=30)
AT_ONCE = 100
STEPS = 20  # Maximum transactions per scan and call; the next call continues the scan.
_JOB = "retention/addresses"
_START = datetime(1, 1, 1, tzinfo=UTC)


class _Place(NamedTuple):
    """The position of a scan, which is the last visited comment."""

    at: datetime = _START
    id: str = ""


def expire(now: datetime) -> int:
    """Erase all data after its retention period, and return the number of erased comments.

    Raises:
        errors.Overloaded: the store is busy; the next call erases the remaining data.
    """
    erased = 0
    while ids := retention_marks.due_comments(now - TERM, AT_ONCE):
        for comment_id in ids:
            erased += _expire(comment_id, now)
    while old := reports.old_keys(now - TERM, AT_ONCE):
        transactions.transaction(functools.partial(_forget_reports, old))
    forget_addresses(now)
    return erased


def forget_addresses(now: datetime) -> int:
    """Continue the scan that erases addresses, and return the number of visited comments.

    Raises:
        errors.Overloaded: the store is busy; the next call continues the scan.
    """
    looked_at = 0
    for _ in range(STEPS):
        row = reads.get(event_rows.job_key(_JOB))
        seen = "" if row is None else row.position
        place = decoders.json(_Place).decode(seen) if seen else _Place()
        messages = _behind(place, now - TERM)
        if not messages:
            break
        transactions.transaction(functools.partial(_walk, seen, messages))
        looked_at += len(messages)
        if len(messages) < AT_ONCE:
            break
    return looked_at


def _has_personal_data(message: Any) -> bool:
    values = message.properties
    held = values["author_email"].string_value or values["came_from"].string_value
    return bool(held) and not values["source"].string_value


def _behind(place: _Place, until: datetime) -> list[Any]:
    """Read comments after a position that were created up to `until`, by time and then by id."""
    ties: list[tuple[str, str, object]] = [("created", "=", place.at), ("__key__", ">", place.id)]
    messages = _comments(ties, ("__key__",), AT_ONCE) if place.id else []
    if len(messages) < AT_ONCE and place.at < until:
        later: list[tuple[str, str, object]] = [
            ("created", ">", place.at),
            ("created", "<=", until),
        ]
        messages += _comments(later, ("created",), AT_ONCE - len(messages))
    return messages


def _comments(
    where: list[tuple[str, str, object]], order: tuple[str, ...], limit: int
) -> list[Any]:
    return list(reads.fetch(reads.Query("Comment", where=where, order=order, limit=limit)))


def _walk(seen: str, messages: list[Any]) -> None:
    """Erase the addresses in these comments unless another process has advanced the scan."""
    row = reads.get(event_rows.job_key(_JOB))
    if ("" if row is None else row.position) != seen:
        return
    known = [message for message in messages if _has_personal_data(message)]
    transactions.apply(
        job_writes.address_erasure_writes([message.key.path[-1].name for message in known])
    )
    last = conversion.comment_from_message(messages[-1])
    place = msgspec.json.encode(_Place(last.created, last.id)).decode()
    moved = event_rows.JobRow(key=event_rows.job_key(_JOB), position=place)
    transactions.apply(ownership.Writes("retention", put=(moved,)))


def _forget_reports(keys: list[schema.RowKey]) -> None:
    transactions.apply(reports.row_deletion_writes(keys))


def _expire(comment_id: str, now: datetime) -> bool:
    change = transactions.transaction(functools.partial(_step, comment_id, now), line=comment_id)
    if change is None:
        return False
    backlog.tell(change.event)
    backlog.note_erasure(records.ThreadName(change.comment.site, change.comment.thread))
    backlog.note_vote(records.VotedComment(comment_id))
    return True


def _step(comment_id: str, now: datetime) -> values.ChangeResult | None:
    row = reads.get(comment_rows.comment_key(comment_id))
    judged = None if row is None else conversion.case_record(row).judged
    if row is None or judged is None or row.status not in retention_marks.REFUSED:
        transactions.apply(retention_marks.removal_writes(comment_id))
        return None
    if judged > now - TERM:
        transactions.apply(retention_marks.postponement_writes(comment_id, judged))
        return None
    change = changes.retract(comment_id, now=now, check=lambda _: None)
    name = records.ThreadName(row.site, row.thread_id)
    transactions.apply(*change.writes, votes.scheduled_deletion_writes(comment_id, name, now=now))
    return change
