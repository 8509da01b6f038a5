"""Group commit: the turn of a process's one writer, and commits that wait for the disk together.

Owns the writer's connection, who may use it, and where a SQLite transaction begins and ends. Most
of what a small commit takes is its sync. So whoever is done while others wait for the turn leaves
the transaction open for them: each of these *parts* is a savepoint of it, and one COMMIT puts them
on disk together. Who finds nobody waiting commits at once, without a savepoint: alone, a group is
what it always was, one commit.

What must stay true, because callers rely on it (`Turn.transaction` returns only then):

- A part has happened when its block is over without an error, and not before: whoever is done first
  waits for the group's COMMIT. Until then nobody is answered, no lock falls (`lock_manager`), no
  commit is metered, and what a part wants remembered in this process (ids of indexes, when the log
  is due) is not.
- If the COMMIT fails, or SQLite fails in a part, all is rolled back, the connection is closed, and
  every part is told. Such a fault is the file's or the machine's, never one part's.
- A part that fails for itself takes back its own savepoint and no more. It is told when the group
  has ended, and as the group ended: it may have been refused for what an earlier part had done (an
  entity that exists, a changed read), and nobody may learn of that before it is on disk.
- A part sees the earlier parts of its group and nothing of those that failed, so validation and
  versions are those of commits one after the other. Nobody else sees any of them: snapshots are
  connections of their own, and SQLite shows them what is committed.
- Others wait no longer than for `MOST` small parts, or for those that begin within `LONGEST`
  seconds, and one sync; then another process can have its turn. What may take long (an import), or
  changes what parts rest on (indexes, a reset), has a transaction of its own.
- Nobody waits for a thread that is gone: the group is ended by whoever has the turn, and by its own
  parts if nobody takes that for a while. A part that a fault plan holds up holds up its group.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator

from emulator import errors
from emulator.storage import data_file

MOST = 32  # parts of a group
LONGEST = 0.05  # seconds after its begin in which parts may still begin
_NAP = 0.1  # seconds until a part looks whether anybody will end its group


class Part:
    """One commit of a group.

    `remember` is called once it is on disk, in the writer's turn; it must not fail.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.remember: Callable[[], object] = _nothing


class _Group:
    """Commits in one SQLite transaction. Changed in the writer's turn only."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.parts: list[Part] = []
        self.until = time.monotonic() + LONGEST
        self.over = threading.Event()
        self.fault: BaseException | None = None

    def is_full(self) -> bool:
        return len(self.parts) >= MOST or time.monotonic() >= self.until


class Turn:
    """Who may write, in one process.

    Args:
        connect: opens the writer's connection, when it is needed.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self.connection: sqlite3.Connection | None = None
        self._connect = connect
        # Threads queue here and not in SQLite, whose waiting is a sleep that some never win.
        self._lock = threading.Lock()
        self._guard = threading.Lock()
        self._awaited = 0  # by how many threads
        self._group: _Group | None = None

    @contextlib.contextmanager
    def transaction(self, *, may_share: bool) -> Iterator[Part]:
        """Change the file: all of the block or, on any exception, nothing. On disk at the end."""
        refusal: BaseException | None = None
        with self._taken():
            if not may_share:
                self._end()
            group = self._group or self._begin()
            part = Part(group.connection)
            try:
                if group.parts:
                    part.connection.execute("SAVEPOINT part")
                yield part
                if group.parts:
                    part.connection.execute("RELEASE part")
                group.parts.append(part)
            except BaseException as fault:  # noqa: BLE001 - it is raised below, if it is still true
                refusal = fault
                self._take_back(group, fault)
            if not (may_share and self._awaited) or group.is_full():
                self._end()
        self._await(group)
        if refusal is not None and group.fault in (None, refusal):
            raise refusal
        if group.fault is not None:
            raise _told(group.fault) from group.fault

    @contextlib.contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """Take the turn, with no transaction under way."""
        with self._taken():
            self._end()
            yield self._writer()

    @contextlib.contextmanager
    def if_free(self) -> Iterator[sqlite3.Connection | None]:
        """Take the turn if nobody has it and no transaction is under way; None if it is not so."""
        if not self._lock.acquire(blocking=False):
            yield None
            return
        try:
            yield None if self._group else self._writer()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Commit what is under way and close the connection. It may be opened again."""
        with self._taken():
            self._end()
            if self.connection is not None:
                self._drop(self.connection)

    def close_idle(self) -> None:
        """Close the connection, if nobody has the turn and nothing is under way."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._group is None and self.connection is not None:
                self._drop(self.connection)
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _taken(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            self._wait()
        try:
            yield
        finally:
            self._lock.release()

    def _wait(self) -> None:
        """Take the turn as one of those for whom a group is left open."""
        with self._guard:
            self._awaited += 1
        try:
            self._lock.acquire()
        finally:
            with self._guard:
                self._awaited -= 1

    def _writer(self) -> sqlite3.Connection:
        if self.connection is None:
            self.connection = self._connect()
        return self.connection

    def _drop(self, connection: sqlite3.Connection) -> None:
        """Close the connection; SQLite rolls back what it has under way."""
        self.connection = None
        connection.close()

    def _begin(self) -> _Group:
        connection = self._writer()
        try:
            connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._drop(connection)
            raise
        self._group = _Group(connection)
        return self._group

    def _take_back(self, group: _Group, fault: BaseException) -> None:
        """Undo a part that failed: it alone, unless the fault is the file's or the machine's."""
        if isinstance(fault, sqlite3.Error):
            self._lose(group, fault)
            return
        try:
            if group.parts:
                group.connection.execute("ROLLBACK TO part")
                group.connection.execute("RELEASE part")
            else:
                group.connection.rollback()
                self._group = None
                group.over.set()
        except BaseException as lasting:  # noqa: BLE001 - all parts raise it
            self._lose(group, lasting)

    def _lose(self, group: _Group, fault: BaseException) -> None:
        """End a group of which nothing is stored."""
        self._group = None
        group.fault = fault
        try:
            self._drop(group.connection)
        finally:
            group.over.set()

    def _end(self) -> None:
        """Commit the group that is under way. What becomes of it its parts raise."""
        group = self._group
        if group is None:
            return
        try:
            group.connection.execute("COMMIT")
        except BaseException as fault:
            if isinstance(fault, sqlite3.Error):
                self._lose(group, fault)
                return
            # An interrupt: it came before the statement, or after it.
            if group.connection.in_transaction:
                self._lose(group, fault)
            else:
                self._has_happened(group)
            raise
        self._has_happened(group)

    def _has_happened(self, group: _Group) -> None:
        self._group = None
        try:
            for part in group.parts:
                part.remember()
        finally:
            group.over.set()

    def _await(self, group: _Group) -> None:
        """Wait until a group has ended; end it where whoever was to do it does not come."""
        while not group.over.wait(_NAP):
            if self._lock.acquire(blocking=False):
                try:
                    if self._group is group:
                        self._end()
                finally:
                    self._lock.release()


def _nothing() -> None:
    pass


def _told(fault: BaseException) -> errors.DatastoreError:
    """What a part is told of the fault that its group met: an error of its own."""
    known = data_file.refusal(fault)
    return known or errors.Unavailable(
        f"Commits beside this one failed, and it with them: {fault!r}"
    )
