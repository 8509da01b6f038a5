"""Prepared rows: what storing an entity needs, computed before the writer's turn.

Owns the serialized form, the checksum and the indexed values of an entity that a commit is about to
store, and the same values of its old state if the transaction has read it. While one thread writes,
all others wait, so the turn should contain only what depends on the other commits.

Indexed values are never changed, and depend only on the serialized form, which contains the
partition. An old state is used only in a commit that has verified the version of every entity that
its transaction has read, and only by the commit's first mutation of that entity.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from datastore_emulator import protobufs
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.storage import row_reader

_RECENT = 64  # Entities whose indexed values are remembered, because many are changed again soon.
_LONGEST = 4096  # Bytes of such an entity.


class PreparedRow(NamedTuple):
    """An entity as it will be stored."""

    proto: bytes
    crc: int
    values: indexes.Values


class OldState(NamedTuple):
    """An entity as the transaction read it. If it did not exist, both fields are None."""

    stored: row_reader.Stored | None
    values: indexes.Values | None


MISSING = OldState(None, None)


# The indexed values of entities that were prepared last, by their serialized form. Threads may
# change it at the same time.
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


def old_state(stored: row_reader.Stored, partition: keys.Partition) -> OldState:
    """Prepare an entity that the transaction has read."""
    indexed = _recent.get(stored.proto)
    if indexed is None:
        indexed = indexes.indexed_values(row_reader.parse(stored.proto), partition)
    return OldState(stored, indexed)
