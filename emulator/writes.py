"""Writes: mutations applied inside the one write transaction, and automatic ids.

Owns what a mutation may do and how ids are made. An id is the next number of a stored counter,
scattered over 16 decimal digits by a bijection, so none is handed out twice, in any process or
life of the file; those in use or reserved are passed over. Ids say nothing about time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emulator import changes, entities, errors, keys, messages

_ID_BASE = 10**15
_ID_BITS = 52  # the highest id stays below 2^53, so JavaScript keeps it
_ID_MASK = (1 << _ID_BITS) - 1
_ID_FACTOR = 0x9E37_79B9_7F4A5  # odd, so that multiplying is a bijection


@dataclass(frozen=True, slots=True)
class Write:
    """One checked mutation."""

    operation: str
    partition: keys.Partition
    key: messages.Key
    entity: messages.Entity | None

    @property
    def is_complete(self) -> bool:
        """Tell whether the key needs no id."""
        return keys.is_complete(self.key)


def check(mutations: Sequence[messages.Mutation], default: keys.Partition) -> list[Write]:
    """Check mutations before anything is locked."""
    return [_check(mutation, default) for mutation in mutations]


def _check(mutation: messages.Mutation, default: keys.Partition) -> Write:
    for feature in ("property_mask", "base_version", "update_time"):
        if mutation.HasField(feature):
            raise errors.Unimplemented(f"Mutation.{feature}")
    if mutation.property_transforms:
        raise errors.Unimplemented("Mutation.property_transforms")
    if mutation.conflict_resolution_strategy:
        raise errors.Unimplemented("Mutation.conflict_resolution_strategy")
    operation = mutation.WhichOneof("operation")
    if operation is None:
        raise errors.InvalidArgument("A mutation has no operation.")
    if operation == "delete":
        partition = entities.check_written_key(mutation.delete, default, may_be_incomplete=False)
        return Write(operation, partition, mutation.delete, None)
    given = getattr(mutation, operation)
    partition = entities.check_written_key(
        given.key, default, may_be_incomplete=operation != "update"
    )
    entity = entities.normalized(given, partition, default)
    return Write(operation, partition, entity.key, entity)


def check_each_once(writes: Sequence[Write]) -> None:
    """Refuse two mutations of one entity, as a non-transactional commit must."""
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


def apply(writer: changes.Writer, write: Write) -> messages.MutationResult:
    """Apply one mutation and describe what came of it."""
    result = messages.MutationResult(version=writer.commit_version)
    if write.entity is None:
        path = keys.encode_path(write.key)
        old = writer.entity(write.partition.encoded + path)
        if old is not None:
            writer.delete(write.partition, path, old)
        return result
    if not write.is_complete:
        write.key.path[-1].id = take_id(writer, write.partition, write.key)
        result.key.CopyFrom(write.key)
    path = keys.encode_path(write.key)
    old = writer.entity(write.partition.encoded + path)
    if write.operation == "insert" and old is not None:
        raise errors.AlreadyExists(f"entity already exists: {entities.key_text(write.key)}")
    if write.operation == "update" and old is None:
        raise errors.NotFound(f"no entity to update: {entities.key_text(write.key)}")
    stored = writer.put(write.partition, path, write.entity, old)
    result.create_time.FromMicroseconds(stored.created)
    result.update_time.FromMicroseconds(stored.version)
    return result


def take_id(writer: changes.Writer, partition: keys.Partition, key: messages.Key) -> int:
    """Return a new id for an incomplete key."""
    complete = messages.Key()
    complete.CopyFrom(key)
    while True:
        number = scatter(writer.next_id, writer.state.seed)
        writer.next_id += 1
        complete.path[-1].id = number
        encoded = keys.encode(partition, complete)
        if not writer.entity_version(encoded) and not writer.is_reserved(encoded):
            return number


def scatter(counter: int, seed: int) -> int:
    """Map a counter to an id, one to one."""
    number = (counter ^ seed) & _ID_MASK
    for _ in range(3):
        number = (number * _ID_FACTOR) & _ID_MASK
        number ^= number >> 26
    return _ID_BASE + number
