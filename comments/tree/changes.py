"""Changes of a comment that stands: its text, its votes, its end."""

from collections.abc import Callable, Iterator
from datetime import datetime

from comments import counters, datastore, errors, models, outbox, records, sorthash
from comments.records import Status
from comments.tree.rows import changed_rows, existing, parent_row, touch
from comments.tree.values import Change, Text


def edit(
    comment_id: str, text: Text, *, now: datetime, check: Callable[[records.Comment], None]
) -> Change:
    """Replace a comment's text. `check` sees the stored comment first and raises if it may not be.

    Raises:
        errors.NotFound: there is no such comment, or it was retracted.
    """
    row = existing(comment_id)
    check(models.comment_record(row))
    if row.status == Status.RETRACTED:
        raise errors.NotFound("comment", comment_id)
    if row.body == text.body and row.renderer == text.renderer:
        return Change(models.comment_record(row))
    before = models.comment_state(row)
    row.body, row.html, row.renderer = text.body, text.html, text.renderer
    row.edited = now
    touch(row, was_listed=row.listed)
    return changed_rows(outbox.Kind.EDITED, [(before, row)], now=now)


def retract(comment_id: str, *, now: datetime, check: Callable[[records.Comment], None]) -> Change:
    """Erase a comment's content and its author. Its place, its number and its replies stay.

    While something listed stands below it, it stays listed as a tombstone; with the last of those
    the tombstones above it go too. Retracting again changes nothing.

    Raises:
        errors.NotFound: there is no such comment.
    """
    row = existing(comment_id)
    check(models.comment_record(row))
    if row.status == Status.RETRACTED:
        return Change(models.comment_record(row))
    before = models.comment_state(row)
    _erase(row)
    row.edited, was_listed = now, row.listed
    row.listed = row.child_count > 0 and _has_listed_below(row, without="")
    touch(row, was_listed=was_listed)
    settled = () if row.listed else _settled_tombstones(row)
    return changed_rows(outbox.Kind.RETRACTED, [(before, row), *settled], now=now)


def count_votes(comment_id: str, cast: tuple[int, int], *, now: datetime) -> Change:
    """Write how many votes for and against a comment are cast, beside those that were imported.

    Readers see it like every change; nothing is taken away, so no bucket has to go for it. A
    retracted comment has no votes any more.

    Raises:
        errors.NotFound: there is no such comment.
    """
    row = existing(comment_id)
    votes = _with_imported(row, cast)
    known = (row.up, row.down, row.score, row.cast_up or 0, row.cast_down or 0)
    if row.status == Status.RETRACTED or known == votes:
        return Change(models.comment_record(row))
    before = models.comment_state(row)
    row.up, row.down, row.score, row.cast_up, row.cast_down = votes
    text_revision = row.text_revision or row.revision
    row.revision += 1
    row.text_revision = text_revision
    row.unfolded = row.unfolded or row.listed or row.shelved
    return changed_rows(outbox.Kind.VOTED, [(before, row)], now=now)


def _with_imported(row: models.Comment, cast: tuple[int, int]) -> tuple[int, int, int, int, int]:
    up = row.up - (row.cast_up or 0) + cast[0]
    down = row.down - (row.cast_down or 0) + cast[1]
    return up, down, up - down, *cast


def _erase(row: models.Comment) -> None:
    row.status = Status.RETRACTED.value
    row.body = row.html = row.renderer = ""
    row.author_name = row.author_website = row.author_email = row.author_id = ""
    row.up = row.down = row.score = row.cast_up = row.cast_down = 0


def _settled_tombstones(
    row: models.Comment,
) -> Iterator[tuple[counters.State, models.Comment]]:
    """Unlist the tombstones above `row` that have nothing listed left below them.

    Yields each with its state before.
    """
    below = row.sort_hash
    parent = parent_row(row)
    while parent is not None and parent.listed and parent.status != Status.APPROVED:
        if _has_listed_below(parent, without=below):
            return
        before = models.comment_state(parent)
        parent.listed = False
        touch(parent, was_listed=True)
        yield before, parent
        below = parent.sort_hash
        parent = parent_row(parent)


def _has_listed_below(row: models.Comment, *, without: str) -> bool:
    """Whether a listed comment stands below `row`, the subtree at hash `without` left out.

    Asked inside the transaction, so two that retract the last two replies at once cannot both
    believe that the other one's is still there.
    """
    low, high = sorthash.subtree_range(row.sort_hash)
    ranges = [(low, high)]
    if without:
        gap_low, gap_high = sorthash.subtree_range(without)
        ranges = [(low, gap_low), (gap_high, high)]
    return any(_any_listed(row, *bounds) for bounds in ranges)


def _any_listed(row: models.Comment, low: str, high: str) -> bool:
    # The row itself is still stored as listed: start just above its own hash.
    operator = ">" if low == row.sort_hash else ">="
    query = datastore.Query(
        "Comment",
        where=(
            ("thread", "=", row.thread),
            ("listed", "=", True),
            ("sort_hash", operator, low),
            ("sort_hash", "<", high),
        ),
        order=("sort_hash",),
        limit=1,
        keys_only=True,
    )
    return any(True for _ in datastore.fetch(query))
