"""Mutations: checking and applying them, and generating ids.

Owns the rules for mutations and the generation of ids. An id is the next number of a stored
counter, which a bijection scatters over 16 decimal digits. Therefore no process ever allocates an
id twice during the lifetime of the file; ids that are in use or reserved are skipped. Ids contain
no information about time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from emulator import errors, protobufs
from emulator.encoding import entities, keys, property_masks
from emulator.storage import row_reader, row_writer
from emulator.transactions import preconditions, property_transforms

_ID_BASE = 10**15
_ID_BITS = 52  # the highest id stays below 2^53, so JavaScript numbers represent every id exactly
_ID_MASK = (1 << _ID_BITS) - 1
_ID_FACTOR = 0x9E37_79B9_7F4A5  # an odd number, which makes the multiplication a bijection


class Mutation(NamedTuple):
    """One checked mutation."""

    operation: str
    partition: keys.Partition
    key: protobufs.Key
    entity: protobufs.Entity | None
    mask: property_masks.Mask | None
    transforms: tuple[property_transforms.Transform, ...]
    precondition: preconditions.Precondition | None
    default: keys.Partition

    @property
    def is_complete(self) -> bool:
        return keys.is_complete(self.key)


def check(mutations: Sequence[protobufs.Mutation], default: keys.Partition) -> list[Mutation]:
    """Check mutations before any lock is taken."""
    checked = [_check(mutation, default) for mutation in mutations]
    if any(write.transforms for write in checked):
        _check_transform_count(checked)
    return checked


def _check(mutation: protobufs.Mutation, default: keys.Partition) -> Mutation:
    operation = mutation.WhichOneof("operation")
    if operation is None:
        raise errors.InvalidArgument("A mutation has no operation.")
    if operation == "delete":
        return _check_delete(mutation, default)
    given = getattr(mutation, operation)
    partition = entities.check_written_key(
        given.key, default, may_be_incomplete=operation != "update"
    )
    entity = entities.normalized(given, partition, default)
    is_insert = operation == "insert" or not keys.is_complete(entity.key)
    mask = mutation.property_mask.paths if mutation.HasField("property_mask") else None
    return Mutation(
        operation,
        partition,
        entity.key,
        entity,
        None if mask is None else property_masks.parse(mask),
        property_transforms.check(mutation.property_transforms, default),
        preconditions.of(mutation, is_insert=is_insert),
        default,
    )


def _check_delete(mutation: protobufs.Mutation, default: keys.Partition) -> Mutation:
    key = mutation.delete
    partition = entities.check_written_key(key, default, may_be_incomplete=False)
    if mutation.property_transforms:
        raise errors.InvalidArgument("A delete may not have property transforms.")
    precondition = preconditions.of(mutation, is_insert=False)
    return Mutation("delete", partition, key, None, None, (), precondition, default)


def _check_transform_count(writes: Sequence[Mutation]) -> None:
    counts: dict[bytes, int] = {}
    for place, write in enumerate(writes):
        key = b"%d" % place
        if write.is_complete:
            key = keys.encode(write.partition, write.key)
        counts[key] = counts.get(key, 0) + len(write.transforms)
    if max(counts.values()) > property_transforms.MAX_TRANSFORMS:
        most = property_transforms.MAX_TRANSFORMS
        raise errors.InvalidArgument(f"An entity may have at most {most} transforms in one commit.")


def check_each_once(writes: Sequence[Mutation]) -> None:
    """Refuse two mutations of the same entity in a non-transactional commit."""
    seen = set()
    for write in writes:
        if not write.is_complete:
            continue
        key = keys.encode(write.partition, write.key)
        if key in seen:
            raise errors.InvalidArgument(
                "A non-transactional commit may not contain multiple mutations affecting the same "
                "entity."
            )
        seen.add(key)


def apply(writer: row_writer.RowWriter, write: Mutation) -> protobufs.MutationResult:
    """Apply one mutation and return its result."""
    result = protobufs.MutationResult(version=writer.commit_version)
    if not write.is_complete:
        write.key.path[-1].id = take_id(writer, write.partition, write.key)
        result.key.CopyFrom(write.key)
    path = keys.encode_path(write.key)
    old = writer.entity(write.partition.encoded + path)
    _check_existence(write, old)
    if not _is_expected(write, old):
        result.conflict_detected = True
        if old is not None:
            _describe(result, old)
    elif write.entity is not None:
        entity = _resulting(write.entity, write, old, result)
        _describe(result, writer.put(write.partition, path, entity, old))
    elif old is not None:
        writer.delete(write.partition, path, old)
    return result


def _check_existence(write: Mutation, old: row_reader.Stored | None) -> None:
    if write.operation == "insert" and old is not None:
        raise errors.AlreadyExists(
            f"entity already exists: {entities.entity_text(write.key, write.partition)}"
        )
    if write.operation == "update" and old is None:
        raise errors.NotFound(
            f"no entity to update: {entities.entity_text(write.key, write.partition)}"
        )


def _is_expected(write: Mutation, old: row_reader.Stored | None) -> bool:
    if write.precondition is None:
        return True
    described = entities.entity_text(write.key, write.partition)
    return write.precondition.is_met(0 if old is None else old.version, described)


def _describe(result: protobufs.MutationResult, stored: row_reader.Stored) -> None:
    result.version = stored.version
    result.create_time.FromMicroseconds(stored.created)
    result.update_time.FromMicroseconds(stored.version)


def _resulting(
    given: protobufs.Entity,
    write: Mutation,
    old: row_reader.Stored | None,
    result: protobufs.MutationResult,
) -> protobufs.Entity:
    """Return the entity to store: the given entity with the mask and transforms applied."""
    if write.mask is None and not write.transforms:
        return given
    entity = given
    if write.mask is not None:
        entity = property_masks.merged(
            None if old is None else row_reader.parse(old.proto), given, write.mask
        )
    changed = property_transforms.apply(entity, write.transforms, now=result.version)
    result.transform_results.extend(changed)
    return entities.normalized(entity, write.partition, write.default)


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
