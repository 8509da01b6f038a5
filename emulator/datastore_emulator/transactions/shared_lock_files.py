"""Shared lock files: processes that use the same data file see each other's locks.

Owns the folder of lock files next to the data file:

    gate            locked (flock) by the process that has the turn; counts the processes that have
                    joined
    <pid>-<random>  a process's own file, locked (flock) while the process lives: 8 bytes that
                    change when the file is rewritten, then one event (`lock_table`) per line, as
                    JSON

A process writes only its own file, and reads and writes only during its turn. When a process ends,
for any reason and in any container, the kernel releases the lock on its file. All locks of the
process then end immediately. A process id and a start time could not reveal this across pid
namespaces. The files are never synced, because after a crash, no process has them locked, and they
are removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from datastore_emulator import errors
from datastore_emulator.storage import data_file, file_permissions
from datastore_emulator.transactions import lock_table

_COUNTER = 8  # Bytes
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
_CHUNK = 1 << 20
_MAX_BYTES = 1 << 18  # A longer file is rewritten with only the current holders.
# A file older than this is also rewritten, because it may contain keys of erased personal data.
_SECONDS = 60


class Peer:
    """Another process, and the holders in that part of its file that has been read."""

    def __init__(self, path: Path) -> None:
        self.table = lock_table.LockTable()
        self._path = path
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._counter = b""
        self._read = 0

    def is_alive(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return False

    def catch_up(self) -> bool:
        """Apply the process's new events since the last call; return whether any exist."""
        counter = os.pread(self._file, _COUNTER, 0)
        if counter != self._counter:
            self._counter, self._read, self.table = counter, _COUNTER, lock_table.LockTable()
        news = b""
        while chunk := os.pread(self._file, _CHUNK, self._read + len(news)):
            news += chunk
        # A process that is killed while writing leaves an incomplete line.
        news = news[: news.rfind(b"\n") + 1]
        self._read += len(news)
        for line in news.splitlines():
            self.table.apply(json.loads(line.decode("latin-1")))
        return bool(news)

    def close(self) -> None:
        os.close(self._file)

    def remove(self) -> None:
        """Remove the file of a dead process."""
        self.close()
        self._path.unlink(missing_ok=True)


class Peers:
    """All processes that use one data file, including this process."""

    def __init__(self, folder: Path) -> None:
        self.table = lock_table.LockTable()
        self.folder = folder
        self._gate: int | None = None
        self._own = -1
        self._path = folder
        self._size = 0
        self._began = 0.0
        self._is_torn = False
        self._counter = 0
        self._joined = b""
        self._others: dict[str, Peer] = {}

    @contextlib.contextmanager
    def turn(self) -> Iterator[bool]:
        """Exclude the other processes; yield whether they have written new events.

        Raises:
            errors.StorageFault: The folder of lock files cannot be used.
        """
        try:
            gate = self._join() if self._gate is None else self._gate
            fcntl.flock(gate, fcntl.LOCK_EX)
        except OSError as error:
            raise _refusal(error) from error
        try:
            try:
                news = self._catch_up(gate)
            except OSError as error:
                raise _refusal(error) from error
            yield news
        finally:
            fcntl.flock(gate, fcntl.LOCK_UN)

    def tell(self, *events: lock_table.Event) -> None:
        """Apply events to this process's table and publish them to the other processes."""
        for event in events:
            self.table.apply(event)
        is_old = time.monotonic() - self._began > _SECONDS
        try:
            if self._is_torn or is_old or self._size > _MAX_BYTES:
                self._write_anew()
            else:
                self._write(_lines(events), self._size)
        except OSError as error:
            raise _refusal(error) from error

    def all(self) -> dict[str, lock_table.Holder]:
        """Return the holders of all processes."""
        if not self._others:
            return self.table.holders
        holders = dict(self.table.holders)
        for other in self._others.values():
            holders.update(other.table.holders)
        return holders

    def entry_reads(self) -> int:
        """Return a number that changes with every lock on entries of an index."""
        others = (other.table.entry_reads for other in self._others.values())
        return sum(others, self.table.entry_reads)

    def drop_dead(self, names: set[str]) -> bool:
        """Drop those of the holders' processes that have died; return whether there were any."""
        return self._drop(
            file
            for file, other in self._others.items()
            if not names.isdisjoint(other.table.holders) and not other.is_alive()
        )

    def leave(self) -> None:
        """Release this process's locks and close its files."""
        if self._gate is None:
            return
        self._path.unlink(missing_ok=True)
        self.close()
        self.table = lock_table.LockTable()

    def close(self) -> None:
        """Close the files but publish nothing: in a forked child, the files are the parent's."""
        if self._gate is None:
            return
        for file in (self._gate, self._own):
            os.close(file)
        self._gate = None
        while self._others:
            self._others.popitem()[1].close()

    def _join(self) -> int:
        self.folder.mkdir(mode=file_permissions.FOLDER, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        gate = os.open(self.folder / "gate", flags, file_permissions.FILE)
        try:
            # A command run by root shares the file with the service, which runs as a different
            # user.
            file_permissions.give_to_owner(gate, self.folder)
            self._path = self.folder / f"{os.getpid()}-{os.urandom(8).hex()}"
            # No other process may see the file before this process has locked it.
            fcntl.flock(gate, fcntl.LOCK_EX)
            self._own = os.open(self._path, flags | os.O_EXCL, file_permissions.FILE)
            file_permissions.give_to_owner(self._own, self.folder)
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._write_anew()
            joined = int.from_bytes(os.pread(gate, _COUNTER, 0), "big")
            os.pwrite(gate, (joined + 1).to_bytes(_COUNTER, "big"), 0)
            fcntl.flock(gate, fcntl.LOCK_UN)
        except BaseException:
            os.close(gate)
            raise
        self._gate = gate
        return gate

    def _catch_up(self, gate: int) -> bool:
        joined = os.pread(gate, _COUNTER, 0)
        if joined != self._joined:
            self._meet_others()
            self._joined = joined
        news = [other.catch_up() for other in self._others.values()]
        return any(news)

    def _meet_others(self) -> None:
        self._drop(file for file, other in self._others.items() if not other.is_alive())
        known = {"gate", self._path.name, *self._others}
        for path in self.folder.iterdir():
            if path.name in known:
                continue
            with contextlib.suppress(FileNotFoundError):
                other = Peer(path)
                if other.is_alive():
                    self._others[path.name] = other
                else:
                    other.remove()

    def _drop(self, dead: Iterable[str]) -> bool:
        files = list(dead)
        for file in files:
            self._others.pop(file).remove()
        return bool(files)

    def _write_anew(self) -> None:
        self._counter += 1
        self._began = time.monotonic()
        os.ftruncate(self._own, 0)
        counter = self._counter.to_bytes(_COUNTER, "big")
        self._write(counter + _lines(self.table.events()), 0)

    def _write(self, content: bytes, place: int) -> None:
        self._is_torn = True
        if os.pwrite(self._own, content, place) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size = place + len(content)
        self._is_torn = False


def _lines(events: Iterable[lock_table.Event]) -> bytes:
    return "".join([_encode(event) + "\n" for event in events]).encode("latin-1")


def _refusal(error: OSError) -> errors.DatastoreError:
    return data_file.file_refusal("The lock files cannot be used", error)
