"""Store which replies each author has not read yet.

The inbox of an author on a website is a large set (`store/large_sets`) with the name
"inbox:{site}/{author}". Its members are the unread replies of other people to the author's
comments, and to imported comments that the author has claimed (`author_links`):

    member    {9999999999999999 - microseconds since 1970 of the reply, 16 digits}{comment id}

The members therefore sort newest first. Only guests and accounts have inboxes. The author of an
imported comment has no inbox, because nobody can call the API as that author. A website has inboxes
only if its owner turned them on (`site_options`). With inboxes, each reply costs four more reads
and one more write.

An event handler adds and removes replies, in the transaction that marks the event as done. Reading
an inbox returns only replies that readers see now. An inbox shows its newest `MOST` replies, and
the next compaction drops all older replies.

Each decision about a reply changes the inbox at most once. An event that is delivered late or
repeatedly therefore never makes a reply unread that was already read. A reply that moderators hide
and then show again is unread again. Marking a reply as read writes only if the inbox contains the
reply, so the number of writes never exceeds the number of replies. After the author is erased, no
event creates the inbox again, because the answered comments no longer name the author.
"""

import functools
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.domain.crypto import cursors
from comments.domain.ids import author_ids
from comments.domain.records import Status
from comments.events import backlog, outbox
from comments.moderation.policy import author_links
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.large_sets import many_marks, membership, set_compaction
from comments.store.models import comment_rows, conversion, counter_rows
from comments.threads import thread_info

MOST = 200  # Maximum number of replies in an inbox; reading an inbox reads all of them.
_PURPOSE = "inbox:"
_AT_ONCE = 200  # Maximum number of replies marked as read in one transaction.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 10**16 - 1  # Microseconds. Stored keys depend on this value, so it must never change.
_DIGITS = 16
_READERS = (author_ids.GUEST, author_ids.ACCOUNT)
TOLD_OF = outbox.OF_COMMENTS - {outbox.EventKind.IMPORTED}


class UnreadReply(NamedTuple):
    """An unread reply and its thread. Title and URL are empty if no comment has set them."""

    comment: records.Comment
    thread: str
    title: str
    url: str


class InboxPage(NamedTuple):
    """One page of unread replies, newest first, and the number of all unread replies.

    `cursor` leads to the next page; it is None on the last page.
    """

    unread: int
    replies: tuple[UnreadReply, ...]
    cursor: str | None


# --- Events --------------------


def event_writes(events: Sequence[outbox.Event]) -> ownership.Writes:
    """Add or remove these events' replies, in the transaction that marks the events as done."""
    inbox_events = [event for event in events if _is_shown_or_hidden(event) and _has_inboxes(event)]
    if not inbox_events:
        return ownership.Writes(membership.OWNER)
    rows = reads.get_multi([comment_rows.comment_key(event.comment) for event in inbox_events])
    replies = [
        (event, row)
        for event, row in zip(inbox_events, rows, strict=True)
        if row is not None and row.reply_to and not _is_overtaken(event, row)
    ]
    answered = list(dict.fromkeys(row.reply_to for _, row in replies))
    authors = _authors(answered)
    claimants: dict[str, str] = {}
    for site in {row.site for _, row in replies}:
        claimants |= author_links.claimants(site, {*authors.values()})
    changes: dict[records.SetName, dict[str, bool]] = {}
    for event, row in replies:
        author = authors.get(row.reply_to, "")
        author = claimants.get(author, author)
        if author.startswith(_READERS) and author != _writer(event):
            members = changes.setdefault(set_of(row.site, author), {})
            members[_member(row.created, row.key.id())] = row.status == Status.APPROVED
    marked = many_marks.mark_many(changes)
    for name in marked.asking:
        transactions.afterwards(functools.partial(backlog.note_request, name))
    return marked.writes


def _is_shown_or_hidden(event: outbox.Event) -> bool:
    old, new = event.changes[0] if event.changes else (None, None)
    return _is_approved(old) != _is_approved(new)


def _is_approved(state: counting.CountedState | None) -> bool:
    return state is not None and state.status == Status.APPROVED


def _has_inboxes(event: outbox.Event) -> bool:
    old, new = event.changes[0]
    state = new or old
    try:
        return state is not None and site_settings.get(state.site).options.inbox
    except errors.NotFound:
        return False


def _is_overtaken(event: outbox.Event, row: comment_rows.CommentRow) -> bool:
    """Return whether a later decision showed the reply; the event of that decision then adds it."""
    judged: datetime | None = row.judged
    return row.status == Status.APPROVED and judged is not None and judged > event.at


def _writer(event: outbox.Event) -> str:
    """Return the author of an event's comment, even if the comment has since been retracted."""
    return max((state.author for state in event.changes[0] if state is not None), default="")


