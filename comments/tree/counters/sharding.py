"""Spread a busy thread's counters over shards, so that concurrent transactions do not conflict.

The counters of a quiet thread are one row. When an aborted transaction runs again, it uses a
different shard. If there is only one shard, the writer changes its shard as soon as there are
several. The process keeps that shard for the same writer. The process's writers therefore use
different shards, and not the shard of the process that did not abort. When the transaction then
commits, the counters are spread over more shards. When the thread is quiet again, the shards are
merged into one.

Invariant: The thread's row and its first shard both store the number of shards, and one commit
writes both, so readers read every shard in which a writer counts
(test_counters_in_transaction.py::test_counts_of_a_spread_thread_are_from_one_moment).

A process's information about busy threads (`Shards`) is only a hint. A transaction corrects the
hint from the row that it reads, and the process may drop the hint at any time.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.store import connection, ownership, reads, transactions
from comments.store.memory import per_process
from comments.store.models import comment_rows, conversion, counter_rows, vote_rows
from comments.tree.counters import post_shares, totals

_PATIENCE = 5.0  # Seconds allowed for spreading, which a later writer can also do.
MOST = 64  # Shards per thread; reading a thread's numbers takes one read per shard.
SPREAD_EVERY = 1.0  # Seconds between a process's attempts to spread a thread.
QUIET = 300.0  # Seconds without a conflict until a thread's shards are merged.


class _Busy:
    """A busy thread: its number of shards, and the shard of each writer in this process."""

    def __init__(self) -> None:
        self.count = 1
        self.kept: list[int] = []  # Shards by writer; only the first writer uses the first shard
        self.writing: set[int] = set()
        self.moving: set[int] = set()  # Writers that leave the first shard when there are others
        self.contended = 0.0
        self.next_spreading = 0.0

    def other(self, shard: int) -> int:
        """Choose a different shard, preferably one that no writer in this process uses."""
        free = set(range(self.count)) - {shard}
        taken = {self.kept[writer] for writer in self.writing}
        return random.choice(sorted(free - taken or free or {0}))  # noqa: S311 - to come apart


class TransactionShard:
    """The shard of one transaction, which may run several times.

    `count` is the thread's number of shards, as read in the transaction, or 0 before the read.
    """

    def __init__(self, shards: "Shards", name: records.ThreadName) -> None:
        self._shards = shards
        self._name = name
        self._writer: int | None = None
        self.runs = 0
        self.count = 0

    def take(self) -> int:
        """Return the shard for this run. After an aborted run, return a different shard."""
        self.runs += 1
        if self._writer is None:
            self._writer = self._shards.enter(self._name)
        self._learn()
        return self._shards.shard(self._name, self._writer, moves=self.runs > 1)

    def end(self) -> int:
        """Release the shard. Return how many shards the thread needs, or 0 for no change."""
        if self._writer is None:
            return 0
        self._learn()
        return self._shards.leave(self._name, self._writer, conflicts=self.runs - 1)

    def _learn(self) -> None:
        if self.count:
            self._shards.learn(self._name, self.count)


class First(TransactionShard):
    """The first shard, which always exists, for writes that are rare or serialized elsewhere."""

    def __init__(self) -> None:
        super().__init__(Shards(), records.ThreadName("", ""))

    def take(self) -> int:
        return 0


class Shards:
    """A process's information about busy threads. The class is thread-safe.

    Args:
        clock: returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._guard = threading.Lock()
        self._busy: dict[records.ThreadName, _Busy] = {}

    def __len__(self) -> int:
        return len(self._busy)

    @contextlib.contextmanager
    def turn(self, name: records.ThreadName) -> Iterator[TransactionShard]:
        """Assign a shard to a transaction, and release it if the transaction fails."""
        turn = TransactionShard(self, name)
        try:
            yield turn
        except BaseException:
            turn.end()
            raise

    def enter(self, name: records.ThreadName) -> int:
        """Begin to write. Return the writer's number, the lowest free number in this process."""
        with self._guard:
            busy = self._busy.setdefault(name, _Busy())
            writer = next(n for n in range(len(busy.writing) + 1) if n not in busy.writing)
            if writer == len(busy.kept):
                busy.kept.append(busy.other(0) if writer else 0)
            busy.writing.add(writer)
            return writer

    def shard(self, name: records.ThreadName, writer: int, *, moves: bool) -> int:
        """Return a writer's shard, after replacing it if necessary or if `moves` is true."""
        with self._guard:
            busy = self._busy[name]
            if busy.count == 1:
                busy.moving |= {writer} if moves else set()
            elif writer in busy.moving:
                busy.moving.remove(writer)
                moves = True
            others = {busy.kept[other] for other in busy.writing - {writer}}
            meets = busy.count > 1 and busy.kept[writer] in others
            if moves or meets or busy.kept[writer] >= busy.count:
                busy.kept[writer] = busy.other(busy.kept[writer])
            return busy.kept[writer]

    def learn(self, name: records.ThreadName, count: int) -> None:
        """Note the number of a thread's shards."""
        with self._guard:
            busy = self._busy.get(name)
            if busy is None:
                if count == 1:
                    return
                busy = self._busy[name] = _Busy()
                busy.contended = self.clock()
            busy.count = count

    def leave(self, name: records.ThreadName, writer: int, *, conflicts: int) -> int:
        """End writing. Return how many shards the thread needs, or 0 for no change."""
        with self._guard:
            busy = self._busy[name]
            writers = len(busy.writing)
            busy.writing.discard(writer)
            if conflicts:
                busy.contended = self.clock()
            elif not busy.writing and busy.count == 1:
                del self._busy[name]
            # Use four shards per writer of this process; further conflicts come from other
            # processes.
            wanted = min(MOST, 4 * writers)
            if not conflicts or busy.count >= wanted or self.clock() < busy.next_spreading:
                return 0
            busy.next_spreading = self.clock() + SPREAD_EVERY
            return wanted

    def quiet(self) -> Sequence[records.ThreadName]:
        """List the spread threads without conflicts in this process for `QUIET` seconds."""
        with self._guard:
            before = self.clock() - QUIET
            return [
                name
                for name, busy in self._busy.items()
                if busy.contended <= before and not busy.writing
            ]

    def forget(self, name: records.ThreadName) -> None:
        """Forget a thread whose shards were merged."""
        with self._guard:
            busy = self._busy.get(name)
            if busy is not None and not busy.writing:
                del self._busy[name]


