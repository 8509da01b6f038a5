"""Bulk load: store many entities faster than commits do.

Owns the division into batches. Entities are checked as in a commit, and each batch is one SQLite
transaction that writes table by table and in key order. The resulting data file equals the one that
upserts would produce.

A batch is stored either completely or not at all, and only one batch is in memory at a time. The
error for a refused entity contains the entity's number; earlier batches remain stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import entities, keys
from datastore_emulator.storage import file_store, row_writer
from datastore_emulator.transactions import mutations

BATCH = 2000  # Entities per batch; larger batches are not faster
BATCH_BYTES = 8 * 1024 * 1024
# A partition, and one of its entities in stored form.
Checked = tuple[keys.Partition, protobufs.Entity]


def load(
    store: file_store.FileStore, given: Iterable[protobufs.Entity], default: keys.Partition
) -> int:
    """Put entities and return their number; incomplete keys get ids.

    Args:
        store: The data file to write to.
        given: The entities; each may have its own project and database.
        default: The partition for keys that name no project.

    Raises:
        errors.DatastoreError: An entity is refused. Earlier batches remain stored.
    """
    loaded = 0
    for batch in _batches(_checked_entities(given, default)):
        with store.write() as writer:
            put(writer, batch)
        loaded += len(batch)
    return loaded


def _checked_entities(
    given: Iterable[protobufs.Entity], default: keys.Partition
) -> Iterator[Checked]:
    for number, entity in enumerate(given, start=1):
        try:
            own = _default_of(entity.key, default)
            partition = entities.check_written_key(entity.key, own, may_be_incomplete=True)
            yield partition, entities.normalize(entity, partition, own)
        except errors.DatastoreError as error:
            raise type(error)(f"Entity {number}: {error.message}") from error


def _default_of(key: protobufs.Key, default: keys.Partition) -> keys.Partition:
    named = key.partition_id
    if not named.project_id or (named.project_id, named.database_id) == (
        default.project,
        default.database,
    ):
        return default
    return keys.Partition(named.project_id, named.database_id)


def _batches(checked: Iterator[Checked]) -> Iterator[list[Checked]]:
    for first in checked:
        batch, size = [first], first[1].ByteSize()
        for item in itertools.islice(checked, BATCH - 1):
            batch.append(item)
            size += item[1].ByteSize()
            if size >= BATCH_BYTES:
                break
        yield batch


def put(writer: row_writer.RowWriter, batch: list[Checked]) -> None:
    """Put checked entities as part of an open commit."""
    named: dict[bytes, row_writer.New] = {}
    for partition, entity in batch:
        if not keys.is_complete(entity.key):
            entity.key.path[-1].id = mutations.take_id(writer, partition, entity.key)
        path = keys.encode_path(entity.key)
        named[partition.encoded + path] = (partition, path, entity)  # The last duplicate wins
    old = {key: stored for key in named if (stored := writer.entity(key)) is not None}
    for key, stored in old.items():
        writer.put(*named.pop(key), stored)
    writer.add([named[key] for key in sorted(named)])
