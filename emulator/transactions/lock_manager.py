"""The lock manager: who may go on, who waits, and who gives up.

Owns the waiting of pessimistic concurrency. A reader takes shared locks on what it has read; a
change that touches what another transaction has read waits until that one ends. The lock of a
change is held from its announcement until it is on disk (with all that share its COMMIT,
`group_commit`), and readers of its places wait for that.

What must stay true: nothing that is right depends on a lock. A commit is validated as in optimistic
mode, so a lock that came too late or fell too early costs an ABORTED and never a wrong result.
Nobody waits for ever: not for the dead, not for the expired, not in a ring (`lock_table`), and not
longer than the bounds below. A waiting change keeps new readers away, or a stream of them could
make it wait for ever; but only so long, for it may be waiting for somebody who takes his time.

Shared locks alone make the many who read and change one entity abort one another: each holds what
the others want to change. So where that has happened of late, readers queue.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from emulator import errors, thread_pool
from emulator.storage import read_sets
from emulator.transactions import lock_table, shared_lock_files

READ_WAIT = 1.0  # seconds that a read stands back behind the same others; then it goes on
READ_QUEUE = 10.0  # seconds that it stands back while those in front of it come through
COMMIT_WAIT = 10.0  # seconds that a transaction's commit waits for readers; then it is ABORTED
WRITE_WAIT = 5.0  # the same for a commit outside of a transaction, which nothing waits for
_BUSY = 1.0  # seconds for which readers queue where transactions have met
_MAX_BUSY = 1000
MAX_WAITING = 2000  # requests of this process that may wait at once
_NAP = 0.25  # seconds until a waiter looks for the expired of its own accord
_NAPS_ABROAD = (0.002, 0.02)  # the same, shortest and longest, for changes in other processes

CONTENTION = (
    "Aborted due to cross-transaction contention. This occurs when multiple transactions attempt "
    "to access the same data, requiring Datastore mode to abort at least one in order to enforce "
    "serializability."
)


class Party(NamedTuple):
    """A transaction, or a commit outside of one, as the others see it."""

    name: str
    age: float  # when its first attempt began, seconds since 1970
    until: float  # its locks count no longer after this time


class Blocked(Exception):
    """Somebody has read what a change would touch. Take the change back, wait, make it again."""


class _Waiter:
    """A request that waits."""

    def __init__(self, lock: threading.RLock) -> None:
        self.condition = threading.Condition(lock)
        self.nap = _NAPS_ABROAD[0]


class LockManager:
    """The locks on one data file, of this process and of those it shares the file with."""

    def __init__(
        self, folder: Path, *, clock: Callable[[], float], timer: Callable[[], float]
    ) -> None:
        self._clock = clock
        self._timer = timer
        self._peers = shared_lock_files.Peers(folder)
        self._lock = threading.RLock()
        self._waiters: dict[str, _Waiter] = {}
        self._watching: str | None = None
        self._busy: dict[str, float] = {}
        self._is_closed = False

    def forget(self) -> None:
        """Start afresh in a forked child: the locks are the parent's."""
        self._lock = threading.RLock()
        self._peers.close()
        self._peers = shared_lock_files.Peers(self._peers.folder)
        self._waiters = {}
        self._watching = None

    def close(self) -> None:
        """End all locks of this process, and all waiting."""
        with self._lock:
            self._is_closed = True
            self._wake(self._waiters)
            self._peers.leave()

    def share(self, party: Party, reads: read_sets.ReadSet) -> None:
        """Lock what a request has read.

        It waits for changes that are about to touch that, and where transactions that read and
        change have met of late, for those that have read it before. Neither wait is needed, so it
        is given up where nobody in front comes through for a while, where it would be long, or part
        of a ring.
        """
        footprint = lock_table.footprint(reads)

        def stand() -> set[str]:
            busy = self._busy_among(party, footprint)
            return {
                name
                for name, other in self._others(party)
                if other.is_to_change(footprint) or not busy.isdisjoint(other.places)
            }

        def hold() -> None:
            self._tell(party, ["read", party.name, party.until, footprint.places, footprint.ranges])

        if not self._wait(party, stand, hold, self.time_after(READ_QUEUE), may_pass=True):
            with self._turn():
                hold()

    def announce(self, party: Party, touched: Iterable[tuple[read_sets.IndexName, bytes]]) -> None:
        """Say what a party is about to change.

        Raises:
            Blocked: somebody's lock stands against it.
        """
        wanted = lock_table.places(touched)
        with self._turn():
            self._tell(party, ["want", party.name, party.until, wanted])
            if self._against(party):
                self._note_busy(self._peers.table.holders[party.name])
                raise Blocked

    def time_after(self, seconds: float) -> float:
        """Return the time on the timer after so many seconds from now."""
        return self._timer() + seconds

    def await_readers(self, party: Party, end: float) -> None:
        """Wait until no lock stands against what a party has announced.

        Raises:
            errors.Aborted: that took too long, or the party is the youngest in a ring.
        """
        if not self._wait(party, lambda: self._against(party), lambda: None, end):
            raise errors.Aborted(CONTENTION)

    def withdraw(self, party: Party) -> None:
        """Take back what a party has announced."""
        self._end(party.name, ["want", party.name, party.until, []])

    def release(self, name: str) -> None:
        """End a party and all that it holds."""
        self._end(name, ["end", name])

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Keep everybody else out, other processes too, knowing what they have done."""
        with self._lock:
            if self._is_closed:
                raise errors.Unavailable("The engine is closed.")
            with self._peers.turn() as has_news:
                if has_news:
                    self._wake(self._waiters)
                yield

    def _wait(
        self,
        party: Party,
        stand: Callable[[], set[str]],
        go_on: Callable[[], None],
        end: float,
        *,
        may_pass: bool = False,
    ) -> bool:
        """Wait until nobody stands in the way, then go on in the same turn.

        Returns whether it came to that. Otherwise the wait was too long, or part of a ring and the
        party may pass; where it may, a queue that does not move is too long sooner. Without that
        all who queue would pass at once, and abort one another at once.
        """
        front: set[str] = set()
        moved = self._timer()
        with self._lock:
            try:
                while True:
                    with self._turn():
                        awaited = stand()
                        if awaited and self._peers.drop_dead(awaited):
                            awaited = stand()
                        if not awaited:
                            go_on()
                            return True
                        if may_pass and self._would_wait_for_itself(party, awaited):
                            return False
                        self._note(party, awaited)
                        if not may_pass and lock_table.is_victim(self._peers.all(), party.name):
                            raise errors.Aborted(CONTENTION)
                    now = self._timer()
                    if not front <= awaited:
                        moved = now
                    front = awaited
                    left = min(end, moved + READ_WAIT) - now if may_pass else end - now
                    if left <= 0 or self._is_full(party):
                        return False
                    self._sleep(party.name, awaited, left)
            finally:
                self._stop_waiting(party)

    def _is_full(self, party: Party) -> bool:
        return party.name not in self._waiters and len(self._waiters) >= MAX_WAITING

    def _note(self, party: Party, awaited: set[str]) -> None:
        """Say whom a party waits for, and wake those who may have to give up for it."""
        own = self._peers.table.holders.get(party.name)
        if own is not None and own.awaited == awaited:
            return
        self._tell(party, ["wait", party.name, sorted(awaited)])
        if self._would_wait_for_itself(party, awaited):
            self._wake(self._waiters)

    def _would_wait_for_itself(self, party: Party, awaited: set[str]) -> bool:
        return lock_table.leads_to(self._peers.all(), awaited, party.name)

    def _note_busy(self, changing: lock_table.Holder) -> None:
        """Note where transactions meet that read something and change it."""
        now = self._timer()
        if len(self._busy) > _MAX_BUSY:
            self._busy = {place: end for place, end in self._busy.items() if end > now}
        for place in changing.places.intersection(changing.wanted):
            self._busy[place] = now + _BUSY

    def _busy_among(self, party: Party, footprint: lock_table.Footprint) -> set[str]:
        """Return the busy places a party has read now and not before."""
        if not self._busy:
            return set()
        now = self._timer()
        own = self._peers.table.holders.get(party.name)
        return {
            place
            for place in self._busy.keys() & footprint.places
            if self._busy[place] > now and (own is None or place not in own.places)
        }

    def _sleep(self, name: str, awaited: set[str], left: float) -> None:
        waiter = self._waiters.setdefault(name, _Waiter(self._lock))
        nap = _NAP
        is_abroad = not awaited <= self._peers.table.holders.keys()
        # One waiter watches the other processes for all of this one.
        if is_abroad and self._watching in (None, name):
            self._watching = name
            nap = waiter.nap
            waiter.nap = min(2 * nap, _NAPS_ABROAD[1])
        with thread_pool.waiting():
            waiter.condition.wait(min(left, nap))

    def _stop_waiting(self, party: Party) -> None:
        self._waiters.pop(party.name, None)
        if self._watching == party.name:
            self._watching = None
            self._wake(self._waiters)
        own = self._peers.table.holders.get(party.name)
        if own is not None and own.awaited:
            self._end(party.name, ["wait", party.name, []])

    def _wake(self, names: Iterable[str]) -> None:
        for name in names:
            self._waiters[name].condition.notify()

    def _others(self, party: Party) -> Iterator[tuple[str, lock_table.Holder]]:
        now = self._clock()
        for name, holder in self._peers.all().items():
            if name != party.name and holder.until >= now:
                yield name, holder

    def _against(self, party: Party) -> set[str]:
        """Return those who have read what a party is about to change."""
        wanted = self._peers.table.holders[party.name].wanted
        return {name for name, other in self._others(party) if other.stands_against(wanted)}

    def _tell(self, party: Party, event: lock_table.Event) -> None:
        if party.name in self._peers.table.holders:
            self._peers.tell(event)
        else:
            self._peers.tell(["open", party.name, party.age, party.until], event)

    def _end(self, name: str, event: lock_table.Event) -> None:
        """Tell of something that ends, and wake those who wait for its end.

        Whoever ends has been answered already, so a folder that cannot be used is no error: the
        others learn of it with the next event, or see the holder expire.
        """
        with self._lock, contextlib.suppress(errors.Unavailable):
            own = self._peers.table.holders
            if name not in own:
                return
            with self._turn():
                self._wake(each for each in self._waiters if name in own[each].awaited)
                self._peers.tell(event)
