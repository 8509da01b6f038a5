"""Store who gets mail about the comments of a thread, or about replies to an author's comments.

This module owns the kinds Subscriber and Subscription. A subscriber is a confirmed mail address,
stored under a keyed digest of the address. A subscription is for a thread or for the replies to an
author:

    Subscriber    key: the digest (`double_opt_in`); `address`, encrypted; `sent` mails on `day`
    Subscription  key below the subscriber's: "thread:{digest of the thread}" or
                  "replies:{digest of the author}"; `list`, `site`, `owner`, `since`,
                  `shares` (whether the site's owner may see the address; only for a thread)

A thread's subscribers are also in the set of its followers (`thread_followers`), which delivery
reads in pages. `owner` is the author on the site who subscribed. Queries use `owner` to find
subscriptions to replies, and delivery uses it to exclude authors from mail about their own
comments. The id of a former subscriber may remain in a segment of the set until the next
compaction, but `set_compaction.erase` erases it immediately.

Invariant: Nothing about an address is stored before its owner confirms it; the confirmed address is
stored in only one place, encrypted, and only while its owner has a subscription
(test_double_opt_in.py::test_an_address_gets_one_confirmation_mail_and_nothing_of_it_is_stored).

One commit writes a subscription, its mark in the thread's followers and the event that counts
followers, so the subscription and the set agree.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from comments.domain import records
from comments.notifications import thread_followers
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, counter_rows, schema, subscription_rows
from comments.store.models.comment_rows import comment_id

_OWNER = "subscriptions"
_THREAD, _REPLIES = "thread", "replies"
_AT_ONCE = 100  # Maximum number of subscriptions in one transaction.


class SubscriptionTarget(NamedTuple):
    """The requested subscriptions: a thread, replies to an author, or both.

    `thread` is a key name. `author` is the author id of the subscribing person; it may be empty. If
    `shares` is true, the site's owner may see the address in the list of the thread's followers.
    """

    site: str
    thread: str = ""
    author: str = ""
    replies: bool = False
    shares: bool = False

    @property
    def owner(self) -> str:
        """The site and the id of the subscribing author, unique across all sites; "" if unknown."""
        return counter_rows.author_name(self.site, self.author) if self.author else ""


class Found(NamedTuple):
    """A stored subscription. `list` is the name of the thread's set, and is empty for replies."""

    name: str
    list: str


def subscribe(
    subscriber: str,
    address: str,
    wanted: SubscriptionTarget,
    *,
    now: datetime,
    using: Callable[[], ownership.Writes] | None = None,
) -> None:
    """Store a subscriber's confirmed subscriptions. `address` is encrypted.

    Repeating the call changes nothing. `using` is called in the transaction. It returns further
    writes, or raises an error if the subscriptions must not be stored.

    Raises:
        errors.Overloaded: the store did not respond in time.
    """
    token = thread_followers.new_token()

    def body() -> thread_followers.FollowerChanges:
        done = thread_followers.FollowerChanges(token, now)
        if using is not None:
            done.writes.append(using())
        key = subscription_rows.subscriber_key(subscriber)
        if reads.get(key) is None:
            row = subscription_rows.SubscriberRow(key=key, since=now, address=address)
            done.writes.append(ownership.Writes(_OWNER, put=(row,)))
        if wanted.replies:
            done.writes.append(
                _subscription_writes(subscriber, _REPLIES, wanted.owner, wanted, now=now)
            )
        if wanted.thread:
            _join(subscriber, wanted, done)
        transactions.apply(*done.writes)
        return done

    transactions.transaction(body).tell()


def carry(
    subscriber: str,
    source: records.ThreadName,
    target: records.ThreadName,
    changes: thread_followers.FollowerChanges,
    *,
    keeps: bool,
) -> bool:
    """Let a subscriber of one thread subscribe to another one; see `reader_follows.carry`."""
    names = [comment_rows.thread_key_name(name) for name in (source, target)]
    keys = [subscription_rows.subscription_key(subscriber, _name(_THREAD, name)) for name in names]
    old, new = reads.get_multi(keys)
    if old is not None and new is None:
        row = subscription_rows.SubscriptionRow(
            key=keys[1], site=old.site, owner=old.owner, shares=old.shares, since=old.since,
            list=thread_followers.set_of(target).text,
        )  # fmt: skip
        changes.writes.append(ownership.Writes(_OWNER, put=(row,)))
        changes.mark(thread_followers.set_of(target), subscriber, follows=True)
        changes.count(target.site, names[1], was=False, follows=True)
    if not keeps:
        changes.writes.append(ownership.Writes(_OWNER, delete=(keys[0],)))
        changes.mark(thread_followers.set_of(source), subscriber, follows=False)
        changes.count(source.site, names[0], was=old is not None, follows=False)
    return new is None


