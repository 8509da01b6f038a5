"""Represent queries as values and as protobuf messages (pure).

This module owns the only form of query that the backend uses: a kind, conditions that must all be
true, orders, an offset and a limit. This module also owns the continuation of a query over several
batches. Each query needs an index in index.yaml. The embedded engine and Datastore refuse all other
queries.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from google.cloud.datastore_v1.types import entity as entity_types
from google.cloud.datastore_v1.types import query as query_types

_Query = query_types.Query.pb()
_Filter = query_types.PropertyFilter.pb()
_Value = entity_types.Value.pb()
_Reference = query_types.PropertyReference.pb()
NOT_FINISHED: int = int(query_types.QueryResultBatch.MoreResultsType.NOT_FINISHED)
_HAS_ANCESTOR = query_types.PropertyFilter.Operator.HAS_ANCESTOR
_OPERATORS = {
    "=": query_types.PropertyFilter.Operator.EQUAL,
    "<": query_types.PropertyFilter.Operator.LESS_THAN,
    "<=": query_types.PropertyFilter.Operator.LESS_THAN_OR_EQUAL,
    ">": query_types.PropertyFilter.Operator.GREATER_THAN,
    ">=": query_types.PropertyFilter.Operator.GREATER_THAN_OR_EQUAL,
    "in": query_types.PropertyFilter.Operator.IN,
}
MOST_VALUES = 30  # Datastore's maximum number of values in an "in" filter.


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """A query for one kind: filters `(property, operator, value)` and orders (`-name` descends).

    The value of a `__key__` filter is a key, or the name of a key without a parent; the value of an
    "in" filter is a list of at most `MOST_VALUES` strings. `ancestor` is a key.
    """

    kind: str
    where: Sequence[tuple[str, str, object]] = ()
    order: Sequence[str] = ()
    limit: int | None = None
    keys_only: bool = False
    projection: Sequence[str] = ()
    distinct_on: Sequence[str] = ()
    ancestor: Any = None
    offset: int = 0


def message(query: Query, partition: Any) -> Any:
    """Return the query as a `google.datastore.v1.Query`; `partition` is the keys' PartitionId."""
    built = _Query()
    built.kind.add(name=query.kind)
    filters = [_filter(partition, query.kind, *condition) for condition in query.where]
    if query.ancestor is not None:
        filters.append(_below(partition, query.ancestor))
    if len(filters) == 1:
        built.filter.property_filter.CopyFrom(filters[0])
    elif filters:
        built.filter.composite_filter.op = query_types.CompositeFilter.Operator.AND
        for condition in filters:
            built.filter.composite_filter.filters.add().property_filter.CopyFrom(condition)
    built.distinct_on.extend(_Reference(name=name) for name in query.distinct_on)
    for name in query.order:
        direction = query_types.PropertyOrder.Direction
        built.order.add(
            property={"name": name.lstrip("-")},
            direction=direction.DESCENDING if name.startswith("-") else direction.ASCENDING,
        )
    if query.limit is not None:
        built.limit.value = query.limit
    built.offset = query.offset
    for name in ("__key__",) if query.keys_only else query.projection:
        built.projection.add(property={"name": name})
    return built


def results(request: Any, run: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield the entities that a RunQueryRequest matches, batch by batch. `run` sends a request.

    The request is not modified.
    """
    while True:
        batch = run(request).batch
        for result in batch.entity_results:
            yield result.entity
        if batch.more_results != NOT_FINISHED:
            return
        request = copy.deepcopy(request)
        request.query.start_cursor = batch.end_cursor
        request.query.offset -= batch.skipped_results
        if request.query.HasField("limit"):
            request.query.limit.value -= len(batch.entity_results)


def _below(partition: Any, ancestor: Any) -> Any:
    message = _Filter(property={"name": "__key__"}, op=_HAS_ANCESTOR)
    _write_key(message.value.key_value, partition, ancestor)
    return message


def _write_key(key: Any, partition: Any, pairs: Sequence[tuple[str, object]]) -> None:
    key.partition_id.CopyFrom(partition)
    for kind, name in pairs:
        key.path.add(kind=kind, name=name)


def _filter(partition: Any, kind: str, name: str, operator: str, value: object) -> Any:
    message = _Filter(property={"name": name}, op=_OPERATORS[operator])
    if name == "__key__":
        key: Any = value
        pairs = [(kind, key)] if isinstance(key, str) else key
        _write_key(message.value.key_value, partition, pairs)
    elif isinstance(value, bool):
        message.value.boolean_value = value
    elif isinstance(value, int):
        message.value.integer_value = value
    elif isinstance(value, str):
        message.value.string_value = value
    elif isinstance(value, list):
        message.value.array_value.values.extend(_Value(string_value=one) for one in value)
    else:
        message.value.timestamp_value.FromDatetime(value)
    return message
