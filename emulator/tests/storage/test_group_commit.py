"""Commits that share one COMMIT reach the disk together, but are otherwise independent."""

import sqlite3
import threading
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from datastore_emulator import inprocess
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import row_writer
from emulator.tests.support import ledger_writer, service_calls, shared_commits
from emulator.tests.support.shared_commits import Held, put_in_group
from tests.support import programs

PATIENCE = programs.PATIENCE


def status(future: futures.Future[Any]) -> str:
    """Run a call in another thread and return the name of its status."""
    error: Any = future.exception(PATIENCE)
    return "OK" if error is None else error.code().name


def test_commits_that_wait_for_the_turn_share_one_commit(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    held, puts = put_in_group(engine, service, threads, "a", "b", "c")
    versions = {put.result(PATIENCE).mutation_results[0].version for put in puts}
    held.done.result(PATIENCE)
    assert watch.commits == watch.statements.count("BEGIN IMMEDIATE") == 1
    assert len(versions) == 3
    assert service.names("T") == ["a", "b", "c", "held"]
    assert service.names("T", order=["a"]) == ["held", "a", "b", "c"]


def test_a_single_commit_uses_no_savepoint(
    opened: tuple[inprocess.Engine, service_calls.Service], watch: shared_commits.Watch
) -> None:
    _, service = opened
    service.put(service.key("T", 1), a=1)
    assert watch.statements == ["BEGIN IMMEDIATE", "COMMIT"]


def test_before_the_commit_no_client_is_answered_and_nothing_is_visible(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    locks = engine._transactions._locks
    seen: list[Any] = []

    def look() -> None:
        seen.append(service.names("T"))
        if locks is not None:
            holders = locks._peers.table.holders.values()
            seen.append(sum(bool(each.wanted) for each in holders))
        seen.append(engine.meter.total().writes)
        early = futures.wait([held.done, *puts], timeout=0.3).done
        seen.append(len(early))

    held = Held(engine, threads, service.entity(service.key("T", "held"), a=0))
    puts = [threads.submit(service.put, service.key("T", name), a=1) for name in "ab"]
    writes = engine.meter.total().writes
    watch.at_commit = look
    held.release(2)
    for each in (held.done, *puts):
        each.result(PATIENCE)
    # Neither entity is visible, both commits still hold their locks, and nothing is metered or
    # answered.
    assert seen == [[], *([2] if locks else []), writes, 0]
    assert engine.meter.total().writes == writes + 2
    if locks is not None:
        assert not locks._peers.table.holders


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (sqlite3.SQLITE_FULL, "RESOURCE_EXHAUSTED"),
        (sqlite3.SQLITE_IOERR_FSYNC, "UNAVAILABLE"),
        (sqlite3.SQLITE_CORRUPT, "FAILED_PRECONDITION"),
    ],
)
def test_a_failed_commit_fails_every_part_and_leaves_nothing(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
    code: int,
    wanted: str,
) -> None:
    engine, service = opened
    before = engine.meter.total(), dict(engine.storage._connections.definitions.ids)

    def fail() -> None:
        raise shared_commits.fault(code)

    watch.at_commit = fail
    held, puts = put_in_group(engine, service, threads, "a", "b", "c")
    assert {status(put) for put in puts} == {wanted}
    with pytest.raises(Exception, match="injected by the test"):
        held.done.result(PATIENCE)
    assert watch.commits == 1
    assert service.names("T") == service.names("T", order=["a"]) == []
    after = engine.meter.total(), engine.storage._connections.definitions.ids
    assert (after[0].writes, after[1]) == (before[0].writes, before[1])
    if engine._transactions._locks is not None:
        assert not engine._transactions._locks._peers.table.holders
    # Other indexes now have the ids that the failed commits would have used.
    watch.at_commit = lambda: None
    for kind in ("U", "T"):
        service.put(service.key(kind, 1), b=kind, a=1)
        assert service.names(kind, ("b", "=", kind)) == [1]
    engine.close()
    assert ledger_writer.index_faults(engine.storage.path) == []


