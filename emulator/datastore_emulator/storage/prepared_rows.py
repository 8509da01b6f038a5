"""Prepared rows: the values that storing an entity requires, computed before the writer's turn.

Owns the serialized form, the checksum and the indexed values of an entity that a commit is about to
store. If the transaction has read the entity, this module also owns the same values of its old
state. While one thread writes, all others wait. Therefore only work that depends on the other
commits should happen during the turn.

Indexed values are immutable, and depend only on the serialized form, which contains the partition.
An old state is used only in a commit that has verified the version of every entity that its
transaction has read. Only the commit's first mutation of the entity uses the old state.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from datastore_emulator import protobufs
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.storage import row_reader

_RECENT = 64  # Remembered entities; many are soon changed again.
_LONGEST = 4096  # Maximum size in bytes of a remembered entity.


class PreparedRow(NamedTuple):
    """An entity as it will be stored."""

    proto: bytes
    crc: int
    values: indexes.Values


class OldState(NamedTuple):
    """An entity as the transaction read it. If it did not exist, both fields are None."""

    stored: row_reader.StoredEntity | None
    values: indexes.Values | None


MISSING = OldState(None, None)


# The indexed values of the entities that were prepared last, keyed by the serialized entity.
# Several threads may change the dictionary at the same time.
_recent: dict[bytes, indexes.Values] = {}


def prepare(entity: protobufs.Entity, partition: keys.Partition) -> PreparedRow:
    """Prepare an entity in its stored form."""
    proto = entity.SerializeToString(deterministic=True)
    indexed = indexes.indexed_values(entity, partition)
    if len(proto) <= _LONGEST:
        if len(_recent) >= _RECENT:
            _recent.clear()
        _recent[proto] = indexed
    return PreparedRow(proto, zlib.crc32(proto), indexed)


def old_state(stored: row_reader.StoredEntity, partition: keys.Partition) -> OldState:
    """Prepare an entity that the transaction has read."""
    indexed = _recent.get(stored.proto)
    if indexed is None:
        indexed = indexes.indexed_values(row_reader.parse(stored.proto), partition)
    return OldState(stored, indexed)