SHARDS = per_process.PerProcess(Shards)
FIRST = First()


@contextlib.contextmanager
def turn(name: records.ThreadName) -> Iterator[TransactionShard]:
    """Assign a shard to a transaction while it runs. Afterwards, spread the thread if necessary."""
    with SHARDS.get().turn(name) as taken:
        yield taken
        wanted = taken.end()
    if wanted:
        # Spreading is optional: the next writer with a conflict tries again.
        with contextlib.suppress(errors.Overloaded), connection.within(_PATIENCE):
            spread(name, wanted)


def spread(name: records.ThreadName, count: int) -> None:
    """Spread a thread's counters over `count` shards, without changing the stored numbers."""

    def body() -> int:
        thread, first = reads.get_multi(
            [comment_rows.thread_key(name), counter_rows.thread_counter_key(name, 0)]
        )
        if thread is None or (thread.shards or 1) >= count:
            return 1 if thread is None else thread.shards or 1
        rows = _rows(name, first, min(count, MOST))
        has_posts = post_shares.divide(rows)
        thread.shards = rows[0].shards = len(rows)
        put = (thread, *(rows if has_posts else rows[:1]))
        transactions.apply(ownership.Writes(counter_rows.OWNER, put=put))
        return len(rows)

    SHARDS.get().learn(name, transactions.transaction(body))


def _rows(
    name: records.ThreadName, first: counter_rows.CounterRow | None, count: int
) -> list[counter_rows.CounterRow]:
    """Return the rows of `count` shards, given the first row, which says how many are stored."""
    stored = 1 if first is None else first.shards or 1
    keys = [counter_rows.thread_counter_key(name, shard) for shard in range(1, stored)]
    known = dict(enumerate([first, *(reads.get_multi(keys) if keys else ())]))
    return [known.get(shard) or counter_rows.thread_counter(name, shard) for shard in range(count)]


def gather(name: records.ThreadName) -> None:
    """Merge a thread's shards into one."""

    def body() -> None:
        thread = reads.get(comment_rows.thread_key(name))
        count = 1 if thread is None else thread.shards or 1
        if thread is None or count == 1:
            return
        rows = _rows(name, reads.get(counter_rows.thread_counter_key(name, 0)), count)
        posts = post_shares.current_period(rows)
        first = counter_rows.with_numbers(rows[0], totals.sum_shards(rows))
        thread.shards = first.shards = 1
        first.began, first.lately = posts
        gone = tuple(row.key for row in rows[1:])
        transactions.apply(ownership.Writes(counter_rows.OWNER, put=(thread, first), delete=gone))

    transactions.transaction(body)
    SHARDS.get().forget(name)


def removal_writes(name: records.ThreadName, count: int) -> ownership.Writes:
    """Delete the counters of a thread with `count` shards that the current transaction deletes.

    The number of followers stays, because it counts rows of their own.
    """
    first, *others = [counter_rows.thread_counter_key(name, shard) for shard in range(count)]
    followers = counter_rows.numbers_of(reads.get(first)).get(counting.FOLLOWERS, 0)
    query = reads.Query("Participation", ancestor=comment_rows.thread_key(name), keys_only=True)
    gone = [*others, *map(vote_rows.key_of, reads.fetch(query))]
    if not followers:
        return ownership.Writes(counter_rows.OWNER, delete=(first, *gone))
    kept = counter_rows.thread_counter(name, 0)
    row = counter_rows.with_numbers(kept, {counting.FOLLOWERS: followers})
    return ownership.Writes(counter_rows.OWNER, put=(row,), delete=tuple(gone))


def gather_quiet() -> int:
    """Merge the shards of threads that are quiet in this process. Return the number of threads."""
    quiet = SHARDS.get().quiet()
    for name in quiet:
        gather(name)
    return len(quiet)


def notice_spread() -> None:
    """Read the spread threads from the store, including threads that other processes spread."""
    query = reads.Query("Counter", where=(("shards", ">", 1),))
    for message in reads.walk(query):
        scope = message.properties["scope"].string_value
        thread = reads.get(comment_rows.thread_key_of(scope.partition("/")[2]))
        if thread is not None:
            SHARDS.get().learn(conversion.thread_record(thread).name, thread.shards or 1)
