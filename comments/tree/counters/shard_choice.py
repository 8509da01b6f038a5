"""Shards: where the transactions of one process count in a thread that many write at once.

Owns what this process knows of busy threads: over how many shards each one's counters are spread,
and which of them a transaction takes. At rest there is one. A transaction that was aborted takes
another one when it runs again, and keeps to it afterwards: writers that do not meet stay apart.

What must stay true: nothing here decides what is stored. How many shards there are stands in the
thread's row, which the transaction reads (`tallies`); what is believed here is corrected by it,
and may be forgotten at any time.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from comments.domain import records
from comments.store import per_process

MOST = 64  # shards of one thread; reading its counts takes so many reads
SPREAD_EVERY = 1.0  # seconds between two tries of a process to spread a thread
QUIET = 300.0  # seconds without a conflict until a thread's shards are gathered again


class _Busy:
    """One thread: how many shards, which of them each writer of this process keeps to."""

    def __init__(self) -> None:
        self.count = 1
        self.kept: list[int] = []  # by writer: the first one alone keeps to the first shard
        self.writing: set[int] = set()
        self.contended = 0.0
        self.next_spreading = 0.0

    def other(self, shard: int) -> int:
        """Another shard than this one, if there is one that no writer here keeps to."""
        free = set(range(self.count)) - {shard}
        taken = {self.kept[writer] for writer in self.writing}
        return random.choice(sorted(free - taken or free or {0}))  # noqa: S311 - to come apart


class Turn:
    """The shard of one transaction, which may run several times."""

    def __init__(self, shards: "Shards", name: records.ThreadName) -> None:
        self._shards = shards
        self._name = name
        self._writer: int | None = None
        self.runs = 0

    def take(self) -> int:
        """The shard of this run: after one that was aborted, another."""
        self.runs += 1
        if self._writer is None:
            self._writer = self._shards.enter(self._name)
        return self._shards.shard(self._name, self._writer, moves=self.runs > 1)

    def learn(self, count: int) -> None:
        """Take note of how many shards there are."""
        self._shards.learn(self._name, count)

    def end(self) -> int:
        """Give the shard back; over how many shards the thread should be spread, 0 for as is."""
        if self._writer is None:
            return 0
        return self._shards.leave(self._name, self._writer, conflicts=self.runs - 1)


class First(Turn):
    """The first shard, which is always there: for writes that are rare or wait elsewhere."""

    def __init__(self) -> None:
        super().__init__(Shards(), records.ThreadName("", ""))

    def take(self) -> int:
        """The first shard."""
        return 0


class Shards:
    """What a process knows of busy threads. Safe for many threads.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._guard = threading.Lock()
        self._busy: dict[records.ThreadName, _Busy] = {}

    def __len__(self) -> int:
        return len(self._busy)

    @contextlib.contextmanager
    def turn(self, name: records.ThreadName) -> Iterator[Turn]:
        """A transaction's turn; what goes wrong in it ends it too."""
        turn = Turn(self, name)
        try:
            yield turn
        except BaseException:
            turn.end()
            raise

    def enter(self, name: records.ThreadName) -> int:
        """Begin to write; the number of the writer in this process, the lowest that is free."""
        with self._guard:
            busy = self._busy.setdefault(name, _Busy())
            writer = next(n for n in range(len(busy.writing) + 1) if n not in busy.writing)
            if writer == len(busy.kept):
                busy.kept.append(busy.other(0) if writer else 0)
            busy.writing.add(writer)
            return writer

    def shard(self, name: records.ThreadName, writer: int, *, moves: bool) -> int:
        """The shard a writer keeps to; one that `moves` leaves it for another."""
        with self._guard:
            busy = self._busy[name]
            others = {busy.kept[other] for other in busy.writing - {writer}}
            meets = busy.count > 1 and busy.kept[writer] in others
            if moves or meets or busy.kept[writer] >= busy.count:
                busy.kept[writer] = busy.other(busy.kept[writer])
            return busy.kept[writer]

    def learn(self, name: records.ThreadName, count: int) -> None:
        """Take note of how many shards a thread has."""
        with self._guard:
            busy = self._busy.get(name)
            if busy is None:
                if count == 1:
                    return
                busy = self._busy[name] = _Busy()
                busy.contended = self.clock()
            busy.count = count

    def leave(self, name: records.ThreadName, writer: int, *, conflicts: int) -> int:
        """End writing; over how many shards the thread should be spread, 0 for as is."""
        with self._guard:
            busy = self._busy[name]
            writers = len(busy.writing)
            busy.writing.discard(writer)
            if conflicts:
                busy.contended = self.clock()
            elif not busy.writing and busy.count == 1:
                del self._busy[name]
            # Four shards for each writer here: conflicts beyond that come from somewhere else.
            wanted = min(MOST, 4 * writers)
            if not conflicts or busy.count >= wanted or self.clock() < busy.next_spreading:
                return 0
            busy.next_spreading = self.clock() + SPREAD_EVERY
            return wanted

    def quiet(self) -> Sequence[records.ThreadName]:
        """The spread threads that had no conflict here for a while."""
        with self._guard:
            before = self.clock() - QUIET
            return [
                name
                for name, busy in self._busy.items()
                if busy.contended <= before and not busy.writing
            ]

    def forget(self, name: records.ThreadName) -> None:
        """Forget a thread, its shards being gathered."""
        with self._guard:
            busy = self._busy.get(name)
            if busy is not None and not busy.writing:
                del self._busy[name]


SHARDS = per_process.PerProcess(Shards)
