"""Update a thread's numbers in the transaction of the change that they count.

This module owns the transaction's counter reads (one of the thread's shards and the rows of the
authors involved) and its counter writes.
"""

import functools
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.domain.counters.counting import CountedChange
from comments.store import ownership, reads
from comments.store.models import comment_rows, counter_rows, schema
from comments.tree.counters import post_shares, sharding


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
        self._lent: dict[int, counter_rows.CounterRow] = {}  # Other shards that count posts.
        self._stood: dict[str, counter_rows.Numbers] = {}  # The authors' numbers before the change.
        self.known: set[str] = set()  # Authors with an approved comment in the thread.
        self._kept = {
            author: counter_rows.participation_key(name, author) for author in self._authors
        }
        # The keys that the transaction must read for these counters.
        self.keys: list[schema.RowKey] = [
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
            # The shards have been merged in the meantime; the first shard always exists.
            self._shard = 0
            self._row = reads.get(counter_rows.thread_counter_key(self._name, 0))

    def pace(self, most: int, now: datetime) -> None:
        """Count one more post toward the thread's limit of `most` posts (`post_shares`).

        Raises:
            errors.TooMany: the limit is reached.
        """
        if self._count_post(self._shard, self._own, most, now):
            return
        for shard, row in self._others.items():
            if self._count_post(shard, row, most, now):
                self._lent[shard] = row
                return
        rows = (self._own, *self._others.values())
        raise errors.TooMany("too-many-posts", retry_after=post_shares.wait(rows, now))

    def _count_post(
        self, shard: int, row: counter_rows.CounterRow, most: int, now: datetime
    ) -> bool:
        return post_shares.count_post(row, post_shares.share(most, shard, self._count), now)

    @property
    def _own(self) -> counter_rows.CounterRow:
        if self._row is None:
            self._row = counter_rows.thread_counter(self._name, self._shard)
        return self._row

    @functools.cached_property
    def _others(self) -> dict[int, counter_rows.CounterRow]:
        """The other shards, which are read only if this shard is full."""
        shards = [(self._shard + step) % self._count for step in range(1, self._count)]
        keys = [counter_rows.thread_counter_key(self._name, shard) for shard in shards]
        return {
            shard: row or counter_rows.thread_counter(self._name, shard)
            for shard, row in zip(shards, reads.get_multi(keys), strict=True)
        }

    def writes(self, changes: Iterable[CountedChange]) -> ownership.Writes:
        """Add the changes to the counters that were read, and return the writes."""
        scopes = counting.by_scope(total_increments(changes))
        here = counting.thread_scope(comment_rows.thread_key_name(self._name))
        numbers = scopes.pop(here, {})
        put: list[schema.StoredRow] = list(self._lent.values())
        gone: list[schema.RowKey] = []
        for scope, more in scopes.items():
            old = self._stood[scope.author]
            new = counting.sums(old, more)
            numbers = counting.sums(numbers, counting.presence(old, new))
            key = self._kept[scope.author]
            if new:
                put.append(counter_rows.participation(key, self._name.site, scope.author, new))
            else:
                gone.append(key)
        if numbers:
            sums = counting.sums(counter_rows.numbers_of(self._own), numbers)
            put.append(counter_rows.with_numbers(self._own, sums))
        return ownership.Writes(counter_rows.OWNER, put=tuple(put), delete=tuple(gone))


def counter_writes(name: records.ThreadName, changes: Sequence[CountedChange]) -> ownership.Writes:
    """Build the counter writes for changes in a thread, reading only the necessary rows."""
    if not total_increments(changes):
        return ownership.Writes(counter_rows.OWNER)
    states = [state for change in changes for state in change if state is not None]
    entry = TransactionCounters(name, (state.author for state in states))
    entry.fill(None, reads.get_multi(entry.keys))
    return entry.writes(changes)


def total_increments(changes: Iterable[CountedChange]) -> dict[counting.Key, int]:
    """Add up the effects of changes on the counters that are written in the same transaction."""
    return counting.total(
        counting.increments(counting.IN_THREAD, change.old, change.new) for change in changes
    )
