"""Pessimistic mode with several processes on one file."""

import os
import subprocess
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest

from datastore_emulator import inprocess
from datastore_emulator.transactions import lock_manager
from emulator.tests import conftest
from emulator.tests.support import lock_waits, service_calls
from emulator.tests.support.lock_waits import until_waiting
from emulator.tests.support.service_calls import assert_refused, upsert
from tests.support import forked_programs, programs


@pytest.fixture
def shared(
    tmp_path: Path,
) -> Iterator[tuple[inprocess.Engine, service_calls.Service, subprocess.Popen[str]]]:
    """A data file that this process's engine and a server use: the file, a client, the program."""
    data = tmp_path / "data"
    arguments = ("--data", data, "--concurrency", "pessimistic")
    with (
        inprocess.open_engine(data, concurrency="pessimistic") as engine,
        conftest.serving(*arguments) as (address, program),
        grpc.insecure_channel(address) as channel,
    ):
        yield engine, service_calls.Service(channel), program.process


@pytest.mark.usefixtures("patient")
def test_the_locks_of_a_killed_process_end_at_once(
    shared: tuple[inprocess.Engine, service_calls.Service, subprocess.Popen[str]],
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, far, process = shared
    near = service_calls.Service(inprocess.Channel(engine))
    key = near.key("T", 1)
    far.get(key, transaction=far.begin())
    put = threads.submit(near.put, key, a=2)
    until_waiting(engine, 1)
    process.kill()
    put.result(60)
    assert near.get(key) == {"a": 2}
    # The killed process's file has been removed, so the next writer does not check it.
    assert len(list(engine._transactions._locks._peers.folder.iterdir())) == 2


@pytest.mark.usefixtures("patient")
def test_the_place_of_a_killed_process_in_a_queue_is_dropped(
    shared: tuple[inprocess.Engine, service_calls.Service, subprocess.Popen[str]],
    threads: futures.ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lock_manager, "_BUSY", 300.0)
    engine, far, process = shared
    near = service_calls.Service(inprocess.Channel(engine))
    key = near.key("T", 1)
    near.put(key, a=1)
    lock_waits.make_busy(engine, near, key, threads)
    holder, first, second, third = near.begin(), near.begin(), far.begin(), near.begin()
    near.get(key, transaction=holder)
    waits = [threads.submit(near.get, key, transaction=first)]
    until_waiting(engine, 1)
    threads.submit(far.get, key, transaction=second)
    locks = engine._transactions._locks

    def is_queued() -> bool:
        with locks._turn():
            others = locks._peers._others.values()
            return any(each.queued for other in others for each in other.table.holders.values())

    programs.wait_until(is_queued, "the other process queues")
    waits.append(threads.submit(near.get, key, transaction=third))
    until_waiting(engine, 2)
    process.kill()
    near.rollback(holder)
    for each, transaction in zip(waits, (first, third), strict=True):
        each.result(60)
        near.rollback(transaction)


@pytest.mark.usefixtures("patient")
def test_a_cycle_over_two_processes_is_resolved(
    shared: tuple[inprocess.Engine, service_calls.Service, subprocess.Popen[str]],
    threads: futures.ThreadPoolExecutor,
) -> None:
    engine, far, _ = shared
    near = service_calls.Service(inprocess.Channel(engine))
    with assert_refused("ABORTED"):
        lock_waits.cross(far, near, engine, threads)


def test_a_forked_child_has_its_own_locks(tmp_path: Path, impatient: None) -> None:
    with inprocess.open_engine(tmp_path / "data", concurrency="pessimistic") as engine:
        near = service_calls.Service(inprocess.Channel(engine))
        key = near.key("T", 1)
        transaction = near.begin()
        near.get(key, transaction=transaction)
        child = forked_programs.fork()
        if not child:
            try:
                with assert_refused("ABORTED"):
                    near.put(key, a=2)
                os._exit(len(list((tmp_path / "data-locks").iterdir())) - 3)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with assert_refused("ABORTED"):
            near.put(key, a=2)
        near.commit(upsert(near, key, a=3), transaction=transaction)
