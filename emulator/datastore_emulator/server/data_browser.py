"""The data browser's queries: kinds, entities and indexes of a data file, with counts and paging.

The data browser reads one snapshot, changes nothing, and is not part of the API. Each page scans
the entries that it counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from datastore_emulator import protobufs
from datastore_emulator.encoding import indexes, keys, values
from datastore_emulator.storage import row_reader

PAGE = 50  # Entities per page.
_MAX_SHOWN = 20  # Maximum number of entries shown of one index.


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind in a partition, with its number of entities."""

    partition: keys.Partition
    name: str
    entities: int


@dataclass(frozen=True, slots=True)
class StoredEntity:
    """One entity, its encoded key, and its times in microseconds."""

    key: bytes
    entity: protobufs.Entity
    created: int
    updated: int


@dataclass(frozen=True, slots=True)
class IndexSize:
    """An index of a partition, with the number and total size (in bytes) of its entries."""

    partition: keys.Partition
    index: indexes.Index
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class IndexEntries:
    """An entity's entries in one index: their number, and the values of the first entries."""

    index: indexes.Index
    entries: int
    shown: tuple[tuple[protobufs.Value, ...], ...]


def kinds(reader: row_reader.RowReader) -> list[Kind]:
    """Return all kinds that have entities, sorted by partition and name."""
    listed = []
    for partition in reader.partitions():
        for code in reader.index_codes(partition.encoded, b"", keys.ABOVE):
            index = indexes.decode(code)
            if index == indexes.builtin(index.kind):
                number = reader.entry_count((partition.encoded, code))
                if number:
                    listed.append(Kind(partition, index.kind, number))
    return listed


def page(
    reader: row_reader.RowReader, partition: keys.Partition, kind: str, after: bytes
) -> tuple[list[StoredEntity], bytes]:
    """Return a kind's next entities after an encoded path, and the start of the next page.

    The start is empty on the last page.
    """
    name = (partition.encoded, indexes.builtin(kind).code)
    low = after + b"\x00" if after else b""
    scanned = reader.scan(name, low, keys.ABOVE, with_entities=True)
    rows = []
    for path, entity_id, *_ in itertools.islice(scanned, PAGE + 1):
        rows.append(_stored_entity(partition.encoded + path, reader.entity_by_id(entity_id)))
    is_last = len(rows) <= PAGE
    return rows[:PAGE], b"" if is_last else rows[PAGE - 1].key[len(partition.encoded) :]


def entity(reader: row_reader.RowReader, key: bytes) -> StoredEntity | None:
    stored = reader.entity(key)
    return None if stored is None else _stored_entity(key, stored)


def _stored_entity(key: bytes, stored: row_reader.StoredEntity) -> StoredEntity:
    return StoredEntity(key, row_reader.parse(stored.proto), stored.created, stored.version)


def entries(reader: row_reader.RowReader, stored: StoredEntity) -> list[IndexEntries]:
    """Return an entity's entries in each index."""
    partition, path = keys.decode(stored.key)
    composites = reader.definitions.by_kind.get(stored.entity.key.path[-1].kind, ())
    indexed = indexes.indexed_values(stored.entity, partition)
    listed = []
    for code, made in indexes.membership(stored.entity, partition, path, composites).items():
        index = indexes.decode(code)
        columns = [indexed[name] for name, _ in index.properties]
        shown = itertools.islice(itertools.product(*columns), _MAX_SHOWN) if columns else ()
        rows_shown = tuple(tuple(values.project(value) for value in row) for row in shown)
        listed.append(IndexEntries(index, len(made), rows_shown))
    return listed


def sizes(reader: row_reader.RowReader) -> list[IndexSize]:
    """Return all non-empty indexes, by partition and definition, including indexes not yet made."""
    listed = [
        IndexSize(keys.decode(partition)[0], indexes.decode(code), number, size)
        for partition, code, number, size in reader.index_sizes()
    ]
    if reader.definitions.built_ins.are_all:
        return listed
    stored = [size for size in listed if not (size.index.is_builtin and size.index.properties)]
    computed = itertools.chain.from_iterable(
        _computed_sizes(reader, kind.partition, kind.name) for kind in kinds(reader)
    )
    return sorted([*stored, *computed], key=lambda size: (size.partition.encoded, size.index.code))


def _computed_sizes(
    reader: row_reader.RowReader, partition: keys.Partition, kind: str
) -> Iterator[IndexSize]:
    """Yield the built-in indexes of a kind's properties, with the sizes that they would have."""
    totals: dict[str, list[int]] = {}
    for path, indexed in reader.indexed_values(partition, kind):
        for name, column in indexed.items():
            total = totals.setdefault(name, [0, 0])
            total[0] += len(column)
            total[1] += sum(len(value) + len(path) for value in column)
    for name, total in totals.items():
        for is_descending in (False, True):
            yield IndexSize(
                partition, indexes.builtin(kind, name, is_descending=is_descending), *total
            )
