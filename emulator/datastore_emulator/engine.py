"""The engine: answers every RPC, regardless of its transport.

Owns the order of steps in a request: check it, read or lock, then answer. Requests are raw protobuf
messages, which the engine never changes; responses are serialized messages. Every refusal is a
DatastoreError; any other exception is a bug in the engine, which logs it and answers with
EngineFault.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Self, cast

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import entities, keys, property_masks, request_keys
from datastore_emulator.execution import (
    automatic_indexes,
    cost_meter,
    lazy_indexes,
    lookups,
    query_runner,
    repeated_queries,
)
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.import_export import bulk_load
from datastore_emulator.storage import data_file, file_store, history, read_sets, row_reader
from datastore_emulator.transactions import commits, mutations, open_transactions

MAX_REQUEST_BYTES = 10 * 1024 * 1024
MAX_LOOKUP_KEYS = 1000
_QUERIES = frozenset({"RunQuery", "RunAggregationQuery"})

_logger = logging.getLogger(__name__)
_open_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def _let_go() -> None:
    for engine in list(_open_engines):
        engine.storage.close_idle()


def _forget_parent() -> None:
    for engine in list(_open_engines):
        engine.forget_parent()


os.register_at_fork(before=_let_go, after_in_child=_forget_parent)


class Engine:
    """An open data file that answers requests from any thread.

    Args:
        store: The data file.
        clock: Returns seconds since 1970.
        stopwatch: Returns seconds on a monotonic clock, to measure queries.
        concurrency: How transactions handle conflicts.
    """

    def __init__(
        self,
        store: file_store.FileStore,
        clock: Callable[[], float],
        *,
        stopwatch: Callable[[], float],
        concurrency: open_transactions.Concurrency = open_transactions.Concurrency.OPTIMISTIC,
    ) -> None:
        self._storage = store
        self.clock = clock
        # None means strict: the engine answers only queries that existing indexes can serve.
        self.auto_indexes: automatic_indexes.AutomaticIndexes | None = None
        self._transactions = open_transactions.Transactions(store, clock, concurrency=concurrency)
        self._faults: fault_plans.Plan | None = None
        self.meter = cost_meter.Meter()
        repeated = repeated_queries.RepeatedQueries(store)
        self._runs = query_runner.QueryRunner(self._reading, repeated, self.meter, stopwatch)
        self._commits = commits.Commits(self._transactions, self._begin, self.meter)
        self._repeated = (
            threading.local()
        )  # `name` is the transaction that a repeated request began in its first run
        self._methods: dict[str, Callable[..., bytes]] = {
            "Lookup": self._lookup,
            "RunQuery": self._run_query,
            "RunAggregationQuery": self._run_aggregation_query,
            "BeginTransaction": self._begin_transaction,
            "Commit": self._commit,
            "Rollback": self._rollback,
            "AllocateIds": self._allocate_ids,
            "ReserveIds": self._reserve_ids,
        }
        _open_engines.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End all transactions and close the file."""
        self.install_faults(None)
        self._transactions.close()
        self._storage.close()

    @property
    def storage(self) -> file_store.FileStore:
        """The data file, for code that reads or changes it without the API."""
        return self._storage

    def reset(
        self,
        *,
        project: str | None = None,
        database: str | None = None,
        namespace: str | None = None,
    ) -> None:
        """Remove all entities, or the entities of the named partitions, and end all transactions.

        Composite indexes remain defined, and ids that were allocated before are never allocated
        again.
        """
        self._transactions.end_all()
        with self._storage.write() as writer:
            writer.clear(project, database, namespace)

    def forget_parent(self) -> None:
        """Reset the engine's state in a forked child process."""
        self._storage.forget_connections()
        self._transactions.forget()
        if self._faults is not None:
            self._faults.forget_parent()
        self.meter.forget()
        self._runs.forget()

    @property
    def fault_plan(self) -> fault_plans.Plan | None:
        """The installed fault plan, or None."""
        return self._faults

    def install_faults(self, plan: fault_plans.Plan | None) -> None:
        """Install a fault plan in place of the current one; None removes it."""
        before, self._faults = self._faults, plan
        if before is not None:
            before.remove()
        if plan is not None:
            plan.install()

    def load(self, given: Iterable[protobufs.Entity], project: str, database: str = "") -> int:
        """Put many entities quickly, in batches; return their number. See `bulk_load.load`."""
        return bulk_load.load(self._storage, given, entities.request_partition(project, database))

    def call(
        self, method: str, request: protobufs.Request, caller: fault_plans.Caller | None = None
    ) -> bytes:
        """Answer one request with a serialized response message.

        Raises:
            errors.DatastoreError: The request fails with a status other than OK.
        """
        return self._call(method, self._methods[method], request, caller)

    def commit_own(
        self, request: protobufs.CommitRequest, caller: fault_plans.Caller | None = None
    ) -> bytes:
        """Answer a Commit of entities that the caller has built in their stored form.

        For each entity, the caller guarantees that the engine would store it unchanged: its
        property names are valid, its indexed texts have at most 1,500 bytes, its timestamps are
        whole microseconds within the years 1 to 9999, and it contains no keys, entities or nested
        arrays. The engine checks everything else, including keys and sizes. An entity that breaks
        these guarantees is stored as it is, and queries may not find it.

        Raises:
            errors.DatastoreError: The request fails with a status other than OK.
        """
        own = functools.partial(self._commit, are_own=True)
        return self._call("Commit", own, request, caller)

    def version(self, key: protobufs.Key) -> int:
        """Return an entity's version, which each change increases, or 0 if the entity is missing.

        The key must name its project. The call is cheaper than any request, and is not billed.

        Raises:
            errors.DatastoreError: The key is not valid, or the file cannot be read.
        """
        given = key.partition_id
        default = entities.request_partition(given.project_id, given.database_id)
        self._storage.wait_for_checkpoint()
        return self._storage.version(_read_key(key.SerializeToString(), key, default))

    def _call(
        self,
        method: str,
        run: Callable[..., bytes],
        request: protobufs.Request,
        caller: fault_plans.Caller | None,
    ) -> bytes:
        plan = self._faults
        if plan is None:
            return self._answer(method, run, request)
        return plan.run(
            method, lambda: self._answer(method, run, request), caller or fault_plans.Caller()
        )

    def _answer(self, method: str, run: Callable[..., bytes], request: protobufs.Request) -> bytes:
        size = request.ByteSize()
        if size > MAX_REQUEST_BYTES:
            raise errors.InvalidArgument(f"The request is larger than {MAX_REQUEST_BYTES} bytes.")
        try:
            with data_file.translating:
                answer = self._serve(method, run, request)
        except errors.StorageFault as fault:
            raise fault.about(self._storage.path) from fault
        except errors.DatastoreError:
            raise
        except Exception as fault:
            _logger.exception("%s failed", method)
            raise errors.EngineFault(f"The emulator failed: {fault!r}") from fault
        self.meter.count_bytes(size, len(answer))
        return answer

    def _serve(self, method: str, run: Callable[..., bytes], request: protobufs.Request) -> bytes:
        while True:
            try:
                return self._run(method, run, request)
            except open_transactions.SnapshotMoved:
                continue
            except lazy_indexes.NotMade as missing:
                self._make_indexes(cast("protobufs.QueryRequest", request), missing.codes)

    def _make_indexes(self, request: protobufs.QueryRequest, codes: tuple[bytes, ...]) -> None:
        """Make the built-in indexes that a query needs, and let its transaction see them."""
        name = request.read_options.transaction
        if name:
            partition = _partition(request)
            self._transactions.make_indexes(name, (partition.project, partition.database), codes)
        else:
            lazy_indexes.make(self._storage, codes)

    def _run(self, method: str, run: Callable[..., bytes], request: protobufs.Request) -> bytes:
        if self.auto_indexes is None or method not in _QUERIES:
            return run(request)
        name = cast("protobufs.QueryRequest", request).read_options.transaction

        def renew() -> None:
            if name:
                partition = _partition(request)
                self._transactions.renew(name, (partition.project, partition.database))

        answer = functools.partial(run, request)
        return self.auto_indexes.serve(self._storage, answer, renew)

    def _lookup(self, request: protobufs.LookupRequest) -> bytes:
        default = _partition(request)
        mask = property_masks.of(request)
        if len(request.keys) > MAX_LOOKUP_KEYS:
            raise errors.InvalidArgument(f"A lookup may name at most {MAX_LOOKUP_KEYS} keys.")
        # Clients match results to keys by bytes, so two encodings of one key count as two keys.
        asked = {key.SerializeToString(): key for key in request.keys}
        names = [_read_key(*pair, default) for pair in asked.items()]
        began = b""
        if len(names) == 1 and not request.read_options.WhichOneof("consistency_type"):
            self._storage.wait_for_checkpoint()
            glance = self._storage.glance(names[0])
            answer, done = lookups.answer(glance, list(asked), names, None, mask)
        else:
            with self._reading(request, default) as (snapshot, reads, began):
                answer, done = lookups.answer(snapshot, list(asked), names, reads, mask)
        self.meter.count_lookup(list(asked.values())[:done])
        return answer + (protobufs.field(5, began) if began else b"")

    def _run_query(self, request: protobufs.RunQueryRequest) -> bytes:
        return self._runs.query(request, _query_partition(request))

    def _run_aggregation_query(self, request: protobufs.RunAggregationQueryRequest) -> bytes:
        return self._runs.aggregation_query(request, _query_partition(request))

    @contextlib.contextmanager
    def _reading(
        self, request: protobufs.ReadRequest, default: keys.Partition
    ) -> Iterator[tuple[row_reader.RowReader, read_sets.ReadSet | None, bytes]]:
        """Yield the snapshot for the read options, its read set, and the new transaction's id."""
        options = request.read_options
        scope = (default.project, default.database)
        match options.WhichOneof("consistency_type"):
            case "read_time":
                self._storage.wait_for_checkpoint()
                with self._storage.read_at(history.micros(options.read_time)) as past:
                    yield past, None, b""
                return
            case "transaction":
                name, began = options.transaction, b""
            case "new_transaction":
                name = began = self._begin_by_read(options.new_transaction, scope)
            case _:
                self._storage.wait_for_checkpoint()
                with self._storage.read() as snapshot:
                    yield snapshot, None, b""
                return
        try:
            with (
                self._transactions.using(name, scope) as transaction,
                self._transactions.reading(transaction) as (snapshot, reads),
            ):
                yield snapshot, reads, began
        except open_transactions.SnapshotMoved:
            # When the request is repeated, its transaction keeps its age and its locks, and
            # therefore its place in the queue.
            self._repeated.name = began
            raise
        except BaseException:
            if began:
                # If the first read fails, no client has received the transaction's id.
                self._transactions.roll_back(began, scope)
            raise

    def _begin_by_read(
        self, options: protobufs.TransactionOptions, scope: tuple[str, str]
    ) -> bytes:
        """Return the transaction that a read begins; a repeated read returns the same one."""
        name: bytes = getattr(self._repeated, "name", b"")
        self._repeated.name = b""
        if not name:
            opened = self._begin(options, scope)
            opened.is_claimed = False
            name = opened.name
        return name

    def _begin(
        self, options: protobufs.TransactionOptions, scope: tuple[str, str]
    ) -> open_transactions.Transaction:
        self._storage.wait_for_checkpoint()
        is_read_only = options.WhichOneof("mode") == "read_only"
        read_time = None
        if is_read_only and options.read_only.HasField("read_time"):
            read_time = history.micros(options.read_only.read_time)
        return self._transactions.begin(
            scope,
            is_read_only=is_read_only,
            read_time=read_time,
            previous=options.read_write.previous_transaction,
        )

    def _begin_transaction(self, request: protobufs.BeginTransactionRequest) -> bytes:
        partition = _partition(request)
        scope = (partition.project, partition.database)
        transaction = self._begin(request.transaction_options, scope)
        return protobufs.field(1, transaction.name)

    def _rollback(self, request: protobufs.RollbackRequest) -> bytes:
        partition = _partition(request)
        scope = (partition.project, partition.database)
        self._transactions.roll_back(request.transaction, scope)
        return b""

    def _commit(self, request: protobufs.CommitRequest, *, are_own: bool = False) -> bytes:
        answer = self._commits.commit(request, _partition(request), are_own=are_own)
        self._storage.checkpoint_if_due()
        return answer

    def _allocate_ids(self, request: protobufs.AllocateIdsRequest) -> bytes:
        default = _partition(request)
        wanted = []
        for key in request.keys:
            partition = entities.check_written_key(key, default, may_be_incomplete=True)
            if keys.is_complete(key):
                raise errors.InvalidArgument(f"Key path is complete: {entities.key_text(key)}")
            wanted.append((partition, key))
        response = protobufs.AllocateIdsResponse()
        if not wanted:
            return b""
        with self._storage.write(may_share=True) as writer:
            for partition, key in wanted:
                answer = response.keys.add()
                answer.CopyFrom(key)
                entities.fill_partition(answer, partition)
                answer.path[-1].id = mutations.take_id(writer, partition, key)
            sent = commits.checked_size(response.SerializeToString())
        self.meter.count(small=1)
        return sent

    def _reserve_ids(self, request: protobufs.ReserveIdsRequest) -> bytes:
        default = _partition(request)
        reserved = []
        for key in request.keys:
            partition = entities.check_written_key(key, default, may_be_incomplete=False)
            # Names need no reservation, because only ids are allocated.
            if not key.path[-1].name:
                reserved.append(keys.encode(partition, key))
        with self._storage.write(may_share=True) as writer:
            for encoded in reserved:
                writer.reserve(encoded)
        self.meter.count(small=1)
        return b""


def _partition(request: protobufs.Request) -> keys.Partition:
    return entities.request_partition(request.project_id, request.database_id)


def _read_key(serialized: bytes, key: protobufs.Key, default: keys.Partition) -> bytes:
    encoded = request_keys.of_bytes(serialized, default).encoded
    if not encoded:
        raise request_keys.incomplete(key)
    return encoded


def _query_partition(request: protobufs.QueryRequest) -> keys.Partition:
    """Return a query's partition; the request supplies the parts that the query does not set."""
    default = _partition(request)
    given = request.partition_id
    project = given.project_id or default.project
    database = given.database_id or default.database
    if (project, database) != (default.project, default.database):
        raise errors.InvalidArgument("The query's partition is not in the request's database.")
    return entities.checked_partition(project, database, given.namespace_id)
