"""Writing the rows of the data file.

Owns all statements that change rows, and index maintenance: changing an entity removes and adds
entries, and new definitions fill or drop composite indexes.

Invariants:

1. An entity and its index entries change together, in the caller's SQLite transaction.
   `group_commit` ensures that only one such transaction runs at a time, and commits it.
2. An unchanged entry keeps its version, so a change does not abort a transaction that has read only
   that entry. The indexes of unchanged properties are not read at all.
3. Index ids that a commit assigns become part of the file only with the commit; until then, they
   stay in `new_ids`.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence

from emulator import protobufs
from emulator.encoding import indexes, keys
from emulator.fault_injection import fault_plans
from emulator.storage import read_sets, row_reader

_PAGE = 1000  # Entities per page when a new index is filled.
_FORGET = 4  # A commit deletes at most this many history rows plus twice the number it added.


def forget_history(connection: sqlite3.Connection, horizon: int) -> None:
    """Delete all history that ended at or before a version."""
    connection.execute("DELETE FROM history WHERE until <= ?", (horizon,))
    connection.execute("UPDATE store SET kept_since = max(kept_since, ?)", (horizon,))


_Row = tuple[int, int, int]  # Entity id, version, whether the entity has several entries there.
New = tuple[keys.Partition, bytes, protobufs.Entity]  # The bytes are the path.


class RowWriter(row_reader.RowReader):
    """Changes the file inside the only write transaction, and sees its own changes."""

    _sees_commits_only = False

    def __init__(
        self,
        connection: sqlite3.Connection,
        definitions: row_reader.DefinitionsOf,
        now: int,
        *,
        history: int,
    ) -> None:
        super().__init__(connection, definitions)
        self.commit_version = max(self.state.version + 1, now)
        self.next_id = self.state.next_id
        self.index_updates = 0
        self.new_ids: dict[read_sets.IndexName, int] = {}
        self._history = history
        self._kept_since = self.state.kept_since
        self._kept = 0
        # Each changed entry with its new row, or with None if the entry is removed. Entries are
        # written in key order, so rows on the same page are written together, and each row is
        # written only once, however often the commit changes it.
        self._entry_changes: dict[int, dict[bytes, _Row | None]] = {}
        # The entity keys and index entries that changed, recorded only if the caller uses locks.
        self.touched: set[tuple[read_sets.IndexName, bytes]] | None = None

    def put(
        self,
        partition: keys.Partition,
        path: bytes,
        entity: protobufs.Entity,
        old: row_reader.Stored | None,
    ) -> row_reader.Stored:
        """Store an entity in place of its old state, and update its index entries."""
        key = partition.encoded + path
        self._touch(key)
        created = self.commit_version if old is None else old.created
        version = self.commit_version
        meta = row_reader.meta(version, created)
        proto = entity.SerializeToString(deterministic=True)
        crc = zlib.crc32(proto)
        if old is None:
            cursor = self._connection.execute(
                "INSERT INTO entities (key, proto, version, created, meta, crc) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (key, proto, version, created, meta, crc),
            )
            entity_id = cursor.lastrowid or 0
        else:
            entity_id = old.entity_id
            self._keep(partition, path, old)
            self._connection.execute(
                "UPDATE entities SET proto = ?, version = ?, meta = ?, crc = ? WHERE id = ?",
                (proto, version, meta, crc, entity_id),
            )
        fault_plans.point("commit.indexes")
        before, after = self._differing(partition, path, entity, old)
        self._update_entries(partition, entity_id, before, after, version)
        return row_reader.Stored(entity_id, proto, version, created, meta)

    def add(self, new: Sequence[New]) -> None:
        """Store new entities with their index entries.

        The entities must be distinct and must not exist yet.
        """
        (last,) = self._connection.execute("SELECT max(id) FROM entities").fetchone()
        version = self.commit_version
        meta = row_reader.meta(version, version)
        stored = []
        for entity_id, (partition, path, entity) in enumerate(new, start=(last or 0) + 1):
            proto = entity.SerializeToString(deterministic=True)
            key = partition.encoded + path
            stored.append((entity_id, key, proto, version, version, meta, zlib.crc32(proto)))
            self._touch(key)
            after = self._entries(partition, path, entity)
            indexes.check_limits(after)
            self._update_entries(partition, entity_id, {}, after, version)
        self._connection.executemany("INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?)", stored)

    def delete(self, partition: keys.Partition, path: bytes, old: row_reader.Stored) -> None:
        """Remove an entity and its index entries."""
        self._keep(partition, path, old)
        self._touch(partition.encoded + path)
        self._connection.execute("DELETE FROM entities WHERE id = ?", (old.entity_id,))
        before = self._entries(partition, path, row_reader.parse(old.proto))
        self._update_entries(partition, old.entity_id, before, {}, self.commit_version)

    def _keep(self, partition: keys.Partition, path: bytes, old: row_reader.Stored) -> None:
        """Keep the old state of an entity, for reads of the past."""
        if not self._history:
            self._kept_since = self.commit_version
            return
        if old.version == self.commit_version:
            return  # the same commit wrote this state, so no reader ever sees it
        kind = indexes.builtin(keys.kind_of(path))
        self._connection.execute(
            "INSERT INTO history (until, version, created, entity_id, kind_id, key, proto) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                self.commit_version,
                old.version,
                old.created,
                old.entity_id,
                self._interned(partition, kind.code),
                partition.encoded + path,
                old.proto,
            ),
        )
        self._kept += 1

    def reserve(self, key: bytes) -> None:
        """Reserve a key's id, so that it is never allocated."""
        self._connection.execute("INSERT OR IGNORE INTO reserved VALUES (?)", (key,))

    def clear(
        self, project: str | None = None, database: str | None = None, namespace: str | None = None
    ) -> None:
        """Remove all entities, or the entities in partitions that match the given parts."""
        wanted = (project, database, namespace)
        if wanted == (None, None, None):
            self._clear_all()
            return
        for partition in self.partitions():
            parts = (partition.project, partition.database, partition.namespace)
            if all(one in (None, other) for one, other in zip(wanted, parts, strict=True)):
                self._clear_partition(partition)

    def _clear_all(self) -> None:
        for table in ("entities", "index_entries", "indexes", "history", "reserved"):
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - the names come from this tuple
        self._kept_since = self.commit_version
        # Index ids can now be reused, so no process may use the ids that it has cached.
        self._connection.execute("UPDATE store SET generation = generation + 1")
        self.definitions = row_reader.Definitions(
            self.state.generation, self.definitions.composites
        )
        self.new_ids.clear()
        self._entry_changes.clear()

    def _clear_partition(self, partition: keys.Partition) -> None:
        low, high = partition.encoded, partition.encoded + keys.ABOVE
        while found := self._connection.execute(
            "SELECT key, id, proto, version, created, meta FROM entities "
            "WHERE key >= ? AND key < ? ORDER BY key LIMIT ?",
            (low, high, _PAGE),
        ).fetchall():
            for key, *stored in found:
                self.delete(partition, key[len(partition.encoded) :], row_reader.Stored(*stored))
            self._write_entries()

    def flush(self) -> None:
        """Write the collected index entries, so that a long commit keeps few in memory."""
        self._write_entries()

    def save_state(self) -> None:
        """Write the collected entries, the version and the next id: a commit's last step."""
        self._write_entries()
        self._forget_past()
        self._connection.execute(
            "UPDATE store SET version = ?, next_id = ?, kept_since = ?",
            (self.commit_version, self.next_id, self._kept_since),
        )

    def _forget_past(self) -> None:
        """Delete part of the history that is too old to be read.

        Each commit deletes at most twice as many rows as it added, plus a few. Therefore the
        history shrinks again after a busy hour, and no single commit pays for all of it.
        """
        horizon = self.commit_version - self._history
        oldest = self._connection.execute(
            "SELECT id, until FROM history ORDER BY id LIMIT ?", (2 * self._kept + _FORGET,)
        ).fetchall()
        ended = [row for row in oldest if row[1] <= horizon]
        if ended:
            self._connection.execute("DELETE FROM history WHERE id <= ?", (ended[-1][0],))
            self._kept_since = max(self._kept_since, ended[-1][1])

    def _touch(self, key: bytes) -> None:
        if self.touched is not None:
            self.touched.add((read_sets.ENTITIES, key))

    def _entries(
        self, partition: keys.Partition, path: bytes, entity: protobufs.Entity
    ) -> indexes.Entries:
        composites = self.definitions.by_kind.get(entity.key.path[-1].kind, ())
        return indexes.membership(entity, partition, path, composites)

    def _differing(
        self,
        partition: keys.Partition,
        path: bytes,
        entity: protobufs.Entity,
        old: row_reader.Stored | None,
    ) -> tuple[indexes.Entries, indexes.Entries]:
        """Return an entity's old and new entries in the indexes in which they may differ.

        Only newly stored entries are checked against the limits, so an entity that exceeds a limit
        because of new indexes can still be deleted or reduced.
        """
        if old is None:
            after = self._entries(partition, path, entity)
            indexes.check_limits(after)
            return {}, after
        kind = entity.key.path[-1].kind
        composites = self.definitions.by_kind.get(kind, ())
        indexed = indexes.indexed_values(entity, partition)
        if not indexes.are_few(path, indexed, composites):
            indexes.check_limits(self._entries(partition, path, entity))
        had = indexes.indexed_values(row_reader.parse(old.proto), partition)
        return indexes.differing(kind, path, had, indexed, composites)

    def _update_entries(
        self,
        partition: keys.Partition,
        entity_id: int,
        before: indexes.Entries,
        after: indexes.Entries,
        version: int,
    ) -> None:
        for code in before.keys() - after.keys():
            self._gather(partition, code, dict.fromkeys(before[code]))
        for code, new in after.items():
            row = (entity_id, version, int(indexes.are_several(code, new)))
            old = before.get(code)
            if old is None:
                self._gather(partition, code, dict.fromkeys(new, row))
            elif old != new:
                stays = (
                    set(old).intersection(new)
                    if indexes.are_several(code, old) == row[2]
                    else set()
                )
                changed: dict[bytes, _Row | None] = dict.fromkeys(set(old).difference(new))
                changed.update((entry, row) for entry in new if entry not in stays)
                self._gather(partition, code, changed)

    def _gather(
        self, partition: keys.Partition, code: bytes, changed: Mapping[bytes, _Row | None]
    ) -> None:
        self._entry_changes.setdefault(self._interned(partition, code), {}).update(changed)
        self.index_updates += len(changed)
        if self.touched is not None:
            name = (partition.encoded, code)
            self.touched.update((name, entry) for entry in changed)

    def _write_entries(self) -> None:
        changes = [
            (index_id, entry, row)
            for index_id, changed in sorted(self._entry_changes.items())
            for entry, row in sorted(changed.items())
        ]
        self._entry_changes = {}
        self._connection.executemany(
            "DELETE FROM index_entries WHERE index_id = ? AND entry = ?",
            [(index_id, entry) for index_id, entry, row in changes if row is None],
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO index_entries VALUES (?, ?, ?, ?, ?)",
            [(index_id, entry, *row) for index_id, entry, row in changes if row is not None],
        )

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
        """Drop composite indexes that are no longer wanted, and fill new indexes."""
        codes = {index.code for index in wanted}
        known = {index.code for index in self.definitions.composites}
        if codes == known:
            return
        # No data changes, so the version stays the same: a transaction can move to a snapshot with
        # the new index, and newly filled entries do not abort it.
        self.commit_version = self.state.version
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
        execute("UPDATE store SET generation = generation + 1")

    def _fill(self, index: indexes.Index) -> None:
        kind = indexes.builtin(index.kind).code
        found = self._connection.execute("SELECT id FROM indexes WHERE code = ?", (kind,))
        for (kind_id,) in found.fetchall():
            after = b""
            while holders := self._holders(kind_id, after):
                for key, stored in holders:
                    self._fill_from(index, key, stored)
                self._write_entries()
                after = keys.decode(holders[-1][0])[1]

    def _holders(self, kind_id: int, after: bytes) -> list[tuple[bytes, row_reader.Stored]]:
        """Return a page of a kind's entities, in key order."""
        found = self._connection.execute(
            "SELECT key, entity_id, proto, entities.version, created, meta FROM index_entries "
            "CROSS JOIN entities ON entities.id = entity_id "
            "WHERE index_id = ? AND entry > ? ORDER BY entry LIMIT ?",
            (kind_id, after, _PAGE),
        )
        return [(key, row_reader.Stored(*stored)) for key, *stored in found]

    def _fill_from(self, index: indexes.Index, key: bytes, stored: row_reader.Stored) -> None:
        partition, path = keys.decode(key)
        indexed = indexes.indexed_values(row_reader.parse(stored.proto), partition)
        listed = indexes.entries(index, path, indexed)
        entries = {index.code: listed} if listed else {}
        # Use the entity's version, not the commit's, so that reads of the past can use the new
        # index.
        self._update_entries(partition, stored.entity_id, {}, entries, stored.version)
