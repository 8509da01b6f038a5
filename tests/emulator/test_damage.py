"""Faults of the machine: what they answer, and that the engine goes on when they are over."""

import contextlib
import random
import resource
import sqlite3

import grpc
import pytest
from google.protobuf.message import DecodeError

from emulator import errors, inprocess

# What a damaged file may answer. Clients retry INTERNAL and UNKNOWN, which would hide it.
HONEST = {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAVAILABLE}


@pytest.fixture
def opened(tmp_path, make_service):
    folder = tmp_path / "folder"
    folder.mkdir()
    engine = inprocess.open_engine(folder / "data")
    with engine:
        yield engine, make_service(inprocess.Channel(engine)), folder


@contextlib.contextmanager
def no_file_may_grow_beyond(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_failing_write_is_unavailable_stores_nothing_and_the_next_one_works(
    opened, refused, unindexed
):
    _, service, folder = opened
    service.put(service.key("T", 1), a=1)
    with no_file_may_grow_beyond((folder / "data-wal").stat().st_size):
        for _ in range(3):
            with refused("UNAVAILABLE", "data file cannot be"):
                service.put(service.key("T", 2), a=2, text=unindexed("x" * 100_000))
        assert service.names(order=["a"]) == [1]
        assert service.get(service.key("T", 1)) == {"a": 1}
    service.put(service.key("T", 2), a=2)
    assert service.names(order=["a"]) == [1, 2]


def test_a_full_disk_is_resource_exhausted_and_the_next_write_works(opened, refused, unindexed):
    engine, service, _ = opened
    service.put(service.key("T", 1), a=1)
    engine._storage._connections.turn.connection.execute("PRAGMA max_page_count = 1")
    with refused("RESOURCE_EXHAUSTED", "cannot grow"):
        service.put(service.key("T", 2), a=2, text=unindexed("x" * 100_000))
    assert service.names(order=["a"]) == [1]
    service.put(service.key("T", 2), a=2)
    assert service.names(order=["a"]) == [1, 2]


def test_a_file_that_may_not_be_written_is_unavailable_until_it_may(opened, refused):
    engine, service, _ = opened
    service.put(service.key("T", 1), a=1)
    engine._storage._connections.turn.connection.execute("PRAGMA query_only = 1")
    with refused("UNAVAILABLE", "cannot be opened or written"):
        service.put(service.key("T", 2), a=2)
    service.put(service.key("T", 2), a=2)
    assert service.names(order=["a"]) == [1, 2]


def test_a_folder_that_goes_away_is_unavailable_until_it_is_back(opened, refused):
    engine, service, folder = opened
    service.put(service.key("T", 1), a=1)
    connections = engine._storage._connections
    while connections.idle:
        connections.idle.pop().close()
    folder.rename(folder.with_name("away"))
    with refused("UNAVAILABLE", "cannot be opened"):
        service.get(service.key("T", 1))
    folder.with_name("away").rename(folder)
    assert service.get(service.key("T", 1)) == {"a": 1}
    service.put(service.key("T", 1), a=2)
    assert service.get(service.key("T", 1)) == {"a": 2}


def test_no_snapshot_is_lost_to_faults(opened, refused, monkeypatch):
    engine, service, folder = opened
    connections = engine._storage._connections
    while connections.idle:
        connections.idle.pop().close()
    free = connections.snapshots_left._value
    folder.rename(folder.with_name("away"))
    for _ in range(3):
        with refused("UNAVAILABLE"):
            service.get(service.key("T", 1))
    folder.with_name("away").rename(folder)
    assert connections.snapshots_left._value == free


@pytest.fixture
def filled(tmp_path, make_service):
    """A file of 300 entities and what they are."""
    path = tmp_path / "data"
    engine = inprocess.open_engine(path)
    with engine:
        service = make_service(inprocess.Channel(engine))
        engine.load((service.entity(service.key("T", n), a=n) for n in range(1, 301)), "test")
    return path


def test_a_damaged_entity_is_refused_by_lookups_and_not_written_over(filled, make_service, refused):
    with contextlib.closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("UPDATE entities SET crc = crc + 1 WHERE id = 7")
    engine = inprocess.open_engine(filled)
    with engine:
        service = make_service(inprocess.Channel(engine))
        with refused("FAILED_PRECONDITION", "not as it was written"):
            service.get(service.key("T", 7))
        with refused("FAILED_PRECONDITION", "not as it was written"):
            service.put(service.key("T", 7), a=1)
        for query in (service.query("T", ("a", "=", 7)), service.query(None)):
            with refused("FAILED_PRECONDITION", "not as it was written"):
                service.results(query)
        assert service.get(service.key("T", 8)) == {"a": 8}


def test_an_index_entry_of_nothing_is_damage(filled, make_service, refused):
    with contextlib.closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute("UPDATE index_entries SET is_multiple = 1, entity_id = entity_id + 999")
    engine = inprocess.open_engine(filled)
    with engine, refused("FAILED_PRECONDITION", "which is missing"):
        service = make_service(inprocess.Channel(engine))
        service.results(service.query("T", order=["a"], keys_only=True))


def answers(service, call):
    """Return what a call of a damaged file answers, if it is refused."""
    try:
        call(service)
    except grpc.RpcError as refusal:
        return refusal.code()
    except (DecodeError, UnicodeDecodeError):
        # Entities have a checksum. Keys from index entries and an entity's times have none.
        return "unreadable"
    return None


@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere_is_answered_honestly(filled, make_service, seed):
    chance = random.Random(seed)
    content = bytearray(filled.read_bytes())
    for _ in range(20):
        start = chance.randrange(100, len(content) - 16)
        content[start : start + 16] = chance.randbytes(16)
    filled.write_bytes(content)
    calls = [
        lambda service: service.results(service.query("T", order=["a"])),
        lambda service: service.results(service.query(None)),
        lambda service: service.results(service.query("T", order=["-a"], projection=["a"])),
        lambda service: service.results(service.query("T", keys_only=True)),
        lambda service: service.put(service.key("T", 1_000), a=5),
        lambda service: service.delete(service.key("T", 17)),
    ]
    calls += [lambda service, n=n: service.get(service.key("T", n)) for n in range(1, 301, 10)]
    with contextlib.ExitStack() as stack:
        try:
            engine = stack.enter_context(inprocess.open_engine(filled))
        except errors.FailedPrecondition:
            return
        service = make_service(inprocess.Channel(engine))
        found = {answers(service, call) for call in calls}
        assert found <= {None, "unreadable", *HONEST}
