"""The background checkpoint: a thread that copies the log into the data file.

By default, SQLite checkpoints in a COMMIT once the log has 1,000 pages, and in every further COMMIT
while readers prevent the log from starting again. All other writers wait meanwhile. Here, a commit
only counts its rows. After `ROWS` rows, a thread of the process runs a passive checkpoint, which
waits for no lock and delays no reader or writer.

Correctness does not depend on this checkpoint: SQLite reads from the log what the file does not
contain yet, and a failure never fails a commit. The log stays small without it too: if no thread
can start, or if the thread is slower than the commits, SQLite checkpoints in a COMMIT once the log
has `LARGE` bytes, and `write_ahead_log` empties the log. A thread ends with its checkpoint, so an
idle engine has no thread and no additional connection, and a forked child starts its own thread.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable

LARGE = 64 * 1024 * 1024  # Bytes of a log that must not grow further.
_PAGE = 4096  # Bytes, SQLite's default.
THREAD = "checkpoint"  # The name of the thread.
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
        """Count the rows that a commit has changed, and start a checkpoint if it is due."""
        with self._lock:
            self._rows += rows
            if self._rows < ROWS or self._thread is not None:
                return
            # A daemon thread could be inside SQLite while the interpreter ends.
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
        """Return whether a checkpoint is due, and count from zero if so; else end the thread."""
        with self._lock:
            is_due = self._rows >= ROWS
            if is_due:
                self._rows = 0
            else:
                self._thread = None
            return is_due
