"""Queues in pessimistic mode: their order, and the limit on waiting requests."""

import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from datastore_emulator import inprocess, testing, thread_pool
from datastore_emulator.server import grpc_server
from datastore_emulator.storage import read_sets
from datastore_emulator.transactions import lock_manager, lock_table
from emulator.tests.support import lock_waits, service_calls, shifted_clock
from emulator.tests.support.lock_waits import until_waiting
from emulator.tests.support.service_calls import assert_refused, upsert


@pytest.fixture
def engine(index_yaml: Path, clock: shifted_clock.ShiftedClock) -> Iterator[inprocess.Engine]:
    with inprocess.open_engine(
        None, indexes=index_yaml, clock=clock, concurrency="pessimistic"
    ) as opened:
        yield opened


@pytest.fixture
def key(service: service_calls.Service) -> Any:
    key = service.key("T", 1)
    service.put(key, a=1)
    return key


@pytest.mark.slow
def test_two_hundred_waiting_requests_do_not_keep_the_holder_from_committing(
    index_yaml: Path,
    make_service: type[service_calls.Service],
    threads: futures.ThreadPoolExecutor,
    patient: None,
) -> None:
    with (
        inprocess.open_engine(None, indexes=index_yaml, concurrency="pessimistic") as engine,
        testing.running_server(engine) as address,
        grpc.insecure_channel(address) as channel,
    ):
        service = make_service(channel)
        key = service.key("T", 1)
        transaction = service.begin()
        service.get(key, transaction=transaction)
        puts = [threading.Thread(target=service.put, args=(key,)) for _ in range(200)]
        for put in puts:
            put.start()
        assert len(puts) > grpc_server.THREADS
        until_waiting(engine, 200)
        service.commit(upsert(service, key, a=3), transaction=transaction)
        for put in puts:
            put.join(60)
        assert service.get(key) == {}


def test_a_pool_of_one_thread_serves_the_request_that_others_wait_for() -> None:
    threads = thread_pool.ThreadPool(1)
    goes, ended = threading.Event(), threading.Event()

    def wait() -> bool:
        with thread_pool.waiting():
            return goes.wait(60)

    waiting = [threads.submit(wait) for _ in range(20)]
    threads.submit(goes.set)
    assert all(each.result(60) for each in waiting)
    threads.submit(ended.set).result(60)
    threads.shutdown()
    with pytest.raises(RuntimeError):
        threads.submit(wait)


@pytest.mark.usefixtures("patient")
def test_a_waiting_change_keeps_new_readers_away(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
) -> None:
    holder, reader = service.begin(), service.begin()
    service.get(key, transaction=holder)
    put = threads.submit(service.put, key, a=2)
    until_waiting(engine, 1)
    found = threads.submit(service.get, key, transaction=reader)
    until_waiting(engine, 2)
    service.rollback(holder)
    put.result(60)
    # The reader's snapshot was older than the change that it waited for, so the reader read again.
    assert found.result(60) == {"a": 2}
    service.commit(upsert(service, key, a=3), transaction=reader)


def test_a_reader_proceeds_if_a_change_waits_too_long(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
    patient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lock_manager, "READ_WAIT", 0.0)
    holder, reader = service.begin(), service.begin()
    service.get(key, transaction=holder)
    put = threads.submit(service.put, key, a=2)
    until_waiting(engine, 1)
    assert service.get(key, transaction=reader) == {"a": 1}
    service.rollback(holder)
    assert not put.done()
    service.rollback(reader)
    put.result(60)


class Scripted(lock_manager.LockManager):
    """A lock manager whose waiters follow a script: they advance the time and end other parties."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.naps = []
        super().__init__(folder, clock=lambda: 0.0, timer=lambda: self.now)

    def _sleep(self, _name: str, _awaited: set[str], left: float) -> None:
        seconds, ended = self.naps.pop(0)
        self.now += min(left, seconds)
        if ended:
            self.release(ended)


def _queue(
    tmp_path: Path, count: int, *, names: str = "abcdefghijklmnopqrst"
) -> tuple[Scripted, lock_manager.Party, read_sets.ReadSet]:
    """Make several parties announce changes to one entity; return another party's reads of it."""
    queue = Scripted(tmp_path / "locks")
    for name in names[:count]:
        queue.announce(lock_manager.Party(name, 0.0, 1000.0), [(read_sets.ENTITIES, [b"key"])])
    return queue, lock_manager.Party("reader", 1.0, 1000.0), read_sets.ReadSet(entities={b"key": 1})


