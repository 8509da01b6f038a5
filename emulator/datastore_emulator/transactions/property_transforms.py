"""Property transforms: changes that the server computes from a property's stored value.

Owns the checks and the arithmetic of transforms. Pure: the caller passes the time of the request.

Equal numbers count as one value, regardless of whether they are integers or doubles (3 and 3.0, 0.0
and -0.0); NaN equals NaN. A computed value keeps the property's `exclude_from_indexes` and loses
its `meaning`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import entities, keys, property_paths

MAX_TRANSFORMS = 500  # Maximum number for one entity in one commit
_REQUEST_TIME = 1
_MAX_INTEGER, _MIN_INTEGER = 2**63 - 1, -(2**63)
_MILLISECOND = 1000  # Microseconds
_NAN = "NaN"


class Transform(NamedTuple):
    """One checked transform.

    The operand is a number or an array, or empty for the server's time.
    """

    path: property_paths.Path
    kind: str
    operand: protobufs.Value


def check(
    given: Iterable[protobufs.PropertyTransform], default: keys.Partition
) -> tuple[Transform, ...]:
    """Check the transforms of one mutation.

    Raises:
        errors.InvalidArgument: A transform has no path, no type, or an operand of the wrong type.
    """
    return tuple(_check(transform, default) for transform in given)


def _check(given: protobufs.PropertyTransform, default: keys.Partition) -> Transform:
    path = property_paths.parse(given.property)
    kind = given.WhichOneof("transform_type")
    operand = protobufs.Value()
    match kind:
        case None:
            raise errors.InvalidArgument(f"The transform of {given.property} has no type.")
        case "set_to_server_value":
            if given.set_to_server_value != _REQUEST_TIME:
                raise errors.InvalidArgument(f"The server value of {given.property} is unknown.")
        case "append_missing_elements" | "remove_all_from_array":
            operand.array_value.CopyFrom(getattr(given, kind))
            entities.normalize_value(given.property, operand, default)
        case _:
            operand.CopyFrom(getattr(given, kind))
            if _number(operand) is None:
                raise errors.InvalidArgument(
                    f"The transform {kind} of {given.property} requires an integer or a double."
                )
    return Transform(path, kind, operand)


def apply(
    entity: protobufs.Entity, transforms: Sequence[Transform], *, now: int
) -> list[protobufs.Value]:
    """Apply transforms to an entity in order, and return the result of each transform.

    `now` is the time of the request in microseconds. The result is the new value, or null for
    transforms that change arrays.
    """
    return [_apply(entity, transform, now) for transform in transforms]


def _apply(entity: protobufs.Entity, transform: Transform, now: int) -> protobufs.Value:
    holder = _holder(entity, transform.path)
    name = transform.path[-1]
    current = holder.properties.get(name)
    if transform.kind == "set_to_server_value":
        new = _server_time(now)
    else:
        new = _COMPUTE[transform.kind](current, transform.operand)
    if new is not current:
        is_excluded = (new if current is None else current).exclude_from_indexes
        stored = holder.properties[name]
        stored.CopyFrom(new)
        # Only an array's elements set exclude_from_indexes, not the array itself.
        if new.WhichOneof("value_type") != "array_value":
            stored.exclude_from_indexes = is_excluded
    return _result(holder.properties[name])


def _holder(entity: protobufs.Entity, path: property_paths.Path) -> protobufs.Entity:
    """Return the entity that contains a path's last property; create missing entities."""
    for name in path[:-1]:
        value = entity.properties[name]
        if value.WhichOneof("value_type") != "entity_value":
            value.entity_value.SetInParent()
        entity = value.entity_value
    return entity


def _result(value: protobufs.Value) -> protobufs.Value:
    if value.WhichOneof("value_type") == "array_value":
        return protobufs.Value(null_value=0)
    result = protobufs.Value()
    result.CopyFrom(value)
    result.ClearField("exclude_from_indexes")
    result.ClearField("meaning")
    return result


