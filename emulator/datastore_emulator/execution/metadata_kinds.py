"""Metadata kinds: the namespaces, kinds and properties, computed from the stored rows.

Owns the results of queries for `__namespace__`, `__kind__`, `__property__` and `__Stat_*__`. This
module answers these queries as if the keys of metadata kinds were index rows, so paging, cursors
and counts work as they do for any other query by key.

This module stores nothing. A query finds names by seeking from one name to the next, in the keys of
entities and in the list of indexes. A name counts while an entity or index entry uses it. Therefore
the cost depends on the number of names, not on the number of stored entities. There is one
exception: a file that makes built-in indexes on demand does not list all properties. In such a
file, a query for the properties of a kind reads all entities of the kind; it does not make the
indexes. Statistics are not computed, so the statistics kinds are empty. In a transaction, the
results come from its snapshot, and later changes do not conflict with the transaction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import indexes, keys, values
from datastore_emulator.queries import parser
from datastore_emulator.storage import read_sets, row_reader

NAMESPACE, KIND, PROPERTY = "__namespace__", "__kind__", "__property__"
_KINDS = (NAMESPACE, KIND, PROPERTY)
_STATISTICS = "__Stat_"
_DEFAULT_NAMESPACE = 1  # The id in the key of the default namespace

# The value types that an index distinguishes, keyed by the first byte of a value.
_REPRESENTATIONS = (
    (b"\x08", "NULL"),
    (b"\x20", "INT64"),
    (b"\x30", "BOOLEAN"),
    (b"\x31", "BOOLEAN"),
    (b"\x41", "STRING"),
    (b"\x50", "DOUBLE"),
    (b"\x60", "POINT"),
    (b"\x70", "REFERENCE"),
)


# A property's name, and a function that returns whether any indexed value has a given tag.
_Tags = tuple[str, Callable[[bytes], bool]]


def is_kind(kind: str | None) -> bool:
    """Return whether a kind is a metadata kind whose rows are computed here."""
    return kind in _KINDS


def source_of(
    snapshot: row_reader.RowReader, query: parser.Query, reads: read_sets.ReadSet | None
) -> tuple[row_reader.RowReader, parser.Query, read_sets.ReadSet | None]:
    """Return the snapshot, query and read set to use; a metadata query gets its own ones.

    Raises:
        errors.InvalidArgument: The query requests more than keys, or has an impossible ancestor.
    """
    kind = query.kind or ""
    if not kind.startswith("__"):
        return snapshot, query, reads
    if kind.startswith(_STATISTICS):
        return snapshot, query._replace(branches=()), reads
    if kind not in _KINDS:
        return snapshot, query, reads
    _check(kind, query)
    return MetadataView(snapshot, kind), query, None


def _check(kind: str, query: parser.Query) -> None:
    if any(branch.equalities or branch.ranges for branch in query.branches):
        raise errors.InvalidArgument(f"A query of {kind} may filter by __key__ only.")
    if any(order.name != parser.KEY or order.is_descending for order in query.orders):
        raise errors.InvalidArgument(f"A query of {kind} is ordered by ascending __key__ only.")
    if query.projection or query.distinct is not None:
        raise errors.InvalidArgument(f"A query of {kind} may project __key__ only.")
    if query.ancestor is not None and kind != PROPERTY:
        raise errors.InvalidArgument(f"A query of {kind} may not have an ancestor.")


class MetadataView(row_reader.RowReader):
    """A snapshot that shows the rows of one metadata kind."""

    def __init__(self, source: row_reader.RowReader, kind: str) -> None:
        self._source = source
        self._kind = kind
        self.state = source.state
        self.definitions = source.definitions

    @property
    def version(self) -> int:
        """The version of the last commit that the snapshot sees."""
        return self._source.version

    def scan(
        self, name: read_sets.IndexName, low: bytes, high: bytes, *, with_entities: bool
    ) -> Iterator[row_reader.Row]:
        """Yield the rows of keys with low <= path < high, in order and with entities."""
        encoded, code = name
        if code != indexes.builtin(self._kind).code:
            raise errors.InvalidArgument(f"{self._kind} has no indexed properties.")
        del with_entities  # Entities are always included, because they are computed and cheap
        partition = keys.decode(encoded)[0]
        sources: dict[str, Callable[[keys.Partition, bytes], Iterator[tuple[bytes, bytes]]]] = {
            NAMESPACE: self._namespaces,
            KIND: self._kinds,
            PROPERTY: functools.partial(self._properties, high=high),
        }
        for path, written in sources[self._kind](partition, low):
            if path >= high:
                return
            if path < low:
                continue
            proto = protobufs.field(1, keys.key_bytes(partition, path)) + written
            yield path, 0, 0, proto, protobufs.number_field(4, self.version), self.version

    def count(self, name: read_sets.IndexName, low: bytes, high: bytes, most: int | None) -> int:
        """Return the number of rows in a range of the kind's keys, counting at most `most`."""
        return row_reader.count_rows(self.scan(name, low, high, with_entities=False), most)

    def _namespaces(self, partition: keys.Partition, low: bytes) -> Iterator[tuple[bytes, bytes]]:
        database = keys.Partition(partition.project, partition.database).encoded
        database = database.removesuffix(keys.encode_text(""))
        start = _first_text(NAMESPACE, low)
        key = None if start is None else self._first_key(database + start, database)
        while key is not None:
            existing = keys.decode(key)[0]
            path = keys.element(NAMESPACE, existing.namespace or _DEFAULT_NAMESPACE)
            yield path + keys.PATH_END, b""
            key = self._first_key(existing.encoded + values.ABOVE, database)

    def _first_key(self, low: bytes, database: bytes) -> bytes | None:
        """Return the first entity key at or after `low` in a database."""
        high = database + values.ABOVE
        row = next(self._source.scan((b"", None), low, high, with_entities=False), None)
        return None if row is None else row[0]

    def _kinds(self, partition: keys.Partition, low: bytes) -> Iterator[tuple[bytes, bytes]]:
        for kind in self._kind_names(partition, low):
            if self._has_entry(partition, indexes.builtin(kind)):
                yield keys.element(KIND, kind) + keys.PATH_END, b""

    def _kind_names(self, partition: keys.Partition, low: bytes) -> Iterator[str]:
        """Yield the names of all kinds that ever existed, starting at the kind in path `low`."""
        start = _first_text(KIND, low)
        while start is not None:
            code = next(self._source.index_codes(partition.encoded, start, values.ABOVE), None)
            if code is None:
                return
            name, end = keys.decode_text(code, 0)
            yield name.decode()
            start = code[:end] + values.ABOVE

    def _properties(
        self, partition: keys.Partition, low: bytes, high: bytes
    ) -> Iterator[tuple[bytes, bytes]]:
        has_all_indexes = self.definitions.built_ins.are_all
        tags_of = self._tags_in_indexes if has_all_indexes else self._tags_in_entities
        for kind in self._kind_names(partition, low):
            above = keys.element(KIND, kind)
            if above >= high:
                return
            for name, has_tag in tags_of(partition, kind):
                path = above + keys.element(PROPERTY, name) + keys.PATH_END
                if path < low:
                    continue
                types = {text: None for tag, text in _REPRESENTATIONS if has_tag(tag)}
                if types:
                    yield path, _serialize(list(types))

    def _tags_in_indexes(self, partition: keys.Partition, kind: str) -> Iterator[_Tags]:
        start = keys.encode_text(kind)
        codes = self._source.index_codes(partition.encoded, start, start + values.ABOVE)
        for index in map(indexes.decode, codes):
            if index.is_builtin and index.properties and not index.properties[0][1]:
                yield (
                    index.properties[0][0],
                    functools.partial(self._has_entry, partition, index),
                )

    def _tags_in_entities(self, partition: keys.Partition, kind: str) -> Iterator[_Tags]:
        tags: dict[str, set[bytes]] = {}
        for _, indexed in self._source.indexed_values(partition, kind):
            for name, column in indexed.items():
                tags.setdefault(name, set()).update(value[:1] for value in column)
        for name in sorted(tags, key=keys.encode_text):
            yield name, tags[name].__contains__

    def _has_entry(self, partition: keys.Partition, index: indexes.Index, tag: bytes = b"") -> bool:
        name = (partition.encoded, index.code)
        # Any byte may follow the tag, even ABOVE.
        high = bytes((tag[0] + 1,)) if tag else values.ABOVE
        return next(self._source.scan(name, tag, high, with_entities=False), None) is not None


def _first_text(kind: str, low: bytes) -> bytes | None:
    """Return the encoded name of a kind's first key at or after a path, or None.

    The default namespace's id sorts before all names.
    """
    named = keys.name_prefix(kind)
    if low <= named:
        return b""
    if not low.startswith(named):
        return None
    end = keys.decode_text(low, len(named))[1]
    return low[len(named) : end]


def _serialize(types: list[str]) -> bytes:
    """Serialize the properties of a `__property__` entity."""
    entity = protobufs.Entity()
    array = entity.properties["property_representation"].array_value.values
    for name in types:
        array.add(string_value=name)
    return entity.SerializeToString(deterministic=True)
