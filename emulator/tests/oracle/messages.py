"""Convert the oracle's objects (values, keys, mutations, queries) to messages and back.

Only this module converts the oracle's classes to protobuf and back. Tests compare returned entities
as bytes, because in a comparison of messages NaN would differ from itself and -0.0 would equal 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import grpc

from datastore_emulator import protobufs
from emulator.tests.oracle import aggregations, metadata, mutation_results, values
from emulator.tests.oracle.datastore import DELETE, Mutation, Told
from emulator.tests.oracle.queries import And, Compare, Filter, Or, Query
from emulator.tests.oracle.query_results import Result
from emulator.tests.oracle.values import PROJECT, Geo, Key, Properties, Timestamp, Value

OPERATORS = {"<": 1, "<=": 2, ">": 3, ">=": 4, "=": 5, "in": 6, "!=": 9, "under": 11, "not in": 13}
PROJECTED = 18
SERVER_VALUE, FAIL = 1, 3
ARRAY_KINDS = (mutation_results.APPEND, mutation_results.REMOVE)
_TRANSACTIONAL, _NON_TRANSACTIONAL = 1, 2
_SCALARS = {bool: "boolean", int: "integer", float: "double", str: "string", bytes: "blob"}


class Client:
    """A client that sends requests through a channel."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def call(self, method: str, database: str, /, **fields: Any) -> Any:
        """Call a method and return its response.

        Raises:
            grpc.RpcError: the call is refused.
        """
        request = protobufs.REQUESTS[method](project_id=PROJECT, database_id=database, **fields)
        rpc = self._channel.unary_unary(
            f"/google.datastore.v1.Datastore/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=getattr(protobufs, f"{method}Response").FromString,
        )
        return rpc(request)


def key(given: Key) -> Any:
    made = protobufs.Key()
    made.partition_id.project_id = PROJECT
    made.partition_id.database_id = given.database
    made.partition_id.namespace_id = given.namespace
    for kind, name in given.path:
        element = made.path.add(kind=kind)
        if isinstance(name, str):
            element.name = name
        elif name is not None:
            element.id = name
    return made


def key_from(message: Any) -> Key:
    path = tuple(
        (each.kind, each.name or each.id if each.WhichOneof("id_type") else None)
        for each in message.path
    )
    partition = message.partition_id
    return Key(path, partition.namespace_id, partition.database_id)


def value(given: Value) -> Any:
    made = protobufs.Value(exclude_from_indexes=not given.is_indexed)
    content = given.content
    match content:
        case None:
            made.null_value = 0
        case tuple():
            made.array_value.SetInParent()
            made.array_value.values.extend(map(value, content))
        case Properties():
            made.entity_value.SetInParent()
            fill(made.entity_value, content)
        case Timestamp():
            made.timestamp_value.FromMicroseconds(content.micros)
        case Geo():
            made.geo_point_value.latitude = content.latitude
            made.geo_point_value.longitude = content.longitude
        case Key():
            made.key_value.CopyFrom(key(content))
        case _:
            setattr(made, f"{_SCALARS[type(content)]}_value", content)
    return made


def fill(entity: Any, properties: Properties) -> None:
    for name, given in properties:
        entity.properties[name].CopyFrom(value(given))


def entity(of: Key, properties: Properties) -> Any:
    made = protobufs.Entity(key=key(of))
    fill(made, properties)
    return made


def raw(message: Any) -> Any:
    """Return the bytes that represent a message in comparisons."""
    return message.SerializeToString(deterministic=True)


def mutation(given: Mutation) -> Any:
    if given.operation == DELETE:
        made = protobufs.Mutation(delete=key(given.key))
    else:
        made = protobufs.Mutation(**{given.operation: entity(given.key, given.properties)})
    if given.mask is not None:
        made.property_mask.SetInParent()
        made.property_mask.paths.extend(given.mask)  # type: ignore[attr-defined]
    for each in given.transforms:
        operand = value(Value(each.operand))
        fields = {each.kind: operand.array_value if each.kind in ARRAY_KINDS else operand}
        made.property_transforms.add(property=each.name, **fields)
    if given.base_version is not None:
        made.base_version = given.base_version
        made.conflict_resolution_strategy = FAIL if given.must_hold else SERVER_VALUE
    return made


