"""Commits that share one COMMIT: together on disk, each for itself in everything else."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from emulator import inprocess
from emulator.encoding import keys
from emulator.fault_injection import fault_plans
from emulator.storage import group_commit, row_writer
from tests.emulator.support import ledger_writer, service_calls, shared_commits, shifted_clock
from tests.emulator.support.service_calls import Service
from tests.emulator.support.shared_commits import Held, turn_of
from tests.support import programs

PATIENCE = programs.PATIENCE


def status(future: futures.Future[Any]) -> str:
    """The name of the status that a call in another thread was answered with."""
    error: Any = future.exception(PATIENCE)
    return "OK" if error is None else error.code().name


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> shared_commits.Watch:
    made = shared_commits.Watch()
    monkeypatch.setattr(sqlite3, "connect", made.connect)
    return made


@pytest.fixture
def patient_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine ends no group before the test does."""
    monkeypatch.setattr(group_commit, "LONGEST", 300.0)
    monkeypatch.setattr(group_commit, "_NAP", 30.0)


@pytest.fixture(params=["optimistic", "pessimistic"])
def opened(
    tmp_path: Path,
    index_yaml: Path,
    watch: shared_commits.Watch,
    patient_groups: None,
    request: pytest.FixtureRequest,
) -> Iterator[tuple[inprocess.Engine, service_calls.Service]]:
    options = {"indexes": index_yaml, "concurrency": request.param}
    with inprocess.open_engine(tmp_path / "data", **options) as engine:
        service = Service(inprocess.Channel(engine))
        service.put(service.key("Known"), a=1)
        watch.statements.clear()
        yield engine, service


def put_in_group(
    engine: inprocess.Engine,
    service: service_calls.Service,
    threads: futures.ThreadPoolExecutor,
    *names: str,
) -> tuple[shared_commits.Held, list[futures.Future[Any]]]:
    """Put entities, all in one group; returns the holder of the turn and the other commits."""
    held = Held(engine, threads, service.entity(service.key("T", "held"), a=0))
    puts = [threads.submit(service.put, service.key("T", name), a=1) for name in names]
    held.close_idle(len(names))
    return held, puts


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


def test_alone_a_commit_pays_for_no_group(
    opened: tuple[inprocess.Engine, service_calls.Service], watch: shared_commits.Watch
) -> None:
    _, service = opened
    service.put(service.key("T", 1), a=1)
    assert watch.statements == ["BEGIN IMMEDIATE", "COMMIT"]


