"""The door to the store: contexts, transactions, time-outs, retries, bulk reads and the guard.

Owns every call that leaves for a Datastore, and these rules, each a test in
tests/comments/test_datastore.py:

- A transaction body may run again although its commit was applied (the answer was lost). Bodies
  therefore recognise their own earlier work; `transaction` relies on it and retries everything
  that is transient, whatever was or was not applied.
- Every RPC has a time-out; retries are short, jittered and end at one deadline. Then `Overloaded`.
- Each attempt of a transaction names the one before (`transaction`).
- Rows are NDB's models, but NDB calls nobody: converting (`entities`) and transactions
  (`transactions`) take a tenth of the processor time that NDB takes for them, and its retries
  sleep for seconds. Bulk reads (`fetch`, `read`) stay protobuf messages.

**The guard.** Comments, counters and votes are written only by their owners (`OWNERS`), because
writes that go around the owners are how counters drift. An owner hands out `Writes`, and `apply`
is the only way into a transaction's commit. NDB's own calls are refused where they would pass by
that: a commit of an owned kind anywhere, and any call at all inside a transaction.
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

from comments import entities, errors, lines, ndbclient, queries, transactions

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
    "Account": "accounts",
    "Identity": "accounts",
    "Session": "accounts",
    "Ticket": "accounts",
    "SiteKeys": "accounts",
    "AuditEntry": "audit",
    "ErasureDue": "erasures",
    "Rulebook": "rulebook",
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
    # What was to be inserted is there: the body runs again, and looks.
    api.AlreadyExists,
)
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.5

Query = queries.Query
Path = tuple[tuple[str, str], ...]  # kinds and names from the root to an entity
Entity = entity_types.Entity.pb()
_Partition = entity_types.PartitionId.pb()
_Key = entity_types.Key.pb()
_LookupRequest = rpc_types.LookupRequest.pb()
_MOST_KEYS = 1000  # of one lookup (the service's limit)
_Mutation = rpc_types.Mutation.pb()
_RunQueryRequest = rpc_types.RunQueryRequest.pb()
_AggregationRequest = rpc_types.RunAggregationQueryRequest.pb()


@dataclasses.dataclass(frozen=True, slots=True)
class Writes:
    """What an owner wants put and deleted in the current transaction.

    `insert` is what must not be there yet: if it is, nothing is stored and the body runs again,
    which can tell that by `may_have_run` and look.

    Raises:
        errors.UnownedWrite: an entity is of a kind that belongs to another owner.
    """

    owner: str
    put: tuple[ndb.Model, ...] = ()
    delete: tuple[ndb.Key, ...] = ()
    insert: tuple[ndb.Model, ...] = ()

    def __post_init__(self) -> None:
        """Check each entity's kind against `OWNERS`."""
        for key in self.keys:
            kind = key.pairs()[-1][0]  # `key.kind()` copies the whole path
            if OWNERS.get(kind, self.owner) != self.owner:
                raise errors.UnownedWrite(f"{self.owner} may not write {kind}")

    @property
    def keys(self) -> tuple[ndb.Key, ...]:
        """The keys of all entities touched."""
        return (*(entity.key for entity in (*self.insert, *self.put)), *self.delete)


class _State(threading.local):
    """What the current thread is inside of."""

    store: "Store | None" = None
    end: float | None = None
    transaction: transactions.Transaction | None = None
    may_have_run: bool = False


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
            rules=ndbclient.Rules(lambda: _timeout(self), _refuse_inside, _refuse_unowned),
        )
        self._partition = self.partition()
        self.calls = transactions.Calls(channel, self.request_fields(), lambda: _timeout(self))
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
        key = _Key(partition_id=self._partition)
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
    last = transactions.Transaction(store.calls)
    is_unsure = False

    def attempt() -> T:
        nonlocal last, is_unsure
        last = transactions.Transaction(store.calls, previous=last.id or last.previous)
        _state.may_have_run = is_unsure
        try:
            return _within_transaction(last, body)
        except (api.GoogleAPICallError, grpc.RpcError) as error:
            is_unsure = is_unsure or not isinstance(_known(error), api.Aborted)
            raise

    with within(store.deadline), store.line(line):
        return _patiently(attempt, store)


def snapshot(body: Callable[[], T]) -> T:
    """Run `body` in a read-only transaction: everything it reads is of one moment."""
    store = _current()

    def attempt() -> T:
        return _within_transaction(transactions.Transaction(store.calls, is_read_only=True), body)

    with within(store.deadline):
        return _patiently(attempt, store)


