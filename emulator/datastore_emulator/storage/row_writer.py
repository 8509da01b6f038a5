"""Writing the rows of the data file.

Owns the statements that change entities, their history, reserved keys and the file's state. The
base class in `index_writer` writes the index entries.

An entity and its index entries change together, in the caller's SQLite transaction. `group_commit`
ensures that only one such transaction runs at a time, and commits it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from datastore_emulator import protobufs
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import index_writer, prepared_rows, read_sets, row_reader

_PAGE = 1000  # Entities per page when a partition is cleared.
_FORGET = 4  # A commit deletes at most this many history rows plus twice the number it added.


def forget_history(connection: sqlite3.Connection, horizon: int) -> None:
    """Delete all history that ended at or before a version."""
    connection.execute("DELETE FROM history WHERE until <= ?", (horizon,))
    connection.execute("UPDATE engine_state SET kept_since = max(kept_since, ?)", (horizon,))


New = tuple[keys.Partition, bytes, protobufs.Entity]  # Partition, path and entity.


class RowWriter(index_writer.IndexWriter):
    """Changes the file inside the only write transaction, and sees its own changes."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        definitions: row_reader.DefinitionsOf,
        now: int,
        *,
        history: int,
    ) -> None:
        super().__init__(connection, definitions, now)
        self.next_id = self.state.next_id
        self._history = history
        self._kept_since = self.state.kept_since
        self._kept = 0

    def put(
        self,
        partition: keys.Partition,
        path: bytes,
        entity: protobufs.Entity,
        old: row_reader.StoredEntity | None,
        ready: prepared_rows.PreparedRow | None = None,
        had: indexes.Values | None = None,
    ) -> row_reader.StoredEntity:
        """Store an entity in place of its old state, and update its index entries.

        `ready` and `had` are the prepared entity and the indexed values of its old state, if the
        caller has computed them before the turn. If the entity exceeds a limit, nothing is changed.
        """
        proto, crc, has = ready or prepared_rows.prepare(entity, partition)
        if had is None and old is not None:
            had = indexes.indexed_values(row_reader.parse(old.proto), partition)
        before, after = self._changed_entries(entity.key.path[-1].kind, path, has, had)
        key = partition.encoded + path
        self._touch(key)
        created = self.commit_version if old is None else old.created
        version = self.commit_version
        meta = row_reader.meta(version, created)
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
        self._update_entries(partition, entity_id, before, after, version)
        return row_reader.StoredEntity(entity_id, proto, version, created, meta)

    def add(self, new: Sequence[New]) -> None:
        """Store new entities with their index entries.

        The entities must be distinct and must not exist yet.
        """
        (last,) = self._connection.execute("SELECT max(id) FROM entities").fetchone()
        version = self.commit_version
        meta = row_reader.meta(version, version)
        stored = []
        for entity_id, (partition, path, entity) in enumerate(new, start=(last or 0) + 1):
            proto, crc, has = prepared_rows.prepare(entity, partition)
            key = partition.encoded + path
            stored.append((entity_id, key, proto, version, version, meta, crc))
            self._touch(key)
            before, after = self._changed_entries(entity.key.path[-1].kind, path, has, None)
            self._update_entries(partition, entity_id, before, after, version)
        self._connection.executemany("INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?)", stored)

    def delete(
        self,
        partition: keys.Partition,
        path: bytes,
        old: row_reader.StoredEntity,
        had: indexes.Values | None = None,
    ) -> None:
        """Remove an entity and its index entries; `had` means the same as in `put`."""
        self._keep(partition, path, old)
        self._touch(partition.encoded + path)
        self._connection.execute("DELETE FROM entities WHERE id = ?", (old.entity_id,))
        kind = keys.kind_of(path)
        composites = self.definitions.by_kind.get(kind, ())
        if had is None:
            had = indexes.indexed_values(row_reader.parse(old.proto), partition)
        made = self.definitions.built_ins.maintained
        self.index_updates += indexes.unmade_updates(kind, had, {}, made)
        before = indexes.all_entries(kind, path, had, composites, made)
        self._update_entries(partition, old.entity_id, before, {}, self.commit_version)

    def _keep(self, partition: keys.Partition, path: bytes, old: row_reader.StoredEntity) -> None:
        """Keep the old state of an entity, for reads of the past."""
        if not self._history:
            self._kept_since = self.commit_version
            return
        if old.version == self.commit_version:
            return  # The same commit wrote this state, so no reader ever sees it
        kind = indexes.builtin(keys.kind_of(path))
        self._connection.execute(
            "INSERT INTO history (until, version, created, entity_id, kind_id, key, proto) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                self.commit_version,
                old.version,
                old.created,
                old.entity_id,
                self._intern(partition, kind.code),
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
        self._renew_definitions()
        self.definitions = row_reader.Definitions(
            self.state.generation, self.definitions.composites, self.definitions.built_ins
        )
        self.new_ids.clear()
        self._entry_changes.clear()

    def _clear_partition(self, partition: keys.Partition) -> None:
        low, high = partition.encoded, partition.encoded + keys.ABOVE
        while rows := self._connection.execute(
            "SELECT key, id, proto, version, created, meta FROM entities "
            "WHERE key >= ? AND key < ? ORDER BY key LIMIT ?",
            (low, high, _PAGE),
        ).fetchall():
            for key, *stored in rows:
                self.delete(
                    partition, key[len(partition.encoded) :], row_reader.StoredEntity(*stored)
                )
            self._write_entries()

    def save_state(self) -> None:
        """Write the collected entries, the version and the next id: a commit's last step."""
        self._write_entries()
        self._forget_past()
        self._connection.execute(
            "UPDATE engine_state SET version = ?, next_id = ?, kept_since = ?",
            (self.commit_version, self.next_id, self._kept_since),
        )

    def _forget_past(self) -> None:
        """Delete some of the history that is too old to be read.

        Each commit deletes at most twice as many rows as it added, plus a few. Therefore the
        history shrinks again after a busy hour, and no single commit deletes all of it.
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
            self.touched.append((read_sets.ENTITIES, (key,)))

    def _changed_entries(
        self, kind: str, path: bytes, has: indexes.Values, had: indexes.Values | None
    ) -> tuple[indexes.Entries, indexes.Entries]:
        """Return the old and new entries in those maintained indexes in which they may differ.

        `has` and `had` are the indexed values of the new and the old state; `had` is None for a new
        entity. Only newly stored entries are checked against the limits, so an entity that exceeds
        a limit because of new indexes can still be deleted or reduced.
        """
        composites = self.definitions.by_kind.get(kind, ())
        if not indexes.are_surely_few(path, has, composites):
            indexes.check_limits(indexes.all_entries(kind, path, has, composites))
        made = self.definitions.built_ins.maintained
        self.index_updates += indexes.unmade_updates(kind, had or {}, has, made)
        if had is None:
            return {}, indexes.all_entries(kind, path, has, composites, made)
        return indexes.changed_entries(kind, path, had, has, composites, made)
