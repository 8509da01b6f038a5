"""Usage of each website per day: reads, writes, mails, posts and previews.

Owns the kind Usage, and the sums that this process has not stored yet.

    Usage  key: "{site id}/{date, UTC}"; usage that belongs to no website is under "*"

Reads must not write, so a process sums everything in memory, and `flush` adds the sums to the rows:
every half minute by the upkeep thread, when a process ends, and on App Engine by cron's calls and
with posts. A process that is killed loses what it has summed since. The units are those that the
service bills, in the lenient reading of its prices (docs/costs.md): one read for each entity that
is looked up or found, one read for each keys-only or projection query that finds something, and one
write for each entity that is put or deleted.

Invariants:

1. Each post is counted once, for the request that stored it. If the store did not answer that
   request, the process does not know whether the comment exists: it keeps the post as a doubt, and
   `flush` looks for the comment. A repeat with the same idempotency key, in any process, finds a
   comment that it did not store and counts nothing.
2. If the answer to a flush is lost, a retry finds the flush's mark in the row and adds nothing
   twice, unless another process has flushed the same row in between.
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
from comments.store import connection, ownership, per_process, reads, transactions
from comments.store.models import comment_rows, counter_rows

SERVICE = "*"
FRESH = 60.0  # seconds that a copy of a row is used
_DOUBTED = 60.0  # seconds after which an unanswered commit is either applied or never will be
_MOST_DOUBTS = 1_000  # per process; each is a read or two
_OWNER = "usage"
_log = logging.getLogger("flatthread")
_PATIENCE = 2.0  # seconds for work that a later call can do as well


class UsageAmounts(msgspec.Struct, frozen=True):
    """The amounts used."""

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
        """Add to a website's sums for a day."""
        with self._lock:
            key = (site, day)
            self._waiting[key] = self._waiting.get(key, NOTHING).plus(more)

    def doubt(self, doubt: Doubt) -> None:
        """Keep a doubt. Beyond `_MOST_DOUBTS`, drop the oldest."""
        with self._lock:
            while len(self._doubts) >= _MOST_DOUBTS:
                del self._doubts[next(iter(self._doubts))]
            self._doubts[doubt] = self._clock()

    def doubts(self) -> list[Doubt]:
        """Return the unsettled doubts."""
        with self._lock:
            return list(self._doubts)

    def settle(self, doubt: Doubt) -> bool:
        """Remove a doubt; return whether it was still there."""
        with self._lock:
            return self._doubts.pop(doubt, None) is not None

    def end_doubts(self, *, of: str = "") -> None:
        """Remove the doubts about a comment, and those that are too old."""
        with self._lock:
            oldest = self._clock() - _DOUBTED
            for doubt, since in list(self._doubts.items()):
                if doubt.comment == of or since < oldest:
                    del self._doubts[doubt]

    def is_due(self) -> bool:
        """Whether a flush is due. Only one caller gets True."""
        with self._lock:
            is_due = self._clock() - self._flushed > FRESH
            self._flushed = self._clock() if is_due else self._flushed
        return is_due

    def take(self) -> dict[tuple[str, str], UsageAmounts]:
        """Remove and return everything that must be stored."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
        return taken

    def learn(self, site: str, day: str, stored: UsageAmounts) -> None:
        """Keep a copy of a row's content."""
        with self._lock:
            self._known[site] = (day, self._clock(), stored)

    def total(self, site: str, day: str) -> UsageAmounts | None:
        """Return a website's usage as this process knows it; None if its copy is too old."""
        with self._lock:
            known_day, since, stored = self._known.get(site, ("", 0.0, NOTHING))
            if known_day != day or self._clock() - since > FRESH:
                return None
            return stored.plus(self._waiting.get((site, day), NOTHING))


BOOK = per_process.PerProcess(ProcessUsage)


def _book() -> ProcessUsage:
    return BOOK.get()


def note(site: str, more: UsageAmounts, *, now: datetime) -> None:
    """Count a website's usage."""
    _book().note(site, _day(now), more)


def posted(site: str, comment: str, *, now: datetime) -> None:
    """Count a post that the current request has stored."""
    # No earlier request stored it: an id is inserted only once.
    _book().end_doubts(of=comment)
    note(site, UsageAmounts(posts=1), now=now)


def doubt(site: str, comment: str, *, now: datetime) -> None:
    """Note that the current request, made at `now`, may have stored a post."""
    _book().doubt(Doubt(site, comment, now))


def take(site: str, *, now: datetime) -> None:
    """Count this thread's use of the store since the last call, for a website."""
    reads, writes = connection.spent()
    if reads or writes:
        note(site, UsageAmounts(reads=reads, writes=writes), now=now)


def flush() -> int:
    """Add the sums to the rows; return how many rows. Sums that cannot be stored are kept.

    Raises:
        errors.Overloaded: the store did not answer in time.
    """
    book, number = _book(), 0
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
    """Count the posts that turn out to be stored."""
    doubts = book.doubts()
    rows = reads.get_multi([comment_rows.comment_key(each.comment) for each in doubts])
    for each, row in zip(doubts, rows, strict=True):
        # With a different time, the comment comes from a different request, which has counted it.
        is_stored = row is not None and row.created == each.created
        if is_stored and book.settle(each):
            book.note(each.site, _day(each.created), UsageAmounts(posts=1))
    book.end_doubts()


def settle(*, now: datetime) -> None:
    """Flush, including this thread's own use. Sums that cannot be stored are kept."""
    take(SERVICE, now=now)
    try:
        flush()
    except errors.Overloaded as error:
        _log.warning("Usage could not be stored: %s", error)


def flush_old() -> None:
    """Flush if the last flush is old, for processes without an upkeep thread. Ignore failures."""
    if _book().is_due():
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
    """Return a website's usage today; the share of other processes is at most a minute old."""
    book, day = _book(), _day(now)
    found = book.total(site, day)
    if found is None:
        book.learn(site, day, stored(site, day))
        found = book.total(site, day) or NOTHING
    return found


def stored(site: str, day: str) -> UsageAmounts:
    """Return the content of the row for a day."""
    row = reads.get(counter_rows.usage_key(site, day))
    return NOTHING if row is None else _numbers(row)


def _numbers(row: counter_rows.UsageRow) -> UsageAmounts:
    return UsageAmounts(row.reads, row.writes, row.mails, row.posts, row.previews or 0)


def _day(now: datetime) -> str:
    return now.date().isoformat()
