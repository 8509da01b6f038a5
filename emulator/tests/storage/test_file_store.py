"""The file store, tested with real processes where processes matter."""

import functools
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import errors, inprocess
from datastore_emulator.storage import data_file, file_store, row_reader
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused
from tests.support import forked_programs

COUNTER = """
import sys
import grpc
from google.cloud import ndb
from datastore_emulator import inprocess, testing

class Tally(ndb.Model):
    n = ndb.IntegerProperty()

client = testing.ndb_client(inprocess.Channel(inprocess.open_engine(sys.argv[1])))

def increment():
    counter = Tally.get_by_id("c") or Tally(id="c", n=0)
    counter.n += 1
    counter.put()

for _ in range(int(sys.argv[2])):
    while True:
        with client.context():
            try:
                ndb.transaction(increment, retries=0)
            except Exception as error:
                if "contention" not in str(error):
                    raise
            else:
                break
print("done")
"""


OPEN_AND_CLOSE = """
import sys
from datastore_emulator import inprocess
inprocess.open_engine(sys.argv[1]).close()
"""


def opened(
    path: Path | None, make_service: type[service_calls.Service], **options: Any
) -> tuple[inprocess.Engine, service_calls.Service]:
    engine = inprocess.open_engine(path, **options)
    return engine, make_service(inprocess.Channel(engine))


def test_a_closed_and_reopened_file_holds_everything(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    engine, service = opened(tmp_path / "data", make_service)
    service.put(service.key("T", 1), a=1)
    first = service.call("AllocateIds", keys=[service.key("T")]).keys[0]
    engine.close()
    engine, service = opened(tmp_path / "data", make_service)
    with engine:
        assert service.names("T", ("a", "=", 1)) == [1]
        assert service.call("AllocateIds", keys=[service.key("T")]).keys[0] != first


def test_a_new_composite_index_is_filled_and_a_removed_one_dropped(
    tmp_path: Path,
    make_service: type[service_calls.Service],
    index_yaml: Path,
) -> None:
    engine, service = opened(tmp_path / "data", make_service)
    for n in range(1, 4):
        service.put(service.key("T", n), c=1, a=-n)
        service.put(service.key("T", n + 10, namespace="n"), c=1, a=-n)
    engine.close()
    engine, service = opened(tmp_path / "data", make_service, indexes=index_yaml)
    assert service.names("T", ("c", "=", 1), order=["a"]) == [3, 2, 1]
    assert service.names("T", ("c", "=", 1), order=["a"], namespace="n") == [13, 12, 11]
    service.put(service.key("T", 9), c=1, a=-9)
    assert service.names("T", ("c", "=", 1), order=["a"]) == [9, 3, 2, 1]
    engine.close()
    engine, service = opened(tmp_path / "data", make_service)
    assert service.names("T", ("c", "=", 1), order=["a"]) == [9, 3, 2, 1]
    engine.close()
    index_yaml.write_text("indexes: []")
    engine, service = opened(tmp_path / "data", make_service, indexes=index_yaml)
    with engine, assert_refused("FAILED_PRECONDITION"):
        service.names("T", ("c", "=", 1), order=["a"])
    with sqlite3.connect(tmp_path / "data") as connection:
        assert connection.execute("SELECT count(*) FROM composites").fetchone() == (0,)
    connection.close()


def test_an_open_engine_uses_indexes_that_another_one_defines(
    tmp_path: Path, make_service: type[service_calls.Service], index_yaml: Path
) -> None:
    first, early = opened(tmp_path / "data", make_service)
    early.put(early.key("T", 1), c=1, a=1)
    second, late = opened(tmp_path / "data", make_service, indexes=index_yaml)
    early.put(early.key("T", 2), c=1, a=0)
    assert late.names("T", ("c", "=", 1), order=["a"]) == [2, 1]
    assert early.names("T", ("c", "=", 1), order=["a"]) == [2, 1]
    first.close()
    second.close()


def test_an_open_engine_replans_when_another_one_drops_its_index(
    tmp_path: Path,
    make_service: type[service_calls.Service],
    index_yaml: Path,
) -> None:
    first, early = opened(tmp_path / "data", make_service, indexes=index_yaml)
    early.put(early.key("T", 1), c=1, a=1)
    assert early.names("T", ("c", "=", 1), order=["a"]) == [1]
    index_yaml.write_text("indexes: []")
    second, _ = opened(tmp_path / "data", make_service, indexes=index_yaml)
    with assert_refused("FAILED_PRECONDITION"):  # The same query shape with a different value
        early.names("T", ("c", "=", 2), order=["a"])
    first.close()
    second.close()


def test_a_glance_reads_the_last_commit_and_keeps_no_snapshot(tmp_path: Path) -> None:
    with inprocess.open_engine(tmp_path / "data") as engine:
        store, key = engine.storage, b"a key"
        for _ in range(file_store.MAX_SNAPSHOTS + 1):
            with store.read() as snapshot:
                assert store.glance(key) == (snapshot.version, None)
        with store.read() as snapshot:
            before = snapshot.version
            with store.write():
                pass
            assert store.glance(key).version > before == snapshot.version


def test_a_connection_that_met_a_fault_in_a_glance_is_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_connection: sqlite3.Connection, _key: bytes) -> None:
        raise errors.Damaged("does not match its checksum")

    with inprocess.open_engine(tmp_path / "data") as engine:
        engine.storage.glance(b"a key")
        assert engine.storage._connections.idle
        with monkeypatch.context() as patch:
            patch.setattr(row_reader, "point_read", fail)
            with pytest.raises(errors.Damaged):
                engine.storage.glance(b"a key")
        assert not engine.storage._connections.idle
        assert engine.storage.glance(b"a key").stored is None


