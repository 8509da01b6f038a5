"""Mutations: checking and applying them, and generating ids.

Owns the rules for mutations and the generation of ids. `check` does everything that is possible
before the writer's turn, including the preparation of rows (`prepared_rows`). During the turn,
`apply` does the rest.

An id is the next number of a stored counter, which a bijection scatters over 16 decimal digits.
Therefore no process ever allocates an id twice during the lifetime of the file; ids that are in use
or reserved are skipped. Ids contain no information about time.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import entities, keys, property_masks, request_keys
from datastore_emulator.storage import prepared_rows, row_reader, row_writer
from datastore_emulator.transactions import preconditions, property_transforms

_SURELY_SMALL = 500_000  # A serialized entity of this many bytes is surely within the size limits.
# Field numbers of a MutationResult.
_KEY, _VERSION, _CONFLICT, _UPDATE_TIME, _CREATE_TIME, _TRANSFORMED = 3, 4, 5, 6, 7, 8
_ID_BASE = 10**15
_ID_BITS = 52  # The highest id stays below 2^53, so JavaScript numbers represent every id exactly
_ID_MASK = (1 << _ID_BITS) - 1
_ID_FACTOR = 0x9E37_79B9_7F4A5  # An odd number, which makes the multiplication a bijection


@dataclass(slots=True)
class Mutation:
    """One checked mutation."""

    operation: str
    named: request_keys.RequestKey
    key: protobufs.Key
    entity: protobufs.Entity | None
    mask: property_masks.Mask | None
    transforms: tuple[property_transforms.Transform, ...]
    precondition: preconditions.Precondition | None
    default: keys.Partition
    # The rows computed before the writer's turn; None if that was not possible.
    ready: prepared_rows.PreparedRow | None = None
    old: prepared_rows.OldState | None = None


class Applied(NamedTuple):
    """The result of a mutation: a serialized MutationResult."""

    content: bytes
    has_conflict: bool = False


def check(
    mutations: Sequence[protobufs.Mutation],
    default: keys.Partition,
    known: Mapping[bytes, row_reader.StoredEntity | None],
    *,
    are_own: bool = False,
) -> list[Mutation]:
    """Check mutations before any lock is taken, and prepare their rows.

    Args:
        mutations: The mutations of one commit.
        default: The partition of keys that name no partition.
        known: Entities that the commit's transaction has read, by encoded key (`ReadSet.found`).
        are_own: Whether the caller made the entities in their stored form (`Engine.commit_own`).
    """
    checked = [_check(mutation, default, are_own=are_own) for mutation in mutations]
    changed: set[bytes] = set()
    for write in checked:
        if write.named.path:
            _prepare(write, known, changed)
    if any(write.transforms for write in checked):
        _check_transform_count(checked)
    return checked


def _prepare(
    write: Mutation, known: Mapping[bytes, row_reader.StoredEntity | None], changed: set[bytes]
) -> None:
    """Add the values that can be computed before the turn; `changed` collects the commit's keys."""
    key, partition = write.named.encoded, write.named.partition
    if write.mask is None and not write.transforms:
        if write.entity is not None and write.ready is None:
            write.ready = prepared_rows.prepare(write.entity, partition)
        # An earlier mutation of the same entity would make the old state wrong.
        if key in known and key not in changed:
            stored = known[key]
            write.old = prepared_rows.MISSING
            if stored is not None:
                write.old = prepared_rows.old_state(stored, partition)
    changed.add(key)


def _check(mutation: protobufs.Mutation, default: keys.Partition, *, are_own: bool) -> Mutation:
    operation = mutation.WhichOneof("operation")
    if operation is None:
        raise errors.InvalidArgument("A mutation has no operation.")
    if operation == "delete":
        return _check_delete(mutation, default)
    given = getattr(mutation, operation)
    named = request_keys.of_mutation(given.key, default, may_be_incomplete=operation != "update")
    has_mask, transforms = mutation.HasField("property_mask"), mutation.property_transforms
    entity, ready = given, None
    # Even the engine's own client may send a mask, transforms, or a key without a project.
    if are_own and named.has_project and named.path and not has_mask and not transforms:
        ready = prepared_rows.prepare(given, named.partition)
    if ready is None or len(ready.proto) > _SURELY_SMALL:
        entity, ready = entities.normalize(given, named.partition, default), None
    return Mutation(
        operation,
        named,
        entity.key,
        entity,
        property_masks.parse(mutation.property_mask.paths) if has_mask else None,
        property_transforms.check(transforms, default) if transforms else (),
        preconditions.of(mutation, is_insert=operation == "insert" or not named.path),
        default,
        ready,
    )


def _check_delete(mutation: protobufs.Mutation, default: keys.Partition) -> Mutation:
    key = mutation.delete
    named = request_keys.of_mutation(key, default, may_be_incomplete=False)
    if mutation.property_transforms:
        raise errors.InvalidArgument("A delete may not have property transforms.")
    precondition = preconditions.of(mutation, is_insert=False)
    return Mutation("delete", named, key, None, None, (), precondition, default)