def unsubscribe(subscriber: str, names: Sequence[str], *, now: datetime) -> None:
    """End subscriptions, ignoring missing ones, and erase the address if no subscription remains.

    Raises:
        errors.Overloaded: the store did not respond in time.
    """
    token = thread_followers.new_token()

    def body() -> thread_followers.FollowerChanges:
        done = thread_followers.FollowerChanges(token, now)
        stored = _stored_rows(subscriber)
        ended = [row for row in stored if row.key.id() in names]
        gone = [row.key for row in ended]
        if len(ended) == len(stored):
            gone.append(subscription_rows.subscriber_key(subscriber))
        done.writes.append(ownership.Writes(_OWNER, delete=tuple(gone)))
        for name, row in {records.SetName(row.list): row for row in ended if row.list}.items():
            done.mark(name, subscriber, follows=False)
            done.count(row.site, thread_followers.thread_of(name), was=True, follows=False)
        transactions.apply(*done.writes)
        return done

    transactions.transaction(body).tell()


def stored_id(subscribers: Sequence[str]) -> str:
    """Return the stored id among an address's possible ids, or the first id if none is stored."""
    if len(subscribers) > 1:
        rows = _subscribers(subscribers)
        return next(
            (
                subscriber
                for subscriber, row in zip(subscribers, rows, strict=True)
                if row is not None
            ),
            subscribers[0],
        )
    return subscribers[0]


def address_of(subscriber: str) -> str:
    """Return a subscriber's encrypted address, or "" if there is none."""
    row = reads.get(subscription_rows.subscriber_key(subscriber))
    return "" if row is None else str(row.address)


def addresses() -> Iterator[tuple[str, str]]:
    for message in reads.walk(reads.Query("Subscriber")):
        yield message.key.path[-1].name, message.properties["address"].string_value


def renew(subscriber: str, seal: Callable[[str], str]) -> bool:
    """Replace a stored address with the result of `seal`, unless that result is "".

    Returns:
        Return True if the address was replaced.
    """

    def body() -> bool:
        row = reads.get(subscription_rows.subscriber_key(subscriber))
        fresh = "" if row is None else seal(row.address)
        if row is None or not fresh:
            return False
        row.address = fresh
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return True

    return transactions.transaction(body)


def of_subscriber(subscriber: str) -> list[Found]:
    return [Found(row.key.id(), row.list or "") for row in _stored_rows(subscriber)]


def forget(subscriber: str, *, now: datetime) -> None:
    """End all of a subscriber's subscriptions and erase the address.

    Lists may contain the subscriber's id until they are compacted.
    """
    while batch := of_subscriber(subscriber)[:_AT_ONCE]:
        unsubscribe(subscriber, [subscription.name for subscription in batch], now=now)


def end_of(site: str, author: str, *, now: datetime) -> None:
    """End an author's subscriptions on a site. Other subscriptions of the same addresses remain."""
    if not author:
        return
    owner = counter_rows.author_name(site, author)
    query = reads.Query("Subscription", where=(("owner", "=", owner),), keys_only=True)
    named: dict[str, list[str]] = {}
    for message in reads.fetch(query):
        named.setdefault(message.key.path[0].name, []).append(message.key.path[1].name)
    for subscriber, names in named.items():
        for start in range(0, len(names), _AT_ONCE):
            unsubscribe(subscriber, names[start : start + _AT_ONCE], now=now)


def erase_of_site(subscriber: str, site: str) -> int:
    """Delete a subscriber's subscriptions on a site; with the last subscription, erase the address.

    The site's follower lists and counters stay as they are, because they are erased too. Return the
    number of deleted rows.
    """

    def body() -> int:
        stored = _stored_rows(subscriber)
        gone = [row.key for row in stored if row.site == site]
        if gone and len(gone) == len(stored):
            gone.append(subscription_rows.subscriber_key(subscriber))
        transactions.apply(ownership.Writes(_OWNER, delete=tuple(gone)))
        return len(gone)

    return transactions.transaction(body)


def of_author(site: str, author: str) -> tuple[list[str], list[str]]:
    """Return an author's subscriber ids, and which of these ids subscribe to replies.

    The look-up is a single query.
    """
    if not author:
        return [], []
    owner = counter_rows.author_name(site, author)
    query = reads.Query("Subscription", where=(("owner", "=", owner),), keys_only=True)
    paths = [message.key.path for message in reads.fetch(query)]
    replies = _name(_REPLIES, owner)
    everybody = dict.fromkeys(path[0].name for path in paths)
    return list(everybody), [path[0].name for path in paths if path[1].name == replies]


