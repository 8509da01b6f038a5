"""Connect to a database: the current thread's store, time-outs, retries and deadlines.

This module owns the calls to the store, and the row locks that make a process's threads take turns.

Reads belong to the transaction of the current OS thread, if there is one. A transaction begins with
its first read, which saves a call if that read is a lookup. If the response to that read is lost,
the transaction's id is unknown, so no process can end the transaction. The locks then last until
the store expires the transaction.
"""

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import grpc
from google.api_core import exceptions as api
from google.cloud.datastore_v1.types import datastore as rpc_types
from google.cloud.datastore_v1.types import entity as entity_types
from google.cloud.datastore_v1.types import query as query_types

from comments import errors
from comments.store.folder import storage_faults

SERVICE = "/google.datastore.v1.Datastore/"
P = TypeVar("P")
T = TypeVar("T")

# Errors after which a retry may succeed. After some of these errors, a commit may have been
# applied. Retrying is safe because bodies can run twice.
TRANSIENT = (
    api.Aborted,
    api.ServiceUnavailable,
    api.InternalServerError,
    api.Unknown,
    api.DeadlineExceeded,
    api.ResourceExhausted,
    api.Cancelled,
    # The entity to insert already exists. The body then runs again and finds the entity.
    api.AlreadyExists,
)
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.5

_Partition = entity_types.PartitionId.pb()
_Key = entity_types.Key.pb()
_LookupRequest = rpc_types.LookupRequest.pb()
_Commit = rpc_types.CommitRequest.pb()
_TRANSACTIONAL = int(rpc_types.CommitRequest.Mode.TRANSACTIONAL)
_Begin = rpc_types.BeginTransactionRequest.pb()
_Options = rpc_types.TransactionOptions.pb()
_MOST_KEYS = 1000  # Maximum number of keys in one lookup (Datastore's limit)
_WHOLE = int(query_types.EntityResult.ResultType.FULL)


class Transaction:
    """A transaction that may not have begun yet, with its writes. `transactions` ends it.

    Args:
        is_read_only: whether the transaction only reads. All reads of a read-only transaction see
            the same moment.
        previous: the id of the previous attempt, or b"" for the first attempt. An attempt keeps the
            age of the previous attempt.
    """

    def __init__(self, *, is_read_only: bool = False, previous: bytes = b"") -> None:
        self.id = b""
        self.is_read_only = is_read_only
        self.options = _Options()
        if is_read_only:
            self.options.read_only.SetInParent()
        else:
            self.options.read_write.previous_transaction = previous
        # The request that commits the transaction, and the request's mutations, which are encoded
        # in place, because protobuf copies every message that is added to another message.
        self.request = _Commit(mode=_TRANSACTIONAL)
        self.mutations = self.request.mutations
        # Called when the transaction ends, committed or not.
        self.afterwards: list[Callable[[], None]] = []


class _State(threading.local):
    """The current thread's store, deadline, transaction and usage."""

    store: "Store | None" = None
    end: float | None = None
    transaction: Transaction | None = None
    may_have_run: bool = False
    reads: int = 0
    writes: int = 0


state = _State()


