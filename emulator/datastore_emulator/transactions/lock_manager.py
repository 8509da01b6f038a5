"""The lock manager: decides whether a request proceeds, waits or gives up.

Owns the waiting that pessimistic concurrency requires. A reader takes shared locks on the places
that it has read. A change to a place that another transaction has read waits until that transaction
ends. A change announces its places before it commits, and locks them until it is on disk. All
commits that share its COMMIT reach the disk together (`group_commit`). Readers of these places wait
until the change is on disk.

A commit is validated as in optimistic mode, so a lock that is taken too late or released too early
causes an ABORTED error, never a wrong result. A request never waits for a dead process, for an
expired transaction, in a cycle (`lock_table`) or longer than the limits below. New readers wait for
a waiting change, because a stream of new readers could otherwise delay the change forever. The
readers wait only for a limited time, because the change may itself be waiting for a slow
transaction.

Most transactions read only entities, but most of the places that a commit changes are entries of
indexes. Therefore a commit announces entries only while a transaction holds a lock on entries of
any index, and for some time afterward. If there was no such lock for a while, the first query in a
transaction does not wait for a change that is being committed. The query's transaction may then be
aborted. Commits then announce their entries, so the repeated transaction waits.

With shared locks alone, transactions that read and change the same entity abort each other, because
each has locked a place that the others want to change. Therefore readers queue at places where this
happened recently. The queue is in the order of the parties' ages, across all processes. Otherwise,
a process that has just ended a transaction would always read the place before a process that waits.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from datastore_emulator import errors, thread_pool
from datastore_emulator.storage import read_sets
from datastore_emulator.transactions import lock_table, shared_lock_files

READ_WAIT = 1.0  # A read proceeds after this many seconds in a queue that does not move.
READ_QUEUE = 10.0  # Maximum seconds that a read waits while the queue moves.
COMMIT_WAIT = 10.0  # Seconds that a transaction's commit waits for readers before it is ABORTED.
WRITE_WAIT = 5.0  # The same limit outside a transaction, where the wait delays no other request.
_BUSY = 1.0  # After a conflict at a place, readers queue there for this many seconds.
_ENTRIES = 60.0  # After a lock on an entry, changes announce entries for this many seconds.
_MAX_BUSY = 1000  # Above this number of busy places, expired busy places are dropped.
MAX_WAITING = 2000  # Maximum number of this process's requests that wait at the same time.
_NAP = 0.25  # Seconds after which a waiting request checks for expired holders.
_NAPS_ABROAD = (0.001, 0.02)  # Shortest and longest seconds between checks of other processes.
_LONGER = 1.25  # Factor between successive intervals; a wait ends at most a quarter too late.

CONTENTION = (
    "Aborted due to cross-transaction contention. This occurs when multiple transactions attempt "
    "to access the same data, requiring Datastore mode to abort at least one in order to enforce "
    "serializability."
)


class Party(NamedTuple):
    """A transaction, or a commit outside a transaction, as other transactions see it."""

    name: str
    age: float  # Start of the first attempt, in seconds since 1970.
    until: float  # Time at which the locks expire.


class Blocked(Exception):
    """A change would touch a place that another party has read.

    The caller must undo the change, wait and repeat it.
    """


class _Waiter:
    """A waiting request."""

    def __init__(self, lock: threading.RLock) -> None:
        self.condition = threading.Condition(lock)
        self.nap = _NAPS_ABROAD[0]


class LockManager:
    """The locks on one data file, held by this process and all others that use the file."""

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
        self._entry_reads = 0
        self._entries_end = 0.0
        self._is_closed = False

    def forget(self) -> None:
        """Reset the state in a forked child process, because the locks belong to the parent."""
        self._lock = threading.RLock()
        self._peers.close()
        self._peers = shared_lock_files.Peers(self._peers.folder)
        self._waiters = {}
        self._watching = None

    def close(self) -> None:
        """Release all locks of this process, and wake all waiters."""
        with self._lock:
            self._is_closed = True
            self._wake(self._waiters)
            self._peers.leave()

    def share(self, party: Party, reads: read_sets.ReadSet) -> None:
        """Lock the places that a request has read.

        First, wait for changes that are about to touch these places. At busy places, where
        transactions recently blocked each other, also wait for earlier readers. Neither wait
        is needed for correctness. A read therefore stops waiting when the queue has not moved for a
        while, when the wait becomes long, or when waiting would close a cycle.
        """
        footprint = lock_table.footprint(reads)
        queue: set[str] = set()

        def blockers() -> set[str]:
            queue.clear()
            queue.update(self._busy_among(party, footprint))
            return self._ahead(party, footprint, queue)

        def hold() -> None:
            self._tell(party, ["read", party.name, party.until, footprint.places, footprint.ranges])

        end = self.time_after(READ_QUEUE)
        if not self._wait(party, blockers, hold, end, queue=queue, may_pass=True):
            with self._turn():
                hold()

    def announce(
        self, party: Party, touched: Iterable[tuple[read_sets.IndexName, Collection[bytes]]]
    ) -> None:
        """Announce the places that a party is about to change: the entries of each index.

        Raises:
            Blocked: Another party holds a lock on one of the places.
        """
        with self._turn():
            is_all = self._are_entries_locked()
            wanted = lock_table.places(
                (name, entry)
                for name, entries in touched
                if is_all or name == read_sets.ENTITIES
                for entry in entries
            )
            self._tell(party, ["want", party.name, party.until, wanted])
            if self._against(party):
                self._note_busy(self._peers.table.holders[party.name])
                raise Blocked

    def _are_entries_locked(self) -> bool:
        """Return whether a transaction has a lock on entries of an index, or had one recently."""
        now, reads = self._timer(), self._peers.entry_reads()
        if reads != self._entry_reads:
            self._entry_reads, self._entries_end = reads, now + _ENTRIES
        return now < self._entries_end or any(
            holder.has_entries for holder in self._peers.all().values()
        )

    def time_after(self, seconds: float) -> float:
        """Return the timer value `seconds` from now."""
        return self._timer() + seconds

    def await_readers(self, party: Party, end: float) -> None:
        """Wait until no other party holds a lock on the places that this party announced.

        Raises:
            errors.Aborted: The wait took too long, or the party is the youngest in a cycle.
        """
        if not self._wait(party, lambda: self._against(party), lambda: None, end):
            raise errors.Aborted(CONTENTION)

    def withdraw(self, party: Party) -> None:
        """Cancel a party's announcement."""
        self._end(party.name, ["want", party.name, party.until, []])

    def release(self, name: str) -> None:
        """End a party and release its locks."""
        self._end(name, ["end", name])

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Exclude all other threads and processes, and read the other processes' events."""
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
        blockers: Callable[[], set[str]],
        proceed: Callable[[], None],
        end: float,
        *,
        queue: AbstractSet[str] = frozenset(),
        may_pass: bool = False,
    ) -> bool:
        """Wait until no other party blocks this one, then run `proceed` in the same turn.

        After each call of `blockers`, `queue` contains the places for which the party queues.

        Return whether `proceed` ran. The function does not run if the wait was too long, or if the
        wait would be part of a cycle and `may_pass` is set. With `may_pass`, the wait also ends
        when the queue has not moved for `READ_WAIT` seconds. This limit restarts with each
        movement: with a fixed limit, all queued readers would proceed at the same time and abort
        each other.
        """
        front: set[str] = set()
        moved = self._timer()
        with self._lock:
            try:
                while True:
                    with self._turn():
                        awaited = blockers()
                        if awaited and self._peers.drop_dead(awaited):
                            awaited = blockers()
                        if not awaited:
                            proceed()
                            return True
                        if may_pass and self._is_cyclic(party, awaited):
                            return False
                        self._note(party, awaited, queue)
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

    def _note(self, party: Party, awaited: set[str], queue: AbstractSet[str]) -> None:
        """Record the parties and places that a party waits for.

        If the wait closes a cycle, wake the waiters.
        """
        own = self._peers.table.holders.get(party.name)
        if own is not None and own.awaited == awaited and own.queued == queue:
            return
        self._tell(party, ["wait", party.name, sorted(awaited), sorted(queue)])
        if self._is_cyclic(party, awaited):
            self._wake(self._waiters)

    def _is_cyclic(self, party: Party, awaited: set[str]) -> bool:
        return lock_table.leads_to(self._peers.all(), awaited, party.name)

    def _note_busy(self, changing: lock_table.Holder) -> None:
        """Record places that transactions both read and change."""
        now = self._timer()
        if len(self._busy) > _MAX_BUSY:
            self._busy = {place: end for place, end in self._busy.items() if end > now}
        for place in changing.places.intersection(changing.wanted):
            self._busy[place] = now + _BUSY

    def _busy_among(self, party: Party, footprint: lock_table.Footprint) -> set[str]:
        """Return the busy places that a party has just read for the first time.

        A place is also busy if another party queues for it, because this process may not have seen
        the conflict.
        """
        now = self._timer()
        places = {
            place for place in self._busy.keys() & footprint.places if self._busy[place] > now
        }
        for _, other in self._others(party):
            if other.queued:
                places.update(other.queued.intersection(footprint.places))
        own = self._peers.table.holders.get(party.name)
        return places if own is None else places - own.places

    def _ahead(
        self, party: Party, footprint: lock_table.Footprint, busy: AbstractSet[str]
    ) -> set[str]:
        """Return the parties for which a reader waits.

        Of the parties that queue at the same places, the result includes only the one directly
        ahead.
        """
        names = set()
        earlier = []
        for name, other in self._others(party):
            if other.is_to_change(footprint) or not busy.isdisjoint(other.places):
                names.add(name)
            if (other.age, name) < (party.age, party.name) and not busy.isdisjoint(other.queued):
                earlier.append((other.age, name))
        if earlier:
            names.add(max(earlier)[1])
        return names

    def _sleep(self, name: str, awaited: set[str], left: float) -> None:
        waiter = self._waiters.setdefault(name, _Waiter(self._lock))
        nap = _NAP
        is_abroad = not awaited <= self._peers.table.holders.keys()
        # One waiter watches the other processes on behalf of all waiters in this process.
        if is_abroad and self._watching in (None, name):
            self._watching = name
            nap = waiter.nap
            waiter.nap = min(_LONGER * nap, _NAPS_ABROAD[1])
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
        """Return the parties that have read a place that this party is about to change."""
        wanted = self._peers.table.holders[party.name].wanted
        return {name for name, other in self._others(party) if other.conflicts_with(wanted)}

    def _tell(self, party: Party, event: lock_table.Event) -> None:
        if party.name in self._peers.table.holders:
            self._peers.tell(event)
        else:
            self._peers.tell(["open", party.name, party.age, party.until], event)

    def _end(self, name: str, event: lock_table.Event) -> None:
        """Publish an event that ends an announcement or a holder, and wake its waiters.

        The client already has its answer, so an unusable lock folder is not an error. Other
        processes then learn of the end from the next event, or when the holder expires.
        """
        with self._lock, contextlib.suppress(errors.Unavailable, errors.StorageFault):
            own = self._peers.table.holders
            if name not in own:
                return
            with self._turn():
                self._wake(waiter for waiter in self._waiters if name in own[waiter].awaited)
                self._peers.tell(event)
