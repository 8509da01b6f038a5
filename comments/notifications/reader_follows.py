"""Follow threads with a reader's token, without mail.

This module owns the kind Follow: a thread that a reader follows. The reader is also a member of the
thread's followers (`thread_followers`).

    Follow  key below "{author id}/{site}": the thread's key name; `thread`, `since`
            `name` and `listed` (indexed), if the reader agreed to be listed

Other readers see only the number of followers. The site's staff can list the readers who agreed to
it, each under the name that the reader gave for this list. A reader may therefore follow a closed
thread, and even a banned reader may follow threads, because a refusal could reveal a shadow ban.
The limits prevent programs from inflating the number of followers. Readers can always stop
following.

One commit writes the row, the mark in the thread's followers and the event that counts followers.
An erasure deletes the reader's rows. The marks that the erasure writes request the compaction that
removes the author's id from the thread's followers.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.crypto import cursors
from comments.domain.text import cleaning
from comments.limits import rate_limits
from comments.limits.site_request import SiteRequest
from comments.notifications import thread_followers
from comments.store import ownership, reads, transactions
from comments.store.large_sets import membership, set_compaction, set_search
from comments.store.models import comment_rows, conversion, follow_rows
from comments.threads import thread_info
from comments.tree.counters import statistics

MOST = 1_000  # Maximum number of threads that a reader can follow on a site.
_HOUR = timedelta(hours=1)
_OWNER = "reader_follows"


@dataclasses.dataclass(frozen=True, slots=True)
class FollowedThread:
    """A thread that a reader follows. `info` is None if the thread no longer exists."""

    name: records.ThreadName
    since: datetime | None
    info: records.Thread | None = None
    shown_name: str = ""


class ListedFollower(msgspec.Struct, frozen=True):
    """A reader who agreed to be listed as a follower of a thread, under this name."""

    author: str
    name: str
    since: datetime | None


@dataclasses.dataclass(frozen=True, slots=True)
class FollowedThreads:
    """One page of the threads that a reader follows. `cursor` leads to the next page."""

    threads: Sequence[FollowedThread]
    cursor: str | None


def begin(thread: records.ThreadName, author: str, request: SiteRequest) -> None:
    """Follow a thread at a reader's request. Repeating the call changes nothing.

    Raises:
        errors.NotFound: the thread has no comments yet.
        errors.Conflict: the reader follows too many threads.
        errors.TooMany: the network made too many requests.
        errors.Overloaded: the store did not respond in time.
    """
    if thread_info.get(thread) is None:
        raise errors.NotFound("thread", thread.id)
    settings = request.settings
    most = rate_limits.Limit("follows", settings.follows_per_network, _HOUR)
    network = rate_limits.Network(most, request.sender.network, settings.secret)
    follow(thread, author, now=request.now, limit=network)


def follow(
    thread: records.ThreadName,
    author: str,
    *,
    now: datetime,
    limit: rate_limits.Network | None = None,
) -> None:
    """Add a reader to a thread's followers (see `begin`)."""
    member = _member(author)
    token = thread_followers.new_token()
    key = follow_rows.follow_key(author, thread)

    def body() -> thread_followers.FollowerChanges:
        changes = thread_followers.FollowerChanges(token, now)
        if reads.get(key) is not None:
            return changes
        if limit is not None:
            rate_limits.read(limit, now=now)
            if limit.is_empty:
                raise errors.TooMany(retry_after=limit.wait(now))
            changes.writes.append(limit.count_writes())
        if _follow_count(author, thread.site) >= MOST:
            raise errors.Conflict("too-many-followed", limit=MOST)
        row = follow_rows.FollowRow(key=key, thread=thread.id, since=now)
        changes.writes.append(ownership.Writes(_OWNER, put=(row,)))
        changes.mark(thread_followers.set_of(thread), member, follows=True)
        changes.count(thread.site, key.id(), was=False, follows=True)
        transactions.apply(*changes.writes)
        return changes

    transactions.transaction(body).tell()


def unfollow(
    thread: records.ThreadName, author: str, *, now: datetime, is_erased: bool = False
) -> None:
    """Remove a reader from a thread's followers. Repeating the call changes nothing.

    If `is_erased` is true, request the compaction that removes the author's id from the stored set.

    Raises:
        errors.Overloaded: the store did not respond in time.
    """
    member = _member(author)
    token = thread_followers.new_token()
    key = follow_rows.follow_key(author, thread)

    def body() -> thread_followers.FollowerChanges:
        changes = thread_followers.FollowerChanges(token, now)
        if reads.get(key) is None:
            return changes
        changes.writes.append(ownership.Writes(_OWNER, delete=(key,)))
        changes.mark(thread_followers.set_of(thread), member, follows=False, asks=is_erased)
        changes.count(thread.site, key.id(), was=True, follows=False)
        transactions.apply(*changes.writes)
        return changes

    transactions.transaction(body).tell()