def _authors(comments: Sequence[str]) -> dict[str, str]:
    rows = (
        reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in comments])
        if comments
        else ()
    )
    return {row.key.id(): row.author_id or "" for row in rows if row is not None}


# --- Reading --------------------


def unread(site: str, author: str, *, limit: int, cursor: str | None, secret: str) -> InboxPage:
    """Return the unread replies after a cursor, newest first.

    Raises:
        errors.BadCursor: the cursor belongs to a different list, or this service did not sign it.
        errors.Overloaded: the store did not respond in time.
    """
    label = cursors.label("inbox", site, author)
    (after,) = cursors.unseal(cursor, label, secret) if cursor else [""]
    ids = [_comment_of(member) for member in membership.page(set_of(site, author), limit=MOST).ids]
    by_id = {row.id: row for row in map(conversion.comment_from_message, _lookup(ids))}
    shown = [
        by_id[comment_id]
        for comment_id in ids
        if comment_id in by_id and _is_visible(by_id[comment_id])
    ]
    behind = [comment for comment in shown if _member(comment.created, comment.id) > after]
    page = behind[:limit]
    is_last = len(page) == len(behind)
    last = (
        None if is_last else cursors.seal([_member(page[-1].created, page[-1].id)], label, secret)
    )
    threads = thread_info.get_many([records.ThreadName(site, comment.thread) for comment in page])
    replies = (
        UnreadReply(comment, thread.shown_id, thread.title, thread.url)
        if thread
        else UnreadReply(comment, comment.thread, "", "")
        for comment, thread in zip(page, threads, strict=True)
    )
    return InboxPage(len(shown), tuple(replies), last)


def comments_in(site: str, author: str) -> list[str]:
    """Return the ids of all comments that an inbox contains, newest first."""
    return [_comment_of(member) for member in _members(site, author)]


def _lookup(ids: Sequence[str]) -> Iterator[reads.Entity]:
    return reads.lookup("Comment", ids) if ids else iter(())


def _is_visible(comment: records.Comment) -> bool:
    return comment.status is Status.APPROVED


# --- Marking as read --------------------


def mark_all(site: str, author: str) -> int:
    """Mark all replies as read, and return how many replies were unread.

    Raises:
        errors.Overloaded: the store did not respond in time; retrying is safe.
    """
    return _mark(site, author, lambda _: True)


def mark_some(site: str, author: str, comments: Container[str]) -> int:
    """Mark these replies as read, and return how many were unread; other comments are ignored.

    Raises:
        errors.Overloaded: see `mark_all`.
    """
    return _mark(site, author, lambda member: _comment_of(member) in comments)


def mark_until(site: str, author: str, comment_id: str) -> int:
    """Mark a reply and all older replies as read, and return how many were unread.

    Raises:
        errors.NotFound: the site has no such comment.
        errors.Overloaded: see `mark_all`.
    """
    row = reads.get(comment_rows.comment_key(comment_id))
    if row is None or row.site != site:
        raise errors.NotFound("comment", comment_id)
    newest = _member(row.created, comment_id)
    return _mark(site, author, lambda member: member >= newest)


def _mark(site: str, author: str, is_chosen: Callable[[str], bool]) -> int:
    chosen = [member for member in _members(site, author) if is_chosen(member)]
    for start in range(0, len(chosen), _AT_ONCE):
        part = dict.fromkeys(chosen[start : start + _AT_ONCE], False)
        for name in transactions.transaction(functools.partial(_leave, set_of(site, author), part)):
            backlog.note_request(name)
    return len(chosen)


def _leave(name: records.SetName, members: dict[str, bool]) -> tuple[records.SetName, ...]:
    marked = many_marks.mark_many({name: members})
    transactions.apply(marked.writes)
    return marked.asking


# --- The set --------------------


def erase(site: str, author: str) -> None:
    """Delete an inbox. Erase the author's comments first, or an event could fill it again.

    Raises:
        errors.Overloaded: the store did not respond in time; repeat the call.
    """
    if author.startswith(_READERS):
        set_compaction.remove(set_of(site, author))


def most_of(name: records.SetName) -> int | None:
    """Return the number of ids that a large set keeps, or None if the set is not an inbox."""
    return MOST if name.text.startswith(_PURPOSE) else None


def set_of(site: str, author: str) -> records.SetName:
    # The name is stored, so changing it would lose all inboxes.
    return records.SetName(f"{_PURPOSE}{counter_rows.author_name(site, author)}")


def _members(site: str, author: str) -> Iterator[str]:
    return membership.every(set_of(site, author), limit=membership.AT_ONCE)


def _member(created: datetime, comment_id: str) -> str:
    passed = (created - _EPOCH) // timedelta(microseconds=1)
    return f"{_LAST - passed:0{_DIGITS}d}{comment_id}"


def _comment_of(member: str) -> str:
    return member[_DIGITS:]
