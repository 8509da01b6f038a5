"""Reading the rows of the data file.

Owns the statements that read the tables (`schema`), and the meaning of a stored row.

A RowReader is used within one SQLite transaction, which its creator begins and ends, so everything
that it reads belongs to one version. Only this module (for reads) and the modules `row_writer` and
`index_writer` (for writes) contain statements that name a table.
"""

from __future__ import annotations

import functools
import itertools
import sqlite3
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from google.protobuf import message

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.storage import read_sets

# One row of a scan: the entry, the entity's id, whether the entity has more entries in this index
# and, if requested, the entity's proto, meta and version.
Row = tuple[bytes, int, int, bytes | None, bytes | None, int]


class StoredEntity(NamedTuple):
    """One entity as stored in the file."""

    entity_id: int
    proto: bytes
    version: int
    created: int
    meta: bytes


class State(NamedTuple):
    """The only row of `engine_state`, without the columns that define indexes."""

    version: int
    next_id: int
    seed: int
    generation: int
    kept_since: int


class LastChange(NamedTuple):
    """The version of the last commit, and the generation of the index definitions.

    As long as the version and the generation stay the same, a query finds the same results in the
    same way.
    """

    version: int
    generation: int


class BuiltIns(NamedTuple):
    """The codes of built-in property indexes: those that commits maintain, and the complete ones.

    `ready` contains only complete indexes that a query has asked for.
    """

    maintained: indexes.Codes = indexes.EVERY
    ready: indexes.Codes = indexes.EVERY

    @property
    def are_all(self) -> bool:
        """Whether commits maintain every built-in index."""
        return self.maintained is indexes.EVERY


class Definitions:
    """The indexes of one generation, and caches that depend on them.

    `ids` contains the ids of all indexes used so far. `plans` contains the plans of all queries
    seen so far, by partition and message; the query planner fills it.
    """

    def __init__(
        self, generation: int, composites: tuple[indexes.Index, ...], built_ins: BuiltIns
    ) -> None:
        self.generation = generation
        self.built_ins = built_ins
        self.composites = composites
        self.by_kind: dict[str, list[indexes.Index]] = {}
        for index in composites:
            self.by_kind.setdefault(index.kind, []).append(index)
        self.ids: dict[read_sets.IndexName, int] = {}
        self.plans: dict[tuple[keys.Partition, bytes], Any] = {}


class PointRead(NamedTuple):
    """An entity and the version of the last commit, read in one statement."""

    version: int
    stored: StoredEntity | None

    def entity(self, _key: bytes) -> StoredEntity | None:
        """Return the entity.

        The key is ignored, because the caller has already read the entity with that key.
        """
        return self.stored


def point_read(connection: sqlite3.Connection, key: bytes) -> PointRead:
    """Read the entity with the given encoded key.

    The single statement sees one state, so it needs no transaction.
    """
    # fetchone exhausts the cursor; an open cursor would keep SQLite's view of that state open.
    row = connection.execute(
        "SELECT engine_state.version, entities.id, proto, entities.version, created, meta, crc "
        "FROM engine_state LEFT JOIN entities ON key = ?",
        (key,),
    ).fetchone()
    if not row:
        raise _no_state()
    version, *stored = row
    return PointRead(version, None if stored[0] is None else _sound(tuple(stored)))


def version(connection: sqlite3.Connection, key: bytes) -> int:
    """Read the version of the entity with the given encoded key; 0 if there is no entity."""
    row = connection.execute("SELECT version FROM entities WHERE key = ?", (key,)).fetchone()
    return row[0] if row else 0


def last_change(connection: sqlite3.Connection) -> LastChange:
    """Read the file's last change.

    The single statement sees one state, so it needs no transaction.
    """
    row = connection.execute("SELECT version, generation FROM engine_state").fetchone()
    if row is None:
        raise _no_state()
    return LastChange(*row)