class _Lines:
    """Row locks, with which the threads of one process take turns on a busy row.

    Conflicting transactions abort each other and conflict again when they retry. Taking turns
    avoids this repeated work. A lock exists only while a thread holds it or waits for it.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextlib.contextmanager
    def wait(self, name: str, *, seconds: float) -> Iterator[None]:
        """Acquire the lock for `name`. After `seconds`, continue without the lock.

        Continuing without the lock is safe: the lock only saves work, and the transaction
        guarantees correctness.
        """
        with self._guard:
            lock, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = (lock, users + 1)
        taken = lock.acquire(timeout=seconds)
        try:
            yield
        finally:
            if taken:
                lock.release()
            with self._guard:
                lock, users = self._locks.pop(name)
                if users > 1:
                    self._locks[name] = (lock, users - 1)


class Store:
    """A connection to one database. Connections are thread-safe; make one per process.

    Args:
        is_emulator: whether the store is an emulator at the end of a network connection. Google's
            Firestore emulator treats the locks of a lookup with `new_transaction` as locks of
            another transaction, so the commit waits for these locks and fails. The Firestore
            emulator also refuses to commit read-only transactions. On emulators, transactions
            therefore begin with a separate call, and read-only transactions end with a rollback.
            Datastore needs fewer calls, because it accepts lookups with `new_transaction` and
            commits of read-only transactions.
    """

    def __init__(  # noqa: PLR0913 - independent options, passed by keyword
        self,
        channel: grpc.Channel,
        *,
        project: str,
        database: str = "",
        namespace: str = "",
        deadline: float = 20.0,
        rpc_timeout: float = 10.0,
        is_emulator: bool = False,
    ) -> None:
        self.is_emulator = is_emulator
        self.project = project
        self.database = database
        self.namespace = namespace
        self.deadline = deadline
        self.rpc_timeout = rpc_timeout
        self._lines = _Lines()
        self.faults = storage_faults.FaultRecord()
        self.kept: dict[object, Any] = {}  # See `per_process`
        self.keeping = threading.RLock()
        self._partition = self.partition()
        self.begin = _call(channel, "BeginTransaction")
        # The engine in this process can commit entities in the stored form that `wire.codec` makes.
        # The engine then does not check the entities' values again.
        self.commit = getattr(channel, "commit_own", None) or _call(channel, "Commit")
        # The engine in this process can also return the versions of entities without a read.
        self._version = getattr(channel, "version", None)
        # The engine also returns the times between which acknowledged commits were lost, or None if
        # the times are unknown.
        self.lost: tuple[datetime, datetime] | None = getattr(channel, "lost_commits", None)
        self.rollback = _call(channel, "Rollback")
        self._run_query = _call(channel, "RunQuery")
        self._lookup = _call(channel, "Lookup")
        self._aggregate = _call(channel, "RunAggregationQuery")

    @contextlib.contextmanager
    def context(self) -> Iterator[None]:
        """Enter the store for one request or command. A nested call changes nothing."""
        outer, state.store = state.store, self
        try:
            yield
        finally:
            state.store = outer

    def request_fields(self) -> dict[str, str]:
        """Return the project and database fields for every request."""
        return {"project_id": self.project, "database_id": self.database}

    def partition(self) -> Any:
        """Return the PartitionId that all keys in this store share."""
        return _Partition(
            project_id=self.project, database_id=self.database, namespace_id=self.namespace
        )

    def run_query(self, request: Any) -> Any:
        """Make a RunQuery call, with a time-out and retries."""
        self._join(request)
        answer = self._ask(self._run_query, request)
        batch = answer.batch
        if batch.entity_result_type == _WHOLE:
            state.reads += len(batch.entity_results)
        elif batch.entity_results:
            state.reads += 1
        return answer

    def key(self, *path: tuple[str, str]) -> Any:
        """Build an entity's key from its path of kinds and names."""
        key = _Key(partition_id=self._partition)
        for kind, name in path:
            key.path.add(kind=kind, name=name)
        return key

    def lookup(self, keys: Sequence[Any]) -> Iterator[Any]:
        """Yield the entities that exist under these keys, in any order."""
        opened, left = state.transaction, list(keys)
        while left:
            request = _LookupRequest(**self.request_fields(), keys=left[:_MOST_KEYS])
            if opened is not None and not opened.id and not self.is_emulator:
                request.read_options.new_transaction.CopyFrom(opened.options)
            else:
                self._join(request)
            answer = self._ask(self._lookup, request)
            state.reads += len(answer.found) + len(answer.missing)
            if opened is not None:
                opened.id = opened.id or answer.transaction
            for result in answer.found:
                yield result.entity
            left = [*answer.deferred, *left[_MOST_KEYS:]]

    def _ask(self, method: Callable[..., Any], request: Any) -> Any:
        """Make a read call, with a time-out and retries."""
        return patiently(lambda: method(request, timeout=timeout(self)), self)

    @property
    def tells_versions(self) -> bool:
        """Return whether `version` can tell if an entity has changed."""
        return self._version is not None

    def version(self, key: Any) -> int | None:
        """Return a number that every change of an entity increases, or None if it is unknown."""
        ask = self._version
        return None if ask is None else patiently(lambda: ask(key), self)

    def aggregate(self, request: Any) -> Any:
        """Make a RunAggregationQuery call, with a time-out and retries."""
        self._join(request)
        state.reads += 1
        return self._ask(self._aggregate, request)

    def _join(self, request: Any) -> None:
        """Add a read to this thread's transaction, which begins now if necessary."""
        opened = state.transaction
        if opened is None:
            return
        if not opened.id:
            asked = _Begin(**self.request_fields(), transaction_options=opened.options)
            opened.id = self.begin(asked, timeout=timeout(self)).transaction
        request.read_options.transaction = opened.id

    def line(self, name: str) -> "contextlib.AbstractContextManager[None]":
        """Acquire this process's row lock `name`, waiting until the deadline at most.

        If `name` is "", acquire no lock.
        """
        if not name:
            return contextlib.nullcontext()
        return self._lines.wait(name, seconds=seconds_left())


