"""Reads: entities by key, queries and counts, in the current transaction if there is one."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from google.cloud import ndb
from google.cloud.datastore_v1.types import datastore as rpc_types
from google.cloud.datastore_v1.types import entity as entity_types

from comments import entities, queries
from comments.datastore import stores
from comments.datastore.stores import Store

Query = queries.Query
Path = tuple[tuple[str, str], ...]  # kinds and names from the root to an entity
Entity = entity_types.Entity.pb()
_MOST_KEYS = 1000  # of one lookup (the service's limit)
_LookupRequest = rpc_types.LookupRequest.pb()
_RunQueryRequest = rpc_types.RunQueryRequest.pb()
_AggregationRequest = rpc_types.RunAggregationQueryRequest.pb()


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
    store = stores.current()
    partition = store.partition()
    return _RunQueryRequest(
        **store.request_fields(), partition_id=partition, query=queries.message(query, partition)
    )


def varied(request: Any, value: str) -> Any:
    """A prepared request with another string in the first of its several conditions.

    It takes a tenth of the time that `prepared` takes.
    """
    made = _RunQueryRequest()
    made.CopyFrom(request)
    first = made.query.filter.composite_filter.filters[0].property_filter
    first.value.string_value = value
    return made


def fetch(query: Query) -> Iterator[Any]:
    """Yield the entities of a query as protobuf messages, in its order, in batches as they come.

    Inside a transaction the query is part of it.
    """
    return ask(prepared(query))


def ask(request: Any) -> Iterator[Any]:
    """Yield the entities of a prepared query, see `fetch`. The request stays as it is."""
    store = stores.current()
    if stores.state.transaction is not None:
        request = copy.deepcopy(request)
        stores.state.transaction.join(request)
    yield from queries.results(request, store.run_query)


def lookup(kind: str, names: Sequence[str]) -> Iterator[Any]:
    """Yield the entities of a kind that have these names, as protobuf messages, in any order."""
    store = stores.current()
    return _looked_up(store, [store.key((kind, name)) for name in names])


def read(keys: Sequence[ndb.Key | Path]) -> list[Any]:
    """Read entities by key as protobuf messages; None where there is none.

    A path will do for a key: NDB takes longer to make one than to be asked for its path.
    """
    store = stores.current()
    paths = [key.pairs() if isinstance(key, ndb.Key) else key for key in keys]
    wanted = [store.key(*path) for path in dict.fromkeys(paths)]
    stored = list(_looked_up(store, wanted))
    if len(wanted) == 1:
        return [stored[0] if stored else None] * len(paths)
    found = {_path(entity.key): entity for entity in stored}
    return [found.get(path) for path in paths]


def _path(key: Any) -> Path:
    return tuple((each.kind, each.name) for each in key.path)


def _looked_up(store: Store, keys: Sequence[Any]) -> Iterator[Any]:
    left = list(keys)
    while left:
        request = _LookupRequest(**store.request_fields(), keys=left[:_MOST_KEYS])
        opened = stores.state.transaction
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
    store = stores.current()
    partition = store.partition()
    request = _AggregationRequest(**store.request_fields(), partition_id=partition)
    request.aggregation_query.nested_query.CopyFrom(queries.message(query, partition))
    request.aggregation_query.aggregations.add(alias="n").count.SetInParent()
    if stores.state.transaction is not None:
        stores.state.transaction.join(request)
    batch = store.aggregate(request).batch
    return int(batch.aggregation_results[0].aggregate_properties["n"].integer_value)