class RowReader:
    """Reads through one connection, inside one SQLite transaction."""

    # Whether the index ids that this reader sees are committed; an id from a failed commit can be
    # reused.
    _sees_commits_only = True

    def __init__(self, connection: sqlite3.Connection, definitions: DefinitionsOf) -> None:
        self._connection = connection
        row = connection.execute(
            "SELECT version, next_id, seed, generation, kept_since FROM engine_state"
        ).fetchone()
        if row is None:
            raise _no_state()
        self.state = State(*row)
        self.definitions = definitions(connection, self.state.generation)

    @property
    def version(self) -> int:
        """The version of the last commit that this transaction sees."""
        return self.state.version

    @property
    def last_change(self) -> LastChange:
        """The last change that this transaction sees."""
        return LastChange(self.state.version, self.state.generation)

    def entity(self, key: bytes) -> StoredEntity | None:
        """Return the entity with the given encoded key."""
        row = self._connection.execute(
            "SELECT id, proto, version, created, meta, crc FROM entities WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else _sound(row)

    def entity_by_id(self, entity_id: int) -> StoredEntity:
        """Return the entity that an index entry names."""
        row = self._connection.execute(
            "SELECT id, proto, version, created, meta, crc FROM entities WHERE id = ?", (entity_id,)
        ).fetchone()
        if row is None:
            raise errors.Damaged(f"An index entry names the entity {entity_id}, which is missing.")
        return _sound(row)

    def entity_version(self, key: bytes) -> int:
        """Return an entity's version, or 0 if the entity is missing."""
        row = self._connection.execute(
            "SELECT version FROM entities WHERE key = ?", (key,)
        ).fetchone()
        return 0 if row is None else row[0]

    def is_reserved(self, key: bytes) -> bool:
        """Return whether a key's id must not be allocated."""
        cursor = self._connection.execute("SELECT 1 FROM reserved WHERE key = ?", (key,))
        return cursor.fetchone() is not None

    def index_id(self, name: read_sets.IndexName) -> int | None:
        """Return the id of an index, or None if the index never had an entry."""
        ids = self.definitions.ids
        if name in ids:
            return ids[name]
        row = self._connection.execute(
            "SELECT id FROM indexes WHERE partition = ? AND code = ?", name
        ).fetchone()
        if row is None:
            return None
        number: int = row[0]
        if self._sees_commits_only:
            ids[name] = number
        return number

    def index_codes(self, partition: bytes, low: bytes, high: bytes) -> Iterator[bytes]:
        """Yield a partition's index codes with low <= code < high, also of empty indexes."""
        rows = self._connection.execute(
            "SELECT code FROM indexes WHERE partition = ? AND code >= ? AND code < ? ORDER BY code",
            (partition, low, high),
        )
        return (code for (code,) in rows)

    def scan(
        self, name: read_sets.IndexName, low: bytes, high: bytes, *, with_entities: bool
    ) -> Iterator[Row]:
        """Yield the rows of an index with low <= entry < high, in order.

        The iterator is lazy: a scan reads only the rows that the caller takes from it.
        """
        if name[1] is None:
            if not with_entities:
                return self._connection.execute(
                    "SELECT key, id, 0, NULL, NULL, version FROM entities "
                    "WHERE key >= ? AND key < ? ORDER BY key",
                    (low, high),
                )
            return _sound_rows(
                self._connection.execute(
                    "SELECT key, id, 0, proto, meta, version, crc FROM entities "
                    "WHERE key >= ? AND key < ? ORDER BY key",
                    (low, high),
                )
            )
        index_id = self.index_id(name)
        if index_id is None:
            return iter(())
        if with_entities:
            return _sound_rows(
                self._connection.execute(
                    "SELECT entry, entity_id, is_multiple, proto, meta, entities.version, crc "
                    "FROM index_entries CROSS JOIN entities ON entities.id = entity_id "
                    "WHERE index_id = ? AND entry >= ? AND entry < ? ORDER BY entry",
                    (index_id, low, high),
                )
            )
        return self._connection.execute(
            "SELECT entry, entity_id, is_multiple, NULL, NULL, 0 FROM index_entries "
            "WHERE index_id = ? AND entry >= ? AND entry < ? ORDER BY entry",
            (index_id, low, high),
        )

    def count(self, name: read_sets.IndexName, low: bytes, high: bytes, most: int | None) -> int:
        """Return the number of rows that a scan would yield, counting at most `most`.

        Subclasses whose scan yields different rows must override this method with `count_rows`.
        """
        limit = -1 if most is None else min(most, sys.maxsize)
        if name[1] is None:
            cursor = self._connection.execute(
                "SELECT count(*) FROM "
                "(SELECT 1 FROM entities WHERE key >= ? AND key < ? ORDER BY key LIMIT ?)",
                (low, high, limit),
            )
        else:
            cursor = self._connection.execute(
                "SELECT count(*) FROM (SELECT 1 FROM index_entries "
                "WHERE index_id = ? AND entry >= ? AND entry < ? ORDER BY entry LIMIT ?)",
                (self.index_id(name), low, high, limit),
            )
        number: int = cursor.fetchone()[0]
        return number

    def has_newer(self, name: read_sets.IndexName, low: bytes, high: bytes, version: int) -> bool:
        """Return whether a range of an index contains an entry newer than a version."""
        if name[1] is None:
            cursor = self._connection.execute(
                "SELECT 1 FROM entities WHERE key >= ? AND key < ? AND version > ? LIMIT 1",
                (low, high, version),
            )
        else:
            cursor = self._connection.execute(
                "SELECT 1 FROM index_entries "
                "WHERE index_id = ? AND entry >= ? AND entry < ? AND version > ? LIMIT 1",
                (self.index_id(name), low, high, version),
            )
        return cursor.fetchone() is not None

    def has_entry(self, name: read_sets.IndexName, entry: bytes, version: int) -> bool:
        """Return whether an entry exists and is unchanged since a version."""
        if name[1] is None:
            return 0 < self.entity_version(entry) <= version
        cursor = self._connection.execute(
            "SELECT 1 FROM index_entries WHERE index_id = ? AND entry = ? AND version <= ?",
            (self.index_id(name), entry, version),
        )
        return cursor.fetchone() is not None

    def entry_count(self, name: read_sets.IndexName) -> int:
        cursor = self._connection.execute(
            "SELECT COUNT(*) FROM index_entries WHERE index_id = ?", (self.index_id(name),)
        )
        count: int = cursor.fetchone()[0]
        return count

    def indexed_values(
        self, partition: keys.Partition, kind: str
    ) -> Iterator[tuple[bytes, indexes.Values]]:
        """Yield the path and the indexed values of each entity of a kind, in key order."""
        name = (partition.encoded, indexes.builtin(kind).code)
        for path, entity_id, _, stored, *_ in self.scan(name, b"", keys.ABOVE, with_entities=True):
            proto = self.entity_by_id(entity_id).proto if stored is None else stored
            yield path, indexes.indexed_values(parse(proto), partition)

    def index_sizes(self) -> list[tuple[bytes, bytes, int, int]]:
        """Return each non-empty index: its partition, code, number of entries, and their bytes."""
        return self._connection.execute(
            "SELECT partition, code, number, size FROM (SELECT index_id, COUNT(*) AS number, "
            "SUM(LENGTH(entry)) AS size FROM index_entries GROUP BY index_id) "
            "JOIN indexes ON indexes.id = index_id ORDER BY partition, code"
        ).fetchall()

    def partitions(self) -> list[keys.Partition]:
        """Return all partitions that ever contained an entity, in order."""
        rows = self._connection.execute("SELECT DISTINCT partition FROM indexes ORDER BY 1")
        return [keys.decode(encoded)[0] for (encoded,) in rows]


def _sound(row: tuple[int, bytes, int, int, bytes, int | None]) -> StoredEntity:
    """Return an entity after verifying its checksum."""
    entity_id, proto, version, created, meta, crc = row
    if crc not in (None, zlib.crc32(proto)):
        raise _checksum_error(entity_id)
    return StoredEntity(entity_id, proto, version, created, meta)


def _sound_rows(
    rows: Iterable[tuple[bytes, int, int, bytes, bytes, int, int | None]],
) -> Iterator[Row]:
    crc32 = zlib.crc32
    for entry, entity_id, is_multiple, proto, meta, version, crc in rows:
        if crc32(proto) != crc and crc is not None:
            raise _checksum_error(entity_id)
        yield entry, entity_id, is_multiple, proto, meta, version


def _no_state() -> errors.Damaged:
    return errors.Damaged("The data file is damaged: its table 'engine_state' is empty.")


def _checksum_error(entity_id: int) -> errors.Damaged:
    return errors.Damaged(f"The stored entity {entity_id} does not match its checksum.")


DefinitionsOf = Callable[[sqlite3.Connection, int], Definitions]


def load_definitions(connection: sqlite3.Connection, generation: int) -> Definitions:
    """Read the index definitions that a connection sees in this generation."""
    rows = connection.execute("SELECT code FROM composites ORDER BY code").fetchall()
    composites = tuple(indexes.decode(code) for (code,) in rows)
    return Definitions(generation, composites, _built_ins(connection))


def _built_ins(connection: sqlite3.Connection) -> BuiltIns:
    (is_eager,) = connection.execute("SELECT is_eager FROM engine_state").fetchone()
    if is_eager:
        return BuiltIns()
    rows = connection.execute(
        "SELECT code, is_asked AND filled_to IS NULL FROM built_ins"
    ).fetchall()
    return BuiltIns(
        frozenset(code for code, _ in rows),
        frozenset(code for code, is_ready in rows if is_ready),
    )


@functools.lru_cache(maxsize=64)
def meta(version: int, created: int) -> bytes:
    """Return the bytes that follow an entity in an EntityResult: its version and two times."""
    return (
        protobufs.number_field(4, version)
        + protobufs.field(5, protobufs.timestamp(version))
        + protobufs.field(6, protobufs.timestamp(created))
    )


def count_rows(scanned: Iterator[Row], most: int | None) -> int:
    """Return the number of rows that an iterator yields, taking at most `most`."""
    limit = None if most is None else min(most, sys.maxsize)
    return sum(1 for _ in itertools.islice(scanned, limit))


def parse(proto: bytes) -> protobufs.Entity:
    try:
        return protobufs.Entity.FromString(proto)
    except message.DecodeError as error:
        raise errors.Damaged("A stored entity cannot be read.") from error
