"""Upgrade the index entries of byte strings in files of formats 1 to 3.

In those formats, all byte strings sorted before all strings: the first byte of an encoded byte
string was 40 and not 41. Only entities that contain a byte string are read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from datastore_emulator import protobufs
from datastore_emulator.encoding import indexes, keys, values
from datastore_emulator.storage import index_writer, row_reader

_TAG = b"\x40"
_FIELD = b"\x92\x01"  # The tag of Value.blob_value in a serialized entity


def rewrite(connection: sqlite3.Connection) -> None:
    """Rewrite the entries of all entities with byte strings, inside the caller's transaction."""
    writer = index_writer.IndexWriter(connection, row_reader.load_definitions, 0)
    rows = connection.execute(
        "SELECT id, key, proto, version FROM entities WHERE instr(proto, ?)", (_FIELD,)
    )
    for number, (entity_id, key, proto, version) in enumerate(rows, start=1):
        partition, path = keys.decode(key)
        entity = row_reader.parse(proto)
        before = _former_values(entity, partition)
        after = indexes.indexed_values(entity, partition)
        if before != after:
            writer.replace_entries(partition, path, entity_id, before, after, version)
        if number % index_writer.PAGE == 0:
            writer.flush()
    writer.flush()


def _former_values(entity: protobufs.Entity, partition: keys.Partition) -> indexes.Values:
    """Return the indexed values of an entity as the old formats encoded them."""
    former = indexes.indexed_values(_only(entity, are_blobs=False), partition)
    for name, column in indexes.indexed_values(_only(entity, are_blobs=True), partition).items():
        old = (value if value == values.NULL else _TAG + value[1:] for value in column)
        former[name] = sorted({*former.get(name, ()), *old})
    return former


def _only(entity: protobufs.Entity, *, are_blobs: bool) -> protobufs.Entity:
    """Return a copy of an entity in which only byte strings, or no byte strings, are indexed."""
    copy = protobufs.Entity()
    copy.CopyFrom(entity)
    for value in _leaves(copy.properties.values()):
        if (value.WhichOneof("value_type") == "blob_value") != are_blobs:
            value.exclude_from_indexes = True
    return copy


def _leaves(given: Iterable[protobufs.Value]) -> Iterator[protobufs.Value]:
    for value in given:
        match value.WhichOneof("value_type"):
            case "array_value":
                yield from _leaves(value.array_value.values)
            case "entity_value":
                yield from _leaves(value.entity_value.properties.values())
            case _:
                yield value
