"""The file store: snapshots of the data file, and commits to it.

Owns the connections of a process. `schema` defines the tables, `data_file` opens files and
translates their faults, and `group_commit` begins and ends SQLite transactions.

Invariants:

1. A commit is one SQLite transaction, entities and index entries together, on disk before it is
   acknowledged. Several commits that wait for the disk may share one.
2. A snapshot is an open SQLite read transaction.
3. After a fault, a connection is closed and never used again, so the engine recovers as soon as the
   machine does.
4. At least one connection stays open: it shows other processes that the file is in use.
5. Connections never cross a fork. Idle ones are closed before it (`close_idle` explains why). The
   child drops the others without closing them: closing would end the parent's locks.
6. Replaced and deleted data is overwritten in the file. Without history it must also be removed
   from the log, which contains older states of pages. The log is emptied `LOG_SECONDS` after a
   commit, by the next request that finds the log unused, or by the next commit, which asks the
   other processes to pause.

An engine in memory uses a private temporary file that is removed at the end, because SQLite's own
in-memory databases have no snapshots.
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

from emulator import errors
from emulator.encoding import indexes
from emulator.fault_injection import fault_plans
from emulator.storage import (
    data_file,
    group_commit,
    history,
    row_reader,
    row_writer,
    write_ahead_log,
)

MAX_SNAPSHOTS = 512  # open at once; each holds a connection and two file descriptors
_MAX_IDLE = 64  # connections kept for the next snapshot
LOG_SECONDS = 60  # how long older states stay in the log if no history is kept
_LOG_AGAIN = 1_000_000  # microseconds until the next try if the log was in use
_MOMENTS = 4  # past moments whose computed index entries are cached
_WRITER_CACHE_KIB = 65_536  # filled only by bulk loads: each batch touches pages of every index


class Snapshot(row_reader.RowReader):
    """A fixed state of the file, on a connection of its own. Must be closed."""

    def __init__(
        self, connection: sqlite3.Connection, definitions: row_reader.DefinitionsOf
    ) -> None:
        # Requests of one transaction can run in parallel, so each holds this lock until its end.
        self.lock = threading.RLock()
        connection.execute("BEGIN")
        super().__init__(connection, definitions)
        self.is_sound = True

    @property
    def connection(self) -> sqlite3.Connection:
        return self._connection


class PastSnapshot(history.PastReader, Snapshot):
    """The file as it was at an earlier moment. Must be closed."""


_Kind = TypeVar("_Kind", bound=Snapshot)


class _Borrowed(Generic[_Kind]):
    """A snapshot for the length of one request.

    A class and not a generator, which would be slower: every read passes through here.
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
            data_file.translated.__exit__(kind, fault, trace)
        except BaseException as known:
            fault = known
            raise
        finally:
            if isinstance(fault, (errors.Damaged, errors.Unavailable)):
                self._snapshot.is_sound = False
            self._storage.end_snapshot(self._snapshot)