def _check_transform_count(writes: Sequence[Mutation]) -> None:
    counts: dict[bytes, int] = {}
    for place, write in enumerate(writes):
        key = write.named.encoded or b"%d" % place
        counts[key] = counts.get(key, 0) + len(write.transforms)
    if max(counts.values()) > property_transforms.MAX_TRANSFORMS:
        most = property_transforms.MAX_TRANSFORMS
        raise errors.InvalidArgument(f"An entity may have at most {most} transforms in one commit.")


def check_each_once(writes: Sequence[Mutation]) -> None:
    """Refuse two mutations of the same entity in a non-transactional commit."""
    seen = set()
    for write in writes:
        key = write.named.encoded
        if not key:
            continue
        if key in seen:
            raise errors.InvalidArgument(
                "A non-transactional commit may not contain multiple mutations affecting the same "
                "entity."
            )
        seen.add(key)


def apply(writer: row_writer.RowWriter, write: Mutation) -> Applied:
    """Apply one mutation and return its result."""
    partition, path, content = write.named.partition, write.named.path, b""
    if not path:
        write.key.path[-1].id = take_id(writer, partition, write.key)
        path = keys.encode_path(write.key)
        content = protobufs.field(_KEY, write.key.SerializeToString())
    had = None
    if write.old is None:
        old = writer.entity(partition.encoded + path)
    else:
        old, had = write.old
    _check_existence(write, old)
    if not _is_expected(write, old):
        content += protobufs.number_field(_CONFLICT, 1)
        return Applied(content + _description(writer, old), has_conflict=True)
    stored = None
    if write.entity is not None:
        entity, transformed = _entity_to_store(write.entity, write, old, now=writer.commit_version)
        stored = writer.put(partition, path, entity, old, write.ready, had)
        content += transformed
    elif old is not None:
        writer.delete(partition, path, old, had)
    return Applied(content + _description(writer, stored))


def _check_existence(write: Mutation, old: row_reader.StoredEntity | None) -> None:
    if write.operation == "insert" and old is not None:
        raise errors.AlreadyExists(
            f"entity already exists: {entities.entity_text(write.key, write.named.partition)}"
        )
    if write.operation == "update" and old is None:
        raise errors.NotFound(
            f"no entity to update: {entities.entity_text(write.key, write.named.partition)}"
        )


def _is_expected(write: Mutation, old: row_reader.StoredEntity | None) -> bool:
    if write.precondition is None:
        return True
    described = entities.entity_text(write.key, write.named.partition)
    return write.precondition.is_met(0 if old is None else old.version, described)


def _description(writer: row_writer.RowWriter, stored: row_reader.StoredEntity | None) -> bytes:
    """Serialize the version and the times of a MutationResult; a missing entity has no times."""
    if stored is None:
        return protobufs.number_field(_VERSION, writer.commit_version)
    return _times(stored.version, stored.created)


@functools.lru_cache(maxsize=64)
def _times(version: int, created: int) -> bytes:
    return (
        protobufs.number_field(_VERSION, version)
        + protobufs.field(_UPDATE_TIME, protobufs.timestamp(version))
        + protobufs.field(_CREATE_TIME, protobufs.timestamp(created))
    )


def _entity_to_store(
    given: protobufs.Entity, write: Mutation, old: row_reader.StoredEntity | None, *, now: int
) -> tuple[protobufs.Entity, bytes]:
    """Return the entity to store, and the serialized results of the transforms."""
    if write.mask is None and not write.transforms:
        return given, b""
    entity = given
    if write.mask is not None:
        entity = property_masks.merge(
            None if old is None else row_reader.parse(old.proto), given, write.mask
        )
    changed = property_transforms.apply(entity, write.transforms, now=now)
    results = (protobufs.field(_TRANSFORMED, value.SerializeToString()) for value in changed)
    return entities.normalize(entity, write.named.partition, write.default), b"".join(results)


def take_id(writer: row_writer.RowWriter, partition: keys.Partition, key: protobufs.Key) -> int:
    """Return a new id for an incomplete key."""
    complete = protobufs.Key()
    complete.CopyFrom(key)
    while True:
        number = scatter(writer.next_id, writer.state.seed)
        writer.next_id += 1
        complete.path[-1].id = number
        encoded = keys.encode(partition, complete)
        if not writer.entity_version(encoded) and not writer.is_reserved(encoded):
            return number


def scatter(counter: int, seed: int) -> int:
    """Map a counter to an id by a bijection."""
    number = (counter ^ seed) & _ID_MASK
    for _ in range(3):
        number = (number * _ID_FACTOR) & _ID_MASK
        number ^= number >> 26
    return _ID_BASE + number
