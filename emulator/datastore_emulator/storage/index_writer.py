"""Write the index entries of the data file, and make and drop indexes.

Owns index maintenance: a change to an entity removes and adds entries, and a new definition fills
or drops composite indexes.

Every kind has two built-in indexes for each property, which Google's service maintains for all
entities. A file in which `is_eager` is set also maintains all built-in indexes. In any other file,
commits maintain only the built-in indexes listed in `built_ins`, because most built-in indexes are
never read and each costs a row for every entity. If a query needs another built-in index, the
engine first makes this index, in steps. Each step is a separate commit. The row of an index in
`built_ins` shows its state:

    (no row)      not maintained; the index has no entries
    filled_to     maintained; entities after this key may still lack their entries. Queries do not
                  use the index.
    null          complete. If `is_asked` is not set, no query has asked for the index since the
                  file stopped maintaining all built-in indexes; `drop_unasked` may drop the index.

An unchanged entry keeps its version, so changing the entity does not abort a transaction that has
read only that entry. Index ids that a commit assigns stay in `new_ids` until the commit.
`index_updates` counts the entries of all built-in indexes, whether they are maintained or not. A
kill between two steps leaves the index incomplete but correct up to `filled_to`, from where the
next query continues. Any number of threads and processes may take steps for the same index. A
filled entry has the version of its entity, and filling changes no version. Therefore reads of the
past can use a new index, and filling an index aborts no transaction.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping

from datastore_emulator.encoding import indexes, keys
from datastore_emulator.storage import read_sets, row_reader

STEP_SECONDS = 0.02  # A step of filling an index ends after the page that exceeds this time.
PAGE = 100  # Maximum number of entities in memory while an index is filled.

_Row = tuple[int, int, int]  # Entity id, version, whether the index has more of its entries.


def drop_unasked(connection: sqlite3.Connection) -> None:
    """Inside the caller's transaction, drop the built-in indexes that no query has asked for."""
    rows = connection.execute("SELECT code FROM built_ins WHERE NOT is_asked").fetchall()
    for (code,) in rows:
        _drop(connection, code)
    if rows:
        connection.execute("DELETE FROM built_ins WHERE NOT is_asked")
        connection.execute("UPDATE engine_state SET generation = generation + 1")


def _drop(connection: sqlite3.Connection, code: bytes) -> None:
    connection.execute(
        "DELETE FROM index_entries WHERE index_id IN (SELECT id FROM indexes WHERE code = ?)",
        (code,),
    )
    connection.execute("DELETE FROM indexes WHERE code = ?", (code,))


