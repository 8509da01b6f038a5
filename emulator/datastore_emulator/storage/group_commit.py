"""Group commit: one writer per process, whose waiting commits share a disk sync.

Owns the writer's connection, the lock that decides which thread may use it (the writer's turn), and
the beginning and end of a SQLite transaction. A small commit spends most of its time waiting for
the disk sync. Therefore, if other threads wait for the turn when a commit finishes, the commit
leaves its transaction open for them. Each commit is a *part*, which is a savepoint of that
transaction, and a single COMMIT puts all parts on disk. If no other thread waits, a commit ends its
transaction immediately, without a savepoint. From before its BEGIN until after its end, a
transaction also holds the turn among all processes (`writer_lock`).

Invariant: A part takes effect only when its block has ended without an error and the group's COMMIT
has succeeded; until then, no caller gets an answer, no lock is released, no commit is metered, and
this process caches nothing that the part wrote
(test_group_commit.py::test_before_the_commit_no_client_is_answered_and_nothing_is_visible).

If the COMMIT fails, or SQLite fails in a part, the whole group is rolled back, the connection is
closed and every part raises an error. The cause of such a failure is the file or the machine, never
a single part. A part that fails on its own rolls back only its own savepoint. It raises its error
only after the group has ended; if the group failed too, it raises the group's error instead. The
reason is that an earlier part may have caused the error (by creating the entity, or by changing
what was read), and no caller may learn of that part before it is on disk.

A part sees the earlier parts of its group that did not fail, so validation and versions are the
same as for separate commits in sequence. The process that is next in line waits for at most `MOST`
small parts, or for the parts that begin within `LONGEST` seconds, plus one disk sync. A commit that
can take long (an import), or that changes data on which other parts depend (indexes, a reset), has
its own transaction. The thread that has the turn ends the group. If no thread takes the turn for a
while, one of the group's parts ends the group. A fault plan that delays a part also delays the
part's group.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator

from datastore_emulator import errors
from datastore_emulator.storage import data_file, writer_lock

MOST = 32  # Maximum number of parts in a group.
LONGEST = 0.05  # Seconds after a group's start during which parts may begin.
_NAP = 0.1  # Seconds after which a part checks again whether it must end the group.


class Part:
    """One commit in a group.

    `remember` is called once the part is on disk, during the writer's turn. The function must not
    fail. `version` is the version of the commit, or 0 if the commit must not be noted
    (`last_commit`).
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.remember: Callable[[], object] = _do_nothing
        self.version = 0


class _Group:
    """The commits in one SQLite transaction.

    Only the thread that has the writer's turn changes the group.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.parts: list[Part] = []
        self.until = time.monotonic() + LONGEST
        self.over = threading.Event()
        self.fault: BaseException | None = None

    def is_full(self) -> bool:
        return len(self.parts) >= MOST or time.monotonic() >= self.until


class WriteTurn:
    """The writer's turn, which decides which thread of this process may write.

    Args:
        connect: A function that opens the writer's connection when a commit needs it.
        processes: The lock of all processes that write to the file.
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], processes: writer_lock.WriterLock
    ) -> None:
        self.connection: sqlite3.Connection | None = None
        self._connect = connect
        self._processes = processes
        # Threads queue for this lock and not in SQLite. SQLite waits by sleeping, so some threads
        # would never get a turn.
        self._lock = threading.Lock()
        self._guard = threading.Lock()
        self._awaited = 0  # Number of threads waiting for the turn
        self._group: _Group | None = None

    @contextlib.contextmanager
    def transaction(self, *, may_share: bool) -> Iterator[Part]:
        """Run the block as one commit, which is on disk afterward; an exception undoes it all."""
        refusal: BaseException | None = None
        with self._holding():
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
            except BaseException as fault:  # noqa: BLE001 - raised below, unless the group failed
                refusal = fault
                self._take_back(group, fault)
            if not (may_share and self._awaited) or group.is_full():
                self._end()
        self._await(group)
        if refusal is not None and group.fault in (None, refusal):
            raise refusal
        if group.fault is not None:
            raise _group_error(group.fault) from group.fault

    @contextlib.contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """Take the turn among all processes, and end the transaction in progress, if any."""
        with self._holding():
            self._end()
            self._processes.acquire()
            try:
                yield self._writer()
            finally:
                self._processes.release()

    @contextlib.contextmanager
    def if_free(self) -> Iterator[sqlite3.Connection | None]:
        """Take the turn if it is free and no transaction is in progress; otherwise yield None."""
        if not self._lock.acquire(blocking=False):
            yield None
            return
        try:
            yield None if self._group else self._writer()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Commit the current group and close the connection. A later call may reopen it."""
        with self._holding():
            self._end()
            if self.connection is not None:
                self._drop(self.connection)
            self._processes.close()

    def close_idle(self) -> None:
        """Close the connection if no thread has the turn and no transaction is in progress."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._group is None and self.connection is not None:
                self._drop(self.connection)
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _holding(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            self._wait()
        try:
            yield
        finally:
            self._lock.release()

    def _wait(self) -> None:
        """Wait for the turn; while threads wait, a commit leaves its group open for them."""
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
        """Close the connection; SQLite then rolls back its open transaction."""
        self.connection = None
        connection.close()

    def _begin(self) -> _Group:
        connection = self._writer()
        self._processes.acquire()
        try:
            connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._drop(connection)
            self._processes.release()
            raise
        self._group = _Group(connection)
        return self._group

    def _take_back(self, group: _Group, fault: BaseException) -> None:
        """Undo a failed part or, after a file or machine fault, the whole group."""
        if isinstance(fault, sqlite3.Error):
            self._lose(group, fault)
            return
        try:
            if group.parts:
                group.connection.execute("ROLLBACK TO part")
                group.connection.execute("RELEASE part")
            else:
                group.connection.rollback()
                self._leave()
                group.over.set()
        except BaseException as lasting:  # noqa: BLE001 - every part raises it
            self._lose(group, lasting)

    def _lose(self, group: _Group, fault: BaseException) -> None:
        """End a group without storing any of its parts."""
        group.fault = fault
        try:
            self._drop(group.connection)
        finally:
            self._leave()
            group.over.set()

    def _end(self) -> None:
        """Commit the current group, if any.

        If the commit fails, the group's parts raise the error.
        """
        group = self._group
        if group is None:
            return
        try:
            group.connection.execute("COMMIT")
        except BaseException as fault:
            if isinstance(fault, sqlite3.Error):
                self._lose(group, fault)
                return
            # An interrupt arrived, and the statement may or may not have run.
            if group.connection.in_transaction:
                self._lose(group, fault)
            else:
                self._has_happened(group)
            raise
        self._has_happened(group)

    def _leave(self, version: int = 0) -> None:
        """After the end of the transaction, give the turn to the next process."""
        self._group = None
        self._processes.release(version)

    def _has_happened(self, group: _Group) -> None:
        self._leave(group.parts[-1].version if group.parts else 0)
        try:
            for part in group.parts:
                part.remember()
        finally:
            group.over.set()

    def _await(self, group: _Group) -> None:
        """Wait until a group has ended; if no other thread ends it, this thread does."""
        while not group.over.wait(_NAP):
            if self._lock.acquire(blocking=False):
                try:
                    if self._group is group:
                        self._end()
                finally:
                    self._lock.release()


def _do_nothing() -> None:
    pass


def _group_error(fault: BaseException) -> errors.DatastoreError:
    """Return the error that a part raises because its group failed."""
    known = data_file.refusal(fault)
    return known or errors.Unavailable(f"The commit and the others in its group failed: {fault!r}")
