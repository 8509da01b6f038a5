"""Machine faults: their statuses, and the engine's recovery."""

import contextlib
import random
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import DecodeError

from datastore_emulator import errors, inprocess
from datastore_emulator.storage import inspection
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

# The statuses that are allowed for a damaged file. Clients retry INTERNAL and UNKNOWN, which would
# hide the damage.
TYPES = {type(None): "null", int: "integer", float: "real", str: "text", bytes: "blob"}
HONEST = {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAVAILABLE}


@pytest.fixture
def opened(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> Iterator[tuple[inprocess.Engine, service_calls.Service, Path]]:
    folder = tmp_path / "folder"
    folder.mkdir()
    engine = inprocess.open_engine(folder / "data")
    with engine:
        yield engine, make_service(inprocess.Channel(engine)), folder


@contextlib.contextmanager
def no_file_may_grow_beyond(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_failing_write_is_unavailable_stores_nothing_and_the_next_one_works(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
    unindexed: type[service_calls.Unindexed],
) -> None:
    _, service, folder = opened
    service.put(service.key("T", 1), a=1)
    assert service.names(order=["a"]) == [1]  # Makes the index
    with no_file_may_grow_beyond((folder / "data-wal").stat().st_size):
        for _ in range(3):
            with assert_refused("UNAVAILABLE", "data file cannot be"):
                service.put(service.key("T", 2), a=2, text=unindexed("x" * 100_000))
        assert service.names(order=["a"]) == [1]
        assert service.get(service.key("T", 1)) == {"a": 1}
    service.put(service.key("T", 2), a=2)
    assert service.names(order=["a"]) == [1, 2]


def test_a_full_disk_is_resource_exhausted_and_the_next_write_works(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
    unindexed: type[service_calls.Unindexed],
) -> None:
    engine, service, _ = opened
    service.put(service.key("T", 1), a=1)
    engine._storage._connections.turn.connection.execute("PRAGMA max_page_count = 1")
    with assert_refused("RESOURCE_EXHAUSTED", "cannot grow"):
        service.put(service.key("T", 2), a=2, text=unindexed("x" * 100_000))
    assert service.names(order=["a"]) == [1]
    service.put(service.key("T", 2), a=2)
    assert service.names(order=["a"]) == [1, 2]


def test_a_read_only_file_is_unavailable_until_it_is_writable(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
) -> None:
    engine, service, _ = opened
    service.put(service.key("T", 1), a=1)
    engine._storage._connections.turn.connection.execute("PRAGMA query_only = 1")
    with assert_refused("UNAVAILABLE", "cannot be opened or written"):
        service.put(service.key("T", 2), a=2)
    service.put(service.key("T", 2), a=2)
    assert service.names(order=["a"]) == [1, 2]


def test_a_missing_folder_is_unavailable_until_it_is_back(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
) -> None:
    engine, service, folder = opened
    service.put(service.key("T", 1), a=1)
    connections = engine._storage._connections
    while connections.idle:
        connections.idle.pop().close()
    folder.rename(folder.with_name("away"))
    with assert_refused("UNAVAILABLE", "cannot be opened"):
        service.get(service.key("T", 1))
    folder.with_name("away").rename(folder)
    assert service.get(service.key("T", 1)) == {"a": 1}
    service.put(service.key("T", 1), a=2)
    assert service.get(service.key("T", 1)) == {"a": 2}


def test_faults_leak_no_snapshot(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, service, folder = opened
    connections = engine._storage._connections
    while connections.idle:
        connections.idle.pop().close()
    free = len(connections.snapshots_left)
    folder.rename(folder.with_name("away"))
    for _ in range(3):
        with assert_refused("UNAVAILABLE"):
            service.get(service.key("T", 1))
    folder.with_name("away").rename(folder)
    assert len(connections.snapshots_left) == free


@pytest.fixture
def filled(tmp_path: Path, make_service: type[service_calls.Service]) -> Path:
    """Return a file with 300 entities, and those entities."""
    path = tmp_path / "data"
    engine = inprocess.open_engine(path)
    with engine:
        service = make_service(inprocess.Channel(engine))
        engine.load((service.entity(service.key("T", n), a=n) for n in range(1, 301)), "test")
    return path


def test_a_damaged_entity_is_refused_by_lookups_and_not_overwritten(
    filled: Path, make_service: type[service_calls.Service]
) -> None:
    with contextlib.closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("UPDATE entities SET crc = crc + 1 WHERE id = 7")
    engine = inprocess.open_engine(filled)
    with engine:
        service = make_service(inprocess.Channel(engine))
        with assert_refused("FAILED_PRECONDITION", "does not match its checksum"):
            service.get(service.key("T", 7))
        with assert_refused("FAILED_PRECONDITION", "does not match its checksum"):
            service.put(service.key("T", 7), a=1)
        for query in (service.query("T", ("a", "=", 7)), service.query(None)):
            with assert_refused("FAILED_PRECONDITION", "does not match its checksum"):
                service.results(query)
        assert service.get(service.key("T", 8)) == {"a": 8}


def test_an_index_entry_without_an_entity_is_damage(
    filled: Path, make_service: type[service_calls.Service]
) -> None:
    with inprocess.open_engine(filled) as engine:
        make_service(inprocess.Channel(engine)).names("T", order=["a"])
    with contextlib.closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("UPDATE index_entries SET is_multiple = 1, entity_id = entity_id + 999")
    engine = inprocess.open_engine(filled)
    with engine, assert_refused("FAILED_PRECONDITION", "which is missing"):
        service = make_service(inprocess.Channel(engine))
        service.results(service.query("T", order=["a"], keys_only=True))


def answers(
    service: service_calls.Service, call: Callable[..., Any]
) -> grpc.StatusCode | str | None:
    """Return the response to a call on a damaged file, or the status of the refusal."""
    try:
        call(service)
    except grpc.RpcError as refusal:
        return refusal.code()
    except (DecodeError, UnicodeDecodeError):
        # Entities have a checksum, but keys from index entries and an entity's times do not.
        return "unreadable"
    return None


CALLS = [
    lambda service: service.results(service.query("T", order=["a"])),
    lambda service: service.results(service.query(None)),
    lambda service: service.results(service.query("T", order=["-a"], projection=["a"])),
    lambda service: service.results(service.query("T", keys_only=True)),
    lambda service: service.put(service.key("T", 1_000), a=5),
    lambda service: service.delete(service.key("T", 17)),
]


def found_by(
    path: Path, make_service: type[service_calls.Service], calls: list[Callable[..., Any]]
) -> set[Any]:
    """Return the responses to calls on a damaged file, or none if it cannot be opened."""
    with contextlib.ExitStack() as stack:
        try:
            engine = stack.enter_context(inprocess.open_engine(path))
        except errors.FailedPrecondition:
            return set()
        service = make_service(inprocess.Channel(engine))
        return {answers(service, call) for call in calls}


@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere_gives_an_allowed_status_or_correct_data(
    filled: Path, make_service: type[service_calls.Service], seed: int
) -> None:
    chance = random.Random(seed)
    content = bytearray(filled.read_bytes())
    for _ in range(20):
        start = chance.randrange(100, len(content) - 16)
        content[start : start + 16] = chance.randbytes(16)
    filled.write_bytes(content)
    gets = [lambda service, n=n: service.get(service.key("T", n)) for n in range(1, 301, 10)]
    assert found_by(filled, make_service, CALLS + gets) <= {None, "unreadable", *HONEST}


def columns_of(path: Path) -> list[tuple[str, str, set[str]]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        declared = connection.execute(
            "SELECT stored.name, columns.name, lower(columns.type) FROM sqlite_master AS stored, "
            "pragma_table_info(stored.name) AS columns WHERE stored.type = 'table'"
        ).fetchall()
    return [
        (table, column, {kind, "null"} if column == "crc" else {kind})
        for table, column, kind in declared
    ]


@contextlib.contextmanager
def null_is_allowed(path: Path) -> Iterator[None]:
    """Temporarily remove the constraints from the file's schema, which a flipped byte ignores."""

    with contextlib.closing(sqlite3.connect(path)) as connection:
        texts = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL"))
    rewrite(path, {name: text.replace(" NOT NULL", "") for name, text in texts.items()})
    yield
    rewrite(path, texts)


def rewrite(path: Path, texts: dict[str, str]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany(
            "UPDATE sqlite_master SET sql = ? WHERE name = ?",
            [(text, name) for name, text in texts.items()],
        )


def take(path: Path, table: str, column: str, value: Any) -> bool:
    """Store a value in the last rows of a column; return False if the schema forbids it."""
    last = f"SELECT {column} FROM {table} ORDER BY {column} DESC LIMIT 1"  # noqa: S608
    change = f"UPDATE {table} SET {column} = ? WHERE {column} = ({last})"  # noqa: S608
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        try:
            with connection:
                connection.execute(change, (value,))
        except sqlite3.IntegrityError:  # The column is a primary key
            return False
        return connection.total_changes > 0


@pytest.mark.parametrize("value", [None, 7, 1.5, "text", b"bytes"], ids=repr)
def test_a_value_of_a_wrong_type_is_found_by_inspection_and_answered_with_an_allowed_status(
    tmp_path: Path, make_service: type[service_calls.Service], index_yaml: Path, value: Any
) -> None:
    filled = tmp_path / "few"
    with inprocess.open_engine(filled, indexes=index_yaml) as engine:
        service = make_service(inprocess.Channel(engine))
        service.call("ReserveIds", keys=[service.key("T", 5_000)])
        for n in (1, 2, 3, 1, 2):
            service.put(service.key("T", n), a=-n, b=n)
    assert inspection.check(filled).problems == []
    calls = [*CALLS, lambda service: service.get(service.key("T", 3))]
    damaged = tmp_path / "damaged"
    tried = 0
    for table, column, allowed in columns_of(filled):
        for suffix in ("", "-wal", "-shm"):
            damaged.with_name(damaged.name + suffix).unlink(missing_ok=True)
        shutil.copy(filled, damaged)
        with null_is_allowed(damaged):
            if not take(damaged, table, column, value):
                continue
        tried += 1
        report = inspection.check(damaged)
        assert report.wrong or TYPES[type(value)] in allowed, (table, column)
        assert found_by(damaged, make_service, calls) <= {None, "unreadable", *HONEST}
    assert tried > 20
