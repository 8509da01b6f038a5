"""Open transactions: their reads, and the check that decides whether they may commit.

Owns transaction ids, expiry and concurrency control. A transaction reads one snapshot, which its
first read opens. A transaction's commit is refused with ABORTED if anything that the transaction
read has changed since. This check runs inside the write transaction, so nothing can change before
the commit. The check also sees earlier commits in the same group (`group_commit`). The optimistic
mode consists of this check alone, and serializability depends on the check in both modes.

In the pessimistic mode, a transaction also locks the places that it has read (`lock_manager`). Any
change to these places, inside or outside a transaction, waits. If a read finds data that has
changed since the snapshot, and all earlier reads are still valid, the snapshot moves forward, as if
the transaction had begun later. If an earlier read is outdated, the transaction is aborted
immediately.

An id is valid only in the process that created it.
"""

import contextlib
import enum
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

from datastore_emulator import errors, thread_pool
from datastore_emulator.execution import lazy_indexes
from datastore_emulator.storage import file_store, read_sets, row_reader, row_writer
from datastore_emulator.transactions import lock_manager

MAX_AGE = 270.0  # Maximum seconds from begin to commit.
MAX_IDLE = 60.0  # Maximum seconds without a request.
UNCLAIMED = 2.0  # Seconds that locks last until the client uses the transaction's id.
_MAX_REMEMBERED = 10_000  # Remembered ended transactions; an aborted one can still be rolled back.


class Concurrency(enum.Enum):
    """The ways in which transactions handle conflicts."""

    OPTIMISTIC = "optimistic"  # Abort at commit if anything that was read has changed.
    PESSIMISTIC = "pessimistic"  # Also lock everything that a transaction has read.