def test_a_reader_waits_while_the_queue_moves(tmp_path: Path) -> None:
    queue, reader, reads = _queue(tmp_path, 5)
    queue.naps = [(0.9, name) for name in "abcde"]
    queue.share(reader, reads)
    assert (queue.now, queue.naps) == (pytest.approx(4.5), [])


def test_a_reader_proceeds_if_the_queue_does_not_move(tmp_path: Path) -> None:
    queue, reader, reads = _queue(tmp_path, 3)
    queue.naps = [(0.9, "a"), (0.9, ""), (0.9, ""), (0.9, "b")]
    queue.share(reader, reads)
    assert (queue.now, len(queue.naps)) == (pytest.approx(0.9 + lock_manager.READ_WAIT), 1)


def test_a_reader_proceeds_if_a_moving_queue_is_too_long(tmp_path: Path) -> None:
    queue, reader, reads = _queue(tmp_path, 20)
    queue.naps = [(0.9, name) for name in "abcdefghijklmnopqrst"]
    queue.share(reader, reads)
    assert queue.now == pytest.approx(lock_manager.READ_QUEUE)


def test_a_new_party_ahead_does_not_count_as_movement(tmp_path: Path) -> None:
    queue, reader, reads = _queue(tmp_path, 1)

    def join() -> None:
        queue.announce(lock_manager.Party("new", 0.0, 1000.0), [(read_sets.ENTITIES, [b"key"])])

    queue.naps = [(0.6, ""), (0.6, "")]
    queue.release = lambda _: None  # type: ignore[assignment]
    sleep = queue._sleep
    queue._sleep = lambda *each: (join(), sleep(*each))  # type: ignore[assignment]
    queue.share(reader, reads)
    assert queue.now == pytest.approx(lock_manager.READ_WAIT)


@pytest.mark.parametrize(
    ("queued", "awaited"),
    [
        ({}, []),
        ({"older": 0.5}, ["older"]),
        ({"younger": 1.5}, []),
        ({"older": 0.5, "oldest": 0.1, "younger": 1.5}, ["older", "oldest"]),
    ],
)
def test_a_reader_waits_for_older_readers_that_queue_in_other_processes(
    tmp_path: Path, queued: dict[str, float], awaited: list[str]
) -> None:
    other = lock_manager.LockManager(tmp_path / "locks", clock=lambda: 0.0, timer=lambda: 0.0)
    reads = read_sets.ReadSet(entities={b"key": 1})
    (place,) = lock_table.footprint(reads).places
    with other._turn():
        for name, age in queued.items():
            other._peers.tell(["open", name, age, 1000.0], ["wait", name, ["ended"], [place]])
    queue, reader, _ = _queue(tmp_path, 0)
    met: list[str] = []

    def sleep(_name: str, names: set[str], _left: float) -> None:
        (name,) = names  # Only the one directly ahead
        met.append(name)
        own = queue._peers.table.holders["reader"]
        assert (own.awaited, own.queued) == ({name}, {place})
        other.release(name)

    queue._sleep = sleep  # type: ignore[assignment]
    queue.share(reader, reads)
    assert met == awaited
    assert queue._peers.table.holders["reader"].places == {place}
    assert not queue._peers.table.holders["reader"].queued


def test_a_reader_does_not_queue_again_at_a_place_that_it_has_locked(tmp_path: Path) -> None:
    queue, reader, reads = _queue(tmp_path, 0)
    queue.share(reader, reads)
    (place,) = lock_table.footprint(reads).places
    with queue._turn():
        queue._peers.tell(["open", "older", 0.5, 1000.0], ["wait", "older", ["ended"], [place]])
    queue.share(reader, reads)  # `naps` is empty, so a wait would fail.


