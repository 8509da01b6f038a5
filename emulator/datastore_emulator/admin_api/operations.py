"""Long-running operations: background work and its state.

Owns the threads and states of exports, imports and index builds. Only the process that runs an
operation knows about it; clients identify operations by name. The process remembers the last
`MAX_KEPT` operations that ended. A restart forgets all operations, but an export is complete if its
metadata file exists, and an import is stored either completely or not at all.

    PROCESSING [-> CANCELLING] -> SUCCESSFUL | FAILED | CANCELLED

An operation that has finished its work when it is canceled still ends as SUCCESSFUL or FAILED.
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterator

from datastore_emulator import errors, thread_pool
from datastore_emulator.admin_api import admin_protobufs
from datastore_emulator.storage import data_file

MAX_RUNNING = 8  # Maximum number of running operations.
MAX_KEPT = 1000  # Maximum number of ended operations that are remembered.
WAIT_SECONDS = 60.0  # Longest time that WaitOperation waits.
_END_SECONDS = 10.0  # Time that each running operation has to end when the server stops.
_NAME = re.compile(r"(projects/[^/]+)/operations/[\w-]+")
_LABELS = "metadata.common.labels."
FIELDS = ("done", "metadata.common.state", "metadata.common.operation_type", _LABELS)
_PROCESSING, _CANCELLING = 2, 3
_SUCCESSFUL, _FAILED, _CANCELLED = 5, 6, 7

_logger = logging.getLogger(__name__)

Message = admin_protobufs.Message


class Job:
    """Tracks the progress of an operation's work, and tells the work when to stop."""

    def __init__(self, metadata: Message, lock: threading.Lock) -> None:
        self._metadata = metadata
        self._lock = lock
        self._is_cancelled = False

    def estimate(self, *, entities: int, size: int = 0) -> None:
        """Set the total number of entities and bytes of the work; 0 if unknown."""
        with self._lock:
            self._metadata.progress_entities.work_estimated = entities
            if size:
                self._metadata.progress_bytes.work_estimated = size

    def advance(self, *, entities: int, size: int = 0) -> None:
        """Add to the amount of finished work.

        Raises:
            errors.Cancelled: The operation was canceled.
        """
        with self._lock:
            if self._is_cancelled:
                raise errors.Cancelled("The operation was canceled.")
            self._metadata.progress_entities.work_completed += entities
            if size:
                self._metadata.progress_bytes.work_completed += size

    def cancel(self) -> None:
        """Make the next call to `advance` raise Cancelled. The caller must hold the lock."""
        self._is_cancelled = True
        self._metadata.common.state = _CANCELLING


# A function that does the work and returns the response.
Work = Callable[[Job], Message]


class _Operation:
    """One operation. The registry's lock guards the operation's mutable state."""

    def __init__(self, name: str, metadata: Message, lock: threading.Lock) -> None:
        self.name = name
        self.metadata = metadata
        self.job = Job(metadata, lock)
        self.ended = threading.Event()
        self.response: Message | None = None
        self.error: errors.DatastoreError | None = None

    def message(self) -> Message:
        """Return the operation as clients see it."""
        made = admin_protobufs.Operation(name=self.name, done=self.ended.is_set())
        made.metadata.Pack(self.metadata)
        if self.error is not None:
            made.error.code = admin_protobufs.code(self.error.status)
            made.error.message = self.error.message
        elif self.response is not None:
            made.response.Pack(self.response)
        return made

    def field(self, name: str) -> str:
        """Return the value of a field in FIELDS."""
        common = self.metadata.common
        if name.startswith(_LABELS):
            return str(common.labels.get(name.removeprefix(_LABELS), ""))
        if name == "done":
            return str(self.ended.is_set())
        field = common.DESCRIPTOR.fields_by_name[name.rpartition(".")[2]]
        return str(field.enum_type.values_by_number[getattr(common, field.name)].name)


