"""The door to the store: contexts, transactions, time-outs, retries, bulk reads and the guard.

Owns every call that leaves for a Datastore, and these facts about google-cloud-ndb 2.7, each
a test in tests/comments/test_datastore.py:

- A transaction body may run again although its commit was applied (the answer was lost). Bodies
  therefore recognise their own earlier work; `transaction` relies on it and retries everything
  that is transient, whatever was or was not applied.
- After a failed transaction the context cache holds values nobody stored: contexts have no cache.
- NDB retries by sleeping 1, 2, 4 s and RPCs have no time-out: here every RPC has one, NDB's
  retries are off, and ours are short, jittered and end at one deadline. Then `Overloaded`.
- NDB begins each attempt as if it were the first: ours name the one before (`transaction`).
- Reading 1,000 entities through NDB takes ten times as long as through the generated protobuf
  classes: bulk reads (`fetch`, `count`) use those, single entities and writes use NDB.

**The guard.** Comments, counters and votes are written only by their owners (`OWNERS`), because
writes that go around the owners are how counters drift. An owner hands out `Writes`; `apply` puts
them and lets the commit of this transaction pass with them. A commit that holds any other entity
of an owned kind is refused before it leaves, however it was made.
"""

import contextlib
import copy
import dataclasses
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from google.api_core import exceptions as api
from google.cloud import ndb
from google.cloud.datastore_v1.types import datastore as rpc_types
from google.cloud.datastore_v1.types import entity as entity_types

from comments import errors, lines, ndbclient, queries

if TYPE_CHECKING:
    from google.cloud.ndb.context import Context

P = TypeVar("P")
T = TypeVar("T")

# Which module may write a kind. Every kind that is not here is written by whoever owns its module.
OWNERS = {
    "Comment": "tree",
    "Vote": "votes",
    "VotesDue": "votes",
    "VoterNetwork": "votes",
    "Bucket": "folding",
    "BucketDirectory": "folding",
    "Ranking": "folding",
    "FollowerList": "compaction",
    "FollowerSegment": "compaction",
    "FollowerMark": "followers",
    "Subscriber": "subscriptions",
    "Subscription": "subscriptions",
    "RateBucket": "limits",
    "Counter": "tallies",
    "Participation": "tallies",
    "Standing": "tallies",
    "Category": "tallies",
    "Day": "tallies",
    "Appearance": "tallies",
    "Event": "outbox",
    "Message": "messages",
    "SiteHooks": "hooks",
}

# What a second try may mend. Bodies are safe to run twice, so "perhaps applied" belongs here too.
TRANSIENT = (
    api.Aborted,
    api.ServiceUnavailable,
    api.InternalServerError,
    api.Unknown,
    api.DeadlineExceeded,
    api.ResourceExhausted,
    api.Cancelled,
)
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.5

Query = queries.Query
Entity = entity_types.Entity.pb()
_Partition = entity_types.PartitionId.pb()
_Key = entity_types.Key.pb()
_LookupRequest = rpc_types.LookupRequest.pb()
_MOST_KEYS = 1000  # of one lookup (the service's limit)
_RunQueryRequest = rpc_types.RunQueryRequest.pb()
_AggregationRequest = rpc_types.RunAggregationQueryRequest.pb()


@dataclasses.dataclass(frozen=True, slots=True)
class Writes:
    """What an owner wants put and deleted in the current transaction.

    Raises:
        errors.UnownedWrite: an entity is of a kind that belongs to another owner.
    """

    owner: str
    put: tuple[ndb.Model, ...] = ()
    delete: tuple[ndb.Key, ...] = ()

    def __post_init__(self) -> None:
        """Check each entity's kind against `OWNERS`."""
        for key in self.keys:
            if OWNERS.get(key.kind(), self.owner) != self.owner:
                raise errors.UnownedWrite(f"{self.owner} may not write {key.kind()}")

    @property
    def keys(self) -> tuple[ndb.Key, ...]:
        """The keys of all entities touched."""
        return (*(entity.key for entity in self.put), *self.delete)


