"""The file store: opens snapshots of the data file, and commits to it.

Owns the database connections of a process. `schema` defines the tables, `data_file` opens files and
converts their errors, and `group_commit` begins and ends SQLite transactions.

Invariant: Replaced and deleted data is overwritten in the file and, without history, removed from
the log, which contains older states of pages
(test_erasure.py::test_deleted_data_is_in_no_byte_a_minute_later).

The log is emptied `LOG_SECONDS` after a commit. The next request that finds the log unused empties
it. Otherwise, the next commit does so after it has asked other processes to pause. After a fault,
the connection is closed and never used again, so the engine recovers as soon as the machine does.
At least one connection stays open, so other processes can see that the file is in use. Connections
never cross a fork. Idle connections are closed before the fork (`close_idle` explains why). The
child abandons the other connections without closing them, because closing them would release the
parent's locks.

An in-memory engine uses a private temporary file and removes it at the end. SQLite's own in-memory
databases are not used, because they have no snapshots.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

from datastore_emulator import errors
from datastore_emulator.encoding import indexes
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import (
    background_checkpoint,
    data_file,
    group_commit,
    history,
    last_commit,
    row_reader,
    row_writer,
    write_ahead_log,
    writer_lock,
)

MAX_SNAPSHOTS = 512  # Open at the same time; each uses a connection and two file descriptors.
_MAX_IDLE = 64  # Maximum number of connections kept open for later snapshots.
LOG_SECONDS = 60  # How long the log keeps older states if there is no history.
_LOG_AGAIN = 1_000_000  # Microseconds until the next attempt if the log was in use.
_MOMENTS = 4  # Number of past moments whose computed index entries are cached.
_WRITER_CACHE_KIB = 65_536  # Only bulk loads fill this cache: each batch touches all indexes.


class Snapshot(row_reader.RowReader):
    """A fixed state of the file, read on its own connection. The caller must close the snapshot."""

    def __init__(
        self, connection: sqlite3.Connection, definitions: row_reader.DefinitionsOf
    ) -> None:
        # Requests of one transaction can run in parallel, so each request holds this lock until it
        # ends.
        self.lock = threading.RLock()
        connection.execute("BEGIN")
        super().__init__(connection, definitions)
        self.is_sound = True

    @property
    def connection(self) -> sqlite3.Connection:
        return self._connection


class PastSnapshot(history.PastReader, Snapshot):
    """The file's state at an earlier moment. The caller must close the snapshot."""


_Kind = TypeVar("_Kind", bound=Snapshot)
_Read = TypeVar("_Read")


