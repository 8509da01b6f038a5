"""Choose the comment that names a thread by setting its title, page address and categories.

Every comment stores the thread data (title, address and categories) that was posted with it
(`Comment.brought`). A thread shows the data of its oldest approved comment, the naming comment.
Fields that a moderator set (`Thread.own`) do not change.

Invariant: `Thread.title`, `url` and `categories` contain no data from a comment that is not
approved now: a transaction that withdraws the naming comment also chooses a new naming comment
(test_thread_overrides.py::test_a_removed_comments_title_disappears_at_once).

Erasing a comment also erases its thread data. Threads from releases that stored neither `brought`
nor `named_by` are adopted (`details.adoption_writes`). The adoption assumes that the data that a
thread shows comes from its first comment. The data of later comments was not stored, so these
comments cannot name the thread, but a new comment can. An imported comment names a thread only if
no other comment names it, because the imported comment was added later, regardless of its date. A
comment from a test page (`cors.is_test_page`) has no thread data, so it never names a thread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from comments.domain import decoders, records
from comments.domain.counters import counting
from comments.domain.records import Status
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion, event_rows, schema
from comments.threads import category_journal, thread_cache

_FEW, _MANY = 4, 1_000  # Listed comments to search for the oldest one that can name the thread


class Brought(NamedTuple):
    """The thread data that was posted with a comment."""

    title: str = ""
    url: str = ""
    categories: Sequence[str] = ()


class NamingCandidate(NamedTuple):
    """A comment that may name its thread.

    Among comments with equal dates, the first in reading order names the thread.
    """

    created: datetime
    sort_hash: str
    id: str
    brought: str


def encode(brought: Brought) -> str:
    """Encode a comment's thread data for its row."""
    return msgspec.json.encode(brought).decode()


def decode(stored: str | None) -> Brought:
    """Decode a comment's thread data; the result is empty if the data is unknown or was erased."""
    return decoders.json(Brought).decode(stored) if stored else Brought()


def follow(
    name: records.ThreadName,
    changed: Sequence[tuple[counting.CountedState, comment_rows.CommentRow]],
) -> tuple[schema.StoredRow, ...]:
    """Choose a new naming comment if these changes require it. Return the other rows to store.

    `changed` contains each comment with its old state. The thread is read only if a comment became
    approved or lost its approval.
    """
    came = [row for before, row in changed if _has_appeared(before, row)]
    left = [row.key.id() for before, row in changed if _has_disappeared(before, row)]
    thread = reads.get(comment_rows.thread_key(name)) if came or left else None
    if thread is None:
        return ()
    rows = {row.key.id(): row for _, row in changed}
    if is_unknown(thread):
        return adopt(thread, rows)
    if thread.named_by in left:
        return take(thread, oldest_candidate(thread, rows), rows.values())
    return take_oldest(thread, came, rows.values())


def take_oldest(
    thread: comment_rows.ThreadRow,
    came: Iterable[comment_rows.CommentRow],
    rows: Iterable[comment_rows.CommentRow],
) -> tuple[schema.StoredRow, ...]:
    """Name a thread after the oldest of these comments if it precedes the naming comment in time.

    `rows` contains the comments written in the same commit. Return the other rows to store.
    """
    candidate = min(_candidates(came), default=None)
    if candidate is None or is_unknown(thread):
        return ()
    if thread.named_by and thread.named_at <= candidate.created:
        return ()
    return take(thread, candidate, rows)


def take(
    thread: comment_rows.ThreadRow,
    source: NamingCandidate | None,
    rows: Iterable[comment_rows.CommentRow],
) -> tuple[schema.StoredRow, ...]:
    """Show a comment's thread data, or no data. Return the rows to store along with `rows`."""
    by, at = ("", None) if source is None else (source.id, source.created)
    thread.populate(named_by=by, named_at=at)
    return show(thread, decode(source and source.brought), rows)


def show(
    thread: comment_rows.ThreadRow, brought: Brought, rows: Iterable[comment_rows.CommentRow]
) -> tuple[schema.StoredRow, ...]:
    """Set a thread's fields that no moderator set. Return the rows to store along with `rows`.

    If the categories change, the job `recategorize` starts, unless `rows` contains all of the
    thread's comments.
    """
    fields = [field for field in Brought._fields if field not in thread.own]
    if not set_fields(thread, brought, fields):
        return (thread,)
    rows = list(rows)
    for row in rows:
        row.categories = list(thread.categories)
    return (thread,) if _has_only(thread, rows) else (thread, begin_recategorizing(thread))


