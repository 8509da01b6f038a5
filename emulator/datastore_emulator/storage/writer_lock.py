"""The writer lock: the processes that write to one data file take turns.

With SQLite alone, a process that cannot begin a transaction sleeps for up to 0.1 s before it tries
again. Meanwhile, a busy process may begin its next transaction. With this lock, a process locks a
file before it begins a transaction, and unlocks the file after the transaction has ended:

    <data>-turn    byte 0 is locked (fcntl) by the process that is next in line, and byte 1 by the
                   process that has the turn; contains a note of the last commit (`last_commit`)

A process unlocks byte 0 only when it has locked byte 1. A process that has just written therefore
cannot write again before the process that is next in line.

Correctness never depends on this lock. SQLite's own lock excludes programs that do not know this
file, and a process that cannot use the file relies on SQLite's lock alone. The kernel releases the
locks when a process ends, and a forked child does not inherit them. After waiting for
`data_file.BUSY_SECONDS`, a process reports that the data file is busy. While a data file is open,
only this module opens the file, because closing any descriptor of the file would drop this
process's locks on it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from datastore_emulator import errors
from datastore_emulator.storage import data_file, file_permissions, last_commit

_NEXT, _TURN = 0, 1  # Locked bytes in the file.
_BUSY = (errno.EACCES, errno.EAGAIN)
# Seconds between attempts. A blocking lock would save no measurable time, and its wait would have
# no limit.
_STEP = 0.001


class WriterLock:
    """The lock of one data file.

    Only one thread of a process may use it at a time.
    """

    def __init__(self, path: str) -> None:
        self._data = path
        self._path = f"{path}-turn"
        self._file: int | None = None

    def acquire(self) -> None:
        """Wait for the turn; if the file cannot be used, return at once.

        Raises:
            errors.Unavailable: Other processes kept the turn for too long.
        """
        end = time.monotonic() + data_file.BUSY_SECONDS
        with contextlib.suppress(OSError):
            file = self._open() if self._file is None else self._file
            _take(file, _NEXT, end)
            try:
                _take(file, _TURN, end)
            finally:
                _unlock(file, _NEXT)

    def release(self, version: int = 0) -> None:
        """End the turn, after noting the version of the turn's last commit if there was one."""
        if self._file is None:
            return
        if version:
            self._note(self._file, version)
        _unlock(self._file, _TURN)

    def _note(self, file: int, version: int) -> None:
        with contextlib.suppress(OSError):
            content = os.pread(file, last_commit.SIZE, 0)
            log = last_commit.log_of(self._data)
            os.pwrite(file, last_commit.next_note(content, version, log), 0)

    def close(self) -> None:
        """Close the file. A later `acquire` reopens it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self._path, flags, file_permissions.FILE)
        file_permissions.give_to_owner(self._file, Path(self._path).parent)
        return self._file


@contextlib.contextmanager
def holding(path: str) -> Iterator[None]:
    """Hold the turn of a data file during a block."""
    lock = WriterLock(path)
    try:
        lock.acquire()
        yield
    finally:
        lock.close()


def _take(file: int, byte: int, end: float) -> None:
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError as error:
            if error.errno not in _BUSY:
                raise
        else:
            return
        if time.monotonic() >= end:
            raise errors.Unavailable("The data file is busy: other processes keep writing to it.")
        time.sleep(_STEP)


def _unlock(file: int, byte: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)