class _Borrowed(Generic[_Kind]):
    """A snapshot that is open for the duration of one request.

    Every read uses this class; a generator would be slower.
    """

    def __init__(self, storage: FileStore, snapshot: _Kind) -> None:
        self._storage = storage
        self._snapshot = snapshot

    def __enter__(self) -> _Kind:
        return self._snapshot

    def __exit__(
        self, kind: object, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            data_file.translating.__exit__(kind, fault, trace)
        except BaseException as known:
            fault = known
            raise
        finally:
            if isinstance(fault, (errors.StorageFault, errors.Unavailable)):
                self._snapshot.is_sound = False
            self._storage.end_snapshot(self._snapshot)


class _Connections:
    """The connections of one process."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: str) -> None:
        self.idle: list[sqlite3.Connection] = []
        self.turn = group_commit.WriteTurn(connect, writer_lock.WriterLock(path))
        # A list is faster than a semaphore, which takes longer than a small read. Appending and
        # popping are atomic too.
        self.snapshots_left = [None] * MAX_SNAPSHOTS
        self.definitions: row_reader.Definitions | None = None


class FileStore:
    """One data file. Safe for use from many threads, and in a child process after a fork."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        composites: tuple[indexes.Index, ...] | None,
        now: Callable[[], int],
        *,
        durability: data_file.Durability = data_file.Durability.DURABLE,
        history_seconds: int = history.MAX_AGE,
        has_lazy_indexes: bool = False,
    ) -> None:
        self._now = now
        self._history = history_seconds * 1_000_000
        self._log_due: int | None = None  # Time in microseconds at which to empty the log.
        self._read_up_to = 0  # The latest moment after the last commit at which data was read.
        self._gone = functools.lru_cache(maxsize=_MOMENTS)(history.PastEntries)
        self._remove: Callable[[], object] | None = None
        self._durability = durability
        if path is None:
            folder = tempfile.mkdtemp(prefix="emulator-")
            self._remove = weakref.finalize(self, _remove_folder, folder, os.getpid())
            path = Path(folder) / "data"
            self._durability = data_file.Durability.FAST
        self.path = os.fspath(path)
        self._log = write_ahead_log.WriteAheadLog(
            self.path, lambda wait: data_file.connect(self.path, self._durability, wait=wait)
        )
        self._connections = _Connections(self._connect_writer, self.path)
        self._forgotten: list[_Connections] = []
        self._is_closed = False
        is_durable = self._durability is data_file.Durability.DURABLE
        self.lost = last_commit.check(self.path) if is_durable else None
        data_file.prepare(self.path, self._durability, now)
        with data_file.translating_at_opening(self.path):
            with self.read() as snapshot:
                is_new = has_lazy_indexes and snapshot.definitions.built_ins.are_all
            if is_new or composites is not None:
                with self.write() as writer:
                    if composites is not None:
                        writer.define(composites)
                    if is_new:
                        writer.make_on_demand()

    def close_idle(self) -> None:
        """Close all idle connections before a fork. Later calls open new connections.

        A forked child inherits SQLite's records of its parent's locks on a file, but not the locks
        themselves. Therefore, while the parent has a connection open, the child's connections do
        not lock the file. Once the parent has exited, SQLite treats the next process that closes
        the file as the last one. SQLite then removes the log, although the child still writes to
        it.
        """
        self._log.finish()
        connections = self._connections
        with contextlib.suppress(sqlite3.Error):
            connections.turn.close_idle()
            while connections.idle:
                connections.idle.pop().close()

    def forget_connections(self) -> None:
        """Reset the state in a forked child; leave the parent's connections open and unused."""
        self._forgotten.append(self._connections)
        self._connections = _Connections(self._connect_writer, self.path)
        self._log.forget_parent()

    def wait_for_checkpoint(self) -> None:
        """Wait while another process empties the log.

        The caller must not hold a snapshot or a lock.
        """
        self._log.wait_for_checkpoint()

    def checkpoint_if_due(self) -> None:
        """Empty the log after a commit if that is due or if the log has grown large.

        The caller must not hold a snapshot.
        """
        if self._is_closed:
            return
        if self._is_log_due():
            self._log_due = self._now() + _LOG_AGAIN
            if self._log.empty():
                self._log_due = None
        else:
            self._log.checkpoint_if_large()

    def close(self) -> None:
        """Close all idle connections.

        The connections of open snapshots are closed when those snapshots end.
        """
        self._is_closed = True
        self._log.finish()
        connections = self._connections
        connections.turn.close()
        while connections.idle:
            connections.idle.pop().close()
        if self._remove is not None:
            self._remove()
        else:
            self._merge_log()

    def _merge_log(self) -> None:
        """Merge the log into the file if no process uses the file any more.

        SQLite merges the log when the last connection closes. If processes close the file at the
        same time, however, each may leave the merge to another.
        """
        has_log = last_commit.log_of(self.path) != last_commit.NO_LOG
        with contextlib.suppress(sqlite3.Error, errors.FailedPrecondition):
            # If the file was moved away, SQLite would create a new one and remove the log.
            if has_log and Path(self.path).exists():
                last_commit.check(self.path)
                data_file.connect(self.path, self._durability, wait=0).close()
            last_commit.seal(self.path)

    def begin_snapshot(self) -> Snapshot:
        """Open a snapshot of the last commit. The caller must pass it to `end_snapshot`."""
        return self._begin(Snapshot)

    def begin_past(self, moment: int) -> PastSnapshot:
        """Open a snapshot of an earlier moment, in microseconds.

        The caller must pass the snapshot to `end_snapshot`.

        Raises:
            errors.InvalidArgument: The moment is in the future, or its history is not kept.
            errors.Unimplemented: This file keeps no history.
        """
        snapshot = self._begin(PastSnapshot)
        try:
            history.check(moment, snapshot.state, self._now(), self._history)
        except BaseException:
            self.end_snapshot(snapshot)
            raise
        if moment > snapshot.state.version:
            self.end_snapshot(snapshot)
            self._make_commits_newer_than(moment)
            snapshot = self._begin(PastSnapshot)
        snapshot.look_back(self._gone(moment))
        return snapshot

    def _make_commits_newer_than(self, moment: int) -> None:
        """Ensure that all future commits are newer than a moment.

        A commit takes its version when it begins. A commit in progress could therefore be older
        than the moment and not visible yet. Two reads at the same moment would then differ.
        """
        with data_file.translating, self._connections.turn.alone() as connection:
            self._read_up_to = max(self._read_up_to, moment)
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()

    def _begin(self, kind: type[_Kind]) -> _Kind:
        connection = self._take()
        try:
            with data_file.translating:
                return kind(connection, self._definitions)
        except BaseException:
            self._give_back(connection, is_sound=False)
            raise

    def end_snapshot(self, snapshot: Snapshot) -> None:
        """Release the connection of a snapshot."""
        connection = snapshot.connection
        self._give_back(connection, is_sound=snapshot.is_sound and _is_rolled_back(connection))

    def glance(self, key: bytes) -> row_reader.PointRead:
        """Read the latest committed state of the entity with the given encoded key."""
        return self._run_statement(lambda connection: row_reader.point_read(connection, key))

    def version(self, key: bytes) -> int:
        """Read an entity's latest committed version, by its encoded key; 0 if it is missing."""
        return self._run_statement(lambda connection: row_reader.version(connection, key))

    def last_change(self) -> row_reader.LastChange:
        """Read the file's last change by any process."""
        return self._run_statement(row_reader.last_change)

    def _run_statement(self, read: Callable[[sqlite3.Connection], _Read]) -> _Read:
        """Run a single statement on the latest committed state."""
        connection = self._take()
        is_sound = False
        try:
            with data_file.translating:
                result = read(connection)
            is_sound = True
        finally:
            self._give_back(connection, is_sound=is_sound)
        return result

    def _take(self) -> sqlite3.Connection:
        connections = self._connections
        try:
            connections.snapshots_left.pop()
        except IndexError:
            raise errors.ResourceExhausted(f"{MAX_SNAPSHOTS} transactions are open.") from None
        try:
            return self._borrow(connections)
        except BaseException:
            connections.snapshots_left.append(None)
            raise

    def _give_back(self, connection: sqlite3.Connection, *, is_sound: bool) -> None:
        connections = self._connections
        connections.snapshots_left.append(None)
        if not is_sound or self._is_closed or len(connections.idle) >= _MAX_IDLE:
            connection.close()
        else:
            connections.idle.append(connection)
        if self._is_log_due() and not self._is_closed:
            with connections.turn.if_free() as writer:
                if writer is not None:
                    is_empty = data_file.checkpoint(writer)
                    self._log_due = None if is_empty else self._now() + _LOG_AGAIN

    def read(self) -> _Borrowed[Snapshot]:
        """Read the latest committed state for the duration of one request."""
        return _Borrowed(self, self.begin_snapshot())

    def read_at(self, moment: int) -> _Borrowed[PastSnapshot]:
        """Read the state at an earlier moment for the duration of one request."""
        return _Borrowed(self, self.begin_past(moment))

    @contextlib.contextmanager
    def write(self, *, may_share: bool = False) -> Iterator[row_writer.RowWriter]:
        """Run the block as one commit, which is on disk afterward; an exception undoes it all.

        Args:
            may_share: Whether the commit may share its disk sync with other commits. A commit that
                shares its sync must be short and must change only entities.
        """
        fault_plans.point("commit.begin")
        turn = self._connections.turn
        with data_file.translating, turn.transaction(may_share=may_share) as part:
            now = max(self._now(), self._read_up_to + 1)
            before = part.connection.total_changes
            writer = row_writer.RowWriter(
                part.connection, self._definitions, now, history=self._history
            )
            yield writer
            writer.save_state()
            fault_plans.point("commit.before")
            rows = part.connection.total_changes - before
            part.remember = functools.partial(self._remember, writer, now)
            if self._durability is data_file.Durability.DURABLE:
                part.version = writer.commit_version
        self._log.count(rows)
        fault_plans.point("commit.after")

    def _remember(self, writer: row_writer.RowWriter, now: int) -> None:
        """Update this process's cached state after a commit has reached the disk."""
        if self._log_due is None and not self._history:
            self._log_due = now + LOG_SECONDS * 1_000_000
        # Index ids are recorded only now, because ids from a failed commit are not in the file.
        writer.definitions.ids.update(writer.new_ids)

    def _is_log_due(self) -> bool:
        return self._log_due is not None and self._now() >= self._log_due

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect(cache_kib=_WRITER_CACHE_KIB)
        background_checkpoint.replace_automatic(connection)
        return connection

    def _borrow(self, connections: _Connections) -> sqlite3.Connection:
        if self._is_closed:
            raise errors.Unavailable("The engine is closed.")
        try:
            return connections.idle.pop()
        except IndexError:
            with data_file.translating:
                return self._connect()

    def _connect(self, **options: int) -> sqlite3.Connection:
        if self._is_closed:
            raise errors.Unavailable("The engine is closed.")
        return data_file.connect(self.path, self._durability, **options)

    def _definitions(
        self, connection: sqlite3.Connection, generation: int
    ) -> row_reader.Definitions:
        """Return the index definitions that a connection sees; other processes may change these."""
        known = self._connections.definitions
        if known is not None and known.generation == generation:
            return known
        loaded = row_reader.load_definitions(connection, generation)
        self._connections.definitions = loaded
        return loaded


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _is_rolled_back(connection: sqlite3.Connection) -> bool:
    try:
        connection.rollback()
    except sqlite3.Error:
        return False
    return True