class _Connections:
    """The connections of one process."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self.idle: list[sqlite3.Connection] = []
        self.turn = group_commit.WriteTurn(connect)
        # A list instead of a semaphore, which takes longer than a small read: append and pop are
        # atomic too.
        self.snapshots_left = [None] * MAX_SNAPSHOTS
        self.definitions: row_reader.Definitions | None = None


class FileStore:
    """One data file. Safe for many threads, and for a child after a fork."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        composites: tuple[indexes.Index, ...] | None,
        now: Callable[[], int],
        *,
        durability: data_file.Durability = data_file.Durability.DURABLE,
        history_seconds: int = history.MAX_AGE,
    ) -> None:
        self._now = now
        self._history = history_seconds * 1_000_000
        self._log_due: int | None = None  # when to empty the log, in microseconds
        self._read_up_to = 0  # the latest moment that was read and was newer than the last commit
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
        self._connections = _Connections(self._connect_writer)
        self._forgotten: list[_Connections] = []
        self._is_closed = False
        data_file.prepare(self.path, self._durability, now)
        with data_file.translated_at_opening(self.path):
            with self.read():
                pass
            if composites is not None:
                with self.write() as writer:
                    writer.define(composites)

    def close_idle(self) -> None:
        """Close all idle connections before a fork. Later calls open new ones.

        A child inherits SQLite's bookkeeping of its parent's locks on a file, but not the locks. So
        while the parent has a connection open, the child's connections do not lock the file
        themselves. Once the parent has exited, the next process that closes the file looks to
        SQLite like the last one, and removes the log that the child still writes to.
        """
        connections = self._connections
        with contextlib.suppress(sqlite3.Error):
            connections.turn.close_idle()
            while connections.idle:
                connections.idle.pop().close()

    def forget_connections(self) -> None:
        """Reset the state in a forked child; leave the parent's connections open and untouched."""
        self._forgotten.append(self._connections)
        self._connections = _Connections(self._connect_writer)
        self._log.forget_parent()

    def wait_for_checkpoint(self) -> None:
        """Wait while another process empties the log. The caller must hold no snapshot or lock."""
        self._log.wait_for_checkpoint()

    def checkpoint_if_due(self) -> None:
        """Empty the log after a commit if it is due, or if the log has grown.

        The caller must hold no snapshot.
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

        The connections of open snapshots are closed when the snapshots end.
        """
        self._is_closed = True
        connections = self._connections
        connections.turn.close()
        while connections.idle:
            connections.idle.pop().close()
        if self._remove is not None:
            self._remove()

    def begin_snapshot(self) -> Snapshot:
        """Open a snapshot of the last commit. Pass it to `end_snapshot` when done."""
        return self._begin(Snapshot)

    def begin_past(self, moment: int) -> PastSnapshot:
        """Open a snapshot of an earlier moment (microseconds). Pass it to `end_snapshot` when done.

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
        """Make all future commits newer than a moment.

        A commit takes its version when it begins. A commit in progress could be older than the
        moment and not visible yet; two reads at the same moment would then differ.
        """
        with data_file.translated, self._connections.turn.alone() as connection:
            self._read_up_to = max(self._read_up_to, moment)
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()

    def _begin(self, kind: type[_Kind]) -> _Kind:
        connection = self._take()
        try:
            with data_file.translated:
                return kind(connection, self._definitions)
        except BaseException:
            self._give_back(connection, is_sound=False)
            raise

    def end_snapshot(self, snapshot: Snapshot) -> None:
        """Release a snapshot's connection."""
        connection = snapshot.connection
        self._give_back(connection, is_sound=snapshot.is_sound and _is_rolled_back(connection))

    def glance(self, key: bytes) -> row_reader.PointRead:
        """Read the latest committed state of one entity, by its encoded key."""
        connection = self._take()
        is_sound = False
        try:
            with data_file.translated:
                found = row_reader.point_read(connection, key)
            is_sound = True
        finally:
            self._give_back(connection, is_sound=is_sound)
        return found

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
        """Read the latest committed state for the length of one request."""
        return _Borrowed(self, self.begin_snapshot())

    def read_at(self, moment: int) -> _Borrowed[PastSnapshot]:
        """Read the state at an earlier moment for the length of one request."""
        return _Borrowed(self, self.begin_past(moment))

    @contextlib.contextmanager
    def write(self, *, may_share: bool = False) -> Iterator[row_writer.RowWriter]:
        """Run the block as one commit, which is on disk when it returns; an exception undoes all.

        Args:
            may_share: The commit is short, changes only entities, and may share its sync with
                others.
        """
        fault_plans.point("commit.begin")
        turn = self._connections.turn
        with data_file.translated, turn.transaction(may_share=may_share) as part:
            now = max(self._now(), self._read_up_to + 1)
            writer = row_writer.RowWriter(
                part.connection, self._definitions, now, history=self._history
            )
            yield writer
            writer.save_state()
            fault_plans.point("commit.before")
            part.remember = functools.partial(self._remember, writer, now)
        fault_plans.point("commit.after")

    def _remember(self, writer: row_writer.RowWriter, now: int) -> None:
        """Update this process's knowledge of the file after a commit has reached the disk."""
        if self._log_due is None and not self._history:
            self._log_due = now + LOG_SECONDS * 1_000_000
        # Not earlier: index ids from a failed commit are not in the file.
        writer.definitions.ids.update(writer.new_ids)

    def _is_log_due(self) -> bool:
        return self._log_due is not None and self._now() >= self._log_due

    def _connect_writer(self) -> sqlite3.Connection:
        return self._connect(cache_kib=_WRITER_CACHE_KIB)

    def _borrow(self, connections: _Connections) -> sqlite3.Connection:
        if self._is_closed:
            raise errors.Unavailable("The engine is closed.")
        try:
            return connections.idle.pop()
        except IndexError:
            with data_file.translated:
                return self._connect()

    def _connect(self, **options: int) -> sqlite3.Connection:
        if self._is_closed:
            raise errors.Unavailable("The engine is closed.")
        return data_file.connect(self.path, self._durability, **options)

    def _definitions(
        self, connection: sqlite3.Connection, generation: int
    ) -> row_reader.Definitions:
        """Return the index definitions that a connection sees; other processes may change them."""
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
