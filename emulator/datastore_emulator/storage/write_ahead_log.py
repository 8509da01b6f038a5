"""Keeping SQLite's write-ahead log small, even in a busy file.

Decides when to empty the log. SQLite empties the log when no connection reads from it. Under a
steady load of overlapping transactions, some connection always reads from the log, and the log
would grow until the disk is full. Therefore a process that finds the log too large asks all
processes that use the file to pause new requests briefly. Once the requests in progress have
finished, the process empties the log. `background_checkpoint` has then already copied most of the
log into the data file.

    <data>-pause   exists during a pause; contains its end in 8 bytes (nanoseconds, monotonic)

Correctness does not depend on the pause: other processes may ignore it, and a failure to empty the
log never fails a commit. The pause ends on its own, even if the process that requested it dies.
Only a request that does not hold a snapshot or a lock yet may be paused. The pause waits for
requests that hold a snapshot, and for requests that others wait for. Pausing such requests would
therefore cause a deadlock.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from datastore_emulator import thread_pool
from datastore_emulator.storage import background_checkpoint

LARGE = background_checkpoint.LARGE  # Bytes of growth after which the log is emptied.
PAUSE = 0.5  # Maximum length in seconds; most pauses take milliseconds.
_STEP = 0.002  # Seconds between two attempts.
_BYTES = 8


class WriteAheadLog:
    """The log of one data file.

    Safe for use from many threads, and in a child process after a fork.

    Args:
        path: The data file.
        connect: Opens a separate connection to the data file; the argument is the number of seconds
            to wait for locks.
    """

    def __init__(self, path: str, connect: Callable[[float], sqlite3.Connection]) -> None:
        self._path = Path(f"{path}-wal")
        self._pause = f"{path}-pause"  # A str; testing a Path for existence is slower
        self._connect = connect
        self._next = 0
        self._turn = threading.Lock()
        self._background = background_checkpoint.BackgroundCheckpoint(lambda: connect(_STEP))

    def forget_parent(self) -> None:
        """Reset the state in a forked child process."""
        self._turn = threading.Lock()
        self._background.forget_parent()

    def count(self, rows: int) -> None:
        """Count the rows that a commit has changed, and start a checkpoint if it is due."""
        self._background.count(rows)

    def finish(self) -> None:
        """Wait until the background checkpoint, if any, has closed its connection."""
        self._background.finish()

    def wait_for_checkpoint(self) -> None:
        """Wait while another process empties the log.

        The caller must not hold a snapshot or a lock.
        """
        if self._remaining_pause():
            with thread_pool.waiting():
                while left := self._remaining_pause():
                    time.sleep(min(left, _STEP))

    def checkpoint_if_large(self) -> None:
        """Empty the log if it has grown large. The caller must not hold a snapshot or a lock."""
        size = self._size()
        if size < LARGE:
            self._next = 0
            return
        if size < self._next or self._remaining_pause() or not self._turn.acquire(blocking=False):
            return
        try:
            is_empty = self.empty()
        except sqlite3.Error:  # The next commit runs into the same fault and reports it
            is_empty = False
        finally:
            self._turn.release()
        self._next = 0 if is_empty else self._size() + LARGE

    def empty(self, patience: float = PAUSE) -> bool:
        """Move the whole log into the file and truncate it; return whether that succeeded.

        For at most the first `PAUSE` seconds of `patience`, other processes are asked to pause.
        """
        end = time.monotonic() + patience
        with (
            self._requesting_pause(min(patience, PAUSE)),
            contextlib.closing(self._connect(_STEP)) as connection,
        ):
            while not _is_emptied(connection):
                if time.monotonic() >= end:
                    return False
                # During the pause, transactions in progress can commit, which ends their snapshots.
                time.sleep(_STEP)
        return True

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def _remaining_pause(self) -> float:
        """Return the remaining seconds of the current pause."""
        if not os.path.exists(self._pause):  # noqa: PTH110 - twice as fast, and run at every begin
            return 0.0
        try:
            until = int.from_bytes(Path(self._pause).read_bytes(), "little")
        except OSError:  # The pause has just ended
            return 0.0
        left = (until - time.monotonic_ns()) / 1e9
        # An end further in the future dates from before a reboot, which reset the monotonic clock.
        return left if 0.0 < left <= PAUSE else 0.0

    @contextlib.contextmanager
    def _requesting_pause(self, seconds: float) -> Iterator[None]:
        """Request a pause for the duration of the block, but for at most `seconds`."""
        until = time.monotonic_ns() + int(seconds * 1e9)
        # If the file cannot be written, no pause is requested, and the log is emptied at a later
        # time.
        with contextlib.suppress(OSError):
            Path(self._pause).write_bytes(until.to_bytes(_BYTES, "little"))
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                Path(self._pause).unlink()


def _is_emptied(connection: sqlite3.Connection) -> bool:
    is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy
