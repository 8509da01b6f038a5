"""The data file.

Owns SQLite: the tables, connections, snapshots and the one writer. Nothing above speaks SQL.

    state          one row: version of the last commit, next number to scatter into an id, seed of
                   the scatter, generation of the composite definitions
    composites     codes of the composite indexes that are kept up to date
    entities       id, key (`keys`), proto (serialised Entity, key first), version, created, meta
    indexes        id of each index of each partition: name = partition + code (`indexes`)
    index_entries  (index id, entry) -> entity id, version that wrote it, whether the entity has
                   more entries in this index
    reserved       keys whose ids are not to be given out

Versions are commit times in microseconds, strictly rising, so a version is also the update time.
`meta` is what follows an entity in an EntityResult, ready to be spliced. The file's user_version is
FORMAT; another one is refused.

What must stay true: a commit is one SQLite transaction, entities and entries together, on disk
before it is acknowledged (WAL, synchronous=FULL). A snapshot is an open SQLite read transaction.
Connections never cross a fork: the child forgets its parent's without closing them, for closing
would end the parent's locks. In memory means a private temporary file that is removed at the end:
SQLite's own memory databases have no snapshots.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from emulator import errors, indexes, keys, messages, readsets

FORMAT = 1
MAX_SNAPSHOTS = 512  # open at once; each holds a connection and two file descriptors
_MAX_IDLE = 64  # connections kept for the next snapshot
_APPLICATION = 0x46744453
_BUSY_SECONDS = 60.0

_SCHEMA = """
CREATE TABLE state (
    version INTEGER NOT NULL, next_id INTEGER NOT NULL, seed INTEGER NOT NULL,
    generation INTEGER NOT NULL
);
CREATE TABLE composites (code BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE entities (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, proto BLOB NOT NULL,
    version INTEGER NOT NULL, created INTEGER NOT NULL, meta BLOB NOT NULL
);
CREATE TABLE indexes (
    id INTEGER PRIMARY KEY, partition BLOB NOT NULL, code BLOB NOT NULL, UNIQUE (partition, code)
);
CREATE TABLE index_entries (
    index_id INTEGER NOT NULL, entry BLOB NOT NULL, entity_id INTEGER NOT NULL,
    version INTEGER NOT NULL, is_multiple INTEGER NOT NULL, PRIMARY KEY (index_id, entry)
) WITHOUT ROWID;
CREATE TABLE reserved (key BLOB PRIMARY KEY) WITHOUT ROWID;
"""

# One row of a scan: entry, entity id, whether the entity has more entries here, and, if they were
# asked for, the entity's proto, meta and version.
Row = tuple[bytes, int, int, bytes | None, bytes | None, int]


@dataclass(frozen=True, slots=True)
class Stored:
    """One entity as it lies in the file."""

    entity_id: int
    proto: bytes
    version: int
    created: int
    meta: bytes


@dataclass(frozen=True, slots=True)
class State:
    """The one row of `state`."""

    version: int
    next_id: int
    seed: int
    generation: int


class Definitions:
    """The composite indexes of one generation, and the ids of all indexes met so far."""

    def __init__(self, generation: int, composites: tuple[indexes.Index, ...]) -> None:
        self.generation = generation
        self.composites = composites
        self.by_kind: dict[str, list[indexes.Index]] = {}
        for index in composites:
            self.by_kind.setdefault(index.kind, []).append(index)
        self.ids: dict[readsets.IndexName, int] = {}


class Reader:
    """Reads from one connection inside one SQLite transaction."""

    def __init__(self, connection: sqlite3.Connection, definitions: _DefinitionsOf) -> None:
        self._connection = connection
        row = connection.execute("SELECT version, next_id, seed, generation FROM state").fetchone()
        self.state = State(*row)
        self.definitions = definitions(connection, self.state.generation)

    @property
    def version(self) -> int:
        """The version of the last commit that this transaction sees."""
        return self.state.version

    def entity(self, key: bytes) -> Stored | None:
        """Return the entity of an encoded key."""
        row = self._connection.execute(
            "SELECT id, proto, version, created, meta FROM entities WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else Stored(*row)

    def entity_by_id(self, entity_id: int) -> Stored:
        """Return the entity that an index entry names."""
        row = self._connection.execute(
            "SELECT id, proto, version, created, meta FROM entities WHERE id = ?", (entity_id,)
        ).fetchone()
        return Stored(*row)

    def entity_version(self, key: bytes) -> int:
        """Return the version of an entity, 0 if it is missing."""
        row = self._connection.execute(
            "SELECT version FROM entities WHERE key = ?", (key,)
        ).fetchone()
        return 0 if row is None else row[0]

    def is_reserved(self, key: bytes) -> bool:
        """Tell whether a key's id is not to be given out."""
        found = self._connection.execute("SELECT 1 FROM reserved WHERE key = ?", (key,))
        return found.fetchone() is not None

    def index_id(self, name: readsets.IndexName) -> int | None:
        """Return the id of an index, None if nothing was ever in it."""
        known = self.definitions.ids.get(name)
        if known is not None:
            return known
        row = self._connection.execute(
            "SELECT id FROM indexes WHERE partition = ? AND code = ?", name
        ).fetchone()
        return None if row is None else row[0]

    def scan(
        self, name: readsets.IndexName, low: bytes, high: bytes, *, with_entities: bool
    ) -> Iterator[Row]:
        """Yield the rows of an index with low <= entry < high, in order.

        The iterator is lazy: a scan costs the rows that are taken from it.
        """
        if name[1] is None:
            return self._connection.execute(
                "SELECT key, id, 0, proto, meta, version FROM entities WHERE key >= ? AND key < ? "
                "ORDER BY key",
                (low, high),
            )
        index_id = self.index_id(name)
        if index_id is None:
            return iter(())
        if with_entities:
            return self._connection.execute(
                "SELECT entry, entity_id, is_multiple, proto, meta, entities.version "
                "FROM index_entries CROSS JOIN entities ON entities.id = entity_id "
                "WHERE index_id = ? AND entry >= ? AND entry < ? ORDER BY entry",
                (index_id, low, high),
            )
        return self._connection.execute(
            "SELECT entry, entity_id, is_multiple, NULL, NULL, 0 FROM index_entries "
            "WHERE index_id = ? AND entry >= ? AND entry < ? ORDER BY entry",
            (index_id, low, high),
        )

    def has_newer(self, name: readsets.IndexName, low: bytes, high: bytes, version: int) -> bool:
        """Tell whether a range of an index holds an entry that is newer than a version."""
        if name[1] is None:
            found = self._connection.execute(
                "SELECT 1 FROM entities WHERE key >= ? AND key < ? AND version > ? LIMIT 1",
                (low, high, version),
            )
        else:
            found = self._connection.execute(
                "SELECT 1 FROM index_entries "
                "WHERE index_id = ? AND entry >= ? AND entry < ? AND version > ? LIMIT 1",
                (self.index_id(name), low, high, version),
            )
        return found.fetchone() is not None

    def has_entry(self, name: readsets.IndexName, entry: bytes, version: int) -> bool:
        """Tell whether an entry is still there as it was at a version."""
        if name[1] is None:
            return 0 < self.entity_version(entry) <= version
        found = self._connection.execute(
            "SELECT 1 FROM index_entries WHERE index_id = ? AND entry = ? AND version <= ?",
            (self.index_id(name), entry, version),
        )
        return found.fetchone() is not None


_DefinitionsOf = Callable[[sqlite3.Connection, int], Definitions]


class Writer(Reader):
    """Changes the file inside the one write transaction. Sees its own changes."""

    def __init__(
        self, connection: sqlite3.Connection, definitions: _DefinitionsOf, now: int
    ) -> None:
        super().__init__(connection, definitions)
        self.commit_version = max(self.state.version + 1, now)
        self.next_id = self.state.next_id
        self.index_updates = 0
        self.new_ids: dict[readsets.IndexName, int] = {}

    def put(
        self, partition: keys.Partition, path: bytes, entity: messages.Entity, old: Stored | None
    ) -> Stored:
        """Store an entity in place of the old one and bring its index entries up to date."""
        key = partition.encoded + path
        created = self.commit_version if old is None else old.created
        version = self.commit_version
        meta = _meta(version, created)
        proto = entity.SerializeToString(deterministic=True)
        if old is None:
            cursor = self._connection.execute(
                "INSERT INTO entities (key, proto, version, created, meta) VALUES (?, ?, ?, ?, ?)",
                (key, proto, version, created, meta),
            )
            entity_id = cursor.lastrowid or 0
        else:
            entity_id = old.entity_id
            self._connection.execute(
                "UPDATE entities SET proto = ?, version = ?, meta = ? WHERE id = ?",
                (proto, version, meta, entity_id),
            )
        before = {} if old is None else self._entries(partition, path, parse(old.proto))
        self._update_entries(partition, entity_id, before, self._entries(partition, path, entity))
        return Stored(entity_id, proto, version, created, meta)

    def delete(self, partition: keys.Partition, path: bytes, old: Stored) -> None:
        """Remove an entity and its index entries."""
        self._connection.execute("DELETE FROM entities WHERE id = ?", (old.entity_id,))
        before = self._entries(partition, path, parse(old.proto))
        self._update_entries(partition, old.entity_id, before, {})

    def reserve(self, key: bytes) -> None:
        """Never give out the id of a key."""
        self._connection.execute("INSERT OR IGNORE INTO reserved VALUES (?)", (key,))

    def save_state(self) -> None:
        """Write the version and the next id: the last thing before the commit."""
        self._connection.execute(
            "UPDATE state SET version = ?, next_id = ?", (self.commit_version, self.next_id)
        )

    def _entries(
        self, partition: keys.Partition, path: bytes, entity: messages.Entity
    ) -> dict[tuple[bytes, bytes], int]:
        """Return the entries of an entity, each with whether the index holds more of them."""
        kind = entity.key.path[-1].kind
        indexed = indexes.indexed_values(entity, partition)
        composites = self.definitions.by_kind.get(kind, ())
        found = {}
        for index, listed in indexes.all_entries(kind, path, indexed, composites):
            is_multiple = int(len(listed) > 1)
            for entry in listed:
                found[index.code, entry] = is_multiple
        if len(found) > indexes.MAX_ENTRIES:
            raise errors.InvalidArgument(
                f"The entity has more than {indexes.MAX_ENTRIES} index entries."
            )
        return found

    def _update_entries(
        self,
        partition: keys.Partition,
        entity_id: int,
        before: dict[tuple[bytes, bytes], int],
        after: dict[tuple[bytes, bytes], int],
    ) -> None:
        gone = [each for each in before if each not in after]
        new = [each for each, multiple in after.items() if before.get(each) != multiple]
        self._connection.executemany(
            "DELETE FROM index_entries WHERE index_id = ? AND entry = ?",
            [(self._interned(partition, code), entry) for code, entry in gone],
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO index_entries VALUES (?, ?, ?, ?, ?)",
            [
                (
                    self._interned(partition, code),
                    entry,
                    entity_id,
                    self.commit_version,
                    after[code, entry],
                )
                for code, entry in new
            ],
        )
        self.index_updates += len(gone) + len(new)

    def _interned(self, partition: keys.Partition, code: bytes) -> int:
        name = (partition.encoded, code)
        known = self.new_ids.get(name) or self.index_id(name)
        if known is None:
            cursor = self._connection.execute(
                "INSERT INTO indexes (partition, code) VALUES (?, ?)", name
            )
            known = cursor.lastrowid or 0
        self.new_ids[name] = known
        return known

    def define(self, wanted: Iterable[indexes.Index]) -> None:
        """Drop the composite indexes that are not wanted and fill those that are new."""
        codes = {index.code for index in wanted}
        known = {index.code for index in self.definitions.composites}
        if codes == known:
            return
        execute = self._connection.execute
        for code in known - codes:
            execute(
                "DELETE FROM index_entries WHERE index_id IN "
                "(SELECT id FROM indexes WHERE code = ?)",
                (code,),
            )
            execute("DELETE FROM indexes WHERE code = ?", (code,))
            execute("DELETE FROM composites WHERE code = ?", (code,))
        for code in sorted(codes - known):
            execute("INSERT INTO composites VALUES (?)", (code,))
            self._fill(indexes.decode(code))
        execute("UPDATE state SET generation = generation + 1")

    def _fill(self, index: indexes.Index) -> None:
        rows = self._connection.execute(
            "SELECT entities.id, key, proto FROM indexes JOIN index_entries "
            "ON index_id = indexes.id JOIN entities ON entities.id = entity_id "
            "WHERE indexes.code = ?",
            (indexes.builtin(index.kind).code,),
        ).fetchall()
        for entity_id, key, proto in rows:
            partition, path = keys.decode(key)
            indexed = indexes.indexed_values(parse(proto), partition)
            found = indexes.entries(index, path, indexed)
            after = {(index.code, entry): int(len(found) > 1) for entry in found}
            self._update_entries(partition, entity_id, {}, after)


def parse(proto: bytes) -> messages.Entity:
    """Parse a stored entity."""
    return messages.Entity.FromString(proto)


def _meta(version: int, created: int) -> bytes:
    return (
        messages.number_field(4, version)
        + messages.field(5, messages.timestamp(version))
        + messages.field(6, messages.timestamp(created))
    )


class Snapshot(Reader):
    """A fixed state of the file on a connection of its own. Close it."""

    def __init__(self, connection: sqlite3.Connection, definitions: _DefinitionsOf) -> None:
        # Held for a whole request: several requests of one transaction may run at once.
        self.lock = threading.RLock()
        connection.execute("BEGIN")
        super().__init__(connection, definitions)

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for the storage that lent it."""
        return self._connection


class _Connections:
    """The connections of one process."""

    def __init__(self) -> None:
        self.idle: list[sqlite3.Connection] = []
        self.writer: sqlite3.Connection | None = None
        # Threads queue here and not in SQLite, whose waiting is a sleep that some never win.
        self.write_lock = threading.Lock()
        self.snapshots_left = threading.Semaphore(MAX_SNAPSHOTS)
        self.definitions: Definitions | None = None


class Storage:
    """One data file, used from any thread; after a fork also by the child."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        composites: tuple[indexes.Index, ...] | None,
        now: Callable[[], int],
    ) -> None:
        self._now = now
        self._remove: Callable[[], object] | None = None
        self._synchronous = "FULL"
        if path is None:
            folder = tempfile.mkdtemp(prefix="emulator-")
            self._remove = weakref.finalize(self, _remove_folder, folder, os.getpid())
            path = Path(folder) / "data"
            self._synchronous = "OFF"
        self.path = os.fspath(path)
        self._connections = _Connections()
        self._forgotten: list[_Connections] = []
        self._is_closed = False
        self._create()
        if composites is not None:
            with self.write() as writer:
                writer.define(composites)

    def forget_connections(self) -> None:
        """Start afresh in a forked child. The parent's connections stay open and untouched."""
        self._forgotten.append(self._connections)
        self._connections = _Connections()

    def close(self) -> None:
        """Close all idle connections. Open snapshots close theirs when they end."""
        self._is_closed = True
        connections = self._connections
        with connections.write_lock:
            while connections.idle:
                connections.idle.pop().close()
            if connections.writer is not None:
                connections.writer.close()
                connections.writer = None
        if self._remove is not None:
            self._remove()

    def begin_snapshot(self) -> Snapshot:
        """Open a snapshot of the last commit. Give it to `end_snapshot`."""
        connections = self._connections
        if not connections.snapshots_left.acquire(blocking=False):
            raise errors.ResourceExhausted(f"{MAX_SNAPSHOTS} transactions are open.")
        try:
            with _busy_is_unavailable():
                connection = self._borrow(connections)
                try:
                    return Snapshot(connection, self._definitions)
                except BaseException:
                    connection.close()
                    raise
        except BaseException:
            connections.snapshots_left.release()
            raise

    def end_snapshot(self, snapshot: Snapshot) -> None:
        """Release a snapshot's connection."""
        connections = self._connections
        connections.snapshots_left.release()
        snapshot.connection.rollback()
        if self._is_closed or len(connections.idle) >= _MAX_IDLE:
            snapshot.connection.close()
            return
        connections.idle.append(snapshot.connection)

    @contextlib.contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Read the last commit's state for the length of one request."""
        snapshot = self.begin_snapshot()
        try:
            yield snapshot
        finally:
            self.end_snapshot(snapshot)

    @contextlib.contextmanager
    def write(self) -> Iterator[Writer]:
        """Change the file: all of it or, on any exception, nothing. On disk when it returns."""
        connections = self._connections
        with connections.write_lock, _busy_is_unavailable():
            if connections.writer is None:
                connections.writer = self._connect()
            connection = connections.writer
            connection.execute("BEGIN IMMEDIATE")
            try:
                writer = Writer(connection, self._definitions, self._now())
                yield writer
                writer.save_state()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise
            # Only now: ids of a commit that failed are not those of the file.
            writer.definitions.ids.update(writer.new_ids)

    def _borrow(self, connections: _Connections) -> sqlite3.Connection:
        if self._is_closed:
            raise errors.Unavailable("The engine is closed.")
        try:
            return connections.idle.pop()
        except IndexError:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        if self._is_closed:
            raise errors.Unavailable("The engine is closed.")
        connection = sqlite3.connect(
            self.path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA cache_size = -8192")
        return connection

    def _create(self) -> None:
        with _busy_is_unavailable(), contextlib.closing(self._connect()) as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found == FORMAT:
                connection.rollback()
                return
            if found or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                connection.rollback()
                raise errors.FailedPrecondition(
                    f"{self.path} has format {found}, this engine reads {FORMAT}."
                )
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            seed = int.from_bytes(os.urandom(7), "big")
            connection.execute("INSERT INTO state VALUES (?, 1, ?, 1)", (self._now(), seed))
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute("COMMIT")

    def _definitions(self, connection: sqlite3.Connection, generation: int) -> Definitions:
        """Return the definitions in a connection's view; another process may have changed them."""
        known = self._connections.definitions
        if known is not None and known.generation == generation:
            return known
        rows = connection.execute("SELECT code FROM composites ORDER BY code").fetchall()
        loaded = Definitions(generation, tuple(indexes.decode(code) for (code,) in rows))
        self._connections.definitions = loaded
        return loaded


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _busy_is_unavailable() -> Iterator[None]:
    """Say UNAVAILABLE where SQLite gives up waiting for another process."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise errors.Unavailable("The data file is busy.") from error
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM):
            raise errors.ResourceExhausted(f"The data file cannot grow: {error}") from error
        raise