class _State(threading.local):
    """What the current thread is inside of."""

    store: "Store | None" = None
    end: float | None = None
    allowed: set[tuple[str, str]] | None = None
    previous: bytes = b""  # the attempt of this transaction before the one that is begun


_state = _State()


class Store:
    """A connection to one database. Safe for many threads; make one per process."""

    def __init__(
        self,
        channel: grpc.Channel,
        *,
        project: str,
        database: str = "",
        namespace: str = "",
        deadline: float = 20.0,
        rpc_timeout: float = 10.0,
    ) -> None:
        self.project = project
        self.database = database
        self.namespace = namespace
        self.deadline = deadline
        self.rpc_timeout = rpc_timeout
        self._lines = lines.Lines()
        self._kept: dict[str, Any] = {}
        self._client = ndbclient.Client(
            channel,
            project=project,
            database=database,
            namespace=namespace,
            rules=ndbclient.Rules(lambda: _timeout(self), _name_previous, _refuse_unowned),
        )
        self._run_query = channel.unary_unary(
            f"{ndbclient.SERVICE}RunQuery",
            request_serializer=_RunQueryRequest.SerializeToString,
            response_deserializer=rpc_types.RunQueryResponse.pb().FromString,
        )
        self._lookup = channel.unary_unary(
            f"{ndbclient.SERVICE}Lookup",
            request_serializer=_LookupRequest.SerializeToString,
            response_deserializer=rpc_types.LookupResponse.pb().FromString,
        )
        self._aggregate = channel.unary_unary(
            f"{ndbclient.SERVICE}RunAggregationQuery",
            request_serializer=_AggregationRequest.SerializeToString,
            response_deserializer=rpc_types.RunAggregationQueryResponse.pb().FromString,
        )

    @contextlib.contextmanager
    def context(self) -> Iterator["Context"]:
        """Enter the store for one request or command of the current thread; inside, it goes on."""
        if _state.store is self:
            yield ndb.get_context()
            return
        with self._client.context(cache_policy=False, global_cache=None) as context:
            _state.store = self
            try:
                yield context
            finally:
                _state.store = None

    def request_fields(self) -> dict[str, str]:
        """The project and database fields every request names."""
        return {"project_id": self.project, "database_id": self.database}

    def partition(self) -> Any:
        """The PartitionId of every key in this store."""
        return _Partition(
            project_id=self.project, database_id=self.database, namespace_id=self.namespace
        )

    def run_query(self, request: Any) -> Any:
        """One RunQuery call with time-out and retries."""
        return _patiently(lambda: self._run_query(request, timeout=_timeout(self)), self)

    def key(self, *path: tuple[str, str]) -> Any:
        """The key of an entity by its path of kinds and names."""
        key = _Key(partition_id=self.partition())
        for kind, name in path:
            key.path.add(kind=kind, name=name)
        return key

    def lookup(self, request: Any) -> Any:
        """One Lookup call with time-out and retries."""
        return _patiently(lambda: self._lookup(request, timeout=_timeout(self)), self)

    def aggregate(self, request: Any) -> Any:
        """One RunAggregationQuery call with time-out and retries."""
        return _patiently(lambda: self._aggregate(request, timeout=_timeout(self)), self)

    def kept(self, name: str, factory: Callable[[], T]) -> T:
        """What a module keeps in this process about this store, made on first use."""
        value: T = self._kept.get(name) or self._kept.setdefault(name, factory())
        return value

    def line(self, name: str) -> "contextlib.AbstractContextManager[None]":
        """Wait in this process's line for `name`."""
        left = 0.0 if _state.end is None else max(0.0, _state.end - time.monotonic())
        return self._lines.wait(name, seconds=left)


