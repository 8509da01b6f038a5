"""Transactions: what is open, what it has read, and whether it may commit.

Owns transaction ids, expiry and concurrency control. A transaction reads one snapshot, opened by
its first read, and its commit is refused with ABORTED if anything that it read has changed since;
that check runs inside the write transaction, so no change can slip in between, and it sees those
that share the transaction and came before it (`group_commit`). That is all there is in optimistic
mode, and what serializability rests on in both.

In pessimistic mode a transaction also holds locks on what it has read (`lock_manager`), and a
change that touches them waits, in or out of a transaction. A read that meets something newer than
the snapshot moves it there: whatever was read before still stands, so it is as if the transaction
had begun later. Otherwise the transaction ends at once.

Ids hold only in the process that made them. A snapshot never outlives its transaction.
"""

import contextlib
import enum
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from emulator import errors, thread_pool
from emulator.storage import file_store, read_sets, row_reader, row_writer
from emulator.transactions import lock_manager

MAX_AGE = 270.0  # seconds from begin
MAX_IDLE = 60.0  # seconds without a request
UNCLAIMED = 2.0  # seconds for which the locks of a first read stand alone
_MAX_REMEMBERED = 10_000  # finished transactions, so that rolling an aborted one back is no error


class Concurrency(enum.Enum):
    """Whether a transaction keeps others from changing what it has read, or loses if they have."""

    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"


