"""Property masks: the properties of an entity that a request reads or writes.

Owns the meaning of a mask. Pure.

A mask is a tree of property names. In this tree, None covers a whole property, and a subtree covers
only the named parts of an embedded entity. A path that an earlier or later path already covers adds
nothing. Values inside arrays have no path.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import property_paths

KEY = "__key__"

Mask: TypeAlias = dict[str, "Mask | None"]


def parse(given: Iterable[str]) -> Mask:
    """Return the mask for a list of paths.

    The mask always covers the key, even if no path names it.

    Raises:
        errors.InvalidArgument: A path is invalid or contains a reserved name.
    """
    mask: Mask = {}
    for text in given:
        if text != KEY:
            _add(mask, property_paths.parse(text))
    return mask


def of(request: protobufs.LookupRequest | protobufs.RunQueryRequest) -> Mask | None:
    """Return the mask of a request, or None if the request has no mask."""
    return parse(request.property_mask.paths) if request.HasField("property_mask") else None


def _add(mask: Mask, path: property_paths.Path) -> None:
    for name in path[:-1]:
        inner = mask.setdefault(name, {})
        if inner is None:
            return
        mask = inner
    mask[path[-1]] = None


def narrow(entity: protobufs.Entity, mask: Mask) -> protobufs.Entity:
    """Return an entity's key and the properties that a mask covers.

    An embedded entity is left out if the mask covers none of its properties.
    """
    part = protobufs.Entity()
    if entity.HasField("key"):
        part.key.CopyFrom(entity.key)
    for name, inner in mask.items():
        value = _value(entity, name)
        if value is None:
            continue
        if inner is None:
            part.properties[name].CopyFrom(value)
        elif value.WhichOneof("value_type") == "entity_value":
            _embed(part, name, value, narrow(value.entity_value, inner))
    return part


def narrow_bytes(stored: bytes, mask: Mask) -> bytes:
    """Apply a mask to a serialized entity and serialize the result, key first."""
    part = narrow(protobufs.Entity.FromString(stored), mask)
    return part.SerializeToString(deterministic=True)


def merge(stored: protobufs.Entity | None, given: protobufs.Entity, mask: Mask) -> protobufs.Entity:
    """Return a stored entity after copying the covered part of a given entity into it.

    A property that the mask covers and the given entity lacks is removed. If a path leads through a
    stored value that is not an entity, a new entity replaces that value.

    Raises:
        errors.InvalidArgument: A path leads into an array of the given entity.
    """
    result = protobufs.Entity()
    if stored is not None:
        result.CopyFrom(stored)
    result.key.CopyFrom(given.key)
    _merge(result, given, mask)
    return result


def _merge(target: protobufs.Entity, given: protobufs.Entity, mask: Mask) -> None:
    for name, inner in mask.items():
        value = _value(given, name)
        if inner is not None:
            _merge_inner(target, name, value, inner)
        elif value is not None:
            target.properties[name].CopyFrom(value)
        elif name in target.properties:
            del target.properties[name]


def _merge_inner(
    target: protobufs.Entity, name: str, given: protobufs.Value | None, mask: Mask
) -> None:
    kind = None if given is None else given.WhichOneof("value_type")
    if kind == "array_value":
        raise errors.InvalidArgument(f"A path of the property mask leads into the array {name}.")
    is_entity = given is not None and kind == "entity_value"
    source = given.entity_value if given is not None and is_entity else protobufs.Entity()
    stored = _value(target, name)
    if stored is not None and stored.WhichOneof("value_type") == "entity_value":
        _merge(stored.entity_value, source, mask)
    elif given is not None and is_entity:
        _embed(target, name, given, narrow(source, mask))


def _embed(
    target: protobufs.Entity, name: str, like: protobufs.Value, part: protobufs.Entity
) -> None:
    """Store an embedded entity, unless it is empty.

    The value's index setting and meaning come from `like`.
    """
    if not part.properties:
        return
    value = protobufs.Value(
        entity_value=part, meaning=like.meaning, exclude_from_indexes=like.exclude_from_indexes
    )
    target.properties[name].CopyFrom(value)


def _value(entity: protobufs.Entity, name: str) -> protobufs.Value | None:
    return entity.properties.get(name)
