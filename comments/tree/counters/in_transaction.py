"""Update a thread's numbers in the transaction of the change that they count.

Owns the transaction's counter reads (one of the thread's shards and the rows of the authors
involved) and its counter writes.

Invariants:

1. A change and the numbers that count it are stored in one commit.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from google.cloud import ndb

from comments import errors
from comments.domain import counting, records
from comments.domain.counting import CountedChange
from comments.store import ownership, reads
from comments.store.models import comment_rows, counter_rows
from comments.tree.counters import sharding

PACE = timedelta(minutes=10)


class TransactionCounters:
    """A thread's counters in one transaction, read and written together with the other rows."""

    def __init__(
        self,
        name: records.ThreadName,
        authors: Iterable[str] = (),
        turn: sharding.TransactionShard = sharding.FIRST,
    ) -> None:
        self._name = name
        self._turn = turn
        self._shard = turn.take()
        self._authors = [author for author in dict.fromkeys(authors) if author]
        self._row: counter_rows.CounterRow | None = None
        self._count = 1
        self._stood: dict[str, counter_rows.Numbers] = {}  # The authors' numbers before the change.
        self.known: set[str] = set()  # Authors with an approved comment in the thread.
        # Make these keys only once, because NDB copies the parent key for every child key.
        self._kept = {
            author: counter_rows.participation_key(name, author) for author in self._authors
        }
        # The keys that the transaction must read for these counters.
        self.keys: list[ndb.Key] = [
            counter_rows.thread_counter_key(name, self._shard),
            *self._kept.values(),
        ]

    def fill(self, thread: comment_rows.ThreadRow | None, stored: Sequence[Any]) -> None:
        """Use the thread's row and the rows that were read at `keys`."""
        self._row, *participations = stored
        numbers = map(counter_rows.numbers_of, participations)
        self._stood = dict(zip(self._authors, numbers, strict=True))
        self.known = {who for who, had in self._stood.items() if had.get(counting.APPROVED, 0) > 0}
        count = self._turn.count = self._count = 1 if thread is None else thread.shards or 1
        if self._shard >= count:
            # The shards have been merged since; the first shard always exists.
            self._shard = 0
            self._row = reads.get(counter_rows.thread_counter_key(self._name, 0))

    def pace(self, most: int, now: datetime) -> None:
        """Count one more post toward the limit of `most` posts within `PACE`.

        If a thread has several shards, each shard counts some of the posts and enforces its share
        of the limit.

        Raises:
            errors.TooMany: the limit is reached.
        """
        if self._row is None:
            self._row = counter_rows.thread_counter(self._name, self._shard)
        row = self._row
        # A start in the future was written by a clock that is far ahead. Such a period must not
        # last forever.
        began: datetime | None = row.began
        if began is None or abs(now - began) >= PACE:
            row.began = began = now
            row.lately = 0
        if row.lately >= max(1, most // self._count):
            wait = max(1, int((began + PACE - now).total_seconds()))
            raise errors.TooMany("too-many-posts", retry_after=wait)
        row.lately += 1

    def writes(self, changes: Iterable[CountedChange]) -> ownership.Writes:
        """Add the changes to the counters that were read, and return the writes."""
        scopes = counting.by_scope(added(changes))
        here = counting.thread_scope(comment_rows.thread_key_name(self._name))
        numbers = scopes.pop(here, {})
        put: list[ndb.Model] = []
        gone: list[ndb.Key] = []
        for scope, more in scopes.items():
            old = self._stood[scope.author]
            new = counting.added(old, more)
            present = counting.presence(here, old, new)
            numbers = counting.added(numbers, counter_rows.names(present))
            key = self._kept[scope.author]
            if new:
                put.append(counter_rows.participation(key, self._name.site, scope.author, new))
            else:
                gone.append(key)
        if numbers:
            row = self._row or counter_rows.thread_counter(self._name, self._shard)
            sums = counting.added(counter_rows.numbers_of(row), numbers)
            put.append(counter_rows.with_numbers(row, sums))
        return ownership.Writes(counter_rows.OWNER, put=tuple(put), delete=tuple(gone))


def entered(name: records.ThreadName, changes: Sequence[CountedChange]) -> ownership.Writes:
    """Build the counter writes for changes in a thread, reading only the necessary rows."""
    if not added(changes):
        return ownership.Writes(counter_rows.OWNER)
    states = [state for change in changes for state in change if state is not None]
    entry = TransactionCounters(name, (state.author for state in states))
    entry.fill(None, reads.get_multi(entry.keys))
    return entry.writes(changes)


def added(changes: Iterable[CountedChange]) -> dict[counting.Key, int]:
    """Add up the effects of changes on the counters that are written in the same transaction."""
    return counting.total(
        counting.increments(counting.IN_THREAD, change.old, change.new) for change in changes
    )
