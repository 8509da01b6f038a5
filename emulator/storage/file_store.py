"""The storage: snapshots of the data file, and commits to it.

Owns the connections of a process. What lies in the file is drawn in `schema`; how it is opened and
what its faults mean is in `data_file`; where a SQLite transaction begins and ends is in
`group_commit`.

What must stay true: a commit is all in one SQLite transaction, entities and entries together, on
disk before it is acknowledged; several that wait for the disk at once may share one. A snapshot is
an open SQLite read transaction. A connection that met a fault is closed and not used again, so the
engine works again as soon as the machine does. One connection at least stays open, for it is how
others see that the file is in use. Connections never cross a fork: those that are idle are closed
before it (`close_idle` says why), and the child forgets the others without closing them, for
closing would end the parent's locks. In memory means a private temporary file that is removed at
the end: SQLite's own memory databases have no snapshots.

What was replaced or deleted is overwritten in the file. Where no history is kept it is to be gone:
the log, which holds older states of pages, is emptied `LOG_SECONDS` after a commit by the next
request at which nobody else is using it, or by the next commit, which asks the others to wait.
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
LOG_SECONDS = 60  # that older states stay in the log, where no history is kept
_LOG_AGAIN = 1_000_000  # microseconds until another try, when somebody was using it
_MOMENTS = 4  # of the past of which is remembered what is gone
_WRITER_CACHE_KIB = 65_536  # filled only by loads: each batch touches pages of every index


class Snapshot(row_reader.Reader):
    """A fixed state of the file on a connection of its own. Close it."""

    def __init__(
        self, connection: sqlite3.Connection, definitions: row_reader.DefinitionsOf
    ) -> None:
        # Held for a whole request: several requests of one transaction may run at once.
        self.lock = threading.RLock()
        connection.execute("BEGIN")
        super().__init__(connection, definitions)
        self.is_sound = True

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for the storage that lent it."""
        return self._connection


class PastSnapshot(history.PastReader, Snapshot):
    """The file as it was at an earlier moment. Close it."""


_Kind = TypeVar("_Kind", bound=Snapshot)


class _Borrowed(Generic[_Kind]):
    """A snapshot for the length of one request. Not a generator: every read comes by here."""

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
        self.turn = group_commit.Turn(connect)
        # A list, not a semaphore, which takes longer than a small read: its ends are atomic, too.
        self.snapshots_left = [None] * MAX_SNAPSHOTS
        self.definitions: row_reader.Definitions | None = None


class FileStore:
    """One data file, used from any thread; after a fork also by the child."""

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
        self._log_due: int | None = None  # when the log is to be emptied, in microseconds
        self._read_up_to = 0  # the latest moment beyond the last commit that was read
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
        """Close the connections that nobody uses, before a fork. Later calls open others.

        A child inherits what SQLite knows of its parent's locks on a file, and not the locks. So
        where the parent has a connection open, those of the child do not lock the file for
        themselves. Once the parent is gone, the next process that closes the file is the last one
        to SQLite, and removes the log that the child still writes to.
        """
        connections = self._connections
        with contextlib.suppress(sqlite3.Error):
            connections.turn.close_idle()
            while connections.idle:
                connections.idle.pop().close()

    def forget_connections(self) -> None:
        """Start afresh in a forked child. The parent's connections stay open and untouched."""
        self._forgotten.append(self._connections)
        self._connections = _Connections(self._connect_writer)
        self._log.forget_parent()

    def wait_for_checkpoint(self) -> None:
        """Wait while others empty the log. Who holds a snapshot, or locks, must not call it."""
        self._log.wait_for_checkpoint()

    def checkpoint_if_due(self) -> None:
        """After a commit: empty the log if it is time, or if it has grown.

        Who holds a snapshot must not call it.
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
        """Close all idle connections. Open snapshots close theirs when they end."""
        self._is_closed = True
        connections = self._connections
        connections.turn.close()
        while connections.idle:
            connections.idle.pop().close()
        if self._remove is not None:
            self._remove()

    def begin_snapshot(self) -> Snapshot:
        """Open a snapshot of the last commit. Give it to `end_snapshot`."""
        return self._begin(Snapshot)

    def begin_past(self, moment: int) -> PastSnapshot:
        """Open a snapshot of an earlier moment, in microseconds. Give it to `end_snapshot`.

        Raises:
            errors.InvalidArgument: the moment is in the future, or its history is not kept.
            errors.Unimplemented: no history is kept at all.
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
        """See to it that what is committed from now on is newer than a moment.

        A commit takes its version when it begins. One that is under way may be older than the
        moment and yet unseen: two reads of the one moment would differ.
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
        """Read one entity as the last commit left it, by its encoded key."""
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
        """Read the last commit's state for the length of one request."""
        return _Borrowed(self, self.begin_snapshot())

    def read_at(self, moment: int) -> _Borrowed[PastSnapshot]:
        """Read the state of an earlier moment for the length of one request."""
        return _Borrowed(self, self.begin_past(moment))

    @contextlib.contextmanager
    def write(self, *, may_share: bool = False) -> Iterator[row_writer.Writer]:
        """Change the file: all of it or, on any exception, nothing. On disk when it returns.

        Args:
            may_share: it is short, changes entities only, and others may share its sync.
        """
        fault_plans.point("commit.begin")
        turn = self._connections.turn
        with data_file.translated, turn.transaction(may_share=may_share) as part:
            now = max(self._now(), self._read_up_to + 1)
            writer = row_writer.Writer(
                part.connection, self._definitions, now, history=self._history
            )
            yield writer
            writer.save_state()
            fault_plans.point("commit.before")
            part.remember = functools.partial(self._remember, writer, now)
        fault_plans.point("commit.after")

    def _remember(self, writer: row_writer.Writer, now: int) -> None:
        """Take note of a commit that is on disk."""
        if self._log_due is None and not self._history:
            self._log_due = now + LOG_SECONDS * 1_000_000
        # Only now: ids of a commit that failed are not those of the file.
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
        """Return the definitions in a connection's view; another process may have changed them."""
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