@pytest.mark.usefixtures("patient")
def test_two_processes_take_turns_at_a_busy_entity(
    tmp_path: Path, threads: futures.ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_manager, "_BUSY", 300.0)
    with (
        inprocess.open_engine(tmp_path / "data", concurrency="pessimistic") as first,
        inprocess.open_engine(tmp_path / "data", concurrency="pessimistic") as second,
    ):
        here, there = (service_calls.Service(inprocess.Channel(each)) for each in (first, second))
        key = here.key("T", 1)
        here.put(key, turn=0)
        lock_waits.make_busy(first, here, key, threads)
        lock_waits.make_busy(second, there, key, threads)

        def take_turn(service: service_calls.Service, transaction: bytes) -> int:
            turn: int = service.get(key, transaction=transaction)["turn"]
            service.commit(upsert(service, key, turn=turn + 1), transaction=transaction)
            return turn

        holder = there.begin()
        held = there.get(key, transaction=holder)["turn"]
        waits = threads.submit(take_turn, here, here.begin())
        until_waiting(first, 1)
        again = there.begin()
        there.commit(upsert(there, key, turn=held + 1), transaction=holder)
        # The process that has just ended a transaction does not overtake the one that waits.
        turn = take_turn(there, again)
        assert (waits.result(60), turn) == (held + 1, held + 2)


@pytest.mark.usefixtures("patient")
def test_a_change_that_waits_for_a_reader_does_not_keep_that_reader_away(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
) -> None:
    other = service.key("T", 2)
    transaction = service.begin()
    service.get(key, transaction=transaction)
    put = threads.submit(service.commit, upsert(service, key, a=2), upsert(service, other, a=2))
    until_waiting(engine, 1)
    assert service.get(other, transaction=transaction) is None
    service.commit(upsert(service, other, a=3), transaction=transaction)
    put.result(60)


def test_closing_the_engine_wakes_all_waiters(
    near: service_calls.Service,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
    patient: None,
) -> None:
    key = near.key("T", 1)
    holder = near.begin()
    near.get(key, transaction=holder)
    put = threads.submit(near.put, key, a=2)
    until_waiting(engine, 1)
    engine.close()
    with assert_refused("UNAVAILABLE"):
        put.result(60)


def test_the_number_of_waiting_requests_is_limited(
    near: service_calls.Service,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
    patient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lock_manager, "MAX_WAITING", 1)
    key = near.key("T", 1)
    holder = near.begin()
    near.get(key, transaction=holder)
    put = threads.submit(near.put, key, a=2)
    until_waiting(engine, 1)
    with assert_refused("ABORTED"):
        near.put(key, a=3)
    near.rollback(holder)
    put.result(60)


ENTRY = ((b"p", b"code"), [b"entry"])
OTHER = ((b"p", b"code"), [b"other"])


def announced(manager: lock_manager.LockManager, name: str) -> int:
    """Announce a change to an entity and to an index; return the number of announced places."""
    party = lock_manager.Party(name, 0.0, 1000.0)
    manager.announce(party, [(read_sets.ENTITIES, [name.encode()]), ENTRY])
    return len(manager._peers.table.holders[name].wanted)


def test_entries_are_announced_while_a_lock_on_entries_exists_and_a_while_longer(
    tmp_path: Path,
) -> None:
    manager = Scripted(tmp_path / "locks")
    assert announced(manager, "a") == 1
    reader = lock_manager.Party("reader", 1.0, 1000.0)
    manager.share(reader, read_sets.ReadSet(entities={b"key": 1}))
    assert announced(manager, "b") == 1
    manager.share(reader, read_sets.ReadSet(entries={(OTHER[0], OTHER[1][0])}))
    manager.now += 2 * lock_manager._ENTRIES
    assert announced(manager, "c") == 2
    manager.release("reader")
    assert announced(manager, "d") == 2
    manager.now += 2 * lock_manager._ENTRIES
    assert announced(manager, "e") == 1


@pytest.mark.parametrize("is_over", [False, True])
def test_entries_are_announced_after_a_lock_of_another_process(
    tmp_path: Path, is_over: bool
) -> None:
    """Even if the lock has ended before this process learns of it."""
    near, far = (Scripted(tmp_path / "locks") for _ in range(2))
    assert announced(near, "a") == 1
    reader = lock_manager.Party("reader", 1.0, 1000.0)
    far.share(reader, read_sets.ReadSet(ranges={(OTHER[0], b"o", b"p")}))
    if is_over:
        far.release("reader")
    assert announced(near, "b") == 2


def test_a_change_to_a_locked_entry_is_blocked(tmp_path: Path) -> None:
    near, far = (Scripted(tmp_path / "locks") for _ in range(2))
    reader = lock_manager.Party("reader", 1.0, 1000.0)
    far.share(reader, read_sets.ReadSet(ranges={(ENTRY[0], b"e", b"f")}))
    with pytest.raises(lock_manager.Blocked):
        announced(near, "a")