class IndexWriter(row_reader.RowReader):
    """Changes index entries and definitions inside the only write transaction."""

    _sees_commits_only = False

    def __init__(
        self, connection: sqlite3.Connection, definitions: row_reader.DefinitionsOf, now: int
    ) -> None:
        super().__init__(connection, definitions)
        self.commit_version = max(self.state.version + 1, now)
        self.index_updates = 0
        self.new_ids: dict[read_sets.IndexName, int] = {}
        # Each changed entry with its new row, or with None if the entry is removed. Entries are
        # written in key order, so that rows on the same page are written together. Each row is
        # written only once, however often the commit changes it.
        self._entry_changes: dict[int, dict[bytes, _Row | None]] = {}
        # The entity keys and index entries that changed, recorded only if the caller uses locks.
        self.touched: list[tuple[read_sets.IndexName, Collection[bytes]]] | None = None

    def define(self, wanted: Iterable[indexes.Index]) -> None:
        """Drop composite indexes that are no longer defined, and fill new indexes."""
        codes = {index.code for index in wanted}
        known = {index.code for index in self.definitions.composites}
        if codes == known:
            return
        self._keep_version()
        execute = self._connection.execute
        for code in known - codes:
            _drop(self._connection, code)
            execute("DELETE FROM composites WHERE code = ?", (code,))
        for code in sorted(codes - known):
            execute("INSERT INTO composites VALUES (?)", (code,))
            index = indexes.decode(code)
            for number, holder in enumerate(self._holders(index.kind), start=1):
                self._fill_from((index,), *holder)
                if number % PAGE == 0:
                    self._write_entries()
        self._renew_definitions()

    def make_on_demand(self) -> None:
        """Stop maintaining all built-in indexes; keep maintaining those that have entries."""
        if not self.definitions.built_ins.are_all:
            return
        self._keep_version()
        execute = self._connection.execute
        for (code,) in execute("SELECT DISTINCT code FROM indexes ORDER BY code").fetchall():
            index = indexes.decode(code)
            if index.is_builtin and index.properties:
                execute("INSERT INTO built_ins VALUES (?, 0, NULL)", (code,))
        execute("UPDATE engine_state SET is_eager = 0")
        self._renew_definitions()

    def take_step(self, codes: Collection[bytes]) -> bool:
        """Take one step toward making a kind's built-in indexes; return whether all are complete.

        The step must be the only change in its commit.
        """
        self._keep_version()
        unasked = [code for code in codes if code not in self.definitions.built_ins.ready]
        before = self._unfilled_indexes()
        self._connection.executemany(
            "INSERT INTO built_ins VALUES (?, 1, ?) ON CONFLICT (code) DO UPDATE SET is_asked = 1",
            [(code, b"") for code in unasked],
        )
        unfilled = {code: to for code, to in self._unfilled_indexes().items() if code in unasked}
        left = self._fill_some(unfilled)
        if len(left) < len(unfilled) or any(code not in before for code in unasked):
            self._renew_definitions()
        return not left

    def _unfilled_indexes(self) -> dict[bytes, bytes]:
        """Return the incomplete built-in indexes, each with the key up to which it is filled."""
        rows = self._connection.execute(
            "SELECT code, filled_to FROM built_ins WHERE filled_to IS NOT NULL"
        )
        return dict(rows.fetchall())

    def _fill_some(self, unfilled: Mapping[bytes, bytes]) -> list[bytes]:
        """Fill indexes of one kind for a limited time; return those that are still incomplete."""
        if not unfilled:
            return []
        start = min(unfilled.values())
        made = [indexes.decode(code) for code, to in unfilled.items() if to == start]
        until = time.monotonic() + STEP_SECONDS
        reached: bytes | None = None
        for number, (key, stored) in enumerate(self._holders(made[0].kind, start), start=1):
            self._fill_from(made, key, stored)
            if number % PAGE == 0:
                self._write_entries()
                if time.monotonic() >= until:
                    reached = key
                    break
        self._write_entries()
        self._connection.executemany(
            "UPDATE built_ins SET filled_to = ? WHERE code = ?",
            [(reached, index.code) for index in made],
        )
        done = () if reached else {index.code for index in made}
        return [code for code in unfilled if code not in done]

    def _keep_version(self) -> None:
        """Give the commit the version of the last commit, because no data changes.

        A transaction can then move to a snapshot with a new index, and newly filled entries do not
        abort it.
        """
        self.commit_version = self.state.version

    def _renew_definitions(self) -> None:
        """Make all processes reload the index definitions."""
        self._connection.execute("UPDATE engine_state SET generation = generation + 1")

    def _holders(
        self, kind: str, after: bytes = b""
    ) -> Iterator[tuple[bytes, row_reader.StoredEntity]]:
        """Yield a kind's entities after a key, in key order, with one page in memory."""
        partition, path = b"", b""
        if after:
            named, path = keys.decode(after)
            partition = named.encoded
        rows = self._connection.execute(
            "SELECT id, partition FROM indexes WHERE code = ? AND partition >= ? "
            "ORDER BY partition",
            (indexes.builtin(kind).code, partition),
        ).fetchall()
        for kind_id, encoded in rows:
            last = path if encoded == partition else b""
            while page := self._page(kind_id, last):
                yield from page
                last = page[-1][0][len(encoded) :]

    def _page(self, kind_id: int, after: bytes) -> list[tuple[bytes, row_reader.StoredEntity]]:
        rows = self._connection.execute(
            "SELECT key, entity_id, proto, entities.version, created, meta FROM index_entries "
            "CROSS JOIN entities ON entities.id = entity_id "
            "WHERE index_id = ? AND entry > ? ORDER BY entry LIMIT ?",
            (kind_id, after, PAGE),
        )
        return [(key, row_reader.StoredEntity(*stored)) for key, *stored in rows]

    def _fill_from(
        self, made: Iterable[indexes.Index], key: bytes, stored: row_reader.StoredEntity
    ) -> None:
        partition, path = keys.decode(key)
        indexed = indexes.indexed_values(row_reader.parse(stored.proto), partition)
        listed = {index.code: indexes.entries(index, path, indexed) for index in made}
        entries = {code: encoded for code, encoded in listed.items() if encoded}
        self._update_entries(partition, stored.entity_id, {}, entries, stored.version)

    def replace_entries(
        self,
        partition: keys.Partition,
        path: bytes,
        entity_id: int,
        before: indexes.Values,
        after: indexes.Values,
        version: int,
    ) -> None:
        """Rewrite all entries of an entity after a change to the stored form of values."""
        kind = keys.kind_of(path)
        composites = self.definitions.by_kind.get(kind, ())
        made = self.definitions.built_ins.maintained
        old = indexes.all_entries(kind, path, before, composites, made)
        new = indexes.all_entries(kind, path, after, composites, made)
        self._update_entries(partition, entity_id, old, {}, version)
        self._update_entries(partition, entity_id, {}, new, version)

    def flush(self) -> None:
        """Write the collected index entries, so that a long commit keeps few in memory."""
        self._write_entries()

    def _update_entries(
        self,
        partition: keys.Partition,
        entity_id: int,
        before: indexes.Entries,
        after: indexes.Entries,
        version: int,
    ) -> None:
        for code, gone in before.items():
            if code not in after:
                self._gather(partition, code, dict.fromkeys(gone))
        for code, new in after.items():
            # Most lists contain one entry.
            row = (entity_id, version, int(len(new) > 1 and indexes.are_several(code, new)))
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
        self._entry_changes.setdefault(self._intern(partition, code), {}).update(changed)
        self.index_updates += len(changed)
        if self.touched is not None:
            self.touched.append(((partition.encoded, code), changed))

    def _write_entries(self) -> None:
        changes = [
            (index_id, entry, row)
            for index_id, changed in sorted(self._entry_changes.items())
            for entry, row in sorted(changed.items())
        ]
        self._entry_changes = {}
        removed = [(index_id, entry) for index_id, entry, row in changes if row is None]
        if removed:
            self._connection.executemany(
                "DELETE FROM index_entries WHERE index_id = ? AND entry = ?", removed
            )
        self._connection.executemany(
            "INSERT OR REPLACE INTO index_entries VALUES (?, ?, ?, ?, ?)",
            [(index_id, entry, *row) for index_id, entry, row in changes if row is not None],
        )

    def _intern(self, partition: keys.Partition, code: bytes) -> int:
        name = (partition.encoded, code)
        known = self.new_ids.get(name) or self.index_id(name)
        if known is None:
            cursor = self._connection.execute(
                "INSERT INTO indexes (partition, code) VALUES (?, ?)", name
            )
            known = cursor.lastrowid or 0
        self.new_ids[name] = known
        return known