def _server_time(now: int) -> protobufs.Value:
    value = protobufs.Value()
    value.timestamp_value.FromMicroseconds(now - now % _MILLISECOND)
    return value


def _increment(current: protobufs.Value | None, operand: protobufs.Value) -> protobufs.Value:
    left, right = _number(current), _number(operand)
    if left is None or right is None:
        return operand
    if isinstance(left, int) and isinstance(right, int):
        return protobufs.Value(integer_value=min(max(left + right, _MIN_INTEGER), _MAX_INTEGER))
    total = float(left) + float(right)
    # The sign of a NaN depends on the processor, so return one fixed NaN.
    return protobufs.Value(double_value=math.nan if math.isnan(total) else total)


def _maximum(current: protobufs.Value | None, operand: protobufs.Value) -> protobufs.Value:
    return _extreme(current, operand, lambda left, right: right > left)


def _minimum(current: protobufs.Value | None, operand: protobufs.Value) -> protobufs.Value:
    return _extreme(current, operand, lambda left, right: right < left)


def _extreme(
    current: protobufs.Value | None,
    operand: protobufs.Value,
    is_further: Callable[[float, float], bool],
) -> protobufs.Value:
    """Return the larger or smaller value, or the current value if both are equal.

    A NaN always wins.
    """
    left, right = _number(current), _number(operand)
    if current is None or left is None or right is None:
        return operand
    if math.isnan(left) or math.isnan(right):
        return protobufs.Value(double_value=math.nan)
    return operand if is_further(left, right) else current


def _append(current: protobufs.Value | None, operand: protobufs.Value) -> protobufs.Value:
    array = _array(current)
    seen = {_identity(element) for element in array.array_value.values}
    for element in operand.array_value.values:
        identity = _identity(element)
        if identity not in seen:
            seen.add(identity)
            array.array_value.values.append(element)
    return array


def _remove(current: protobufs.Value | None, operand: protobufs.Value) -> protobufs.Value:
    unwanted = {_identity(element) for element in operand.array_value.values}
    array = _array(current)
    kept = [element for element in array.array_value.values if _identity(element) not in unwanted]
    changed = protobufs.Value(meaning=array.meaning)
    changed.array_value.SetInParent()
    changed.array_value.values.extend(kept)
    return changed


def _array(current: protobufs.Value | None) -> protobufs.Value:
    """Return a copy of an array, or an empty array in place of any other value."""
    array = protobufs.Value()
    if current is not None and current.WhichOneof("value_type") == "array_value":
        array.CopyFrom(current)
    else:
        array.array_value.SetInParent()
    return array


_COMPUTE: dict[str, Callable[[protobufs.Value | None, protobufs.Value], protobufs.Value]] = {
    "increment": _increment,
    "maximum": _maximum,
    "minimum": _minimum,
    "append_missing_elements": _append,
    "remove_all_from_array": _remove,
}


def _number(value: protobufs.Value | None) -> float | None:
    kind = None if value is None else value.WhichOneof("value_type")
    if value is not None and kind == "integer_value":
        return value.integer_value
    return value.double_value if value is not None and kind == "double_value" else None


def _identity(value: protobufs.Value) -> Hashable:
    """Return a key that is the same only for equal values; the key ignores a value's settings."""
    number = _number(value)
    if number is not None:
        # Python compares and hashes integers and doubles by their exact numeric value.
        return _NAN if math.isnan(number) else number
    kind = value.WhichOneof("value_type")
    if kind == "array_value":
        return kind, tuple(map(_identity, value.array_value.values))
    if kind == "entity_value":
        properties = value.entity_value.properties.items()
        parts = frozenset((name, _identity(part)) for name, part in properties)
        return kind, value.entity_value.key.SerializeToString(deterministic=True), parts
    bare = protobufs.Value()
    bare.CopyFrom(value)
    bare.ClearField("exclude_from_indexes")
    bare.ClearField("meaning")
    return kind, bare.SerializeToString(deterministic=True)
