"""SQLite's write-ahead log beside the data file, kept small however busy the file is.

Owns the moment in which the log is emptied. SQLite does that when nobody reads from it, and under
a steady load of transactions that overlap there is no such moment: the log would grow until the
disk is full. So whoever finds it large asks all that share the file to begin nothing new for a
moment, and empties it once those who have begun are done.

    <data>-pause   there while somebody asks; 8 bytes: until when (nanoseconds, monotonic)

What must stay true: the pause is a courtesy, and nothing depends on its being heard. It ends by
itself, so a process that dies in one holds nobody up. Only who holds nothing yet may be asked to
wait: one that has a snapshot, or is waited for, would be waited for by the pause itself. Emptying
the log never fails a commit, which has happened by then.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from emulator import thread_pool

LARGE = 64 * 1024 * 1024  # bytes; a log that grew by so much is emptied
PAUSE = 0.5  # seconds at most; most take some milliseconds
_STEP = 0.002  # seconds
_BYTES = 8


class WriteAheadLog:
    """The log of one data file. Safe for many threads, and after a fork.

    Args:
        path: the data file.
        connect: opens a connection of its own to it that waits for locks `wait` seconds.
    """

    def __init__(self, path: str, connect: Callable[[float], sqlite3.Connection]) -> None:
        self._path = Path(f"{path}-wal")
        self._pause = f"{path}-pause"  # no Path, whose conversion takes longer than the question
        self._connect = connect
        self._next = 0
        self._turn = threading.Lock()

    def forget_parent(self) -> None:
        """Start afresh in a forked child."""
        self._turn = threading.Lock()

    def wait_for_checkpoint(self) -> None:
        """Wait while the log is being emptied. Call it with nothing held."""
        if self._left():
            with thread_pool.waiting():
                while left := self._left():
                    time.sleep(min(left, _STEP))

    def checkpoint_if_large(self) -> None:
        """Empty the log if it has grown. Call it with nothing held."""
        size = self._size()
        if size < LARGE:
            self._next = 0
            return
        if size < self._next or self._left() or not self._turn.acquire(blocking=False):
            return
        try:
            is_empty = self.empty()
        except sqlite3.Error:  # what fails here, the next commit meets and tells
            is_empty = False
        finally:
            self._turn.release()
        self._next = 0 if is_empty else self._size() + LARGE

    def empty(self, patience: float = PAUSE) -> bool:
        """Write all of the log back to the file, and cut it; say whether that was possible.

        Others begin nothing meanwhile, for `PAUSE` seconds of the patience at most.
        """
        end = time.monotonic() + patience
        with (
            self._asking(min(patience, PAUSE)),
            contextlib.closing(self._connect(_STEP)) as connection,
        ):
            while not _is_emptied(connection):
                if time.monotonic() >= end:
                    return False
                # In between those who have begun may commit, which ends what they read.
                time.sleep(_STEP)
        return True

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def _left(self) -> float:
        """Seconds for which to begin nothing."""
        if not os.path.exists(self._pause):  # noqa: PTH110 - twice as fast, and asked at each begin
            return 0.0
        try:
            until = int.from_bytes(Path(self._pause).read_bytes(), "little")
        except OSError:  # just over
            return 0.0
        left = (until - time.monotonic_ns()) / 1e9
        # What is further off was said before the machine started.
        return left if 0.0 < left <= PAUSE else 0.0

    @contextlib.contextmanager
    def _asking(self, seconds: float) -> Iterator[None]:
        """Ask for a pause for the length of a block, and for so many seconds at most."""
        until = time.monotonic_ns() + int(seconds * 1e9)
        # On a disk that takes no file nobody is asked, and the log waits for its moment.
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
