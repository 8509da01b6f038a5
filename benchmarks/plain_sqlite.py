"""The lowest possible cost of the engine's work: plain SQLite over the same rows.

This module makes the copies of the data that serve as the comparison. The copies have the engine's
tables and settings but use none of its code, so the difference in time is what the engine adds.
"""

import contextlib
import itertools
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from datastore_emulator import protobufs

_TABLES = ("entities", "index_entries")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -8192")
    return connection


def _columns(source: sqlite3.Connection, table: str) -> list[str]:
    return [name for _, name, *_ in source.execute(f"PRAGMA table_info({table})")]


def insert_seconds(stored: Path, target: Path, batch: int) -> float:
    """Insert the rows of a data file into an empty file and return the duration in seconds.

    Entities and their index rows are inserted in their original order, with `batch` entities per
    transaction.
    """
    source = sqlite3.connect(f"file:{stored}?mode=ro", uri=True)
    with contextlib.closing(source), contextlib.closing(_connect(target)) as table:
        for (statement,) in source.execute(
            "SELECT sql FROM sqlite_master WHERE tbl_name IN (?, ?) AND sql NOT NULL", _TABLES
        ).fetchall():
            table.execute(statement)
        inserts = []
        for name in _TABLES:
            marks = ", ".join("?" for _ in _columns(source, name))
            inserts.append(f"INSERT INTO {name} VALUES ({marks})")
        seconds = 0.0
        for rows in _batches(source, batch):
            start = time.perf_counter()
            table.execute("BEGIN IMMEDIATE")
            for insert, part in zip(inserts, rows, strict=True):
                table.executemany(insert, part)
            table.execute("COMMIT")
            seconds += time.perf_counter() - start
    return seconds


def _batches(source: sqlite3.Connection, batch: int) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield the entities and index rows of each batch, in the order of the entities' ids."""
    owner = _columns(source, "index_entries").index("entity_id")
    entities = source.execute("SELECT * FROM entities ORDER BY id")
    entries = source.execute("SELECT * FROM index_entries ORDER BY entity_id")
    waiting = next(entries, None)
    while rows := list(itertools.islice(entities, batch)):
        last = rows[-1][0]
        part = []
        while waiting is not None and waiting[owner] <= last:
            part.append(waiting)
            waiting = next(entries, None)
        yield rows, part


def table(target: Path, rows: Iterable[Any]) -> sqlite3.Connection:
    """Create a table of serialized entities in their order, and return its connection."""
    made = _connect(target)
    made.execute("CREATE TABLE rows (place INTEGER PRIMARY KEY, row BLOB NOT NULL)")
    made.execute("BEGIN")
    stored = ((place, row.SerializeToString()) for place, row in enumerate(rows))
    made.executemany("INSERT INTO rows VALUES (?, ?)", stored)
    made.execute("COMMIT")
    return made


def read(table: sqlite3.Connection) -> int:
    """SELECT and parse all rows."""
    parse = protobufs.Entity.FromString
    return len([parse(row) for (row,) in table.execute("SELECT row FROM rows ORDER BY place")])