def subscribers_to_replies(subscribers: Sequence[str], site: str, author: str) -> list[str]:
    """Return which of these subscribers subscribe to replies to an author."""
    name = _name(_REPLIES, counter_rows.author_name(site, author))
    rows = reads.get_multi(
        [subscription_rows.subscription_key(subscriber, name) for subscriber in subscribers]
    )
    return [
        subscriber for subscriber, row in zip(subscribers, rows, strict=True) if row is not None
    ]


def shared_addresses(subscribers: Sequence[str], name: str) -> list[str]:
    """Return the encrypted addresses that subscribers share in this subscription."""
    keys = [subscription_rows.subscription_key(subscriber, name) for subscriber in subscribers]
    rows = zip(subscribers, reads.get_multi(keys), strict=True)
    sharing = [subscriber for subscriber, row in rows if row is not None and row.shares]
    return [row.address for row in _subscribers(sharing) if row is not None]


def sharing_site(subscriber: str, names: Sequence[str]) -> str:
    """Return the site whose owner may see the address in these subscriptions, or ""."""
    keys = [subscription_rows.subscription_key(subscriber, name) for name in names]
    rows = (row for row in reads.get_multi(keys) if row is not None and row.shares)
    return next((str(row.site) for row in rows), "")


def unshare(subscriber: str, names: Sequence[str]) -> None:
    """Hide the address of these subscriptions from the site's owner. Repeating changes nothing."""
    keys = [subscription_rows.subscription_key(subscriber, name) for name in names]

    def body() -> None:
        put = [row for row in reads.get_multi(keys) if row is not None and row.shares]
        for row in put:
            row.shares = False
        transactions.apply(ownership.Writes(_OWNER, put=tuple(put)))

    transactions.transaction(body)


def name_of_replies(site: str, author: str) -> str:
    """Return the name of a subscription to replies to an author."""
    return _name(_REPLIES, counter_rows.author_name(site, author))


def name_of_thread(thread: records.ThreadName) -> str:
    return _name(_THREAD, comment_rows.thread_key_name(thread))


def reserve_mail(subscribers: Sequence[str], *, day: str, most: int) -> dict[str, str]:
    """Count one mail today for each subscriber, and return their encrypted addresses by id.

    Subscribers who have unsubscribed, or who have already received `most` mails today, are omitted.
    """

    def body() -> dict[str, str]:
        by_id: dict[str, str] = {}
        put: list[schema.StoredRow] = []
        for row in _subscribers(subscribers):
            if row is None:
                continue
            if row.day != day:
                row.day, row.sent = day, 0
            if row.sent < most:
                row.sent += 1
                put.append(row)
                by_id[row.key.id()] = row.address
        transactions.apply(ownership.Writes(_OWNER, put=tuple(put)))
        return by_id

    return transactions.transaction(body)


def release_mail(subscribers: Sequence[str], *, day: str) -> None:
    """Undo what `reserve_mail` counted for subscribers whose mail was not sent."""

    def body() -> None:
        rows = _subscribers(subscribers)
        put = [row for row in rows if row is not None and row.day == day and row.sent > 0]
        for row in put:
            row.sent -= 1
        transactions.apply(ownership.Writes(_OWNER, put=tuple(put)))

    transactions.transaction(body)


def _name(kind: str, text: str) -> str:
    return f"{kind}:{comment_id(hashlib.sha256(text.encode()).digest())}"


def _join(
    subscriber: str, wanted: SubscriptionTarget, done: thread_followers.FollowerChanges
) -> None:
    key = subscription_rows.subscription_key(subscriber, _name(_THREAD, wanted.thread))
    was = reads.get(key) is not None
    done.mark(thread_followers.set_of_key(wanted.thread), subscriber, follows=True)
    done.count(wanted.site, wanted.thread, was=was, follows=True)
    done.writes.append(
        _subscription_writes(subscriber, _THREAD, wanted.thread, wanted, now=done.now)
    )


def _subscription_writes(
    subscriber: str, kind: str, about: str, wanted: SubscriptionTarget, *, now: datetime
) -> ownership.Writes:
    row = subscription_rows.SubscriptionRow(
        key=subscription_rows.subscription_key(subscriber, _name(kind, about)),
        site=wanted.site,
        owner=wanted.owner or None,
        list=thread_followers.set_of_key(about).text if kind == _THREAD else "",
        shares=wanted.shares and kind == _THREAD,
        since=now,
    )
    return ownership.Writes(_OWNER, put=(row,))


def _subscribers(subscribers: Sequence[str]) -> list[subscription_rows.SubscriberRow | None]:
    return reads.get_multi(
        [subscription_rows.subscriber_key(subscriber) for subscriber in subscribers]
    )


def _stored_rows(subscriber: str) -> list[subscription_rows.SubscriptionRow]:
    names = reads.names("Subscription", ancestor=subscription_rows.subscriber_key(subscriber))
    rows = reads.get_multi([subscription_rows.subscription_key(subscriber, name) for name in names])
    return [row for row in rows if row is not None]