def test_nobody_is_answered_and_nothing_is_seen_before_the_commit(
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
    held.close_idle(2)
    for each in (held.done, *puts):
        each.result(PATIENCE)
    # No entity, the locks of both commits, no bill, no answer.
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
def test_a_commit_that_fails_is_told_to_all_and_leaves_nothing(
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
    with pytest.raises(Exception, match="as the test wants it"):
        held.done.result(PATIENCE)
    assert watch.commits == 1
    assert service.names("T") == service.names("T", order=["a"]) == []
    after = engine.meter.total(), engine.storage._connections.definitions.ids
    assert (after[0].writes, after[1]) == (before[0].writes, before[1])
    if engine._transactions._locks is not None:
        assert not engine._transactions._locks._peers.table.holders
    # The ids that those indexes were to have are others' now.
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
    held.close_idle(1)
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

    def fail(_: row_writer.Writer) -> None:
        raise shared_commits.fault(sqlite3.SQLITE_IOERR)

    monkeypatch.setattr(row_writer.Writer, "save_state", fail)
    held.close_idle(0)
    assert "cannot be read or written" in str(held.done.exception(PATIENCE))
    held = shared_commits.Held(engine, threads)
    put = threads.submit(service.put, service.key("T", "a"), a=1)
    held.close_idle(1)
    assert held.done.exception(PATIENCE)
    assert status(put) == "UNAVAILABLE"
    monkeypatch.undo()
    assert service.names("T") == []
    service.put(service.key("T", "b"), a=1)
    assert service.names("T", order=["a"]) == ["b"]


def test_a_part_that_is_refused_takes_back_itself_alone(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    there = service.entity(service.key("T", "there"), a=0)
    held = Held(engine, threads, there)
    both = {"insert": service.entity(service.key("T", "beside"), a=1)}, {"insert": there}
    refused = threads.submit(service.commit, *both)
    held.close_idle(1)
    assert status(refused) == "ALREADY_EXISTS"
    held.done.result(PATIENCE)
    assert watch.commits == 1
    assert service.names("T") == service.names("T", order=["a"]) == ["there"]
    service.put(service.key("New", 1), b=1)
    engine.close()
    assert ledger_writer.index_faults(engine.storage.path) == []


def test_who_was_refused_for_what_was_lost_is_told_that_it_was_lost(
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
    held.close_idle(1)
    # ALREADY_EXISTS would be of an entity that was never there.
    assert status(insert) == "RESOURCE_EXHAUSTED"
    assert held.done.exception(PATIENCE)


def test_the_first_part_may_fail_and_the_others_are_stored(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    held = Held(engine, threads, service.entity(service.key("T", "held"), a=0), fails=True)
    puts = [threads.submit(service.put, service.key("T", name), a=1) for name in "ab"]
    held.close_idle(2)
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
    held.close_idle(3)
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
    # Past the locks, which would make it wait: nothing that is right depends on a lock.
    held = Held(engine, threads, service.entity(key, a=10))
    late = {"upsert": service.entity(key, a=found + 1)}
    commit = threads.submit(service.commit, late, transaction=transaction)
    held.close_idle(1)
    assert status(commit) == "ABORTED"
    assert service.get(key) == {"a": 10}


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


def test_ids_that_a_group_gave_out_are_never_the_same(
    opened: tuple[inprocess.Engine, service_calls.Service], threads: futures.ThreadPoolExecutor
) -> None:
    engine, service = opened
    held = Held(engine, threads)
    asked = [threads.submit(service.call, "AllocateIds", keys=[service.key("T")]) for _ in "abc"]
    held.close_idle(3)
    given = {each.result(PATIENCE).keys[0].path[-1].id for each in asked}
    assert len(given) == 3


def test_what_takes_long_or_changes_what_all_rest_on_has_a_transaction_alone(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    held = Held(engine, threads, service.entity(service.key("T", "held"), a=0))
    load = threads.submit(engine.load, [service.entity(service.key("T", 1), a=1)], "test")
    held.close_idle(1)
    held.done.result(PATIENCE)
    assert load.result(PATIENCE) == 1
    assert watch.statements == ["BEGIN IMMEDIATE", "COMMIT"] * 2
    with engine.storage.write() as writer:
        put = threads.submit(service.put, service.key("T", 2), a=2)
        programs.wait_until(lambda: turn_of(engine)._awaited == 1)
        writer.clear()
        assert watch.commits == 2
    put.result(PATIENCE)
    assert watch.statements == ["BEGIN IMMEDIATE", "COMMIT"] * 4
    assert service.names("T") == [2]


@pytest.mark.parametrize(("most", "commits"), [(1, 5), (2, 3), (5, 1)])
def test_a_group_takes_in_no_more_than_it_may(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    commits: int,
) -> None:
    monkeypatch.setattr(group_commit, "MOST", most)
    held, puts = put_in_group(*opened, threads, *"abcd")
    for each in (held.done, *puts):
        each.result(PATIENCE)
    assert watch.commits == commits


def test_a_group_takes_nobody_in_when_its_time_is_over(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_commit, "LONGEST", 0.0)
    held, puts = put_in_group(*opened, threads, *"abcd")
    for each in (held.done, *puts):
        each.result(PATIENCE)
    assert watch.commits == 5


class TestWithSomebodyWhoNeverComes:
    """A thread that was to take the turn is gone, say interrupted: a group is left open."""

    @pytest.fixture
    def opened(
        self, opened: tuple[inprocess.Engine, service_calls.Service]
    ) -> tuple[inprocess.Engine, service_calls.Service]:
        engine, service = opened
        turn_of(engine)._awaited += 1
        return engine, service

    def test_a_group_ends_all_the_same(
        self,
        opened: tuple[inprocess.Engine, service_calls.Service],
        watch: shared_commits.Watch,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(group_commit, "_NAP", 0.1)
        _, service = opened
        service.put(service.key("T", 1), a=1)
        assert watch.commits == 1
        assert service.names("T") == [1]

    @pytest.fixture
    def left_open(
        self,
        opened: tuple[inprocess.Engine, service_calls.Service],
        threads: futures.ThreadPoolExecutor,
    ) -> futures.Future[Any]:
        """A put whose group nobody ends."""
        engine, service = opened
        put = threads.submit(service.put, service.key("T", 1), a=1)
        turn = turn_of(engine)
        programs.wait_until(lambda: turn._group and turn._group.parts and not turn._lock.locked())
        return put

    def test_closing_commits_what_is_under_way(
        self, opened: tuple[inprocess.Engine, service_calls.Service], left_open: futures.Future[Any]
    ) -> None:
        engine, _ = opened
        engine.storage.close()
        left_open.result(PATIENCE)
        with inprocess.open_engine(engine.storage.path) as again:
            service = Service(inprocess.Channel(again))
            assert service.names("T") == [1]

    def test_a_read_of_a_moment_sees_what_was_under_way_before_it(
        self, opened: tuple[inprocess.Engine, service_calls.Service], left_open: futures.Future[Any]
    ) -> None:
        engine, service = opened
        moment = engine.storage._now() + 1
        with engine.storage.read() as before:
            assert moment > before.version
        with engine.storage.read_at(moment) as snapshot:
            encoded = keys.encode(keys.Partition("test"), service.key("T", 1))
            seen = snapshot.entity_version(encoded)
        assert seen == left_open.result(PATIENCE).mutation_results[0].version
        turn_of(engine)._awaited -= 1
        later = service.commit({"upsert": service.entity(service.key("T", 2), a=1)})
        assert later.mutation_results[0].version > moment


def test_the_log_is_not_emptied_in_the_middle_of_a_group(
    tmp_path: Path, index_yaml: Path, patient_groups: None
) -> None:
    clock = shifted_clock.ShiftedClock()
    options: dict[str, Any] = {"history": 0, "clock": clock, "indexes": index_yaml}
    with inprocess.open_engine(tmp_path / "data", **options) as engine:
        service = Service(inprocess.Channel(engine))
        service.put(service.key("T", 1), a=1)
        clock.ahead += 600
        with turn_of(engine)._taken():
            turn_of(engine)._begin()
        assert service.names("T") == [1]  # its end finds the log due, and the turn free
        turn_of(engine).close()
        assert service.names("T") == [1]
        assert not (tmp_path / "data-wal").stat().st_size


@pytest.mark.parametrize("is_after", [False, True])
def test_an_interrupt_at_the_commit_is_told_as_what_became_of_it(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    is_after: bool,
) -> None:
    engine, service = opened
    turn = turn_of(engine)

    def interrupt() -> None:
        if is_after:
            sqlite3.Connection.execute(turn.connection, "COMMIT")
        raise KeyboardInterrupt

    with turn._taken():
        group = turn._begin()
        group.parts.append(group_commit.Part(group.connection))
        group.connection.execute("INSERT INTO reserved VALUES (x'00')")
        watch.at_commit = interrupt
        with pytest.raises(KeyboardInterrupt):
            turn._end()
    watch.at_commit = lambda: None
    assert group.over.is_set()
    assert (group.fault is None) == is_after
    with engine.storage.read() as snapshot:
        assert snapshot.is_reserved(b"\0") == is_after
    service.put(service.key("T", 1), a=1)


def test_a_crowd_of_threads_is_stored_whole(
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