def transaction(body: Callable[[], T], *, line: str = "") -> T:
    """Run `body` in a read-write transaction until it commits once; return what it returned.

    `body` may run several times, also after a commit of its own that was applied: it looks first
    and recognises its own work. `line` names a row that many write at once: within one process
    those transactions then take turns instead of aborting one another.

    Each attempt names the one before it. Of transactions that wait for each other the store gives
    up the youngest, by its first attempt: so whoever came first is through in the end, however many
    come after it.

    Raises:
        errors.Overloaded: it did not commit before the deadline. It may have been applied.
    """
    store = _current()
    attempts: list[bytes] = []

    def noted() -> T:
        attempts.append(ndb.get_context().transaction)
        return body()

    def attempt() -> T:
        _state.allowed = set()
        _state.previous = attempts[-1] if attempts else b""
        try:
            return ndb.transaction(noted, retries=0)
        finally:
            _state.allowed = None
            _state.previous = b""

    with within(store.deadline), store.line(line):
        return _patiently(attempt, store)


def snapshot(body: Callable[[], T]) -> T:
    """Run `body` in a read-only transaction: everything it reads is of one moment."""
    store = _current()
    with within(store.deadline):
        return _patiently(lambda: ndb.transaction(body, retries=0, read_only=True), store)


def apply(*changes: Writes) -> None:
    """Put and delete what owners asked for, as part of the current transaction."""
    if _state.allowed is None:
        raise errors.UnownedWrite("apply belongs inside datastore.transaction")
    entities = [entity for change in changes for entity in change.put]
    deleted = [key for change in changes for key in change.delete]
    _state.allowed.update((key.kind(), key.id()) for change in changes for key in change.keys)
    # Waits for the puts: a put that nobody waits for is lost without a word.
    ndb.put_multi(entities, retries=0)
    ndb.delete_multi(deleted, retries=0)


def get(key: ndb.Key) -> Any:
    """Read one entity, or None."""
    return get_multi([key])[0]


def get_multi(keys: Sequence[ndb.Key]) -> list[Any]:
    """Read entities by key in one call; None where there is none."""
    if ndb.in_transaction():
        return list(ndb.get_multi(keys, retries=0))
    store = _current()
    with within(store.deadline):
        return list(_patiently(lambda: ndb.get_multi(keys, retries=0), store))


def prepared(query: Query) -> Any:
    """The request of a query for `ask`. It may be kept: making it takes as long as asking it."""
    store = _current()
    partition = store.partition()
    return _RunQueryRequest(
        **store.request_fields(), partition_id=partition, query=queries.message(query, partition)
    )


def fetch(query: Query) -> Iterator[Any]:
    """Yield the entities of a query as protobuf messages, in its order, in batches as they come.

    Inside a transaction the query is part of it.
    """
    return ask(prepared(query))


def ask(request: Any) -> Iterator[Any]:
    """Yield the entities of a prepared query, see `fetch`. The request stays as it is."""
    store = _current()
    if ndb.in_transaction():
        request = copy.deepcopy(request)
        _join_transaction(request)
    yield from queries.results(request, store.run_query)


def lookup(kind: str, names: Sequence[str]) -> Iterator[Any]:
    """Yield the entities of a kind that have these names, as protobuf messages, in any order."""
    store = _current()
    return _looked_up(store, [store.key((kind, name)) for name in names])


def read(keys: Sequence[ndb.Key]) -> list[Any]:
    """Read entities by key as protobuf messages; None where there is none."""
    store = _current()
    wanted = [store.key(*key.pairs()) for key in keys]
    found = {_path(entity.key): entity for entity in _looked_up(store, wanted)}
    return [found.get(_path(key)) for key in wanted]


def _path(key: Any) -> tuple[tuple[str, str], ...]:
    return tuple((each.kind, each.name) for each in key.path)