def test_a_reader_caches_the_id_of_an_index_until_the_id_is_reassigned(
    tmp_path: Path, make_service: type[service_calls.Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, writing = opened(tmp_path / "data", make_service)
    writing.put(writing.key("T", 1), a=1)
    asked = []

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, /, *arguments: Any) -> sqlite3.Cursor:
            asked.append("FROM indexes" in statement)
            return super().execute(statement, *arguments)

    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Connection))
    second, reading = opened(tmp_path / "data", make_service)
    with first, second:
        counts = []
        for _ in range(3):
            asked.clear()
            assert reading.names("T", ("a", "=", 1)) == [1]
            counts.append(sum(asked))
        assert counts[0] > 0
        assert counts[1:] == [0, 0]
        first.reset()
        for kind in ("U", "T"):  # U gets the ids that T had before
            writing.put(writing.key(kind, kind), a=1)
        assert reading.names("T", ("a", "=", 1)) == ["T"]
        assert reading.names("U", ("a", "=", 1)) == ["U"]


def test_an_open_snapshot_outlives_a_new_index(
    tmp_path: Path, make_service: type[service_calls.Service], index_yaml: Path
) -> None:
    first, early = opened(tmp_path / "data", make_service)
    early.put(early.key("T", 1), a=1)
    transaction = early.begin(read_only={})
    assert early.names("T", transaction=transaction) == [1]
    second, late = opened(tmp_path / "data", make_service, indexes=index_yaml)
    late.put(late.key("T", 2), a=1)
    assert early.names(order=["a"], transaction=transaction) == [1]
    assert early.names(order=["a"]) == [1, 2]
    first.close()
    second.close()


def test_an_engine_in_memory_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_service: type[service_calls.Service]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine, service = opened(None, make_service)
    service.put(service.key("T", 1))
    assert list(tmp_path.iterdir())
    engine.close()
    assert not list(tmp_path.iterdir())


def test_a_closed_engine_is_unavailable(make_service: type[service_calls.Service]) -> None:
    engine, service = opened(None, make_service)
    transaction = service.begin()
    service.get(service.key("T", 1), transaction=transaction)
    engine.close()
    for call in (
        lambda: service.put(service.key("T", 1)),
        lambda: service.get(service.key("T", 1)),
    ):
        with assert_refused("UNAVAILABLE"):
            call()


