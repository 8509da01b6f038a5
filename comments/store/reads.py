"""Read entities by key or by query, and count them, in the current transaction if there is one.

A store answers a query in batches and may end a batch anywhere (after 300 results, often sooner).
Outside a transaction, each batch shows a later moment than the previous batch. A row that changes
between two batches may therefore be returned twice or not at all.

Invariant: `fetch` yields the state at one moment, regardless of the number of batches
(test_reads.py::test_a_read_of_many_batches_is_from_one_moment).

A response with one batch costs one call. A response with more batches is read again from its start
in a read-only transaction, and Datastore bills the first batch twice. A query for whole entities
with a limit above `_ONE_BATCH` therefore starts in a transaction. A caller that expects more than
`_ONE_BATCH` entities but sets no limit uses `at_one_moment`. Continuing after the first batch at
its `read_time` would avoid the double billing, but the embedded engine keeps no history
(`main.py`). A transaction is correct on every store.

Only `walk` streams batches from different moments. Use `walk` for scans over very many entities if
the consumer handles each entity separately and reads the entity again before changing it. `count`
counts entities at one moment, in one call if possible. `get_multi`, `read` and `lookup` may take
several calls. A caller that needs one moment therefore compares revisions or uses `at_one_moment`.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from google.cloud.datastore_v1.types import datastore as rpc_types
from google.cloud.datastore_v1.types import entity as entity_types

from comments.store import connection, transactions
from comments.store.models import schema
from comments.store.wire import codec, queries

Query = queries.Query
MOST_VALUES = queries.MOST_VALUES
Path = tuple[tuple[str, str], ...]  # Kinds and names from the root to an entity
Entity = entity_types.Entity.pb()
_ONE_BATCH = 300  # Maximum results in a batch.
LONGEST = 240.0  # Seconds for a response with many batches; Datastore ends transactions after 270.
_RunQueryRequest = rpc_types.RunQueryRequest.pb()
_AggregationRequest = rpc_types.RunAggregationQueryRequest.pb()


class PreparedQuery(NamedTuple):
    """The encoded request of a query that is sent to the current store many times.

    Parsing the bytes takes a tenth of the time of building the request.
    """

    request: bytes
    is_long: bool


def get(key: schema.RowKey) -> Any:
    """Return an entity, or None if it does not exist."""
    return get_multi([key])[0]


def get_multi(keys: Sequence[schema.RowKey]) -> list[Any]:
    """Return, in one call, the entities with these keys, with None for each missing entity."""
    return [
        None if stored is None else codec.row(key, stored)
        for key, stored in zip(keys, read(keys), strict=True)
    ]


def prepare(query: Query) -> PreparedQuery:
    """Prepare a query for `fetch`."""
    return PreparedQuery(_request(query).SerializeToString(), _is_long(query))


def names(
    kind: str,
    where: Sequence[tuple[str, str, object]] = (),
    *,
    order: Sequence[str] = (),
    limit: int | None = None,
    ancestor: Any = None,
) -> list[str]:
    """Query the keys of a kind's entities (`fetch`), and return the names of these keys."""
    query = Query(kind, where, order, limit, keys_only=True, ancestor=ancestor)
    return [message.key.path[-1].name for message in fetch(query)]


def fetch(query: Query | PreparedQuery) -> Iterator[Any]:
    """Yield a query's entities as protobuf messages, in the query's order, all as of one moment.

    Inside a transaction, the query is part of the transaction. Outside a transaction, the whole
    response is kept in memory; use `walk` for a query that may match hundreds of thousands of
    entities.

    Raises:
        errors.Overloaded: a long response was not complete after `LONGEST` seconds.
    """
    store = connection.current()
    if isinstance(query, PreparedQuery):
        request, is_long = _RunQueryRequest.FromString(query.request), query.is_long
    else:
        request, is_long = _request(query), _is_long(query)
    if connection.state.transaction is not None:
        yield from queries.results(request, store.run_query)
        return
    if not is_long:
        batch = store.run_query(request).batch
        if batch.more_results != queries.NOT_FINISHED:
            for result in batch.entity_results:
                yield result.entity
            return
    # The next batch would show a later moment, so start again. Collect all results before the
    # transaction ends, because the caller may write, or stop, between two entities.
    with connection.within(LONGEST):
        rows = transactions.snapshot(lambda: list(fetch(query)))
    yield from rows


def _request(query: Query) -> Any:
    store = connection.current()
    partition = store.partition()
    if store.is_emulator and query.order and query.order[-1].startswith("-"):
        # Google's Firestore emulator sorts equal results by key in the direction of the last order.
        # All other stores sort them by ascending key and need no separate index for this order.
        # Paging relies on this order. Google's App Engine SDK describes which orders its indexes
        # omit: "Orders on `__key__` `ASCENDING` are dropped (since this is supported natively by
        # the datastore)." (`CompositeIndexForQuery` in
        # https://github.com/GoogleCloudPlatform/appengine-python-standard/blob/main/src/google/appengine/datastore/datastore_index.py)
        query = dataclasses.replace(query, order=(*query.order, "__key__"))
    return _RunQueryRequest(
        **store.request_fields(), partition_id=partition, query=queries.message(query, partition)
    )


def _is_long(query: Query) -> bool:
    """Return whether a query returns so many entities that reading its first batch twice is costly.

    Keys and projections are billed as one read per batch.
    """
    return (query.limit or 0) > _ONE_BATCH and not (query.keys_only or query.projection)


def walk(query: Query) -> Iterator[Any]:
    """Yield a query's entities as protobuf messages, each batch as of a different moment.

    An entity that changes during the scan may be yielded twice, or not at all if the change moves
    the entity in the query's order. Inside a transaction, `walk` is the same as `fetch`.
    """
    if connection.state.transaction is not None:
        return fetch(query)
    return queries.results(_request(query), connection.current().run_query)


def lookup(kind: str, names: Sequence[str]) -> Iterator[Any]:
    """Yield the entities of a kind with these key names, as protobuf messages, in any order."""
    store = connection.current()
    return store.lookup([store.key((kind, name)) for name in names])


def read(keys: Sequence[Path]) -> list[Any]:
    """Return the entities with these keys as protobuf messages, with None for missing entities."""
    store = connection.current()
    wanted = [store.key(*path) for path in dict.fromkeys(keys)]
    stored = list(store.lookup(wanted))
    if len(wanted) == 1:
        return [stored[0] if stored else None] * len(keys)
    by_path = {
        tuple((step.kind, step.name) for step in entity.key.path): entity for entity in stored
    }
    return [by_path.get(path) for path in keys]


def count(query: Query) -> int:
    """Count the entities that a query matches, without reading them."""
    store = connection.current()
    if store.is_emulator:
        # Google's Datastore emulator has no aggregation queries.
        return sum(1 for _ in fetch(dataclasses.replace(query, keys_only=True)))
    partition = store.partition()
    request = _AggregationRequest(**store.request_fields(), partition_id=partition)
    request.aggregation_query.nested_query.CopyFrom(queries.message(query, partition))
    request.aggregation_query.aggregations.add(alias="n").count.SetInParent()
    batch = store.aggregate(request).batch
    return int(batch.aggregation_results[0].aggregate_properties["n"].integer_value)
