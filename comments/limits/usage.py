"""Track each website's daily usage: reads, writes, mails, posts and previews.

Owns the kind Usage, and the sums that this process has not stored yet.

    Usage  key: "{site id}/{date, UTC}"; the site id "*" is for usage that belongs to no website

Requests that only read must not write, so each process sums its usage in memory, and `flush` adds
the sums to the rows. The upkeep thread flushes every half minute, and a process flushes when it
ends; on App Engine, cron's calls and posts flush. A process that is killed loses the sums since its
last flush. The units are those that Datastore bills, in the lenient interpretation of its prices
(docs/costs.md): one read for each entity that is looked up or found, one read for each keys-only or
projection query that finds something, and one write for each entity that is put or deleted.

Each post is counted once, for the request that stored it. If the store did not answer that request,
the process does not know whether the comment exists: it records the post as a doubt, and `flush`
looks for the comment. A retry with the same idempotency key, in any process, finds the comment that
the earlier request stored, so the retry is not counted. If the response to a flush is lost, the
retry finds the flush's mark in the row and does not add the sums again, unless another process has
flushed to the same row in between.
"""

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime

import msgspec

from comments import errors
from comments.store import connection, ownership, reads, transactions
from comments.store.memory import per_process
from comments.store.models import comment_rows, counter_rows

SERVICE = "*"
FRESH = 60.0  # Seconds for which a copy of a row is used.
_DOUBTED = 60.0  # Seconds after which an unanswered commit has been applied or never will be.
_MOST_DOUBTS = 1_000  # Maximum per process; each doubt costs a read or two.
_OWNER = "usage"
_log = logging.getLogger("flatthread")
_PATIENCE = 2.0  # Maximum seconds for work that a later call can also do


class UsageAmounts(msgspec.Struct, frozen=True):
    """Amounts of usage."""

    reads: int = 0
    writes: int = 0
    mails: int = 0
    posts: int = 0
    previews: int = 0

    def plus(self, other: "UsageAmounts") -> "UsageAmounts":
        """Return the sum of two usages."""
        return UsageAmounts(
            self.reads + other.reads,
            self.writes + other.writes,
            self.mails + other.mails,
            self.posts + other.posts,
            self.previews + other.previews,
        )


NOTHING = UsageAmounts()


class Doubt(msgspec.Struct, frozen=True):
    """A post that may have been stored: its site, and its comment's id and time."""

    site: str
    comment: str
    created: datetime


class ProcessUsage:
    """This process's counts by website and day, and its copies of the rows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], UsageAmounts] = {}
        self._known: dict[str, tuple[str, float, UsageAmounts]] = {}
        self._doubts: dict[Doubt, float] = {}
        self._flushed = clock()

    def note(self, site: str, day: str, more: UsageAmounts) -> None:
        """Add usage to a website's sums for a day."""
        with self._lock:
            key = (site, day)
            self._waiting[key] = self._waiting.get(key, NOTHING).plus(more)

    def doubt(self, doubt: Doubt) -> None:
        """Record a doubt. If there are `_MOST_DOUBTS` already, drop the oldest."""
        with self._lock:
            while len(self._doubts) >= _MOST_DOUBTS:
                del self._doubts[next(iter(self._doubts))]
            self._doubts[doubt] = self._clock()

    def doubts(self) -> list[Doubt]:
        """Return the unsettled doubts."""
        with self._lock:
            return list(self._doubts)

    def settle(self, doubt: Doubt) -> bool:
        """Remove a doubt, and return whether it still existed."""
        with self._lock:
            return self._doubts.pop(doubt, None) is not None

    def end_doubts(self, *, of: str = "") -> None:
        """Remove all doubts about a comment, and all doubts that are too old."""
        with self._lock:
            oldest = self._clock() - _DOUBTED
            for doubt, since in list(self._doubts.items()):
                if doubt.comment == of or since < oldest:
                    del self._doubts[doubt]

    def is_due(self) -> bool:
        """Return whether a flush is due. For each flush, only one caller gets True."""
        with self._lock:
            is_due = self._clock() - self._flushed > FRESH
            self._flushed = self._clock() if is_due else self._flushed
        return is_due

    def take(self) -> dict[tuple[str, str], UsageAmounts]:
        """Remove and return the sums that are not stored yet."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
        return taken

    def learn(self, site: str, day: str, stored: UsageAmounts) -> None:
        """Keep a copy of a row's content."""
        with self._lock:
            self._known[site] = (day, self._clock(), stored)

    def total(self, site: str, day: str) -> UsageAmounts | None:
        """Return a website's usage as this process knows it, or None if the copy is too old."""
        with self._lock:
            known_day, since, stored = self._known.get(site, ("", 0.0, NOTHING))
            if known_day != day or self._clock() - since > FRESH:
                return None
            return stored.plus(self._waiting.get((site, day), NOTHING))


