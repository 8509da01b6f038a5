"""The data file: its format, its upgrade, and the files that the engine refuses."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import errors, inprocess
from datastore_emulator.storage import data_file, inspection
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused
from tests.support import forked_programs

STATE_TABLES = {1: "state", 2: "store", 3: "file_state"}  # Of old formats
MOMENT = {"seconds": 1_800_000_010}  # Time of the last commit in the files of old formats

# A change here makes existing files unreadable, so it requires a new format and an upgrade.
FORMAT_4 = {
    "built_ins": ["code", "is_asked", "filled_to"],
    "composites": ["code"],
    "entities": ["id", "key", "proto", "version", "created", "meta", "crc"],
    "engine_state": ["version", "next_id", "seed", "generation", "kept_since", "is_eager"],
    "history": ["id", "until", "version", "created", "entity_id", "kind_id", "key", "proto"],
    "index_entries": ["index_id", "entry", "entity_id", "version", "is_multiple"],
    "indexes": ["id", "partition", "code"],
    "reserved": ["key"],
}

UPGRADE_KILLED_BEFORE_ITS_COMMIT = """
import os, signal, sqlite3, sys
from datastore_emulator.storage import schema
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA cache_spill = 1")
connection.execute("BEGIN IMMEDIATE")
schema.upgrade(connection, int(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""

# A program in which many processes repeatedly create the same file at the same time; it prints
# every error.
MAKING = """
import multiprocessing, sys, time
from datastore_emulator.storage import data_file, inspection

def make(path, barrier, faults):
    barrier.wait()
    try:
        data_file.prepare(path, data_file.Durability.FAST, lambda: time.time_ns() // 1000)
    except Exception as fault:
        faults.put(repr(fault))

fork = multiprocessing.get_context("fork")
faults = fork.SimpleQueue()
for number in range(40):
    barrier = fork.Barrier(4)
    makers = [
        fork.Process(target=make, args=(f"{sys.argv[1]}{number}", barrier, faults))
        for _ in range(4)
    ]
    for each in makers:
        each.start()
    for each in makers:
        each.join()
    while not faults.empty():
        print(faults.get())
"""


@pytest.fixture(params=STATE_TABLES)
def old_format(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def old(tmp_path: Path, old_format: int) -> Path:
    """A file with an old format."""
    path = tmp_path / "data"
    script = Path(__file__).with_name(f"format{old_format}.sql").read_text(encoding="utf-8")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def opened(
    path: Path, make_service: type[service_calls.Service], **options: Any
) -> tuple[inprocess.Engine, service_calls.Service]:
    engine = inprocess.open_engine(path, **options)
    return engine, make_service(inprocess.Channel(engine))


def asked(path: Path, statement: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def tables(path: Path) -> dict[str, list[str]]:
    found = asked(
        path,
        "SELECT tables.name, columns.name FROM sqlite_master AS tables "
        "JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'",
    )
    columns = {}
    for table, column in found:
        columns.setdefault(table, []).append(column)
    return columns


def test_the_tables_of_the_format_are_fixed(tmp_path: Path) -> None:
    inprocess.open_engine(tmp_path / "data").close()
    assert tables(tmp_path / "data") == FORMAT_4
    assert asked(tmp_path / "data", "PRAGMA user_version") == [(4,)]
    assert asked(tmp_path / "data", "PRAGMA application_id") == [(0x46744453,)]


def test_a_file_of_an_old_format_is_upgraded_and_keeps_its_data(
    old: Path, make_service: type[service_calls.Service]
) -> None:
    engine, service = opened(old, make_service, clock=lambda: 1_800_000_020.0)
    with engine:
        assert service.get(service.key("T", 1)) == {"a": 3, "b": "y", "text": "longer"}
        assert service.names(order=["a"]) == ["two", 1]
        assert service.names(order=["a", "-b"]) == ["two", 1]
        assert service.names("U", ("o.x", "=", 1.5), namespace="n") == ["child"]
        found = service.lookup(service.key("T", 1)).found[0]
        assert found.create_time.seconds == 1_800_000_003
        assert found.update_time.seconds == 1_800_000_006
        service.put(service.key("T", 1), a=4)
        assert service.get(service.key("T", 1), read_time=MOMENT)["a"] == 3
        with assert_refused("INVALID_ARGUMENT", "history of this data file"):
            service.get(service.key("T", 1), read_time={"seconds": 1_800_000_001})
    assert tables(old) == FORMAT_4
    assert asked(old, "PRAGMA user_version") == [(4,)]


@pytest.mark.parametrize("built_in_indexes", ["eager", "lazy"])
def test_byte_strings_of_format_3_are_sorted_among_strings_after_the_upgrade(
    tmp_path: Path, make_service: type[service_calls.Service], built_in_indexes: str
) -> None:
    path = tmp_path / "data"
    script = Path(__file__).with_name("format3.sql").read_text(encoding="utf-8")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    engine, service = opened(path, make_service, built_in_indexes=built_in_indexes)
    with engine:
        assert service.names("B", order=["v"]) == ["bytes", "both", "text", "last"]
        assert service.names("B", order=["-v", "a"]) == ["both", "last", "text", "bytes"]
        assert service.names("B", ("v", "=", "m")) == ["both", "text"]
        assert service.names("B", ("v", "=", b"\xff")) == ["both"]
    assert inspection.check(path).wrong == 0


def test_an_upgraded_file_hands_out_no_id_again(
    old: Path, old_format: int, make_service: type[service_calls.Service]
) -> None:
    state = STATE_TABLES[old_format]
    before = asked(old, f"SELECT next_id, seed FROM {state}")  # noqa: S608 - a constant
    engine, service = opened(old, make_service)
    with engine:
        assert service.call("AllocateIds", keys=[service.key("T")]).keys[0].path[0].id
    assert asked(old, "SELECT next_id - 1, seed FROM engine_state") == before
    assert asked(old, "SELECT count(*) FROM reserved") == [(1,)]


def test_an_upgrade_that_is_killed_leaves_the_old_file(
    old: Path, old_format: int, make_service: type[service_calls.Service]
) -> None:
    status, _ = forked_programs.run(UPGRADE_KILLED_BEFORE_ITS_COMMIT, old, old_format)
    assert status == -signal.SIGKILL
    assert asked(old, "PRAGMA user_version") == [(old_format,)]
    assert STATE_TABLES[old_format] in tables(old)
    engine, service = opened(old, make_service)
    with engine:
        assert service.get(service.key("T", "two")) == {"a": [1, 2], "b": None}


def test_processes_that_open_an_old_file_at_once_upgrade_it_once(
    old: Path, make_service: type[service_calls.Service]
) -> None:
    children = [forked_programs.start(inprocess.open_engine, old) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert tables(old) == FORMAT_4
    engine, service = opened(old, make_service)
    with engine:
        assert service.names(order=["a"]) == ["two", 1]


def before_a_statement(
    monkeypatch: pytest.MonkeyPatch, statement: str, number: int, act: Callable[..., Any]
) -> list[Any]:
    """Call a function once, before the nth execution of a statement on the file's connections."""
    connect, seen = data_file.connect, []

    def run(text: str) -> None:
        if text == statement:
            seen.append(text)
            if len(seen) == number:
                act()

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(run)
        return connection

    monkeypatch.setattr(data_file, "connect", traced)
    return seen


def test_processes_can_create_one_file_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAKING, str(tmp_path / "data")],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == ""
    assert tables(tmp_path / "data39") == FORMAT_4


def test_opening_a_new_file_waits_for_a_short_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        asked_for = before_a_statement(
            monkeypatch, "PRAGMA journal_mode = WAL", 3, lambda: other.execute("ROLLBACK")
        )
        inprocess.open_engine(path).close()
        assert len(asked_for) >= 3
    assert asked(path, "PRAGMA journal_mode") == [("wal",)]


def test_opening_a_new_file_under_a_long_lock_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datastore_emulator.storage.data_file.BUSY_SECONDS", 0.05)
    path = tmp_path / "data"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.Unavailable, match="busy"):
            inprocess.open_engine(path)
    inprocess.open_engine(path).close()


def test_a_file_created_while_its_format_is_read_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data"
    assert asked(path, "PRAGMA journal_mode = WAL") == [("wal",)]
    before_a_statement(
        monkeypatch, "PRAGMA application_id", 1, lambda: inprocess.open_engine(path).close()
    )
    inprocess.open_engine(path).close()
    assert tables(path) == FORMAT_4


def test_an_engine_of_an_old_format_cannot_write_on_after_an_upgrade(
    old: Path, old_format: int
) -> None:
    inprocess.open_engine(old).close()
    state = STATE_TABLES[old_format]
    with pytest.raises(sqlite3.OperationalError, match=f"no such table: {state}"):
        asked(old, f"SELECT version, next_id, seed, generation FROM {state}")  # noqa: S608 - as above


def test_a_file_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    inprocess.open_engine(tmp_path / "data").close()
    asked(tmp_path / "data", "PRAGMA user_version = 5")
    with pytest.raises(errors.FailedPrecondition, match=r"data has format 5.*newer engine"):
        inprocess.open_engine(tmp_path / "data")
    assert asked(tmp_path / "data", "PRAGMA user_version") == [(5,)]


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    asked(tmp_path / "data", "CREATE TABLE other (x)")
    before = (tmp_path / "data").read_bytes()
    with pytest.raises(errors.FailedPrecondition, match="another program"):
        inprocess.open_engine(tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == before


def test_a_file_that_is_not_a_database_is_refused_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"no data file at all" * 1_000)
    with pytest.raises(errors.Damaged, match=str(file)):
        inprocess.open_engine(file)
    assert file.read_bytes() == b"no data file at all" * 1_000


def test_a_truncated_file_is_refused(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    file = tmp_path / "data"
    engine, service = opened(file, make_service)
    for n in range(1, 20):
        service.put(service.key("T", n), a="x" * 1000)
    engine.close()
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(errors.Damaged, match=str(file)):
        inprocess.open_engine(file)


def test_a_file_without_its_state_row_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "data"
    inprocess.open_engine(file).close()
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM engine_state")
    with pytest.raises(errors.Damaged, match="'engine_state' is empty"):
        inprocess.open_engine(file)


def test_a_missing_folder_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(errors.FailedPrecondition, match="missing"):
        inprocess.open_engine(tmp_path / "missing" / "data")


def test_a_file_locked_by_another_program_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datastore_emulator.storage.data_file.BUSY_SECONDS", 0.01)
    inprocess.open_engine(tmp_path / "data").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "data", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(errors.Unavailable, match="busy"):
            inprocess.open_engine(tmp_path / "data")
    inprocess.open_engine(tmp_path / "data").close()


def test_a_commit_is_durable_unless_fast_is_chosen(tmp_path: Path) -> None:
    modes = {}
    for durability in ("durable", "fast"):
        with inprocess.open_engine(tmp_path / durability, durability=durability) as engine:
            with engine._storage.write() as writer:
                (modes[durability],) = writer._connection.execute("PRAGMA synchronous").fetchone()
            assert asked(tmp_path / durability, "PRAGMA journal_mode") == [("wal",)]
    assert modes == {"durable": 2, "fast": 0}
