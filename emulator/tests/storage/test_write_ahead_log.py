"""The log stays small under overlapping transactions, and no request in progress is paused."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import inprocess
from datastore_emulator.storage import maintenance, write_ahead_log
from emulator.tests.support import service_calls
from tests.support import forked_programs, programs

LARGE = 1 << 20  # Bytes; smaller than the engine's limit
THREADS = 4
ROUNDS = 60  # Enough for all processes together to write several times the log's limit

PROCESS = """
import sys
from emulator.tests.storage import test_write_ahead_log
test_write_ahead_log.change_in_threads(*sys.argv[1:])
"""


def change(service: service_calls.Service, name: str) -> None:
    """Change the thread's own entities, each in a transaction that has read the entity."""
    for n in range(ROUNDS):
        key = service.key("T", f"{name}-{n % 4}")
        began = service.begin()
        service.lookup(key, transaction=began)
        time.sleep(0.002)  # Ensures that a transaction is always in progress
        service.commit(
            service_calls.upsert(service, key, text=service_calls.Unindexed("x" * 16_000)),
            transaction=began,
        )


def change_in_threads(path: Path, name: str) -> None:
    """Run transactions in several threads; all of them must commit, and none may wait for long."""
    write_ahead_log.LARGE = LARGE
    with inprocess.open_engine(path, concurrency="pessimistic") as engine:
        service = service_calls.Service(inprocess.Channel(engine))
        done = []
        threads = [
            threading.Thread(target=lambda n=n: done.append(change(service, f"{name}{n}")))
            for n in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(programs.PATIENCE)
        assert len(done) == THREADS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def engine(path: Path) -> Iterator[inprocess.Engine]:
    with inprocess.open_engine(path, concurrency="pessimistic") as opened:
        yield opened


@pytest.fixture
def service(engine: inprocess.Engine) -> service_calls.Service:
    return service_calls.Service(inprocess.Channel(engine))


@pytest.fixture
def log(path: Path) -> write_ahead_log.WriteAheadLog:
    return write_ahead_log.WriteAheadLog(str(path), connect(path))


def connect(path: Path) -> Callable[..., Any]:
    return lambda wait: sqlite3.connect(path, timeout=wait, isolation_level=None)


def log_size(path: Path) -> int:
    return path.with_name("data-wal").stat().st_size


def test_the_log_stays_small_while_transactions_of_two_processes_overlap(
    path: Path, engine: inprocess.Engine
) -> None:
    largest = 0
    programs_running = [forked_programs.start(PROCESS, path, name) for name in ("a", "b")]
    while any(each.returncode is None for each in programs_running):
        largest = max(largest, log_size(path))
        time.sleep(0.01)
    assert [each.wait() for each in programs_running] == [0, 0]
    # The threads write more than ten times that amount, and a log that is never emptied would
    # contain all of it.
    assert LARGE <= largest < 4 * LARGE


def test_a_new_request_waits_until_the_log_is_emptied(
    engine: inprocess.Engine,
    service: service_calls.Service,
    log: write_ahead_log.WriteAheadLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service.put(service.key("T", 1), a=1)
    events = []
    asked = threading.Event()
    is_emptied = write_ahead_log._is_emptied

    def attempt(connection: sqlite3.Connection) -> bool:
        asked.set()
        found = is_emptied(connection)
        if found:
            events.append("emptied")
        return found

    def begin() -> None:
        service.get(service.key("T", 1))
        events.append("began")

    monkeypatch.setattr(write_ahead_log, "_is_emptied", attempt)
    monkeypatch.setattr(write_ahead_log, "PAUSE", programs.PATIENCE)
    threads = [threading.Thread(target=log.empty, args=(programs.PATIENCE,))]
    with engine.storage.read():
        threads[0].start()
        assert asked.wait(programs.PATIENCE)
        threads.append(threading.Thread(target=begin))
        threads[1].start()
        threads[1].join(0.1)
    for thread in threads:
        thread.join(programs.PATIENCE)
    assert events == ["emptied", "began"]


def test_a_request_in_progress_does_not_wait(
    service: service_calls.Service, log: write_ahead_log.WriteAheadLog
) -> None:
    key = service.key("T", 1)
    began = service.begin()
    with log._requesting_pause(write_ahead_log.PAUSE):
        service.lookup(key, transaction=began)
        service.commit(service_calls.upsert(service, key, a=1), transaction=began)
        assert log._remaining_pause()


@pytest.mark.parametrize("seconds", [-1.0, 3600.0])
def test_a_leftover_pause_delays_no_request(
    service: service_calls.Service, log: write_ahead_log.WriteAheadLog, seconds: float
) -> None:
    with log._requesting_pause(seconds):
        assert not log._remaining_pause()
        service.put(service.key("T", 1), a=1)


def test_emptying_gives_up_and_ends_the_pause(
    engine: inprocess.Engine, service: service_calls.Service, log: write_ahead_log.WriteAheadLog
) -> None:
    service.put(service.key("T", 1), a=1)
    with engine.storage.read():
        assert not log.empty(0.05)
    assert not log._remaining_pause()
    assert log.empty()
    assert not log._size()


def test_a_log_that_cannot_be_emptied_is_left_until_it_has_grown_again(
    path: Path,
    engine: inprocess.Engine,
    service: service_calls.Service,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = []

    def fail(_wait: float) -> sqlite3.Connection:
        tries.append(None)
        raise sqlite3.OperationalError("disk I/O error")

    log = write_ahead_log.WriteAheadLog(str(path), fail)
    monkeypatch.setattr(write_ahead_log, "LARGE", 1)
    with engine.storage.read():  # The open snapshot prevents the engine from emptying the log
        service.put(service.key("T", 1), a=1)
        log.checkpoint_if_large()
        log.checkpoint_if_large()
        assert len(tries) == 1
        service.put(service.key("T", 2), a=1)
        log.checkpoint_if_large()
        assert len(tries) == 2


def test_the_log_is_emptied_even_if_no_pause_can_be_requested(
    path: Path,
    engine: inprocess.Engine,
    service: service_calls.Service,
    log: write_ahead_log.WriteAheadLog,
) -> None:
    path.with_name("data-pause").mkdir()
    service.put(service.key("T", 1), a=1)
    assert log.empty()


def test_compaction_empties_the_log_while_others_commit(
    path: Path, engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The thread sets it too, as a process of its own does.
    monkeypatch.setattr(write_ahead_log, "LARGE", LARGE)
    thread = threading.Thread(target=change_in_threads, args=(path, "a"))
    thread.start()
    compacted = maintenance.compact(path, now=1)
    thread.join()
    assert compacted.is_log_empty


def test_compaction_reports_that_the_log_is_in_use(
    path: Path,
    engine: inprocess.Engine,
    service: service_calls.Service,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("datastore_emulator.storage.data_file.BUSY_SECONDS", 0.1)
    service.put(service.key("T", 1), a=1)
    with engine.storage.read():
        assert "its log is in use" in str(maintenance.compact(path, now=1))