def test_a_transaction_whose_group_failed_is_still_open_and_commits_again(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    key = service.key("T", "one")
    transaction = service.begin()
    assert service.get(key, transaction=transaction) is None

    def fail() -> None:
        raise shared_commits.fault()

    watch.at_commit = fail
    held = Held(engine, threads)
    change = {"insert": service.entity(key, a=1)}
    commit = threads.submit(service.commit, change, transaction=transaction)
    held.release(1)
    assert status(commit) == "RESOURCE_EXHAUSTED"
    assert held.done.exception(PATIENCE)
    watch.at_commit = lambda: None
    service.commit(change, transaction=transaction)
    assert service.get(key) == {"a": 1}


def test_a_fault_of_sqlite_in_one_part_fails_its_group(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, service = opened
    held = Held(engine, threads, service.entity(service.key("T", "held"), a=0))

    def fail(_: row_writer.RowWriter) -> None:
        raise shared_commits.fault(sqlite3.SQLITE_IOERR)

    monkeypatch.setattr(row_writer.RowWriter, "save_state", fail)
    held.release(0)
    assert "cannot be read or written" in str(held.done.exception(PATIENCE))
    held = shared_commits.Held(engine, threads)
    put = threads.submit(service.put, service.key("T", "a"), a=1)
    held.release(1)
    assert held.done.exception(PATIENCE)
    assert status(put) == "UNAVAILABLE"
    monkeypatch.undo()
    assert service.names("T") == []
    service.put(service.key("T", "b"), a=1)
    assert service.names("T", order=["a"]) == ["b"]


def test_a_refused_part_rolls_back_only_itself(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    there = service.entity(service.key("T", "there"), a=0)
    held = Held(engine, threads, there)
    both = {"insert": service.entity(service.key("T", "beside"), a=1)}, {"insert": there}
    refused = threads.submit(service.commit, *both, transaction=service.begin())
    held.release(1)
    assert status(refused) == "ALREADY_EXISTS"
    held.done.result(PATIENCE)
    assert watch.commits == 1
    assert service.names("T") == service.names("T", order=["a"]) == ["there"]
    service.put(service.key("New", 1), b=1)
    engine.close()
    assert ledger_writer.index_faults(engine.storage.path) == []


def test_a_part_refused_because_of_lost_data_gets_the_error_of_the_loss(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    there = service.entity(service.key("T", "there"), a=0)

    def fail() -> None:
        raise shared_commits.fault()

    watch.at_commit = fail
    held = Held(engine, threads, there)
    insert = threads.submit(service.commit, {"insert": there})
    held.release(1)
    # ALREADY_EXISTS would refer to an entity that was never stored.
    assert status(insert) == "RESOURCE_EXHAUSTED"
    assert held.done.exception(PATIENCE)


def test_the_first_part_can_fail_and_the_others_are_stored(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    held = Held(engine, threads, service.entity(service.key("T", "held"), a=0), fails=True)
    puts = [threads.submit(service.put, service.key("T", name), a=1) for name in "ab"]
    held.release(2)
    for put in puts:
        put.result(PATIENCE)
    with pytest.raises(KeyError):
        held.done.result(PATIENCE)
    assert service.names("T") == service.names("T", order=["a"]) == ["a", "b"]


@pytest.mark.parametrize("point", ["commit.mutation", "commit.indexes", "commit.before"])
def test_a_fault_at_a_point_strikes_one_part_of_a_group(
    opened: tuple[inprocess.Engine, service_calls.Service],
    threads: futures.ThreadPoolExecutor,
    point: str,
) -> None:
    engine, service = opened
    held = Held(engine, threads, service.entity(service.key("T", "held"), a=0))
    engine.install_faults(
        fault_plans.Plan.parse({"rules": [{"point": point, "call": 1, "status": "INTERNAL"}]})
    )
    puts = [threads.submit(service.put, service.key("T", name), a=1) for name in "abc"]
    held.release(3)
    outcomes = [status(put) for put in puts]
    assert sorted(outcomes) == ["INTERNAL", "OK", "OK"]
    held.done.result(PATIENCE)
    stored = [name for name, each in zip("abc", outcomes, strict=True) if each == "OK"]
    assert service.names("T") == [*stored, "held"]


def test_a_transaction_is_aborted_for_what_an_earlier_part_of_its_group_changed(
    opened: tuple[inprocess.Engine, service_calls.Service], threads: futures.ThreadPoolExecutor
) -> None:
    engine, service = opened
    key = service.key("T", "one")
    service.put(key, a=1)
    transaction = service.begin()
    found = service.get(key, transaction=transaction)["a"]
    # Bypass the locks, which would make the commit wait, because correctness never depends on a
    # lock.
    held = Held(engine, threads, service.entity(key, a=10))
    late = {"upsert": service.entity(key, a=found + 1)}
    commit = threads.submit(service.commit, late, transaction=transaction)
    held.release(1)
    assert status(commit) == "ABORTED"
    assert service.get(key) == {"a": 10}


@pytest.mark.slow
def test_counting_in_groups_loses_nothing(
    opened: tuple[inprocess.Engine, service_calls.Service], threads: futures.ThreadPoolExecutor
) -> None:
    _, service = opened
    key = service.key("T", "counter")
    service.put(key, a=0)

    def count() -> None:
        while True:
            transaction = service.begin()
            try:
                found = service.get(key, transaction=transaction)["a"]
                change = {"upsert": service.entity(key, a=found + 1)}
                own = {"insert": service.entity(service.key("Own"), n=found)}
                service.commit(change, own, transaction=transaction)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.ABORTED:
                    raise
            else:
                return

    for each in [threads.submit(lambda: [count() for _ in range(8)]) for _ in range(6)]:
        each.result(PATIENCE)
    assert service.get(key) == {"a": 48}
    assert len(set(service.names("Own"))) == 48


def test_ids_handed_out_in_a_group_are_distinct(
    opened: tuple[inprocess.Engine, service_calls.Service], threads: futures.ThreadPoolExecutor
) -> None:
    engine, service = opened
    held = Held(engine, threads)
    asked = [threads.submit(service.call, "AllocateIds", keys=[service.key("T")]) for _ in "abc"]
    held.release(3)
    given = {each.result(PATIENCE).keys[0].path[-1].id for each in asked}
    assert len(given) == 3


def test_writes_of_many_threads_are_all_stored(
    tmp_path: Path, threads: futures.ThreadPoolExecutor
) -> None:
    acknowledged = {f"w{number}": ledger_writer.Acknowledged() for number in range(6)}
    start = threading.Barrier(len(acknowledged))

    def work(name: str) -> list[str]:
        worker = ledger_writer.worker(engine, name)
        start.wait(PATIENCE)
        return [worker.step() for _ in range(10)]

    with ledger_writer.open_engine(tmp_path / "data") as engine:
        done = {name: threads.submit(work, name) for name in acknowledged}
        for name, each in done.items():
            for line in each.result(PATIENCE):
                acknowledged[name].add(line)
    counts = ledger_writer.assert_file_matches(tmp_path / "data", acknowledged)
    assert counts == dict.fromkeys(acknowledged, 10)