class Outcome(enum.Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    ABORTED = "aborted"
    EXPIRED = "expired"


class SnapshotMoved(Exception):
    """A read was out of date before it was locked, and the snapshot has moved: do it again."""


class _Ended(NamedTuple):
    """What is remembered of a transaction."""

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
        self.age = now  # when its first attempt began
        self.began = now
        self.used = now
        self.snapshot: file_store.Snapshot | None = None
        # Whether its client has shown that it knows the id.
        self.is_claimed = True
        # One request at a time: the snapshot is one connection.
        self.lock = threading.RLock()

    def is_expired(self, now: float) -> bool:
        """Tell whether the transaction has lived or idled for too long."""
        return now > self.until

    @property
    def until(self) -> float:
        """When it expires, unless it is used before."""
        return min(self.began + MAX_AGE, self.used + MAX_IDLE)

    @property
    def party(self) -> lock_manager.Party:
        """The transaction as a holder of locks.

        One that began with its first read may be nobody's: if that answer was lost, no client can
        end it. So until it is heard of again its locks, and only they, stand for a short while.
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
        """Start afresh in a forked child: the snapshots are the parent's."""
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
        """Begin a transaction for a project and database, perhaps in the past (microseconds).

        A previous attempt lends its age, and the older of two wins. One that is not remembered has
        none to lend.

        Raises:
            errors.InvalidArgument: the previous attempt was a read-only transaction.
        """
        self._expire()
        transaction = Transaction(os.urandom(16), scope, self._clock(), is_read_only=is_read_only)
        attempt = self._open.get(previous) or self._ended.get(previous)
        if attempt is not None:
            if attempt.is_read_only:
                raise errors.InvalidArgument("The previous transaction was a read-only one.")
            transaction.age = attempt.age
        if read_time is not None:
            # At once: by the first read its history could be gone.
            transaction.snapshot = self._storage.begin_past(read_time)
        with self._lock:
            self._open[transaction.name] = transaction
        return transaction

    @contextlib.contextmanager
    def using(self, name: bytes, scope: tuple[str, str]) -> Iterator[Transaction]:
        """Hold an open transaction for the length of one request.

        Raises:
            errors.InvalidArgument: it is unknown, of another database, has ended or has expired.
        """
        self._expire()
        transaction = self._open.get(name)
        if transaction is None or transaction.scope != scope:
            raise self._refusal(name)
        with _held(transaction.lock):
            if name not in self._open:
                raise self._refusal(name)
            transaction.used = self._clock()
            yield transaction
            transaction.used = self._clock()
            # The request that began it was the first; from the next one on it is somebody's.
            transaction.is_claimed = True

    def snapshot_of(self, transaction: Transaction) -> file_store.Snapshot:
        """Return a transaction's snapshot; the first read fixes it."""
        if transaction.snapshot is None:
            transaction.snapshot = self._storage.begin_snapshot()
        return transaction.snapshot

    def renew(self, name: bytes, scope: tuple[str, str]) -> None:
        """Move a transaction to a snapshot that has an index which was just made.

        Raises:
            errors.Aborted: data have changed since its first read, so its snapshot must stay.
        """
        with self.using(name, scope) as transaction:
            old = transaction.snapshot
            if old is None:
                return
            new = self._storage.begin_snapshot()
            if new.version == old.version:
                transaction.snapshot = new
                self._storage.end_snapshot(old)
                return
            self._storage.end_snapshot(new)
            self.end(transaction, Outcome.ABORTED)
            raise errors.Aborted("An index was made for this query. Run the transaction again.")

    @contextlib.contextmanager
    def reading(
        self, transaction: Transaction
    ) -> Iterator[tuple[row_reader.Reader, read_sets.ReadSet | None]]:
        """Hold a transaction's snapshot for one request, and what notes its reads.

        Raises:
            errors.Aborted: what is read has changed since the snapshot, and so has something that
                was read before. The transaction has ended.
            SnapshotMoved: the same, but what was read before still stands. The snapshot is a new
            one.
        """
        if self._locks is None or transaction.is_read_only:
            reads = None if transaction.is_read_only else transaction.reads
            yield self.snapshot_of(transaction), reads
            return
        snapshot = self.snapshot_of(transaction)
        reads = read_sets.ReadSet()
        yield snapshot, reads
        self._locks.share(transaction.party, reads)
        with self._storage.read() as current:
            is_current = _is_unchanged(reads, snapshot.version, current)
        if is_current:
            transaction.reads.merge(reads)
            return
        self._move(transaction, snapshot)
        raise SnapshotMoved

    def _move(self, transaction: Transaction, old: file_store.Snapshot) -> None:
        """Give a transaction the latest snapshot, unless something that it has read has changed.

        Without this a read of what many change would end almost every transaction that reads it
        late: it waits for its turn, and what it waits for is newer than its first read.
        """
        new = self._storage.begin_snapshot()
        is_standing = _is_unchanged(transaction.reads, old.version, new)
        transaction.snapshot = new
        self._storage.end_snapshot(old)
        if not is_standing:
            self.end(transaction, Outcome.ABORTED)
            raise errors.Aborted(lock_manager.CONTENTION)

    def write(
        self,
        transaction: Transaction | None,
        check: Callable[[], _Checked],
        apply: Callable[[row_writer.Writer, _Checked], _Answer],
    ) -> _Answer:
        """Change the file: apply what was checked, of a transaction if what it read still stands.

        With locks both may be called again after a wait, `check` first.

        Raises:
            errors.Aborted: what was read has changed, or others hold locks for too long.
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
        apply: Callable[[row_writer.Writer, _Checked], _Answer],
    ) -> _Answer:
        party, end = self._writer(held, transaction)
        try:
            while True:
                checked = check()
                with (
                    contextlib.suppress(lock_manager.Blocked),
                    self._storage.write(may_share=True) as writer,
                ):
                    writer.touched = set()
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
        """Return who writes, and until when it may wait."""
        if transaction is not None:
            return transaction.party, held.time_after(lock_manager.COMMIT_WAIT)
        now = self._clock()
        party = lock_manager.Party(os.urandom(16).hex(), now, now + MAX_IDLE)
        return party, held.time_after(lock_manager.WRITE_WAIT)

    def end(self, transaction: Transaction, outcome: Outcome) -> None:
        """End a transaction, once, and release its snapshot. The caller holds its lock."""
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
        """End a transaction without a write. One that was aborted may be rolled back too."""
        ended = self._ended.get(name)
        if ended is not None and ended.outcome is Outcome.ABORTED:
            return
        with self.using(name, scope) as transaction:
            self.end(transaction, Outcome.ROLLED_BACK)

    def close(self) -> None:
        """End all transactions and all waiting."""
        if self._locks is not None:
            self._locks.close()
        self.end_all()

    def end_all(self) -> None:
        """End all transactions; others may begin."""
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


def validate(transaction: Transaction, writer: row_writer.Writer) -> None:
    """Check inside the write transaction that nothing a transaction read has changed.

    Raises:
        errors.Aborted: something has.
    """
    if transaction.snapshot is None:
        return
    if not _is_unchanged(transaction.reads, transaction.snapshot.version, writer):
        raise errors.Aborted(lock_manager.CONTENTION)


@contextlib.contextmanager
def _held(lock: threading.RLock) -> Iterator[None]:
    """Hold a lock that another request of the same transaction may hold for as long as it waits."""
    if not lock.acquire(blocking=False):
        with thread_pool.waiting():
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _is_unchanged(reads: read_sets.ReadSet, version: int, writer: row_reader.Reader) -> bool:
    return writer.version == version or (
        all(writer.entity_version(key) == seen for key, seen in reads.entities.items())
        and all(writer.has_entry(name, entry, version) for name, entry in reads.entries)
        and not any(writer.has_newer(name, low, high, version) for name, low, high in reads.ranges)
    )
