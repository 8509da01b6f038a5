"""Transactions: what is open, what it has read, and whether it may commit.

Owns transaction ids, expiry and concurrency control. Control is optimistic: a transaction reads one
snapshot, opened by its first read, and its commit is refused with ABORTED if anything that it read
has changed since; that check runs inside the write transaction, so no change can slip in between.
`Transaction.reads` and `validate` are the whole seam: a mode with locks takes them where `reads` is
handed out and drops the check.

Ids hold only in the process that made them. A snapshot never outlives its transaction.
"""

import contextlib
import enum
import os
import threading
from collections.abc import Callable, Iterator

from emulator import changes, errors, readsets, storage

MAX_AGE = 270.0  # seconds from begin
MAX_IDLE = 60.0  # seconds without a request
_MAX_REMEMBERED = 10_000  # finished transactions, so that rolling an aborted one back is no error


class Outcome(enum.Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    ABORTED = "aborted"
    EXPIRED = "expired"


class Transaction:
    """One open transaction."""

    def __init__(self, name: bytes, scope: tuple[str, str], now: float, *, is_read_only: bool):
        self.name = name
        self.scope = scope
        self.is_read_only = is_read_only
        self.reads = readsets.ReadSet()
        self.began = now
        self.used = now
        self.snapshot: storage.Snapshot | None = None
        # One request at a time: the snapshot is one connection.
        self.lock = threading.RLock()

    def is_expired(self, now: float) -> bool:
        """Tell whether the transaction has lived or idled for too long."""
        return now - self.began > MAX_AGE or now - self.used > MAX_IDLE


class Transactions:
    """All open transactions of this process."""

    def __init__(self, store: storage.Storage, clock: Callable[[], float]) -> None:
        self._storage = store
        self._clock = clock
        self._open: dict[bytes, Transaction] = {}
        self._ended: dict[bytes, Outcome] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Start afresh in a forked child: the snapshots are the parent's."""
        self._open = {}
        self._ended = {}
        self._lock = threading.Lock()

    def begin(
        self, scope: tuple[str, str], *, is_read_only: bool, read_time: int | None = None
    ) -> Transaction:
        """Begin a transaction for a project and database, perhaps in the past (microseconds)."""
        self._expire()
        transaction = Transaction(os.urandom(16), scope, self._clock(), is_read_only=is_read_only)
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
        with transaction.lock:
            if name not in self._open:
                raise self._refusal(name)
            transaction.used = self._clock()
            yield transaction
            transaction.used = self._clock()

    def snapshot_of(self, transaction: Transaction) -> storage.Snapshot:
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

    def end(self, transaction: Transaction, outcome: Outcome) -> None:
        """End a transaction, once, and release its snapshot. The caller holds its lock."""
        with self._lock:
            if self._open.pop(transaction.name, None) is None:
                return
            self._ended[transaction.name] = outcome
            while len(self._ended) > _MAX_REMEMBERED:
                del self._ended[next(iter(self._ended))]
        if transaction.snapshot is not None:
            self._storage.end_snapshot(transaction.snapshot)
            transaction.snapshot = None

    def roll_back(self, name: bytes, scope: tuple[str, str]) -> None:
        """End a transaction without a write. One that was aborted may be rolled back too."""
        if self._ended.get(name) is Outcome.ABORTED:
            return
        with self.using(name, scope) as transaction:
            self.end(transaction, Outcome.ROLLED_BACK)

    def close(self) -> None:
        """End all transactions."""
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
        outcome = self._ended.get(name)
        if outcome is None or outcome is Outcome.EXPIRED:
            return errors.InvalidArgument(
                "The referenced transaction has expired or is no longer valid."
            )
        return errors.InvalidArgument(f"The transaction was already {outcome.value}.")


def validate(transaction: Transaction, writer: changes.Writer) -> None:
    """Check inside the write transaction that nothing a transaction read has changed.

    Raises:
        errors.Aborted: something has.
    """
    if transaction.snapshot is None or transaction.snapshot.version == writer.version:
        return
    if not _is_unchanged(transaction.reads, transaction.snapshot.version, writer):
        raise errors.Aborted(
            "Aborted due to cross-transaction contention. This occurs when multiple transactions "
            "attempt to access the same data, requiring Datastore mode to abort at least one in "
            "order to enforce serializability."
        )


def _is_unchanged(reads: readsets.ReadSet, version: int, writer: changes.Writer) -> bool:
    return (
        all(writer.entity_version(key) == seen for key, seen in reads.entities.items())
        and all(writer.has_entry(name, entry, version) for name, entry in reads.entries)
        and not any(writer.has_newer(name, low, high, version) for name, low, high in reads.ranges)
    )