def _within_transaction(opened: transactions.Transaction, body: Callable[[], T]) -> T:
    if _state.transaction is not None:
        raise RuntimeError("a transaction holds no other one")
    _state.transaction = opened
    try:
        result = body()
        opened.commit()
    except BaseException:
        opened.roll_back()
        raise
    finally:
        _state.transaction = None
    return result


def may_have_run() -> bool:
    """Whether an earlier run of the current transaction may have been applied."""
    return _state.may_have_run


def apply(*changes: Writes) -> None:
    """Put and delete what owners asked for, when the current transaction commits."""
    opened = _state.transaction
    if opened is None or opened.is_read_only:
        raise errors.UnownedWrite("apply belongs inside datastore.transaction")
    store = _current()

    def entity(row: ndb.Model) -> Any:
        return entities.message(row, store.key(*row.key.pairs()))

    opened.add(
        [
            *(_Mutation(insert=entity(row)) for change in changes for row in change.insert),
            *(_Mutation(upsert=entity(row)) for change in changes for row in change.put),
            *(
                _Mutation(delete=store.key(*key.pairs()))
                for change in changes
                for key in change.delete
            ),
        ]
    )


def get(key: ndb.Key) -> Any:
    """Read one entity, or None."""
    return get_multi([key])[0]


def get_multi(keys: Sequence[ndb.Key]) -> list[Any]:
    """Read entities by key in one call; None where there is none."""
    return [
        None if stored is None else entities.row(key, stored)
        for key, stored in zip(keys, read(keys), strict=True)
    ]


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
    if _state.transaction is not None:
        request = copy.deepcopy(request)
        _state.transaction.join(request)
    yield from queries.results(request, store.run_query)


def lookup(kind: str, names: Sequence[str]) -> Iterator[Any]:
    """Yield the entities of a kind that have these names, as protobuf messages, in any order."""
    store = _current()
    return _looked_up(store, [store.key((kind, name)) for name in names])


def read(keys: Sequence[ndb.Key | Path]) -> list[Any]:
    """Read entities by key as protobuf messages; None where there is none.

    A path will do for a key: NDB takes longer to make one than to be asked for its path.
    """
    store = _current()
    paths = [key.pairs() if isinstance(key, ndb.Key) else key for key in keys]
    wanted = [store.key(*path) for path in dict.fromkeys(paths)]
    found = {_path(entity.key): entity for entity in _looked_up(store, wanted)}
    return [found.get(path) for path in paths]


def _path(key: Any) -> Path:
    return tuple((each.kind, each.name) for each in key.path)


def _looked_up(store: Store, keys: Sequence[Any]) -> Iterator[Any]:
    left = list(keys)
    while left:
        request = _LookupRequest(**store.request_fields(), keys=left[:_MOST_KEYS])
        opened = _state.transaction
        if opened is not None:
            opened.join_lookup(request)
        answer = store.lookup(request)
        if opened is not None:
            opened.begun(answer)
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
    if _state.transaction is not None:
        _state.transaction.join(request)
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
                error = _known(raw)
                if _state.transaction is not None:
                    raise error from raw
                if not isinstance(error, TRANSIENT):
                    raise errors.Overloaded(f"the store refused: {error}") from error
                _pause(tries, error)
    raise AssertionError("unreachable: the loop above has no end")


def _known(error: "api.GoogleAPICallError | grpc.RpcError") -> api.GoogleAPICallError:
    if isinstance(error, api.GoogleAPICallError):
        return error
    translated: api.GoogleAPICallError = api.from_grpc_error(error)
    return translated


def _pause(tries: int, error: Exception) -> None:
    """Sleep a random while that grows, or give up where the deadline would pass."""
    pause = random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tries))  # noqa: S311
    if _state.end is not None and time.monotonic() + pause >= _state.end:
        raise errors.Overloaded("the store did not answer in time") from error
    time.sleep(pause)


def _refuse_inside() -> None:
    """Raise if NDB calls inside a transaction, which would not be part of it."""
    if _state.transaction is not None:
        raise errors.UnownedWrite("inside a transaction everything goes through datastore")


def _refuse_unowned(request: Any) -> None:
    """Raise if a commit that NDB makes holds an owned kind."""
    for mutation in request._pb.mutations:  # noqa: SLF001 - proto-plus hides the message there
        operation = mutation.WhichOneof("operation")
        value = getattr(mutation, operation)
        kind = (value if operation == "delete" else value.key).path[-1].kind
        if kind in OWNERS:
            raise errors.UnownedWrite(f"{kind} is written by {OWNERS[kind]} only")
