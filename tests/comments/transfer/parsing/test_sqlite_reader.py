"""A database is read without writing to it or beside it, and is refused if that is impossible."""

import contextlib
import gzip
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments import errors
from comments.transfer.parsing import sqlite_reader
from tests.support.importing.samples import isso

ROWS = [isso.row(number, f"text {number}") for number in range(1, 40)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a name that is special in URIs."""
    folder = tmp_path / "a?b#c%20d"
    folder.mkdir()
    return folder


def texts(path: Path) -> list[object]:
    with sqlite_reader.open_database(path) as database:
        columns = database.columns("comments", ["id", "text"], "a database")
        return [row["text"] for row in database.rows("comments", columns, "id")]


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in folder.iterdir()}


def written(path: Path, mode: str) -> Path:
    with contextlib.closing(isso.connected(*ROWS, path=path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("UPDATE comments SET likes = 1")
    return path


@contextlib.contextmanager
def in_use(path: Path, *statements: str) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for each in statements:
            connection.execute(each)
        yield


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_reading_changes_nothing_in_the_folder(folder: Path, mode: str) -> None:
    path = written(folder / "comments.db", mode)
    before = state(folder)
    assert list(before) == ["comments.db"]
    assert texts(path) == [str(each["text"]).encode() for each in ROWS]
    assert state(folder) == before


def test_a_database_in_use_is_read_if_nobody_writes(folder: Path) -> None:
    path = written(folder / "comments.db", "delete")
    with in_use(path, "BEGIN", "SELECT * FROM comments"):
        assert len(texts(path)) == len(ROWS)


def test_a_write_ahead_log_with_changes_is_refused_with_the_remedy(folder: Path) -> None:
    path = written(folder / "comments.db", "wal")
    link = folder.with_name("link.db")
    link.symlink_to(path)
    with in_use(path, "UPDATE comments SET likes = 2"):
        before = state(folder)
        assert set(before) == {"comments.db", "comments.db-wal", "comments.db-shm"}
        with pytest.raises(errors.BadImport, match=r"comments\.db-wal has changes"):
            texts(link)
        with pytest.raises(errors.BadImport) as caught:
            texts(path)
        assert state(folder) == before
    assert "comments.db-wal has changes that are not in the database yet" in caught.value.message
    assert '`sqlite3 comments.db ".backup copy.db"`' in caught.value.message
    # The last connection has moved the changes into the database.
    assert len(texts(path)) == len(ROWS)


def test_a_locked_database_is_refused_with_the_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_reader, "WAIT", 0.1)
    path = written(folder / "comments.db", "delete")
    with (
        in_use(path, "BEGIN EXCLUSIVE"),
        pytest.raises(errors.BadImport, match=r'in use .*locked.*".backup copy\.db"'),
    ):
        texts(path)


def test_a_change_that_was_not_finished_is_refused_with_the_remedy(folder: Path) -> None:
    path = written(folder / "comments.db", "delete")
    # The journal of a change that a crash interrupted; SQLite would have to write to undo it.
    with in_use(path, "PRAGMA cache_size = 1", "BEGIN", "UPDATE comments SET text = text || 'x'"):
        data = {name: content for name, (content, _) in state(folder).items()}
    crashed = folder / "crashed"
    crashed.mkdir()
    for name, content in data.items():
        (crashed / name).write_bytes(content)
    journal = crashed / "comments.db-journal"
    assert journal.exists()
    before = state(crashed)
    with pytest.raises(errors.BadImport, match=r'".backup copy\.db"'):
        texts(crashed / "comments.db")
    assert state(crashed) == before


def test_a_missing_value_is_not_damage(folder: Path) -> None:
    path = written(folder / "comments.db", "delete")
    with in_use(
        path,
        "UPDATE comments SET text = NULL WHERE id = 3",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'text VARCHAR', 'text VARCHAR NOT NULL')",
    ):
        pass
    assert texts(path)[2] is None


def test_each_damaged_page_is_noticed(folder: Path) -> None:
    path = written(folder / "comments.db", "delete")
    whole = path.read_bytes()
    good = texts(path)
    noticed = 0
    noise = random.Random(1)
    for start in range(0, len(whole), 512):
        path.write_bytes(whole[:start] + noise.randbytes(512) + whole[start + 512 :])
        try:
            assert texts(path) == good
        except errors.BadImport:
            noticed += 1
    assert noticed >= 10


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an SQLite database, or it is encrypted"),
        (random.Random(1).randbytes(4096), "not an SQLite database, or it is encrypted"),
        (sqlite_reader.MAGIC, "not an SQLite database, or it is encrypted"),
        (gzip.compress(b"x", mtime=0), "packed; unpack it with `gunzip`"),
    ],
)
def test_a_file_that_is_no_database_is_refused(folder: Path, data: bytes, message: str) -> None:
    path = folder / "comments.db"
    path.write_bytes(data)
    with pytest.raises(errors.BadImport, match=message):
        texts(path)


def test_a_missing_file_is_refused(folder: Path) -> None:
    with pytest.raises(errors.BadImport, match="No such file"):
        texts(folder / "comments.db")
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW comments AS SELECT 1 AS id, 'x' AS text",
        "CREATE VIRTUAL TABLE comments USING fts5(id, text)",
        "CREATE TABLE comment (id INTEGER PRIMARY KEY, text)",
    ],
)
def test_only_a_plain_table_is_read(folder: Path, statement: str) -> None:
    path = folder / "comments.db"
    with in_use(path, statement):
        pass
    with pytest.raises(errors.BadImport, match='not a database: it has no table "comments"'):
        texts(path)


def test_a_computed_column_is_not_read(folder: Path) -> None:
    path = folder / "comments.db"
    with in_use(
        path, "CREATE TABLE comments (id INTEGER PRIMARY KEY, text AS (hex(zeroblob(id))))"
    ):
        pass
    with pytest.raises(errors.BadImport, match='table "comments" has no column "text"'):
        texts(path)


def test_a_constraint_of_the_table_is_not_checked(folder: Path) -> None:
    path = folder / "comments.db"
    with in_use(
        path,
        "CREATE TABLE comments (id INTEGER PRIMARY KEY, text CHECK (text <> 'x'))",
        "PRAGMA ignore_check_constraints = ON",
        "INSERT INTO comments VALUES (1, 'x')",
    ):
        pass
    assert texts(path) == [b"x"]


def test_a_default_value_of_many_rows_fills_neither_disk_nor_memory(folder: Path) -> None:
    path = folder / "isso.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE comments (id TEXT, body TEXT)")
        connection.executemany("INSERT INTO comments VALUES (?, '')", [("b",), (2,), (1,)] * 700)
        connection.execute(f"ALTER TABLE comments ADD padding TEXT DEFAULT '{'x' * 900_000}'")
        connection.commit()
    with sqlite_reader.open_database(path) as database:
        noted = database.rows("comments", ["padding"], "id", noted=["padding"])
        assert [row["padding"] for row in noted] == [b"x"] * 2_100
        with pytest.raises(errors.BadImport, match="larger than the file"):
            list(database.rows("comments", ["padding"], "id"))


def test_a_database_that_takes_too_many_steps_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_reader, "_LEAST_CALLS", 0)
    monkeypatch.setattr(sqlite_reader, "_STEPS", 10)
    with pytest.raises(errors.BadImport, match="more steps than its size explains"):
        texts(written(folder / "isso.db", "DELETE"))


def test_rows_are_sorted_by_whole_numbers(folder: Path) -> None:
    path = folder / "isso.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE comments (id, text TEXT)")
        rows = [(10, "ten"), (9, "nine"), (11, "eleven")]
        connection.executemany("INSERT INTO comments VALUES (?, ?)", rows)
        connection.commit()
    assert texts(path) == [b"nine", b"ten", b"eleven"]