class Operations:
    """The registry of a process's operations.

    Args:
        clock: Returns seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._operations: dict[str, _Operation] = {}  # Ordered by start time
        self._is_closed = False

    def start(self, project: str, metadata: Message, work: Work) -> Message:
        """Start an operation in the background.

        Args:
            project: The project that owns the operation.
            metadata: The operation's metadata; this method fills in the common part.
            work: A function that does the work and returns the response; an exception becomes the
                operation's error.

        Raises:
            errors.ResourceExhausted: Too many operations are running.
            errors.Unavailable: The server is stopping.
        """
        now = self._now()
        # Names start with the start time so that sorting by name sorts by time.
        name = f"projects/{project}/operations/{now:014x}-{secrets.token_hex(8)}"
        metadata.common.start_time.FromMicroseconds(now)
        metadata.common.state = _PROCESSING
        operation = _Operation(name, metadata, self._lock)
        thread = threading.Thread(
            target=self._run, args=(operation, work), name="operation", daemon=True
        )
        with self._lock:
            if self._is_closed:
                raise errors.Unavailable("The server is stopping.")
            running = [one for one in self._operations.values() if not one.ended.is_set()]
            if len(running) >= MAX_RUNNING:
                raise errors.ResourceExhausted(
                    f"{MAX_RUNNING} operations are running. Wait until one ends."
                )
            try:
                thread.start()  # The new thread waits for the lock
            except RuntimeError as error:
                raise errors.ResourceExhausted(f"No thread can be started: {error}") from error
            self._operations[name] = operation
            self._forget_oldest()
            return operation.message()

    def _forget_oldest(self) -> None:
        ended = [
            operation.name for operation in self._operations.values() if operation.ended.is_set()
        ]
        for name in ended[:-MAX_KEPT]:
            del self._operations[name]

    def _run(self, operation: _Operation, work: Work) -> None:
        try:
            self._end(operation, _SUCCESSFUL, response=work(operation.job))
        except errors.Cancelled as end:
            self._end(operation, _CANCELLED, error=end)
        except errors.DatastoreError as refusal:
            self._end(operation, _FAILED, error=refusal)
        except Exception as fault:
            known = data_file.refusal(fault)
            if known is None:
                _logger.exception("%s failed", operation.name)
                known = errors.EngineFault(f"The emulator failed: {fault!r}")
            self._end(operation, _FAILED, error=known)

    def _end(
        self,
        operation: _Operation,
        state: int,
        *,
        response: Message | None = None,
        error: errors.DatastoreError | None = None,
    ) -> None:
        with self._lock:
            operation.metadata.common.state = state
            operation.metadata.common.end_time.FromMicroseconds(self._now())
            operation.response, operation.error = response, error
            operation.ended.set()

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    def get(self, name: str) -> Message:
        """Return an operation.

        Raises:
            errors.InvalidArgument: The name is not a valid operation name.
            errors.NotFound: The operation does not exist.
        """
        with self._lock:
            return self._find(name).message()

    def _find(self, name: str) -> _Operation:
        if _NAME.fullmatch(name) is None:
            raise errors.InvalidArgument(
                f'name: "{name[:100]}" must have the form projects/PROJECT/operations/ID.'
            )
        operation = self._operations.get(name)
        if operation is None:
            raise errors.NotFound(
                f"The operation {name} does not exist. Operations end with the emulator process."
            )
        return operation

    def all_of(self, project: str) -> Iterator[tuple[Message, Callable[[str], str]]]:
        """Yield a project's operations, oldest first, each with a function that reads fields."""
        with self._lock:
            listed = [
                (operation.message(), operation.field)
                for operation in self._operations.values()
                if operation.name.startswith(f"projects/{project}/operations/")
            ]
        yield from listed

    def cancel(self, name: str) -> None:
        """Request that an operation end. Has no effect on an operation that has ended."""
        with self._lock:
            operation = self._find(name)
            if not operation.ended.is_set():
                operation.job.cancel()

    def delete(self, name: str) -> None:
        """Delete an operation that has ended.

        Raises:
            errors.FailedPrecondition: The operation is running.
        """
        with self._lock:
            if not self._find(name).ended.is_set():
                raise errors.FailedPrecondition(f"{name} is running. Cancel it first.")
            del self._operations[name]

    def wait(self, name: str, seconds: float | None) -> Message:
        """Wait until an operation ends or the timeout expires; return its latest state."""
        with self._lock:
            operation = self._find(name)
        most = WAIT_SECONDS if seconds is None else min(max(seconds, 0.0), WAIT_SECONDS)
        with thread_pool.waiting():
            operation.ended.wait(most)
        with self._lock:
            return operation.message()

    def close(self) -> None:
        """Cancel all running operations, and wait a limited time for them to end."""
        with self._lock:
            self._is_closed = True
            running = [one for one in self._operations.values() if not one.ended.is_set()]
            for operation in running:
                operation.job.cancel()
        for operation in running:
            operation.ended.wait(_END_SECONDS)
