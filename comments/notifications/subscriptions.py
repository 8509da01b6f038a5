"""Subscriptions: who follows a thread, and who is told of replies to his comments.

Owns the kinds Subscriber and Subscription, and the name of a thread's list. A subscriber is a
confirmed mail address under a keyed digest of it; a subscription is one thing he is told of:

    Subscriber    key: the digest (`double_opt_in`); `address`, sealed; `sent` on which `day`
    Subscription  key below the subscriber's: "thread:{digest of the thread}" or
                  "replies:{digest of the author}"; `list`, `site`, `owner`, `since`

Who follows a thread is in its list too (`follower_lists`), which a delivery goes through in pages.
Row and mark are one commit, with an event by which followers are counted, so the row says what the
list says. `owner` is the author, on the site, who asked: nobody is told of his own comments, and
replies are looked up by him.

What must stay true: an address is stored in one place, sealed, and only while its owner subscribes
to something; nothing is stored of an address that nobody confirmed (`double_opt_in`). The id of who
left may stand in a segment until the list is folded next; to erase it now, see
`follower_compaction.erase`.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from google.cloud import ndb

from comments.domain import counting, records
from comments.events import backlog, outbox
from comments.notifications import follower_lists
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, counter_rows, follower_rows
from comments.store.models.comment_rows import comment_id

_OWNER = "subscriptions"
_THREAD, _REPLIES = "thread", "replies"
_AT_ONCE = 100  # subscriptions in one transaction
_TOKEN = 16  # bytes that tell one change of followers from another


class Wanted(NamedTuple):
    """What somebody wants to be told of: a thread by its key name, replies to an author, or both.

    `author` is who asks, and may be empty.
    """

    site: str
    thread: str = ""
    author: str = ""
    replies: bool = False

    @property
    def owner(self) -> str:
        """Who asks, among the authors of all sites; empty for nobody."""
        return counter_rows.author_name(self.site, self.author) if self.author else ""


class Found(NamedTuple):
    """A stored subscription; `list` is the thread's list, empty for replies."""

    name: str
    list: str


def subscribe(
    subscriber: str,
    address: str,
    wanted: Wanted,
    *,
    now: datetime,
    using: Callable[[], ownership.Writes] | None = None,
) -> None:
    """Store what a subscriber, whose sealed address this is, wants and has confirmed.

    Twice is as good as once. `using` is called in the transaction: it raises if this must not be
    done, or returns what is written with it.

    Raises:
        errors.Overloaded: the store did not answer in time.
    """
    token = secrets.token_hex(_TOKEN)

    def body() -> _Done:
        done = _Done(token, now)
        if using is not None:
            done.writes.append(using())
        key = follower_rows.subscriber_key(subscriber)
        if reads.get(key) is None:
            row = follower_rows.Subscriber(key=key, since=now, address=address)
            done.writes.append(ownership.Writes(_OWNER, put=(row,)))
        if wanted.replies:
            done.writes.append(_put(subscriber, _REPLIES, wanted.owner, wanted, now=now))
        if wanted.thread:
            _join(subscriber, wanted, done)
        transactions.apply(*done.writes)
        return done

    transactions.transaction(body).tell()


def unsubscribe(subscriber: str, names: Sequence[str], *, now: datetime) -> None:
    """End subscriptions, also those that are not there. With the last one the address is erased.

    Raises:
        errors.Overloaded: the store did not answer in time.
    """
    _end(subscriber, names, lists=(), now=now)


def _end(
    subscriber: str, names: Sequence[str], *, lists: Sequence[records.ListName], now: datetime
) -> None:
    """End subscriptions, and leave these lists whether there is a subscription or not."""
    token = secrets.token_hex(_TOKEN)

    def body() -> _Done:
        done = _Done(token, now)
        stored = _stored(subscriber)
        ended = [row for row in stored if row.key.id() in names]
        gone = [row.key for row in ended]
        if len(ended) == len(stored):
            gone.append(follower_rows.subscriber_key(subscriber))
        done.writes.append(ownership.Writes(_OWNER, delete=tuple(gone)))
        followed = {records.ListName(row.list): row for row in ended if row.list}
        for name in dict.fromkeys([*lists, *followed]):
            done.mark(name, subscriber, follows=False)
            if name in followed:
                done.count(followed[name].site, _thread_of(name), was=True, follows=False)
        transactions.apply(*done.writes)
        return done

    transactions.transaction(body).tell()