BOOK = per_process.PerProcess(ProcessUsage)


def note(site: str, more: UsageAmounts, *, now: datetime) -> None:
    """Add usage to a website's sums for today."""
    BOOK.get().note(site, _day(now), more)


def count_post(site: str, comment: str, *, now: datetime) -> None:
    """Count a post that the current request has stored."""
    # This request inserted the id, so no earlier request can have stored the comment.
    BOOK.get().end_doubts(of=comment)
    note(site, UsageAmounts(posts=1), now=now)


def doubt(site: str, comment: str, *, now: datetime) -> None:
    """Note that the current request, made at `now`, may have stored a post."""
    BOOK.get().doubt(Doubt(site, comment, now))


def take(site: str, *, now: datetime) -> None:
    """To a website's sums, add this OS thread's use of the store since its last call."""
    reads, writes = connection.take_costs()
    if reads or writes:
        note(site, UsageAmounts(reads=reads, writes=writes), now=now)


def flush() -> int:
    """Add the sums to the rows, and return the number of rows. Keep sums that cannot be stored.

    Raises:
        errors.Overloaded: the store did not answer in time.
    """
    book, number = BOOK.get(), 0
    _settle_doubts(book)
    taken = book.take()
    try:
        while taken:
            (site, day), more = next(iter(taken.items()))
            book.learn(site, day, _add(site, day, more))
            del taken[site, day]
            number += 1
    finally:
        for (site, day), more in taken.items():
            book.note(site, day, more)
    return number


def _settle_doubts(book: ProcessUsage) -> None:
    """Count the doubtful posts that were in fact stored."""
    doubts = book.doubts()
    rows = reads.get_multi([comment_rows.comment_key(doubt.comment) for doubt in doubts])
    for doubt, row in zip(doubts, rows, strict=True):
        # If the comment has a different time, another request has stored and counted it.
        is_stored = row is not None and row.created == doubt.created
        if is_stored and book.settle(doubt):
            book.note(doubt.site, _day(doubt.created), UsageAmounts(posts=1))
    book.end_doubts()


def settle(*, now: datetime) -> None:
    """Flush, including this OS thread's own usage. Keep sums that cannot be stored."""
    take(SERVICE, now=now)
    try:
        flush()
    except errors.Overloaded as error:
        _log.warning("Usage could not be stored: %s", error)


def flush_old() -> None:
    """Flush if the last flush is old, and ignore failures.

    Processes without an upkeep thread call this function.
    """
    if BOOK.get().is_due():
        with contextlib.suppress(errors.Overloaded), connection.within(_PATIENCE):
            flush()


def _add(site: str, day: str, more: UsageAmounts) -> UsageAmounts:
    mark = secrets.token_hex(8)

    def body() -> UsageAmounts:
        key = counter_rows.usage_key(site, day)
        row = reads.get(key) or counter_rows.UsageRow(key=key)
        if row.mark == mark:
            return _numbers(row)
        total = _numbers(row).plus(more)
        for name, value in msgspec.structs.asdict(total).items():
            setattr(row, name, value)
        row.mark = mark
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return total

    return transactions.transaction(body, line=f"usage/{site}")


def total(site: str, *, now: datetime) -> UsageAmounts:
    """Return a website's usage today. The stored part is at most a minute old."""
    book, day = BOOK.get(), _day(now)
    amounts = book.total(site, day)
    if amounts is None:
        book.learn(site, day, stored_usage(site, day))
        amounts = book.total(site, day) or NOTHING
    return amounts


def stored_usage(site: str, day: str) -> UsageAmounts:
    """Return a website's stored usage for a day."""
    row = reads.get(counter_rows.usage_key(site, day))
    return NOTHING if row is None else _numbers(row)


def _numbers(row: counter_rows.UsageRow) -> UsageAmounts:
    return UsageAmounts(row.reads, row.writes, row.mails, row.posts, row.previews or 0)


def _day(now: datetime) -> str:
    return now.date().isoformat()