def carry(
    author: str,
    source: records.ThreadName,
    target: records.ThreadName,
    changes: thread_followers.FollowerChanges,
    *,
    keeps: bool,
) -> bool:
    """Let a follower of one thread follow another one, in the current transaction.

    Return whether they did not follow it before. With `keeps`, they still follow the first thread.
    """
    keys = [follow_rows.follow_key(author, name) for name in (source, target)]
    old, new = reads.get_multi(keys)
    if old is not None and new is None:
        row = follow_rows.FollowRow(
            key=keys[1], thread=target.id, since=old.since, name=old.name,
            listed=keys[1].id() if old.name else "",
        )  # fmt: skip
        changes.writes.append(ownership.Writes(_OWNER, put=(row,)))
        changes.mark(thread_followers.set_of(target), _member(author), follows=True)
        changes.count(target.site, keys[1].id(), was=False, follows=True)
    if not keeps:
        changes.writes.append(ownership.Writes(_OWNER, delete=(keys[0],)))
        changes.mark(thread_followers.set_of(source), _member(author), follows=False)
        changes.count(source.site, keys[0].id(), was=old is not None, follows=False)
    return new is None


def show_name(thread: records.ThreadName, author: str, name: str) -> None:
    """Let the site's staff see, under this name, that a reader follows a thread.

    An empty name hides the reader again.

    Raises:
        errors.BadInput: the name cannot be shown.
        errors.Conflict: the reader does not follow the thread.
        errors.Overloaded: the store did not respond in time.
    """
    shown = cleaning.tidy_name(name) if name else ""
    key = follow_rows.follow_key(author, thread)

    def body() -> None:
        row = reads.get(key)
        if row is None:
            raise errors.Conflict("not-following")
        row.name, row.listed = shown, key.id() if shown else ""
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)


def listed_followers(
    thread: records.ThreadName, *, after: str = "", limit: int
) -> statistics.ReportPage[ListedFollower]:
    """List the readers who agreed to be listed as followers of a thread, by author id."""
    listed = comment_rows.thread_key_name(thread)
    where: list[tuple[str, str, object]] = [("listed", "=", listed)]
    if after:
        where.append(("__key__", ">", follow_rows.follow_key(after, thread)))
    query = reads.Query("Follow", where=where, order=("__key__",), limit=limit)
    lines = tuple(
        ListedFollower(
            follow_rows.author_of(message.key.path[0].name),
            message.properties["name"].string_value,
            conversion.stored_time(message, "since"),
        )
        for message in reads.fetch(query)
    )
    return statistics.ReportPage(lines, lines[-1].author if len(lines) == limit else None)


def is_following(thread: records.ThreadName, author: str) -> bool:
    """Return whether a reader follows a thread, at the cost of one read."""
    return reads.get(follow_rows.follow_key(author, thread)) is not None


def page(site: str, author: str, *, limit: int, cursor: str | None, secret: str) -> FollowedThreads:
    """List the threads of a site that a reader follows, in the order of their ids.

    Raises:
        errors.BadCursor: the cursor belongs to a different listing or reader, or is not valid.
    """
    listing = cursors.label("followed", site, author)
    after = "" if cursor is None else cursors.unseal(cursor, listing, secret)[0]
    query = _query(author, site, after=after, limit=limit)
    messages = list(reads.fetch(query))
    threads = [_record(message) for message in messages]
    infos = thread_info.get_many([follow.name for follow in threads])
    follows = [
        dataclasses.replace(follow, info=info) for follow, info in zip(threads, infos, strict=True)
    ]
    if len(follows) < limit:
        return FollowedThreads(follows, None)
    return FollowedThreads(follows, cursors.seal([messages[-1].key.path[-1].name], listing, secret))


def of_author(author: str, site: str | None = None) -> Iterator[FollowedThread]:
    """Yield the threads that an author follows, on one site or on all sites."""
    if not author:
        return
    query = _query(author, site) if site is not None else _everywhere(author)
    yield from transactions.at_one_moment(
        lambda: [_record(message) for message in reads.fetch(query)]
    )


def erase(author: str) -> None:
    """Erase an author's id from all threads' followers, including threads the author has left.

    The author must not follow any thread. The function reads every large set.

    Raises:
        errors.Overloaded: the store is busy; repeating the call continues the erasure.
    """
    member = _member(author)
    for name in set_search.sets_with(member):
        set_compaction.erase(name, member)


def _member(author: str) -> str:
    member = f"{thread_followers.READER}{author}"
    membership.check(member)
    return member


def _follow_count(author: str, site: str) -> int:
    query = reads.Query(
        "Follow", ancestor=follow_rows.follower_key(author, site), limit=MOST, keys_only=True
    )
    return sum(1 for _ in reads.fetch(query))


def _query(author: str, site: str, *, after: str = "", limit: int | None = None) -> reads.Query:
    above = follow_rows.follower_key(author, site)
    where: list[tuple[str, str, object]] = []
    if after:
        where.append(("__key__", ">", follow_rows.follow_key_of(author, site, after)))
    return reads.Query("Follow", ancestor=above, where=where, order=("__key__",), limit=limit)


def _everywhere(author: str) -> reads.Query:
    """Return the query for an author's rows on all sites, which are one range of keys."""
    # Site ids sort after "" and before "~".
    first, behind = (
        follow_rows.follow_key_of(author, edge, follow_rows.FIRST) for edge in ("", "~")
    )
    return reads.Query(
        "Follow",
        where=(("__key__", ">", first), ("__key__", "<", behind)),
        order=("__key__",),
    )


def _record(message: Any) -> FollowedThread:
    site = follow_rows.site_of(message.key.path[0].name)
    thread = records.ThreadName(site, message.properties["thread"].string_value)
    name = message.properties["name"].string_value
    return FollowedThread(thread, conversion.stored_time(message, "since"), shown_name=name)
