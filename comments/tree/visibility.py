"""Keep the set of listed comments correct when a comment appears or disappears.

A comment is listed if it is approved or if a listed comment is below it. When a comment appears,
all comments above it are listed, as tombstones if they are not approved. When the last listed
comment below a tombstone disappears, the tombstone is unlisted.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from comments.domain import decoders, records
from comments.domain.counters import counting
from comments.domain.ids import sorthash
from comments.domain.moderation import classifier_verdicts, reasons
from comments.domain.records import Status
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.threads.comment_flags import change_time, touch
from comments.tree.comment_writes import parent_row

Changed = tuple[counting.CountedState, comment_rows.CommentRow]


def change_status(
    row: comment_rows.CommentRow, ruling: records.Ruling, *, now: datetime
) -> Sequence[Changed]:
    """Change a row's status. Return the changed rows above this row, with their old states."""
    was_listed = row.listed
    row.stood_for = _encode_ruling(row)
    row.stood, row.status, row.judged = row.status, ruling.status.value, now
    set_ruling(row, ruling)
    is_approved = ruling.status is Status.APPROVED
    row.listed = is_approved or (row.child_count > 0 and has_listed_below(row, without=""))
    touch(row, was_listed=was_listed)
    if was_listed or row.listed:
        row.changed = records.newest([row.changed, now])
    if row.listed and not was_listed:
        return tuple(_list_above(row))
    if was_listed and not row.listed:
        return tuple(settle_tombstones(row))
    return ()


def set_ruling(row: comment_rows.CommentRow, ruling: records.Ruling) -> None:
    """Store a ruling on a comment and its reasons, without changing the comment's status."""
    row.rule, row.why = ruling.rule, ruling.why
    row.reasons = reasons.encode(ruling.reasons)


def previous_ruling(row: comment_rows.CommentRow) -> records.Ruling:
    """Return the status before the last decision, with the reason for that status.

    A reason that awaits classifiers is left out, because the classifiers' answers may already have
    arrived without an effect on the decided comment.
    """
    ruling = decoders.json(records.Ruling).decode(row.stood_for) if row.stood_for else None
    if ruling is None or classifier_verdicts.awaited_classifiers(ruling.rule):
        return records.Ruling(Status(row.stood))
    return ruling


def _encode_ruling(row: comment_rows.CommentRow) -> str:
    case = conversion.case_record(row)
    ruling = records.Ruling(case.comment.status, case.rule, case.why, case.reasons)
    return "" if ruling == records.Ruling(ruling.status) else msgspec.json.encode(ruling).decode()


def _list_above(row: comment_rows.CommentRow) -> Iterator[Changed]:
    """List the unlisted rows above a row that has appeared."""
    parent = parent_row(row)
    while parent is not None and not parent.listed:
        before = conversion.comment_state(parent)
        parent.listed = True
        touch(parent, was_listed=False)
        parent.changed = change_time(parent)
        yield before, parent
        parent = parent_row(parent)


def settle_tombstones(
    row: comment_rows.CommentRow,
) -> Iterator[Changed]:
    """Unlist the tombstones above `row` that no longer have a listed comment below them.

    Yield each tombstone with its old state.
    """
    below = row.sort_hash
    parent = parent_row(row)
    while parent is not None and parent.listed and parent.status != Status.APPROVED:
        if has_listed_below(parent, without=below):
            return
        before = conversion.comment_state(parent)
        parent.listed = False
        touch(parent, was_listed=True)
        yield before, parent
        below = parent.sort_hash
        parent = parent_row(parent)


def has_listed_below(row: comment_rows.CommentRow, *, without: str) -> bool:
    """Return whether a listed comment is below `row`, ignoring the subtree at sort hash `without`.

    The query is part of the transaction, so two concurrent transactions that retract the last two
    replies cannot both find that the other reply is still listed.
    """
    low, high = sorthash.subtree_range(row.sort_hash)
    ranges = [(low, high)]
    if without:
        gap_low, gap_high = sorthash.subtree_range(without)
        ranges = [(low, gap_low), (gap_high, high)]
    return any(_has_listed(row, *bounds) for bounds in ranges)


def _has_listed(row: comment_rows.CommentRow, low: str, high: str) -> bool:
    # The row itself is still stored as listed, so start just after the row's sort hash.
    operator = ">" if low == row.sort_hash else ">="
    bounds = (("sort_hash", operator, low), ("sort_hash", "<", high))
    where = (("thread", "=", row.thread), ("listed", "=", True), *bounds)
    return bool(reads.names("Comment", where, order=("sort_hash",), limit=1))
