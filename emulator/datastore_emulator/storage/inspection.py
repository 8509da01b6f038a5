"""Inspection: check that a data file is consistent and contains what the engine would write.

Owns the full check: first SQLite's own check of its pages, then a check of types, then a check of
each row. The check of types finds values of the wrong type for their column. The check of rows
finds entries without an entity. The check of rows also compares each entity with its checksum and
its key, and its index entries with newly computed entries. Finally, the check of rows covers
versions and history. The inspection reads one snapshot, so engines can keep writing. It keeps only
one page of entities in memory. The inspection repairs nothing; to repair a file, restore a backup.

Damaged rows never raise an exception; the report lists them as problems. The inspection refuses a
file only if the file cannot be opened or has a different format.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from datastore_emulator import errors
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.storage import data_file, last_commit, read_sets, row_reader, schema

MAX_LISTED = 100  # The report counts all problems, but describes at most this many.
_PAGE = 1000  # Maximum number of entities in memory.
_UNREADABLE = (errors.DatastoreError, *data_file.MALFORMED)


@dataclass(slots=True)
class Report:
    """The findings about a file: `problems` describes the first ones, and `wrong` counts all."""

    path: str
    entities: int = 0
    entries: int = 0
    revisions: int = 0
    wrong: int = 0
    problems: list[str] = field(default_factory=list)

    def note(self, problem: str) -> None:
        """Count a problem, and describe it unless the list is full."""
        self.wrong += 1
        if len(self.problems) < MAX_LISTED:
            self.problems.append(problem)

    def __str__(self) -> str:
        counts = (
            f"{self.path}: {self.entities} entities, {self.entries} index entries, "
            f"{self.revisions} revisions in the history, {self.wrong} problems"
        )
        return "\n".join([counts, *self.problems])


def check(path: str | os.PathLike[str]) -> Report:
    """Check a data file that has this engine's format, and report its problems.

    Raises:
        errors.FailedPrecondition: The file cannot be opened or has a different format. The subclass
            `errors.Damaged` means that SQLite cannot even read the format.
    """
    name = os.fspath(path)
    report = Report(name)
    if not Path(name).is_file():
        raise errors.FailedPrecondition(f"There is no data file {name}.")
    last_commit.check(name)
    with data_file.translating_at_opening(name):
        connection = data_file.connect(name, data_file.Durability.DURABLE)
        with contextlib.closing(connection):
            if data_file.read_format(connection, name) != schema.FORMAT:
                raise errors.FailedPrecondition(
                    f"{name} does not have format {schema.FORMAT}. Open it with the engine "
                    "once to upgrade it."
                )
            connection.execute("BEGIN")
            try:
                _check_pages(connection, report)
                _check_types(connection, report)
                _Inspection(connection, report).run()
            except (sqlite3.DatabaseError, *_UNREADABLE) as fault:
                report.note(f"reading stopped: {fault}")
    return report


def _check_pages(connection: sqlite3.Connection, report: Report) -> None:
    for (line,) in connection.execute(f"PRAGMA integrity_check({MAX_LISTED})"):
        if line != "ok":
            report.note(f"SQLite: {line}")


def _check_types(connection: sqlite3.Connection, report: Report) -> None:
    """Find values of the wrong type; SQLite allows any type in any column."""
    columns = connection.execute(
        'SELECT stored.name, columns.name, lower(columns.type), columns."notnull" OR columns.pk '
        "FROM sqlite_master AS stored, pragma_table_info(stored.name) AS columns "
        "WHERE stored.type = 'table' AND stored.name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    ).fetchall()
    for table, column, declared, is_required in columns:
        allowed = (declared, declared if is_required else "null")
        # The names come from `schema`; if the file's own schema is damaged, SQLite refuses the
        # query.
        query = f'SELECT count(*) FROM "{table}" WHERE typeof("{column}") NOT IN (?, ?)'  # noqa: S608
        (wrong,) = connection.execute(query, allowed).fetchone()
        if wrong:
            report.note(f"{wrong} values of {table}.{column} are not of type {declared}")


class _Inspection:
    """Checks the rows of one snapshot."""

    def __init__(self, connection: sqlite3.Connection, report: Report) -> None:
        self._connection = connection
        self._report = report
        self._reader = row_reader.RowReader(connection, row_reader.load_definitions)
        # Maps the code of each incomplete index to the key up to which the index is filled.
        self._filled_to: dict[bytes, bytes] = dict(
            connection.execute("SELECT code, filled_to FROM built_ins WHERE filled_to IS NOT NULL")
        )
        self._ids: dict[read_sets.IndexName, int] = {
            (partition, code): index_id
            for index_id, partition, code in connection.execute(
                "SELECT id, partition, code FROM indexes"
            )
        }

    def run(self) -> None:
        for stored, key, crc in self._entities():
            self._report.entities += 1
            where = f"entity {stored.entity_id}"
            with self._noting(where):
                self._check_row(where, stored, crc)
            with self._noting(where):
                self._check_entity(stored.entity_id, key, stored.proto)
        self._check_counts()
        self._check_history()

    @contextlib.contextmanager
    def _noting(self, where: str) -> Iterator[None]:
        try:
            yield
        except _UNREADABLE as fault:
            self._report.note(f"{where} cannot be read: {fault}")

    def _check_row(self, where: str, stored: row_reader.StoredEntity, crc: int | None) -> None:
        if crc not in (None, zlib.crc32(stored.proto)):
            self._report.note(f"{where} does not match its stored checksum")
        if stored.meta != row_reader.meta(stored.version, stored.created):
            self._report.note(f"{where} has stored metadata that does not match its times")
        if stored.version > self._reader.version:
            self._report.note(f"{where} is newer than the last commit")

    def _entities(self) -> Iterator[tuple[row_reader.StoredEntity, bytes, int | None]]:
        after = -1
        while page := self._connection.execute(
            "SELECT key, crc, id, proto, version, created, meta FROM entities WHERE id > ? "
            "ORDER BY id LIMIT ?",
            (after, _PAGE),
        ).fetchall():
            for key, crc, *stored in page:
                yield row_reader.StoredEntity(*stored), key, crc
            after = page[-1][2]

    def _check_entity(self, entity_id: int, key: bytes, proto: bytes) -> None:
        entity = row_reader.parse(proto)
        partition, path = keys.decode(key)
        if keys.encode(keys.partition_of(entity.key, partition), entity.key) != key:
            self._report.note(f"entity {entity_id} is not stored under its own key")
        composites = self._reader.definitions.by_kind.get(entity.key.path[-1].kind, ())
        wanted = indexes.all_entries(
            entity.key.path[-1].kind,
            path,
            indexes.indexed_values(entity, partition),
            composites,
            self._reader.definitions.built_ins.maintained,
        )
        for code, entries in wanted.items():
            index_id = self._ids.get((partition.encoded, code))
            # Older engines also set this flag for single entries below several ancestors. An extra
            # flag costs time but causes no error.
            right = ((entity_id, int(indexes.are_several(code, entries))), (entity_id, 1))
            is_filled = key <= self._filled_to.get(code, key)
            for entry in entries:
                row = self._connection.execute(
                    "SELECT entity_id, is_multiple FROM index_entries "
                    "WHERE index_id = ? AND entry = ?",
                    (index_id, entry),
                ).fetchone()
                if row in right:
                    self._report.entries += 1
                    continue
                if row is None and not is_filled:
                    continue
                what = "missing" if row is None else "wrong"
                self._report.note(f"entity {entity_id}: an entry in {code!r} is {what}")

    def _check_counts(self) -> None:
        """Compare the number of entries; a stored entry that belongs to no entity is an orphan."""
        (stored,) = self._connection.execute("SELECT count(*) FROM index_entries").fetchone()
        if stored != self._report.entries:
            self._report.note(
                f"{stored} index entries are stored, but only {self._report.entries} of them "
                "belong to an existing entity"
            )

    def _check_history(self) -> None:
        revisions = self._connection.execute("SELECT id, key, proto, version, until FROM history")
        for revision_id, key, proto, version, until in revisions:
            self._report.revisions += 1
            where = f"revision {revision_id}"
            with self._noting(where):
                keys.decode(key)
                row_reader.parse(proto)
            with self._noting(where):
                if not version < until <= self._reader.version:
                    self._report.note(f"{where} has no valid period")