def _call(channel: grpc.Channel, name: str) -> Any:
    return channel.unary_unary(
        f"{SERVICE}{name}",
        request_serializer=getattr(rpc_types, f"{name}Request").pb().SerializeToString,
        response_deserializer=getattr(rpc_types, f"{name}Response").pb().FromString,
    )


def carry(step: Callable[[P], T]) -> Callable[[P], T]:
    """Return a function that runs `step` in the current store, even if another thread calls it."""
    store = current()

    def run(argument: P) -> T:
        with store.context():
            return step(argument)

    return run


def take_costs() -> tuple[int, int]:
    """Return this thread's reads and writes since the last call, as Datastore bills them."""
    costs = state.reads, state.writes
    state.reads = state.writes = 0
    return costs


def current() -> Store:
    """Return the current thread's store."""
    if state.store is None:
        raise RuntimeError("enter `with store.context():` first")
    return state.store


class _Within:
    """Set a deadline for all calls inside this context. An outer deadline takes precedence.

    This is a class, not a generator, for speed: every call to the store uses it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._outer: float | None = None

    def __enter__(self) -> None:
        self._outer = state.end
        if self._outer is None:
            state.end = time.monotonic() + self._seconds

    def __exit__(self, *_fault: object) -> None:
        state.end = self._outer


within = _Within


def seconds_left() -> float:
    """Return the seconds until the current deadline, or 0 if there is no deadline."""
    return 0.0 if state.end is None else max(0.0, state.end - time.monotonic())


def timeout(store: Store) -> float:
    """Return the maximum duration of the next RPC in seconds."""
    if state.end is None:
        return store.rpc_timeout
    return max(0.001, min(store.rpc_timeout, state.end - time.monotonic()))


def patiently(attempt: Callable[[], T], store: Store) -> T:
    """Retry until the attempt succeeds or fails permanently, or until the deadline passes.

    A fault of the disk or the data is permanent (`storage_faults`).

    Inside a transaction, make only one attempt: after a failure, the whole transaction must start
    again.
    """
    with within(store.deadline):
        for tries in itertools.count():
            try:
                return attempt()
            except (api.GoogleAPICallError, grpc.RpcError) as raw:
                error = api_error(raw)
                if state.transaction is not None:
                    raise error from raw
                if fault := store.faults.fault_of(error):
                    raise fault from error
                if not isinstance(error, TRANSIENT):
                    raise errors.Overloaded(f"the store refused the call: {error}") from error
                _pause(tries, error)
    raise AssertionError("unreachable: the loop above has no end")


def api_error(error: "api.GoogleAPICallError | grpc.RpcError") -> api.GoogleAPICallError:
    """Convert an error to an API exception, because this package handles only API exceptions."""
    if isinstance(error, api.GoogleAPICallError):
        return error
    translated: api.GoogleAPICallError = api.from_grpc_error(error)
    return translated


def _pause(tries: int, error: Exception) -> None:
    """Sleep for a random, growing time, or raise an error if the deadline would pass."""
    pause = random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tries))  # noqa: S311
    if state.end is not None and time.monotonic() + pause >= state.end:
        raise errors.Overloaded("the store did not answer in time") from error
    time.sleep(pause)