class Outcome(enum.Enum):
    """The ways in which a transaction ends."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    ABORTED = "aborted"
    EXPIRED = "expired"


class SnapshotMoved(Exception):
    """A read was outdated before it took its lock; the snapshot has moved, so repeat the read."""


class _Ended(NamedTuple):
    outcome: Outcome
    age: float
    is_read_only: bool


_Checked = TypeVar("_Checked")
_Answer = TypeVar("_Answer")


class Transaction:
    """One open transaction."""

    def __init__(self, name: bytes, scope: tuple[str, str], now: float, *, is_read_only: bool):
        self.name = name
        self.scope = scope
        self.is_read_only = is_read_only
        self.reads = read_sets.ReadSet()
        self.age = now  # Start of the first attempt
        self.began = now
        self.used = now
        self.snapshot: file_store.Snapshot | None = None
        self.has_moment = False  # Whether the client chose the moment to read
        self.has_read = False  # Whether a read has succeeded
        # Whether the client has used the id, which proves that the client received it.
        self.is_claimed = True
        # Allows one request at a time, because the snapshot is a single connection.
        self.lock = threading.RLock()

    def is_expired(self, now: float) -> bool:
        return now > self.until

    @property
    def until(self) -> float:
        """The time at which the transaction expires unless a request uses it earlier."""
        return min(self.began + MAX_AGE, self.used + MAX_IDLE)

    @property
    def party(self) -> lock_manager.Party:
        """The transaction as a holder of locks.

        If the transaction began with its first read and the response to that read was lost, no
        client knows the transaction's id, so no client can end it. Therefore, until a client uses
        the id, the locks (and only the locks) expire after a short time.
        """
        until = self.until if self.is_claimed else min(self.until, self.used + UNCLAIMED)
        return lock_manager.Party(self.name.hex(), self.age, until)


class Transactions:
    """All open transactions of this process."""

    def __init__(
        self,
        store: file_store.FileStore,
        clock: Callable[[], float],
        *,
        concurrency: Concurrency = Concurrency.OPTIMISTIC,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = store
        self._clock = clock
        self._open: dict[bytes, Transaction] = {}
        self._ended: dict[bytes, _Ended] = {}
        self._lock = threading.Lock()
        self._locks: lock_manager.LockManager | None = None
        if concurrency is Concurrency.PESSIMISTIC:
            self._locks = lock_manager.LockManager(
                Path(f"{store.path}-locks"), clock=clock, timer=timer
            )

    def forget(self) -> None:
        """Reset the state in a forked child process, because the snapshots belong to the parent."""
        self._open = {}
        self._ended = {}
        self._lock = threading.Lock()
        if self._locks is not None:
            self._locks.forget()

    def begin(
        self,
        scope: tuple[str, str],
        *,
        is_read_only: bool,
        read_time: int | None = None,
        previous: bytes = b"",
    ) -> Transaction:
        """Begin a transaction for a project and database, optionally in the past (microseconds).

        The new transaction inherits the age of its previous attempt, if that attempt is still
        remembered: of two transactions, the older one wins.

        Raises:
            errors.InvalidArgument: The previous attempt was a read-only transaction.
        """
        self._expire()
        transaction = Transaction(os.urandom(16), scope, self._clock(), is_read_only=is_read_only)
        attempt = self._open.get(previous) or self._ended.get(previous)
        if attempt is not None:
            if attempt.is_read_only:
                raise errors.InvalidArgument("The previous transaction was a read-only one.")
            transaction.age = attempt.age
        if read_time is not None:
            # Open the snapshot now, because the history could be deleted before the first read.
            transaction.snapshot = self._storage.begin_past(read_time)
            transaction.has_moment = True
        with self._lock:
            self._open[transaction.name] = transaction
        return transaction

    @contextlib.contextmanager
    def using(self, name: bytes, scope: tuple[str, str]) -> Iterator[Transaction]:
        """Hold an open transaction for the duration of one request.

        Raises:
            errors.InvalidArgument: The transaction is unknown, belongs to a different database, has
                ended or has expired.
        """
        self._expire()
        transaction = self._open.get(name)
        if transaction is None or transaction.scope != scope:
            raise self._refusal(name)
        with _holding(transaction.lock):
            if name not in self._open:
                raise self._refusal(name)
            transaction.used = self._clock()
            yield transaction
            transaction.used = self._clock()
            # The first request began the transaction; a second request proves that the client has
            # the id.
            transaction.is_claimed = True

    def snapshot_of(self, transaction: Transaction) -> file_store.Snapshot:
        """Return a transaction's snapshot, which the first read opens."""
        if transaction.snapshot is None:
            transaction.snapshot = self._storage.begin_snapshot()
        return transaction.snapshot

    def renew(self, name: bytes, scope: tuple[str, str]) -> None:
        """Move a transaction to a snapshot that includes a newly created index.

        If earlier reads are outdated, the new snapshot shows the same moment as the old one.

        Raises:
            errors.Aborted: Earlier reads are outdated, and no history is kept.
        """
        with self.using(name, scope) as transaction:
            self._renew(transaction)

    def _renew(self, transaction: Transaction) -> None:
        old = transaction.snapshot
        if old is None:
            return
        new = self._storage.begin_snapshot()
        # The reads of a read-only transaction are not recorded, so they cannot be compared.
        may_move = not transaction.is_read_only and _is_unchanged(
            transaction.reads, old.version, new
        )
        if new.version != old.version and not may_move:
            self._storage.end_snapshot(new)
            try:
                new = self._storage.begin_past(old.version)
            except errors.DatastoreError:  # No history is kept
                self._abort_for_index(transaction)
        transaction.snapshot = new
        self._storage.end_snapshot(old)

    def _abort_for_index(self, transaction: Transaction) -> NoReturn:
        self.end(transaction, Outcome.ABORTED)
        raise errors.Aborted("An index was created for this query. Run the transaction again.")

    def make_indexes(self, name: bytes, scope: tuple[str, str], codes: Collection[bytes]) -> None:
        """Make the built-in indexes that a transaction's query needs, and move its snapshot.

        Raises:
            errors.Aborted: As in `renew`; or the indexes need several steps, and the transaction
                has reads, whose locks must not be held for that long.
        """
        with self.using(name, scope) as transaction:
            if not (transaction.has_read or transaction.has_moment):
                self._drop_snapshot(transaction)
            if not lazy_indexes.take_step(self._storage, codes):
                is_holding = transaction.has_read and not transaction.is_read_only
                if is_holding:
                    self.end(transaction, Outcome.ABORTED)
                lazy_indexes.make(self._storage, codes)
                if is_holding:
                    self._abort_for_index(transaction)
            self._renew(transaction)

    @contextlib.contextmanager
    def reading(
        self, transaction: Transaction
    ) -> Iterator[tuple[row_reader.RowReader, read_sets.ReadSet | None]]:
        """Hold a transaction's snapshot for one request; yield it with the request's read set.

        Raises:
            errors.Aborted: This read and an earlier one are outdated. The transaction has ended.
            SnapshotMoved: This read is outdated, but all earlier reads are valid. The transaction
                has a new snapshot.
        """
        if self._locks is None or transaction.is_read_only:
            reads = None if transaction.is_read_only else transaction.reads
            yield self.snapshot_of(transaction), reads
            transaction.has_read = True
            return
        snapshot = self.snapshot_of(transaction)
        reads = read_sets.ReadSet()
        yield snapshot, reads
        self._locks.share(transaction.party, reads)
        if self._is_current(reads, snapshot.version):
            transaction.reads.merge(reads)
            transaction.has_read = True
            return
        self._move(transaction, snapshot)
        raise SnapshotMoved

    def _is_current(self, reads: read_sets.ReadSet, version: int) -> bool:
        """Return whether everything that was read is unchanged since a version."""
        if self._storage.last_change().version == version:
            return True
        with self._storage.read() as current:
            return _is_unchanged(reads, version, current)

    def _move(self, transaction: Transaction, old: file_store.Snapshot) -> None:
        """Give a transaction the latest snapshot, unless one of its reads is outdated.

        Without the move, a late read of a busy entity would abort almost every transaction. Such a
        read waits for a change by another transaction, and that change is newer than the first read
        of the waiting transaction.
        """
        new = self._storage.begin_snapshot()
        is_unchanged = _is_unchanged(transaction.reads, old.version, new)
        transaction.snapshot = new
        self._storage.end_snapshot(old)
        if not is_unchanged:
            self.end(transaction, Outcome.ABORTED)
            raise errors.Aborted(lock_manager.CONTENTION)

    def write(
        self,
        transaction: Transaction | None,
        check: Callable[[], _Checked],
        apply: Callable[[row_writer.RowWriter, _Checked], _Answer],
    ) -> _Answer:
        """Apply a checked change to the file; in a transaction, only if all reads are still valid.

        With locks, `check` and `apply` may be called again, in this order, after a wait.

        Raises:
            errors.Aborted: A read is outdated, or other parties hold locks for too long.
        """
        if self._locks is not None:
            return self._write_locked(self._locks, transaction, check, apply)
        checked = check()
        with self._storage.write(may_share=True) as writer:
            if transaction is not None:
                validate(transaction, writer)
            return apply(writer, checked)

    def _write_locked(
        self,
        held: lock_manager.LockManager,
        transaction: Transaction | None,
        check: Callable[[], _Checked],
        apply: Callable[[row_writer.RowWriter, _Checked], _Answer],
    ) -> _Answer:
        party, end = self._writer(held, transaction)
        try:
            while True:
                checked = check()
                with (
                    contextlib.suppress(lock_manager.Blocked),
                    self._storage.write(may_share=True) as writer,
                ):
                    writer.touched = []
                    if transaction is not None:
                        validate(transaction, writer)
                    answer = apply(writer, checked)
                    held.announce(party, writer.touched)
                    return answer
                held.await_readers(party, end)
        except BaseException:
            held.withdraw(party)
            raise
        finally:
            if transaction is None:
                held.release(party.name)

    def _writer(
        self, held: lock_manager.LockManager, transaction: Transaction | None
    ) -> tuple[lock_manager.Party, float]:
        """Return the writing party, and the end of its waiting time."""
        if transaction is not None:
            return transaction.party, held.time_after(lock_manager.COMMIT_WAIT)
        now = self._clock()
        party = lock_manager.Party(os.urandom(16).hex(), now, now + MAX_IDLE)
        return party, held.time_after(lock_manager.WRITE_WAIT)

    def end(self, transaction: Transaction, outcome: Outcome) -> None:
        """End a transaction, unless it has already ended, and release its snapshot.

        The caller must hold the transaction's lock.
        """
        with self._lock:
            if self._open.pop(transaction.name, None) is None:
                return
            self._ended[transaction.name] = _Ended(
                outcome, transaction.age, transaction.is_read_only
            )
            while len(self._ended) > _MAX_REMEMBERED:
                del self._ended[next(iter(self._ended))]
        self._drop_snapshot(transaction)
        if self._locks is not None:
            self._locks.release(transaction.name.hex())

    def _drop_snapshot(self, transaction: Transaction) -> None:
        if transaction.snapshot is not None:
            self._storage.end_snapshot(transaction.snapshot)
            transaction.snapshot = None

    def roll_back(self, name: bytes, scope: tuple[str, str]) -> None:
        """End a transaction without writing.

        A transaction that was aborted may be rolled back too.
        """
        ended = self._ended.get(name)
        if ended is not None and ended.outcome is Outcome.ABORTED:
            return
        with self.using(name, scope) as transaction:
            self.end(transaction, Outcome.ROLLED_BACK)

    def close(self) -> None:
        if self._locks is not None:
            self._locks.close()
        self.end_all()

    def end_all(self) -> None:
        for transaction in list(self._open.values()):
            with transaction.lock:
                self.end(transaction, Outcome.ROLLED_BACK)

    def _expire(self) -> None:
        now = self._clock()
        for transaction in list(self._open.values()):
            if transaction.is_expired(now) and transaction.lock.acquire(blocking=False):
                try:
                    self.end(transaction, Outcome.EXPIRED)
                finally:
                    transaction.lock.release()

    def _refusal(self, name: bytes) -> errors.DatastoreError:
        ended = self._ended.get(name)
        if ended is None or ended.outcome is Outcome.EXPIRED:
            return errors.InvalidArgument(
                "The referenced transaction has expired or is no longer valid."
            )
        return errors.InvalidArgument(f"The transaction was already {ended.outcome.value}.")


def validate(transaction: Transaction, writer: row_writer.RowWriter) -> None:
    """Check inside the write transaction that no read of a transaction is outdated.

    Raises:
        errors.Aborted: A read is outdated.
    """
    if transaction.snapshot is None:
        return
    if not _is_unchanged(transaction.reads, transaction.snapshot.version, writer):
        raise errors.Aborted(lock_manager.CONTENTION)


@contextlib.contextmanager
def _holding(lock: threading.RLock) -> Iterator[None]:
    """Hold a transaction's lock.

    Another request of the transaction may hold the lock during a long wait.
    """
    if not lock.acquire(blocking=False):
        with thread_pool.waiting():
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _is_unchanged(reads: read_sets.ReadSet, version: int, writer: row_reader.RowReader) -> bool:
    return writer.version == version or (
        all(writer.entity_version(key) == seen for key, seen in reads.entities.items())
        and all(writer.has_entry(name, entry, version) for name, entry in reads.entries)
        and not any(writer.has_newer(name, low, high, version) for name, low, high in reads.ranges)
    )
