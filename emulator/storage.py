"""The data file.

Owns SQLite's connections and transactions: how the file is made and opened, snapshots, and the turn
of the one writer. What lies in the file is drawn in `rows`; a file of another FORMAT is refused.

What must stay true: a commit is one SQLite transaction, entities and entries together, on disk
before it is acknowledged (WAL, synchronous=FULL). A snapshot is an open SQLite read transaction.
Connections never cross a fork: the child forgets its parent's without closing them, for closing
would end the parent's locks. In memory means a private temporary file that is removed at the end:
SQLite's own memory databases have no snapshots.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from emulator import changes, errors, faults, indexes, rows

MAX_SNAPSHOTS = 512  # open at once; each holds a connection and two file descriptors
_MAX_IDLE = 64  # connections kept for the next snapshot
_APPLICATION = 0x46744453
_BUSY_SECONDS = 60.0


class Snapshot(rows.Reader):
    """A fixed state of the file on a connection of its own. Close it."""

    def __init__(self, connection: sqlite3.Connection, definitions: rows.DefinitionsOf) -> None:
        # Held for a whole request: several requests of one transaction may run at once.
        self.lock = threading.RLock()
        connection.execute("BEGIN")
        super().__init__(connection, definitions)

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for the storage that lent it."""
        return self._connection


class _Connections:
    """The connections of one process."""

    def __init__(self) -> None:
        self.idle: list[sqlite3.Connection] = []
        self.writer: sqlite3.Connection | None = None
        # Threads queue here and not in SQLite, whose waiting is a sleep that some never win.
        self.write_lock = threading.Lock()
        self.snapshots_left = threading.Semaphore(MAX_SNAPSHOTS)
        self.definitions: rows.Definitions | None = None


class Storage:
    """One data file, used from any thread; after a fork also by the child."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        composites: tuple[indexes.Index, ...] | None,
        now: Callable[[], int],
    ) -> None:
        self._now = now
        self._remove: Callable[[], object] | None = None
        self._synchronous = "FULL"
        if path is None:
            folder = tempfile.mkdtemp(prefix="emulator-")
            self._remove = weakref.finalize(self, _remove_folder, folder, os.getpid())
            path = Path(folder) / "data"
            self._synchronous = "OFF"
        self.path = os.fspath(path)
        self._connections = _Connections()
        self._forgotten: list[_Connections] = []
        self._is_closed = False
        try:
            self._create()
        except sqlite3.Error as error:
            raise errors.FailedPrecondition(f"{self.path}: {error}") from error
        if composites is not None:
            with self.write() as writer:
                writer.define(composites)

    def forget_connections(self) -> None:
        """Start afresh in a forked child. The parent's connections stay open and untouched."""
        self._forgotten.append(self._connections)
        self._connections = _Connections()

    def close(self) -> None:
        """Close all idle connections. Open snapshots close theirs when they end."""
        self._is_closed = True
        connections = self._connections
        with connections.write_lock:
            while connections.idle:
                connections.idle.pop().close()
            if connections.writer is not None:
                connections.writer.close()
                connections.writer = None
        if self._remove is not None:
            self._remove()

    def begin_snapshot(self) -> Snapshot:
        """Open a snapshot of the last commit. Give it to `end_snapshot`."""
        connections = self._connections
        if not connections.snapshots_left.acquire(blocking=False):
            raise errors.ResourceExhausted(f"{MAX_SNAPSHOTS} transactions are open.")
        try:
            with _busy_is_unavailable():
                connection = self._borrow(connections)
                try:
                    return Snapshot(connection, self._definitions)
                except BaseException:
                    connection.close()
                    raise
        except BaseException:
            connections.snapshots_left.release()
            raise

    def end_snapshot(self, snapshot: Snapshot) -> None:
        """Release a snapshot's connection."""
        connections = self._connections
        connections.snapshots_left.release()
        snapshot.connection.rollback()
        if self._is_closed or len(connections.idle) >= _MAX_IDLE:
            snapshot.connection.close()
            return
        connections.idle.append(snapshot.connection)

    @contextlib.contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Read the last commit's state for the length of one request."""
        snapshot = self.begin_snapshot()
        try:
            yield snapshot
        finally:
            self.end_snapshot(snapshot)

    @contextlib.contextmanager
    def write(self) -> Iterator[changes.Writer]:
        """Change the file: all of it or, on any exception, nothing. On disk when it returns."""
        connections = self._connections
        with connections.write_lock, _busy_is_unavailable():
            if connections.writer is None:
                connections.writer = self._connect()
            connection = connections.writer
            faults.point("commit.begin")
            connection.execute("BEGIN IMMEDIATE")
            try:
                writer = changes.Writer(connection, self._definitions, self._now())
                yield writer
                writer.save_state()
                faults.point("commit.before")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise
            # Only now: ids of a commit that failed are not those of the file.
            writer.definitions.ids.update(writer.new_ids)
        faults.point("commit.after")

    def _borrow(self, connections: _Connections) -> sqlite3.Connection:
        if self._is_closed:
            raise errors.Unavailable("The engine is closed.")
        try:
            return connections.idle.pop()
        except IndexError:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        if self._is_closed:
            raise errors.Unavailable("The engine is closed.")
        connection = sqlite3.connect(
            self.path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA cache_size = -8192")
        return connection

    def _create(self) -> None:
        with _busy_is_unavailable(), contextlib.closing(self._connect()) as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] != rows.FORMAT:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found == rows.FORMAT:
                connection.rollback()
                return
            if found or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                connection.rollback()
                raise errors.FailedPrecondition(
                    f"{self.path} has format {found}, this engine reads {rows.FORMAT}."
                )
            seed = int.from_bytes(os.urandom(7), "big")
            rows.create_tables(connection, self._now(), seed)
            connection.execute(f"PRAGMA user_version = {rows.FORMAT}")
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute("COMMIT")

    def _definitions(self, connection: sqlite3.Connection, generation: int) -> rows.Definitions:
        """Return the definitions in a connection's view; another process may have changed them."""
        known = self._connections.definitions
        if known is not None and known.generation == generation:
            return known
        loaded = rows.load_definitions(connection, generation)
        self._connections.definitions = loaded
        return loaded


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _busy_is_unavailable() -> Iterator[None]:
    """Say UNAVAILABLE where SQLite gives up waiting for another process."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise errors.Unavailable("The data file is busy.") from error
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM):
            raise errors.ResourceExhausted(f"The data file cannot grow: {error}") from error
        raise
