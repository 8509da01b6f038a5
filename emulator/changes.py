"""Changes to the rows: the one writer.

Owns every statement that changes a row, and the upkeep of indexes: which entries a change removes
and adds, and the composite indexes that are filled or dropped when the definitions change.

What must stay true: an entity and its index entries change together, in the caller's SQLite
transaction; `storage` sees to it that there is only one at a time and commits it. An entry that
stays as it was keeps its version, so a transaction that read it is not aborted for it. Ids that
were given to indexes are the file's only after the commit, so until then they stay in `new_ids`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from emulator import errors, faults, indexes, keys, messages, readsets, rows


class Writer(rows.Reader):
    """Changes the file inside the one write transaction. Sees its own changes."""

    def __init__(
        self, connection: sqlite3.Connection, definitions: rows.DefinitionsOf, now: int
    ) -> None:
        super().__init__(connection, definitions)
        self.commit_version = max(self.state.version + 1, now)
        self.next_id = self.state.next_id
        self.index_updates = 0
        self.new_ids: dict[readsets.IndexName, int] = {}

    def put(
        self,
        partition: keys.Partition,
        path: bytes,
        entity: messages.Entity,
        old: rows.Stored | None,
    ) -> rows.Stored:
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
        faults.point("commit.indexes")
        before = {} if old is None else self._entries(partition, path, rows.parse(old.proto))
        self._update_entries(partition, entity_id, before, self._entries(partition, path, entity))
        return rows.Stored(entity_id, proto, version, created, meta)

    def delete(self, partition: keys.Partition, path: bytes, old: rows.Stored) -> None:
        """Remove an entity and its index entries."""
        self._connection.execute("DELETE FROM entities WHERE id = ?", (old.entity_id,))
        before = self._entries(partition, path, rows.parse(old.proto))
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
        holders = self._connection.execute(
            "SELECT entities.id, key, proto FROM indexes JOIN index_entries "
            "ON index_id = indexes.id JOIN entities ON entities.id = entity_id "
            "WHERE indexes.code = ?",
            (indexes.builtin(index.kind).code,),
        ).fetchall()
        for entity_id, key, proto in holders:
            partition, path = keys.decode(key)
            indexed = indexes.indexed_values(rows.parse(proto), partition)
            found = indexes.entries(index, path, indexed)
            after = {(index.code, entry): int(len(found) > 1) for entry in found}
            self._update_entries(partition, entity_id, {}, after)


def _meta(version: int, created: int) -> bytes:
    return (
        messages.number_field(4, version)
        + messages.field(5, messages.timestamp(version))
        + messages.field(6, messages.timestamp(created))
    )
