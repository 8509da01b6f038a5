"""Limits of a group: its number of commits, its duration, and the events that end it."""

import sqlite3
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import inprocess
from datastore_emulator.encoding import keys
from datastore_emulator.storage import group_commit
from emulator.tests.support import service_calls, shared_commits, shifted_clock
from emulator.tests.support.service_calls import Service
from emulator.tests.support.shared_commits import Held, put_in_group, turn_of
from tests.support import programs

PATIENCE = programs.PATIENCE


def test_long_commits_and_definition_changes_have_their_own_transaction(
    opened: tuple[inprocess.Engine, service_calls.Service],
    watch: shared_commits.Watch,
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, service = opened
    held = Held(engine, threads, service.entity(service.key("T", "held"), a=0))
    load = threads.submit(engine.load, [service.entity(service.key("T", 1), a=1)], "test")
    held.release(1)
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
def test_a_group_has_at_most_the_allowed_parts(
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


def test_a_group_accepts_no_part_after_its_time(
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


class TestWithAThreadThatNeverComes:
    """The thread that should take the turn was interrupted and is gone, so a group stays open."""

    @pytest.fixture
    def opened(
        self, opened: tuple[inprocess.Engine, service_calls.Service]
    ) -> tuple[inprocess.Engine, service_calls.Service]:
        engine, service = opened
        turn_of(engine)._awaited += 1
        return engine, service

    def test_a_group_still_ends(
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
        """Put an entity in a group that no thread ends."""
        engine, service = opened
        put = threads.submit(service.put, service.key("T", 1), a=1)
        turn = turn_of(engine)
        programs.wait_until(lambda: turn._group and turn._group.parts and not turn._lock.locked())
        return put

    def test_closing_commits_the_open_group(
        self, opened: tuple[inprocess.Engine, service_calls.Service], left_open: futures.Future[Any]
    ) -> None:
        engine, _ = opened
        engine.storage.close()
        left_open.result(PATIENCE)
        with inprocess.open_engine(engine.storage.path) as again:
            service = Service(inprocess.Channel(again))
            assert service.names("T") == [1]

    def test_a_read_at_a_moment_sees_the_commits_begun_before_it(
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
        with turn_of(engine)._holding():
            turn_of(engine)._begin()
        assert service.names("T") == [1]  # At its end, the log is due and the turn is free
        turn_of(engine).close()
        assert service.names("T") == [1]
        assert not (tmp_path / "data-wal").stat().st_size


@pytest.mark.parametrize("is_after", [False, True])
def test_an_interrupt_at_the_commit_is_reported_with_the_actual_outcome(
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

    with turn._holding():
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
