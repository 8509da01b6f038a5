"""The calls that the document's classic layouts make to a Datastore, as raw messages."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import grpc

from comments.store.wire import queries
from datastore_emulator import inprocess, protobufs

PROJECT = "bench"
_LOAD = 200  # The number of entities per commit.
_MOST_KEYS = 1000  # The maximum number of keys per lookup.


class TooLarge(Exception):
    """An entity is larger than the store allows."""


class Aborted(Exception):
    """A transaction conflicted with a different one and must be retried."""


class Client:
    """The calls of the layouts: raw messages over a channel."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._partition = protobufs.PartitionId(project_id=PROJECT)
        self._calls: dict[str, Any] = {
            name: channel.unary_unary(
                inprocess.SERVICE + name, request.SerializeToString, response.FromString
            )
            for name, request, response in (
                ("Lookup", protobufs.LookupRequest, protobufs.LookupResponse),
                ("RunQuery", protobufs.RunQueryRequest, protobufs.RunQueryResponse),
                (
                    "BeginTransaction",
                    protobufs.BeginTransactionRequest,
                    protobufs.BeginTransactionResponse,
                ),
                ("Commit", protobufs.CommitRequest, protobufs.CommitResponse),
                (
                    "RunAggregationQuery",
                    protobufs.RunAggregationQueryRequest,
                    protobufs.RunAggregationQueryResponse,
                ),
            )
        }

    def key(self, kind: str, name: str) -> protobufs.Key:
        key = protobufs.Key(partition_id=self._partition)
        key.path.add(kind=kind, name=name)
        return key

    def entity(self, kind: str, name: str) -> protobufs.Entity:
        """Return an entity without properties."""
        return protobufs.Entity(key=self.key(kind, name))

    def get(
        self, kind: str, names: Sequence[str], transaction: bytes = b""
    ) -> dict[str, protobufs.Entity]:
        """Return the existing entities by name."""
        request: Any = protobufs.LookupRequest(project_id=PROJECT)
        found: dict[str, protobufs.Entity] = {}
        left = [self.key(kind, name) for name in names]
        while left:
            del request.keys[:]
            request.keys.extend(left[:_MOST_KEYS])
            if transaction:
                request.read_options.transaction = transaction
            answer = self._calls["Lookup"](request)
            found.update((each.entity.key.path[-1].name, each.entity) for each in answer.found)
            left = [*answer.deferred, *left[_MOST_KEYS:]]
        return found

    def run(self, query: queries.Query, transaction: bytes = b"") -> Iterator[protobufs.Entity]:
        request = protobufs.RunQueryRequest(project_id=PROJECT, partition_id=self._partition)
        request.query.CopyFrom(queries.message(query, self._partition))
        if transaction:
            request.read_options.transaction = transaction
        yield from queries.results(request, self._calls["RunQuery"])

    def count(self, query: queries.Query) -> int:
        """Return the number of entities that match a query."""
        request = protobufs.RunAggregationQueryRequest(
            project_id=PROJECT, partition_id=self._partition
        )
        nested = queries.message(query, self._partition)
        request.aggregation_query.nested_query.CopyFrom(nested)
        request.aggregation_query.aggregations.add(alias="n").count.SetInParent()
        (result,) = self._calls["RunAggregationQuery"](request).batch.aggregation_results
        return int(result.aggregate_properties["n"].integer_value)

    def transact(self, body: Callable[[bytes], Iterable[protobufs.Entity]]) -> None:
        """Run `body`, which reads, and write the entities that it returns, in one transaction.

        Raises:
            Aborted: It conflicted with another transaction.
            TooLarge: The store refused an entity.
        """
        begin = protobufs.BeginTransactionRequest(project_id=PROJECT)
        try:
            transaction = self._calls["BeginTransaction"](begin).transaction
            commit = protobufs.CommitRequest(project_id=PROJECT, mode=1, transaction=transaction)
            for entity in body(transaction):
                commit.mutations.add(upsert=entity)
            self._calls["Commit"](commit)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.ABORTED:
                raise Aborted(str(error)) from error
            raise TooLarge(str(error)) from error

    def write(self, **mutation: protobufs.Entity | protobufs.Key) -> None:
        """Write one entity without a transaction: upsert=entity or delete=key."""
        commit = protobufs.CommitRequest(project_id=PROJECT, mode=2)
        commit.mutations.add(**mutation)
        self._calls["Commit"](commit)

    def put(self, entities: Iterable[protobufs.Entity]) -> None:
        left = list(entities)
        while left:
            self._put_some(left[:_LOAD])
            del left[:_LOAD]

    def _put_some(self, entities: Sequence[protobufs.Entity]) -> None:
        self.transact(lambda _transaction: entities)
