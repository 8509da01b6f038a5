"""The tables of the data file, and the upgrade of files with older formats.

Owns the stored form of all data:

    engine_state   one row: version of the last commit, next number to scatter into an id, seed for
                   the scattering, generation of the index definitions, the earliest version that
                   can still be read, and whether commits maintain all built-in indexes
    composites     codes of the composite indexes that the engine maintains
    built_ins      if commits maintain only some built-in indexes: the code of each maintained one,
                   whether a query has asked for the index, and the key up to which the index is
                   filled, or null if it is complete (`index_writer`)
    entities       id, key (`keys`), proto (serialized Entity, key first), version, created, meta,
                   CRC-32 of proto (null if an older engine wrote it)
    indexes        id of each index of each partition: name = partition + code (`indexes`)
    index_entries  (index id, entry) -> entity id, version that wrote the entry, and whether the
                   entity has more entries in this index (below the same ancestor, in an index with
                   ancestors)
    history        former states of entities, ordered by the version that ended the state (`until`);
                   each row also has the state's columns from `entities` and the id of the kind's
                   index
    reserved       keys whose ids must not be allocated

A version is a commit time in microseconds. Versions strictly increase, so an entity's version is
also its update time. `meta` contains the bytes that follow an entity in an EntityResult, ready to
be copied. The file's user_version is FORMAT. A change to the tables requires a new FORMAT and an
entry in `_UPGRADES` that converts the old tables. Format 1 had no history and no CRC, and format 2
had no `built_ins`. Up to format 3, byte strings were not sorted among strings (`old_byte_strings`).
The table `engine_state` was called `state` in format 1, `store` in format 2 and `file_state` in
format 3. Because of the new name, an older engine that has the file open during an upgrade fails
instead of continuing to write.

The history contains no index entries; the module `history` computes them from the entities.
Therefore a change to an entity adds one history row, regardless of the number of indexes.
"""

from __future__ import annotations

import sqlite3

FORMAT = 4

_HISTORY = """
CREATE TABLE history (
    id INTEGER PRIMARY KEY, until INTEGER NOT NULL, version INTEGER NOT NULL,
    created INTEGER NOT NULL, entity_id INTEGER NOT NULL, kind_id INTEGER NOT NULL,
    key BLOB NOT NULL, proto BLOB NOT NULL
);
CREATE INDEX history_keys ON history (key, until, version, kind_id)
"""
_BUILT_INS = """
CREATE TABLE built_ins (
    code BLOB PRIMARY KEY, is_asked INTEGER NOT NULL, filled_to BLOB
) WITHOUT ROWID
"""
_SCHEMA = (
    """
CREATE TABLE engine_state (
    version INTEGER NOT NULL, next_id INTEGER NOT NULL, seed INTEGER NOT NULL,
    generation INTEGER NOT NULL, kept_since INTEGER NOT NULL, is_eager INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE composites (code BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE entities (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, proto BLOB NOT NULL,
    version INTEGER NOT NULL, created INTEGER NOT NULL, meta BLOB NOT NULL, crc INTEGER
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
    + _HISTORY
    + ";"
    + _BUILT_INS
)
_UPGRADES = {
    1: """
ALTER TABLE state RENAME TO store;
ALTER TABLE store ADD COLUMN kept_since INTEGER NOT NULL DEFAULT 0;
UPDATE store SET kept_since = version;
ALTER TABLE entities ADD COLUMN crc INTEGER;
"""
    + _HISTORY,
    2: """
ALTER TABLE store RENAME TO file_state;
ALTER TABLE file_state ADD COLUMN is_eager INTEGER NOT NULL DEFAULT 1;
"""
    + _BUILT_INS,
    3: "ALTER TABLE file_state RENAME TO engine_state",
}
BYTE_STRINGS_FORMAT = 4  # The first format in which byte strings sort among strings


def create(connection: sqlite3.Connection, version: int, seed: int) -> None:
    """Create the tables in an empty file, inside the caller's transaction."""
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO engine_state VALUES (?, 1, ?, 1, ?, 1)", (version, seed, version)
    )
    _mark(connection)


def upgrade(connection: sqlite3.Connection, current: int) -> None:
    """Upgrade the tables of an older format to this format, inside the caller's transaction."""
    for step in range(current, FORMAT):
        for statement in _UPGRADES[step].split(";"):
            connection.execute(statement)
    _mark(connection)


def _mark(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA user_version = {FORMAT}")