def known(subscribers: Sequence[str]) -> str:
    """Return the one of an address's ids that is stored; the first if none is."""
    if len(subscribers) > 1:
        rows = reads.get_multi([follower_rows.subscriber_key(each) for each in subscribers])
        return next(
            (each for each, row in zip(subscribers, rows, strict=True) if row is not None),
            subscribers[0],
        )
    return subscribers[0]


def address_of(subscriber: str) -> str:
    """The sealed address of a subscriber; empty for nobody."""
    row = reads.get(follower_rows.subscriber_key(subscriber))
    return "" if row is None else str(row.address)


def addresses() -> Iterator[tuple[str, str]]:
    """Yield every subscriber with their sealed address."""
    for message in reads.walk(reads.Query("Subscriber")):
        yield message.key.path[-1].name, message.properties["address"].string_value


def renew(subscriber: str, seal: Callable[[str], str]) -> bool:
    """Store an address as `seal` gives it; whether it did. It gives "" for what is to stay."""

    def body() -> bool:
        row = reads.get(follower_rows.subscriber_key(subscriber))
        fresh = "" if row is None else seal(row.address)
        if row is None or not fresh:
            return False
        row.address = fresh
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return True

    return transactions.transaction(body)


def of_subscriber(subscriber: str) -> list[Found]:
    """What a subscriber is told of."""
    return [Found(row.key.id(), row.list or "") for row in _stored(subscriber)]


def forget(subscriber: str, *, now: datetime) -> None:
    """End everything of a subscriber and erase his address. Lists may name him until compacted."""
    while found := of_subscriber(subscriber)[:_AT_ONCE]:
        unsubscribe(subscriber, [each.name for each in found], now=now)


def end_of(site: str, author: str, *, now: datetime) -> None:
    """End what an author asked for on a site; not what the same addresses want besides."""
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


def of_author(site: str, author: str) -> tuple[list[str], list[str]]:
    """The subscribers that are an author, and those of them who want replies told: one query."""
    if not author:
        return [], []
    owner = counter_rows.author_name(site, author)
    query = reads.Query("Subscription", where=(("owner", "=", owner),), keys_only=True)
    paths = [message.key.path for message in reads.fetch(query)]
    replies = _name(_REPLIES, owner)
    everybody = dict.fromkeys(path[0].name for path in paths)
    return list(everybody), [path[0].name for path in paths if path[1].name == replies]


def wants_replies(subscribers: Sequence[str], site: str, author: str) -> list[str]:
    """Those of some subscribers who are told of replies to an author."""
    name = _name(_REPLIES, counter_rows.author_name(site, author))
    rows = reads.get_multi([follower_rows.subscription_key(each, name) for each in subscribers])
    return [each for each, row in zip(subscribers, rows, strict=True) if row is not None]


def name_of_replies(site: str, author: str) -> str:
    """The name of subscriptions to the replies to an author."""
    return _name(_REPLIES, counter_rows.author_name(site, author))


def name_of_thread(thread: records.ThreadName) -> str:
    """The name of subscriptions to a thread."""
    return _name(_THREAD, comment_rows.thread_key_name(thread))


def take(subscribers: Sequence[str], *, day: str, most: int) -> dict[str, str]:
    """Note that subscribers are sent one message each today; the sealed addresses to send to.

    Left out is who unsubscribed meanwhile, and who was sent `most` messages today.
    """

    def body() -> dict[str, str]:
        found: dict[str, str] = {}
        put: list[ndb.Model] = []
        for row in reads.get_multi([follower_rows.subscriber_key(each) for each in subscribers]):
            if row is None:
                continue
            if row.day != day:
                row.day, row.sent = day, 0
            if row.sent < most:
                row.sent += 1
                put.append(row)
                found[row.key.id()] = row.address
        transactions.apply(ownership.Writes(_OWNER, put=tuple(put)))
        return found

    return transactions.transaction(body)


def give_back(subscribers: Sequence[str], *, day: str) -> None:
    """Note that subscribers were not sent what `take` noted."""

    def body() -> None:
        rows = reads.get_multi([follower_rows.subscriber_key(each) for each in subscribers])
        put = [row for row in rows if row is not None and row.day == day and row.sent > 0]
        for row in put:
            row.sent -= 1
        transactions.apply(ownership.Writes(_OWNER, put=tuple(put)))

    transactions.transaction(body)


