"""The background checkpoint: a thread that copies the log into the data file.

By default, SQLite runs a checkpoint in a COMMIT once the log has 1,000 pages. While readers prevent
the log from restarting, SQLite runs one in every further COMMIT. All other writers wait for this
checkpoint. In this engine, a commit only counts its rows. After `ROWS` rows, a thread of the
process runs a passive checkpoint, which waits for no lock and delays no reader or writer.

Correctness does not depend on this checkpoint: SQLite reads from the log whatever the file does not
contain yet, and a failed checkpoint never fails a commit. The log stays small even without the
background checkpoint. If no thread can start, or if the thread is slower than the commits, SQLite
runs a checkpoint in a COMMIT once the log has `LARGE` bytes, and `write_ahead_log` empties the log.
A thread ends when its checkpoint ends, so an idle engine has no thread and no additional
connection, and a forked child starts its own thread.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable

LARGE = 64 * 1024 * 1024  # Size in bytes above which a COMMIT also runs a checkpoint.
_PAGE = 4096  # SQLite's default, in bytes.
THREAD = "checkpoint"
ROWS = 3000  # Changed rows after which a checkpoint is due: about 4,000 pages, or 16 MB.


def replace_automatic(connection: sqlite3.Connection) -> None:
    """Keep the writer's connection from checkpointing in a COMMIT, unless the log is large."""
    connection.execute(f"PRAGMA wal_autocheckpoint = {LARGE // _PAGE}")


class BackgroundCheckpoint:
    """The background checkpoints of one process.

    Args:
        connect: Opens a separate connection to the data file.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._rows = 0
        self._thread: threading.Thread | None = None

    def count(self, rows: int) -> None:
        """Count the rows that a commit has changed; if a checkpoint is due, start it."""
        with self._lock:
            self._rows += rows
            if self._rows < ROWS or self._thread is not None:
                return
            # A daemon thread could still be inside SQLite when the interpreter ends.
            thread = threading.Thread(target=self._run, name=THREAD, daemon=False)
            with contextlib.suppress(RuntimeError):  # No more threads, or the interpreter ends
                thread.start()
                self._thread = thread

    def finish(self) -> None:
        """Wait until the running checkpoint, if any, has ended and closed its connection."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def forget_parent(self) -> None:
        """Reset the state in a forked child process, which does not have its parent's thread."""
        self._lock = threading.Lock()
        self._thread = None

    def _run(self) -> None:
        while self._is_due():
            with (
                contextlib.suppress(sqlite3.Error),
                contextlib.closing(self._connect()) as connection,
            ):
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _is_due(self) -> bool:
        """If a checkpoint is due, restart the count and return True; otherwise, end the thread."""
        with self._lock:
            is_due = self._rows >= ROWS
            if is_due:
                self._rows = 0
            else:
                self._thread = None
            return is_due