def told(result: Any) -> Told:
    return Told(
        version=result.version,
        key=key_from(result.key) if result.HasField("key") else None,
        created=_micros(result, "create_time"),
        updated=_micros(result, "update_time"),
        has_conflict=result.conflict_detected,
        transformed=tuple(map(raw, result.transform_results)),
    )


def stored(result: Any) -> Told:
    """Return what a lookup tells about an entity's last change."""
    times = _micros(result, "create_time"), _micros(result, "update_time")
    return Told(result.version, None, *times)


def _micros(message: Any, name: str) -> int | None:
    return getattr(message, name).ToMicroseconds() if message.HasField(name) else None


def timestamp(micros: int) -> Any:
    made = protobufs.Value()
    made.timestamp_value.FromMicroseconds(micros)
    return made.timestamp_value


def query(given: Query) -> Any:
    made = protobufs.Query()
    if given.kind is not None:
        made.kind.add(name=given.kind)
    if given.filter is not None:
        _fill_filter(made.filter, given.filter)
    for order in given.orders:
        made.order.add(property={"name": order.name}, direction=1 + order.is_descending)
    for name in given.projection:
        made.projection.add(property={"name": name})
    for name in given.distinct:
        made.distinct_on.add(name=name)
    return made


def _fill_filter(made: Any, given: Filter) -> None:
    match given:
        case Compare(name, operator, operand):
            made.property_filter.property.name = name
            made.property_filter.op = OPERATORS[operator]
            made.property_filter.value.CopyFrom(value(values.value_of(operand)))
        case And(parts) | Or(parts):
            made.composite_filter.op = 1 if isinstance(given, And) else 2
            for part in parts:
                _fill_filter(made.composite_filter.filters.add(), part)


def partition(given: Query) -> Any:
    return {
        "project_id": PROJECT,
        "database_id": given.database,
        "namespace_id": given.namespace,
    }


def result(given: Query, expected: Result) -> tuple[bytes, int, int | None, int | None]:
    """Return a query's expected EntityResult: entity, version and times."""
    stored = expected.stored
    if given.is_keys_only or given.projected:
        made = protobufs.Entity(key=key(stored.key))
        for name, found in zip(given.projected, expected.projected, strict=True):
            made.properties[name].CopyFrom(value(Value(values.projected(found))))
            made.properties[name].meaning = PROJECTED
        return raw(made), 0, None, None
    found = raw(entity(stored.key, stored.properties))
    if given.kind in metadata.KINDS:
        return found, 0, None, None
    return found, stored.version, stored.created, stored.version


def result_from(given: Query, message: Any) -> tuple[bytes, int, int | None, int | None]:
    if given.kind in metadata.KINDS:
        return raw(message.entity), 0, None, None
    times = (_micros(message, "create_time"), _micros(message, "update_time"))
    return raw(message.entity), message.version, *times


def shown(message: Any) -> str:
    """Format an EntityResult in a readable form."""
    properties = {name: str(each).strip() for name, each in message.entity.properties.items()}
    return f"{key_from(message.entity.key).path} {properties}"


def aggregation(given: aggregations.Aggregation) -> Any:
    made: dict[str, Any]
    match given.operator:
        case "count" if given.up_to is not None:
            made = {"count": {"up_to": {"value": given.up_to}}}
        case "count":
            made = {"count": {}}
        case operator:
            made = {operator: {"property": {"name": given.name}}}
    return made | {"alias": given.alias}


def commit(given: Sequence[Mutation], transaction: bytes | None = None) -> dict[str, Any]:
    """Return the fields of a CommitRequest."""
    made = [mutation(each) for each in given]
    if transaction is None:
        return {"mode": _NON_TRANSACTIONAL, "mutations": made}
    return {"mode": _TRANSACTIONAL, "mutations": made, "transaction": transaction}


def same_number(found: Any, expected: float | None) -> bool:
    """Return whether an aggregation's result is the expected number and has its type."""
    match expected:
        case None:
            return found.WhichOneof("value_type") == "null_value"
        case int():
            return found.WhichOneof("value_type") == "integer_value" and (
                found.integer_value == expected
            )
        case _:
            return found.WhichOneof("value_type") == "double_value" and (
                math.isclose(found.double_value, expected)
                or (math.isnan(found.double_value) and math.isnan(expected))
            )