def follow(thread: records.ThreadName, follower: str, *, now: datetime) -> None:
    """Let a follower follow a thread, also one who does.

    Raises:
        errors.BadInput: the id cannot be one (`follower_lists.check`).
        errors.Overloaded: the store did not answer in time.
    """
    follower_lists.check(follower)
    wanted = Wanted(thread.site, comment_rows.thread_key_name(thread))
    token = secrets.token_hex(_TOKEN)

    def body() -> _Done:
        done = _Done(token, now)
        _join(follower, wanted, done)
        transactions.apply(*done.writes)
        return done

    transactions.transaction(body).tell()


def unfollow(thread: records.ThreadName, follower: str, *, now: datetime) -> None:
    """Let a follower follow a thread no more, also one who does not.

    Raises:
        errors.BadInput, errors.Overloaded: see `follow`.
    """
    follower_lists.check(follower)
    _end(follower, [name_of_thread(thread)], lists=[list_of(thread)], now=now)


def is_following(thread: records.ThreadName, follower: str) -> bool:
    """Whether a follower follows a thread."""
    return follower_lists.contains(list_of(thread), follower)


def page(thread: records.ThreadName, *, after: str = "", limit: int) -> follower_lists.FollowerPage:
    """The next followers of a thread behind a position, for delivery; see `follower_lists.page`."""
    return follower_lists.page(list_of(thread), after=after, limit=limit)


def count(thread: records.ThreadName) -> int:
    """How many follow a thread."""
    return follower_lists.count(list_of(thread))


def list_of(thread: records.ThreadName) -> records.ListName:
    """The name of a thread's list. Stored: changing it loses all followers."""
    return _list(comment_rows.thread_key_name(thread))


def followed(site: str) -> list[str]:
    """The ids of a site's threads that have a list, but for ids that are kept as a digest only."""
    texts = (_thread_of(records.ListName(text)) for text in follower_lists.known())
    return [text.removeprefix(f"{site}/") for text in texts if text.startswith(f"{site}/")]


def _list(thread: str) -> records.ListName:
    return records.ListName(f"{_THREAD}:{thread}")


def _thread_of(name: records.ListName) -> str:
    return name.text.removeprefix(f"{_THREAD}:")


def _name(kind: str, text: str) -> str:
    return f"{kind}:{comment_id(hashlib.sha256(text.encode()).digest())}"


class _Done:
    """What a transaction does, and who is to hear of it after the commit."""

    def __init__(self, token: str, now: datetime) -> None:
        self._token = token
        self.now = now
        self.writes: list[ownership.Writes] = []
        self._asking: list[records.ListName] = []
        self._events: list[str] = []

    def mark(self, name: records.ListName, subscriber: str, *, follows: bool) -> None:
        """Let somebody join a list, or leave it."""
        marked = follower_lists.marking(name, subscriber, follows=follows)
        self.writes.append(marked.writes)
        self._asking += [name] if marked.asks else []

    def count(self, site: str, thread: str, *, was: bool, follows: bool) -> None:
        """Have the followers of a thread counted, if this changes them."""
        if was == follows:
            return
        one = counting.Following(thread)
        change = outbox.Followed(one if was else None, one if follows else None)
        event, writes = outbox.followed(site, thread, self._token, change, now=self.now)
        self.writes.append(writes)
        self._events.append(event)

    def tell(self) -> None:
        """Have lists folded that ask, and events delivered."""
        for name in self._asking:
            backlog.asked(name)
        for event in self._events:
            backlog.tell(event)


def _join(subscriber: str, wanted: Wanted, done: _Done) -> None:
    key = follower_rows.subscription_key(subscriber, _name(_THREAD, wanted.thread))
    was = reads.get(key) is not None
    done.mark(_list(wanted.thread), subscriber, follows=True)
    done.count(wanted.site, wanted.thread, was=was, follows=True)
    done.writes.append(_put(subscriber, _THREAD, wanted.thread, wanted, now=done.now))


def _put(
    subscriber: str, kind: str, about: str, wanted: Wanted, *, now: datetime
) -> ownership.Writes:
    row = follower_rows.Subscription(
        key=follower_rows.subscription_key(subscriber, _name(kind, about)),
        site=wanted.site,
        owner=wanted.owner or None,
        list=_list(about).text if kind == _THREAD else "",
        since=now,
    )
    return ownership.Writes(_OWNER, put=(row,))


def _stored(subscriber: str) -> list[follower_rows.Subscription]:
    query = reads.Query(
        "Subscription", ancestor=follower_rows.subscriber_key(subscriber), keys_only=True
    )
    names = [message.key.path[-1].name for message in reads.fetch(query)]
    rows = reads.get_multi([follower_rows.subscription_key(subscriber, name) for name in names])
    return [row for row in rows if row is not None]
