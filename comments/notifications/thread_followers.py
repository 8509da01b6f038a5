"""Store all kinds of followers of a thread in one large set.

The set contains subscribers, who get mail (`subscriptions`), and readers, who follow with their
token and get no mail (`reader_follows`):

    member   the digest of an address, 26 characters of "a" to "z" and "2" to "7" (`double_opt_in`)
             "~" and an author id, such as "~g:..." or "~a:..."

A person who follows a thread in both ways is counted twice, because the service does not know that
the address and the token belong to one person.

Readers sort after all subscribers. Mail delivery reads the members in order, so it ends before the
first reader.
"""

import secrets
from datetime import datetime
from typing import NamedTuple

from comments.domain import records
from comments.domain.counters import counting
from comments.events import backlog, outbox
from comments.store import ownership, transactions
from comments.store.large_sets import membership, set_search
from comments.store.models import comment_rows
from comments.tree.counters import totals

_PURPOSE = "thread:"  # This name and `READER` are stored, so changing them would lose followers.
READER = "~"
_TOKEN = 16  # Bytes in the token that makes each change unique.


class FollowerCount(NamedTuple):
    """The number of all followers of a thread, and the number of those who get no mail."""

    all: int
    readers: int


class FollowerChanges:
    """Collects the writes of a transaction, and the reports to make after its commit.

    Make one token with `new_token` before the transaction, and one instance of this class in each
    run of the transaction.
    """

    def __init__(self, token: str, now: datetime) -> None:
        self._token = token
        self.now = now
        self.writes: list[ownership.Writes] = []
        self._asking: list[records.SetName] = []
        self._events: list[str] = []

    def mark(
        self, name: records.SetName, member: str, *, follows: bool, asks: bool = False
    ) -> None:
        """Add or remove a member of a thread's followers (see `membership.mark_within`)."""
        marked = membership.mark_within(name, member, belongs=follows, asks=asks)
        self.writes.append(marked.writes)
        self._asking += [name] if marked.asks else []

    def count(self, site: str, thread: str, *, was: bool, follows: bool) -> None:
        """If a reader starts or stops following, add an event that counts followers."""
        if was == follows:
            return
        one = counting.Following(thread)
        change = outbox.Followed(one if was else None, one if follows else None)
        event, writes = outbox.follow_writes(site, thread, self._token, change, now=self.now)
        self.writes.append(writes)
        self._events.append(event)

    def tell(self) -> None:
        """Pass the requested compactions and the events to the backlog."""
        for name in self._asking:
            backlog.note_request(name)
        for event in self._events:
            backlog.tell(event)


def new_token() -> str:
    """Return a token for one change, which is the same in every run of the change's transaction."""
    return secrets.token_hex(_TOKEN)


def set_of(thread: records.ThreadName) -> records.SetName:
    return set_of_key(comment_rows.thread_key_name(thread))


def set_of_key(thread: str) -> records.SetName:
    """Return the name of the set of a thread's followers, given the thread's key name."""
    return records.SetName(f"{_PURPOSE}{thread}")


def thread_of(name: records.SetName) -> str:
    """Return the key name of the thread whose followers a set contains."""
    return name.text.removeprefix(_PURPOSE)


def subscribers(
    thread: records.ThreadName, *, after: str = "", limit: int
) -> membership.MemberPage:
    """Return a thread's next subscribers after a position (see `membership.page`)."""
    return membership.page(set_of(thread), after=after, before=READER, limit=limit)


def is_subscriber(thread: records.ThreadName, subscriber: str) -> bool:
    """Return whether a subscriber gets mail about a thread's comments."""
    return membership.contains(set_of(thread), subscriber)


def count(thread: records.ThreadName) -> FollowerCount:
    """Count all followers and those without mail in the thread's set, in one snapshot."""
    name = set_of(thread)
    return transactions.snapshot(
        lambda: FollowerCount(
            membership.count_within(name), membership.count_within(name, after=READER)
        )
    )


def follower_count(thread: records.ThreadName) -> int:
    """Return a thread's number of followers, including changes that are not counted yet.

    The function reads the thread's counter and its uncounted events, but not the set.
    """

    def body() -> int:
        (numbers,) = totals.of_threads([thread])
        return numbers.get(counting.FOLLOWERS, 0) + pending_count(thread)

    return transactions.snapshot(body)


def pending_count(thread: records.ThreadName) -> int:
    """Return how much undelivered events will change a thread's number of followers."""
    pending = counting.total(
        counting.increments(counting.FOLLOWING, *outbox.following_of(event)[2])
        for event in outbox.followings(comment_rows.thread_key_name(thread))
    )
    return sum(pending.values())


def followed_thread_ids(site: str) -> list[str]:
    """Return the ids of a site's threads that have a set, except ids stored only as a digest."""
    prefix = f"{_PURPOSE}{site}/"
    known = set_search.stored_texts()
    return [text.removeprefix(prefix) for text in known if text.startswith(prefix)]