def _looked_up(store: Store, keys: Sequence[Any]) -> Iterator[Any]:
    left = list(keys)
    while left:
        request = _LookupRequest(**store.request_fields(), keys=left[:_MOST_KEYS])
        _join_transaction(request)
        answer = store.lookup(request)
        for result in answer.found:
            yield result.entity
        left = [*answer.deferred, *left[_MOST_KEYS:]]


def count(query: Query) -> int:
    """How many entities a query matches, without reading them."""
    store = _current()
    partition = store.partition()
    request = _AggregationRequest(**store.request_fields(), partition_id=partition)
    request.aggregation_query.nested_query.CopyFrom(queries.message(query, partition))
    request.aggregation_query.aggregations.add(alias="n").count.SetInParent()
    _join_transaction(request)
    batch = store.aggregate(request).batch
    return int(batch.aggregation_results[0].aggregate_properties["n"].integer_value)


def kept(name: str, factory: Callable[[], T]) -> T:
    """What a module keeps in this process about the current store, made on first use."""
    return _current().kept(name, factory)


def carried(step: Callable[[P], T]) -> Callable[[P], T]:
    """The step, for other threads to take in the current store."""
    store = _current()

    def run(argument: P) -> T:
        with store.context():
            return step(argument)

    return run


def _current() -> Store:
    if _state.store is None:
        raise RuntimeError("enter `with store.context():` first")
    return _state.store


def _join_transaction(request: Any) -> None:
    if ndb.in_transaction():
        request.read_options.transaction = ndb.get_context().transaction


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Bound everything inside by a deadline; an outer one stays."""
    outer = _state.end
    _state.end = time.monotonic() + seconds if outer is None else outer
    try:
        yield
    finally:
        _state.end = outer


def _timeout(store: Store) -> float:
    """Seconds the next RPC may take."""
    if _state.end is None:
        return store.rpc_timeout
    return max(0.001, min(store.rpc_timeout, _state.end - time.monotonic()))


def _patiently(attempt: Callable[[], T], store: Store) -> T:
    """Try until it works, something permanent happens, or the deadline comes.

    Inside a transaction there is one try: what failed there has to start again from its begin.
    """
    with within(store.deadline):
        for tries in itertools.count():
            try:
                return attempt()
            except (api.GoogleAPICallError, grpc.RpcError) as raw:
                error = raw if isinstance(raw, api.GoogleAPICallError) else _translated(raw)
                if ndb.in_transaction():
                    raise error from raw
                if not isinstance(error, TRANSIENT):
                    raise errors.Overloaded(f"the store refused: {error}") from error
                _pause(tries, error)
    raise AssertionError("unreachable: the loop above has no end")


def _translated(error: grpc.RpcError) -> api.GoogleAPICallError:
    translated: api.GoogleAPICallError = api.from_grpc_error(error)
    return translated


def _pause(tries: int, error: Exception) -> None:
    """Sleep a random while that grows, or give up where the deadline would pass."""
    pause = random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tries))  # noqa: S311
    if _state.end is not None and time.monotonic() + pause >= _state.end:
        raise errors.Overloaded("the store did not answer in time") from error
    time.sleep(pause)


def _name_previous(request: Any) -> None:
    """Say in a BeginTransaction which attempt it repeats. NDB has no way to tell."""
    if _state.previous:
        options = request._pb.transaction_options  # noqa: SLF001 - see `_refuse_unowned`
        options.read_write.previous_transaction = _state.previous


def _refuse_unowned(request: Any) -> None:
    """Raise if a commit holds an owned kind that no owner asked to write."""
    allowed = _state.allowed or set()
    for mutation in request._pb.mutations:  # noqa: SLF001 - proto-plus hides the message there
        operation = mutation.WhichOneof("operation")
        value = getattr(mutation, operation)
        last = (value if operation == "delete" else value.key).path[-1]
        if last.kind in OWNERS and (last.kind, last.name) not in allowed:
            raise errors.UnownedWrite(f"{last.kind} is written by {OWNERS[last.kind]} only")