def set_fields(thread: comment_rows.ThreadRow, brought: Brought, fields: Iterable[str]) -> bool:
    """Set these fields of a thread. Return whether the thread's categories changed."""
    before = tuple(thread.categories)
    given = brought._replace(categories=list(brought.categories))._asdict()
    thread.populate(**{field: given[field] for field in fields})
    forget(thread)
    return tuple(thread.categories) != before


def is_unknown(thread: comment_rows.ThreadRow) -> bool:
    """Return whether an older release stored the thread without its naming comment."""
    stored: str | None = thread.named_by
    return stored is None


def begin_recategorizing(thread: comment_rows.ThreadRow) -> event_rows.JobRow:
    """Number a change to a thread's categories, and start to recategorize the thread's comments."""
    thread.filed = (thread.filed or 0) + 1
    return category_journal.journal(thread.key.id(), category_journal.JournalPosition(thread.filed))


def forget(thread: comment_rows.ThreadRow) -> None:
    """Drop this process's copy of a thread when the current transaction ends."""
    name = records.ThreadName(thread.site, thread.thread)
    transactions.afterwards(lambda: thread_cache.COPIES.get().drop(name))


def oldest_candidate(
    thread: comment_rows.ThreadRow, rows: Mapping[str, comment_rows.CommentRow]
) -> NamingCandidate | None:
    """Find the oldest approved comment with known `brought`, in `rows` or in the store."""
    stored = next(_stored_candidates(thread, rows), None)
    known = _candidates(row for row in rows.values() if row.status == Status.APPROVED)
    return min([*known, *([] if stored is None else [stored])], default=None)


def adopt(
    thread: comment_rows.ThreadRow, rows: Mapping[str, comment_rows.CommentRow]
) -> tuple[schema.StoredRow, ...]:
    """Choose the naming comment of a thread from a release that stored no naming comments.

    `rows` contains the comments of this commit as they will be stored. Return the other rows to
    store.
    """
    thread.own = ["categories"] if thread.filed else []
    begun = _first_comment(thread, rows)
    changed: tuple[comment_rows.CommentRow, ...] = ()
    if begun is not None and begun.status != Status.RETRACTED and not begun.brought:
        begun.brought = encode(Brought(thread.title, thread.url, tuple(thread.categories)))
        changed = () if begun.key.id() in rows else (begun,)
    pending = {**rows, **{row.key.id(): row for row in changed}}
    return (*changed, *take(thread, oldest_candidate(thread, pending), pending.values()))


def _first_comment(
    thread: comment_rows.ThreadRow, rows: Mapping[str, comment_rows.CommentRow]
) -> comment_rows.CommentRow | None:
    """Return a thread's first comment, or None if it does not exist."""
    query = reads.Query(
        "Comment",
        where=(("thread", "=", thread.key.id()),),
        order=("sort_hash",),
        limit=1,
    )
    for message in reads.fetch(query):
        if message.properties["number"].integer_value or message.properties["level"].integer_value:
            return None
        comment_id = message.key.path[-1].name
        row: comment_rows.CommentRow | None = rows.get(comment_id) or reads.get(
            comment_rows.comment_key(comment_id)
        )
        return row
    return None


def _stored_candidates(
    thread: comment_rows.ThreadRow, without: Mapping[str, comment_rows.CommentRow]
) -> Iterator[NamingCandidate]:
    for limit in (_FEW, _MANY):
        query = reads.Query(
            "Comment",
            where=(("thread", "=", thread.key.id()), ("listed", "=", True)),
            order=("created", "sort_hash"),
            limit=limit,
        )
        messages = list(reads.fetch(query))
        for message in messages:
            comment = conversion.comment_from_message(message)
            brought = message.properties["brought"].string_value
            if comment.status is Status.APPROVED and brought and comment.id not in without:
                yield NamingCandidate(comment.created, comment.sort_hash, comment.id, brought)
        if len(messages) < limit:
            return


def _candidates(rows: Iterable[comment_rows.CommentRow]) -> list[NamingCandidate]:
    return [
        NamingCandidate(row.created, row.sort_hash or "", row.key.id(), row.brought)
        for row in rows
        if row.brought
    ]


def _has_appeared(before: counting.CountedState, row: comment_rows.CommentRow) -> bool:
    return row.status == Status.APPROVED and before.status != Status.APPROVED


def _has_disappeared(before: counting.CountedState, row: comment_rows.CommentRow) -> bool:
    return row.status != Status.APPROVED and before.status == Status.APPROVED


def _has_only(thread: comment_rows.ThreadRow, rows: Sequence[comment_rows.CommentRow]) -> bool:
    """Return whether a thread has no comments except these roots without replies."""
    roots = [row for row in rows if conversion.parent_id(row) is None]
    return thread.child_count <= len(roots) and not any(row.child_count for row in rows)