def test_a_file_locked_by_another_process_is_unavailable_and_then_works(
    tmp_path: Path,
    make_service: type[service_calls.Service],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(data_file, "BUSY_SECONDS", 0.01)
    engine, service = opened(tmp_path / "data", make_service)
    other = sqlite3.connect(tmp_path / "data", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with engine:
        with assert_refused("UNAVAILABLE", "busy"):
            service.put(service.key("T", 1))
        assert service.get(service.key("T", 1)) is None
        other.rollback()
        service.put(service.key("T", 1))
    other.close()


def test_a_full_disk_is_resource_exhausted(
    tmp_path: Path,
    make_service: type[service_calls.Service],
    unindexed: type[service_calls.Unindexed],
) -> None:
    engine, service = opened(tmp_path / "data", make_service)
    service.put(service.key("T", 1))
    writer = engine._storage._connections.turn.connection
    writer.execute("PRAGMA max_page_count = 1")
    with engine, assert_refused("RESOURCE_EXHAUSTED"):
        service.put(service.key("T", 1), a=unindexed("x" * 100_000))


def test_other_faults_of_the_file_are_permanent_and_logged(
    tmp_path: Path,
    make_service: type[service_calls.Service],
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine, service = opened(tmp_path / "data", make_service)
    with sqlite3.connect(tmp_path / "data") as connection:
        connection.execute("DROP TABLE reserved")
    connection.close()
    with engine, assert_refused("FAILED_PRECONDITION", "no such table"):
        service.call("ReserveIds", keys=[service.key("T", 1)])
    assert "ReserveIds failed" in caplog.text


def test_more_connections_than_are_kept_are_closed(
    make_service: type[service_calls.Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_store, "_MAX_IDLE", 1)
    engine, service = opened(None, make_service)
    with engine:
        begun = [service.begin() for _ in range(3)]
        for transaction in begun:
            service.get(service.key("T", 1), transaction=transaction)
        for transaction in begun:
            service.rollback(transaction)
        assert len(engine._storage._connections.idle) == 1


def test_a_forked_child_uses_its_own_connections(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    engine, service = opened(tmp_path / "data", make_service)
    service.put(service.key("T", "parent"), a=1)
    transaction = service.begin()
    assert service.names(order=["a"], transaction=transaction) == ["parent"]
    child = forked_programs.fork()
    if not child:
        try:
            assert service.names(order=["a"]) == ["parent"]
            service.put(service.key("T", "child"), a=2)
            assert engine._transactions._open == {}
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert service.names(order=["a"], transaction=transaction) == ["parent"]
    assert service.names(order=["a"]) == ["parent", "child"]
    service.put(service.key("T", "after"), a=3)
    engine.close()


def test_data_stored_by_a_forked_child_survives_its_parent_and_later_processes(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    """The last process that closes a file removes its log.

    Therefore a running child must count as a process that has the file open.
    """
    engine, service = opened(tmp_path / "data", make_service)
    service.put(service.key("T", "parent"), a=1)
    (told, tells), (asked, asks) = os.pipe(), os.pipe()
    child = forked_programs.fork()
    if not child:
        os.close(asks)
        try:
            service.put(service.key("T", "before"), a=2)
            os.write(tells, b".")
            os.read(asked, 1)
            service.put(service.key("T", "after"), a=3)
            os._exit(0)
        finally:
            os._exit(1)
    for each in (tells, asked):  # Each side reads the end of its pipe when the other side fails
        os.close(each)
    try:
        assert os.read(told, 1) == b"."
        engine.close()
        assert forked_programs.run(OPEN_AND_CLOSE, tmp_path / "data") == (0, "")
    finally:
        for each in (told, asks):
            os.close(each)
        status = os.waitpid(child, 0)[1]
    assert status == 0
    engine, service = opened(tmp_path / "data", make_service)
    with engine:
        assert service.names(order=["a"]) == ["parent", "before", "after"]


@pytest.mark.slow
def test_two_processes_increment_one_counter_and_lose_nothing(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    inprocess.open_engine(tmp_path / "data").close()
    children = [forked_programs.start(COUNTER, tmp_path / "data", 40) for _ in range(2)]
    assert [child.output() for child in children] == ["done\n"] * 2
    engine, service = opened(tmp_path / "data", make_service)
    with engine:
        assert service.get(service.key("Tally", "c")) == {"n": 80}
