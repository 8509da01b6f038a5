"""Pessimistic mode: waiting requests, the end of locks, and the transaction that gives up."""

import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import inprocess
from datastore_emulator.transactions import lock_manager, open_transactions
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


@pytest.fixture
def lawless(
    engine: inprocess.Engine, make_service: type[service_calls.Service]
) -> Iterator[service_calls.Service]:
    """A service that changes the file without taking locks, which no real process may do."""
    with inprocess.open_engine(engine._storage.path, concurrency="optimistic") as other:
        yield make_service(inprocess.Channel(other))


def test_a_put_outside_loses_to_a_transaction_that_has_read_the_entity(
    service: service_calls.Service, key: Any, impatient: None
) -> None:
    transaction = service.begin()
    service.get(key, transaction=transaction)
    with assert_refused("ABORTED", "contention"):
        service.put(key, a=2)
    service.commit(upsert(service, key, a=3), transaction=transaction)
    assert service.get(key) == {"a": 3}


def test_a_put_outside_waits_for_the_end_of_the_transaction(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
    patient: None,
) -> None:
    transaction = service.begin()
    service.get(key, transaction=transaction)
    put = threads.submit(service.put, key, a=2)
    until_waiting(engine, 1)
    service.commit(upsert(service, key, a=3), transaction=transaction)
    put.result(60)
    assert service.get(key) == {"a": 2}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.usefixtures("patient")
def test_of_two_transactions_on_one_entity_the_younger_gives_up_at_once(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
    first: int,
) -> None:
    begun = [service.begin(), service.begin()]
    for transaction in begun:
        service.get(key, transaction=transaction)
    commits = {}
    for number in (first, 1 - first):
        change = upsert(service, key, a=10 + number)
        commits[number] = threads.submit(service.commit, change, transaction=begun[number])
        if number == first:
            until_waiting(engine, 1)
    commits[0].result(60)
    with assert_refused("ABORTED"):
        commits[1].result(60)
    assert service.get(key) == {"a": 10}


def test_transactions_with_opposite_orders_are_resolved(
    service: service_calls.Service,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
    patient: None,
) -> None:
    with assert_refused("ABORTED"):
        lock_waits.cross(service, service, engine, threads)


def test_a_read_of_newer_data_moves_the_snapshot(
    service: service_calls.Service, key: Any, impatient: None
) -> None:
    other, third = service.key("T", 2), service.key("T", 3)
    transaction = service.begin()
    service.get(other, transaction=transaction)
    service.put(key, a=2)
    service.put(third, a=3)
    assert service.get(key, transaction=transaction) == {"a": 2}
    # The earlier read is still locked, and later reads use the same snapshot.
    with assert_refused("ABORTED"):
        service.put(other, a=1)
    assert service.names("T", transaction=transaction) == [1, 3]
    service.commit(upsert(service, other, a=3), transaction=transaction)


def test_a_read_of_newer_data_aborts_at_once_if_an_earlier_read_is_outdated(
    service: service_calls.Service,
    key: Any,
    lawless: service_calls.Service,
) -> None:
    other = service.key("T", 2)
    transaction = service.begin()
    service.get(other, transaction=transaction)
    lawless.put(key, a=2)
    lawless.put(other, a=2)
    with assert_refused("ABORTED"):
        service.get(key, transaction=transaction)
    with assert_refused("INVALID_ARGUMENT", "aborted"):
        service.commit(transaction=transaction)
    service.rollback(transaction)
    service.put(other, a=1)


@pytest.mark.usefixtures("patient")
def test_a_cycle_of_reads_and_changes_is_resolved(
    service: service_calls.Service, engine: inprocess.Engine, threads: futures.ThreadPoolExecutor
) -> None:
    w, x, y, z = (service.key("T", name) for name in "wxyz")
    first, second, third, fourth = (service.begin() for _ in range(4))
    service.get(x, transaction=first)
    service.get(y, transaction=second)
    change = upsert(service, x), upsert(service, w)
    awaits_first = threads.submit(service.commit, *change, transaction=third)
    until_waiting(engine, 1)
    awaits_third = threads.submit(service.get, w, transaction=second)
    until_waiting(engine, 2)
    change = upsert(service, y), upsert(service, z)
    awaits_second = threads.submit(service.commit, *change, transaction=fourth)
    until_waiting(engine, 3)
    # The read that closes the cycle proceeds and aborts no transaction.
    assert service.get(z, transaction=first) is None
    service.commit(upsert(service, z, a=1), transaction=first)
    awaits_first.result(60)
    # The transaction waited for data newer than its snapshot; its earlier reads are still valid.
    assert awaits_third.result(60) == {}
    service.rollback(second)
    awaits_second.result(60)


@pytest.mark.parametrize("end", ["commit", "rollback", "empty commit", "abort"])
def test_locks_end_with_the_transaction(
    service: service_calls.Service,
    key: Any,
    impatient: None,
    lawless: service_calls.Service,
    end: str,
) -> None:
    transaction = service.begin()
    service.get(key, transaction=transaction)
    if end == "commit":
        service.commit(upsert(service, service.key("T", 2)), transaction=transaction)
    elif end == "rollback":
        service.rollback(transaction)
    elif end == "empty commit":
        service.commit(transaction=transaction)
    else:
        lawless.put(key, a=3)
        with service_calls.assert_refused("ABORTED"):
            service.get(key, transaction=transaction)
    service.put(key, a=2)


@pytest.mark.usefixtures("patient")
def test_a_commit_refused_after_a_wait_withdraws_its_announcement(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
) -> None:
    other = service.key("T", 2)
    holder, waiter, reader = service.begin(), service.begin(), service.begin()
    service.get(key, transaction=holder)
    change = upsert(service, key, a=2), {"insert": service.entity(other)}
    commit = threads.submit(service.commit, *change, transaction=waiter)
    until_waiting(engine, 1)
    service.commit(upsert(service, other), transaction=holder)
    with assert_refused("ALREADY_EXISTS"):
        commit.result(60)
    assert service.get(key, transaction=reader) == {"a": 1}
    service.rollback(waiter)


def test_a_refused_commit_keeps_the_locks(
    service: service_calls.Service, key: Any, impatient: None
) -> None:
    transaction = service.begin()
    service.get(key, transaction=transaction)
    with assert_refused("ALREADY_EXISTS"):
        service.commit({"insert": service.entity(key)}, transaction=transaction)
    with assert_refused("ABORTED"):
        service.put(key, a=2)
    service.commit(upsert(service, key, a=3), transaction=transaction)


def test_a_read_that_begins_a_transaction_locks_too(
    service: service_calls.Service, key: Any, impatient: None
) -> None:
    asked = {"new_transaction": {"read_write": {}}}
    transaction = service.lookup(key, **asked).transaction
    with assert_refused("ABORTED"):
        service.put(key, a=2)
    service.commit(upsert(service, key, a=3), transaction=transaction)
    queried = service.call("RunQuery", query=service.query(), read_options=asked)
    with assert_refused("ABORTED"):
        service.put(service.key("T", "new"))
    service.rollback(queried.transaction)


def test_a_repeated_first_read_keeps_its_transaction(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A transaction's age and locks keep its place; a new one would join the end of the queue."""
    answers = iter([False])
    still = open_transactions.Transactions._is_current
    monkeypatch.setattr(
        open_transactions.Transactions,
        "_is_current",
        lambda *reads: next(answers, True) and still(*reads),
    )
    transaction = service.lookup(key, new_transaction={"read_write": {}}).transaction
    assert next(answers, "used") == "used"
    opened = engine._transactions
    assert (list(opened._open), dict(opened._ended)) == ([transaction], {})
    service.commit(upsert(service, key, a=2), transaction=transaction)
    assert service.get(key) == {"a": 2}


@pytest.mark.usefixtures("patient")
def test_locks_of_an_unclaimed_transaction_expire_soon(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    clock: shifted_clock.ShiftedClock,
) -> None:
    """If the response with the id is lost, no client can end the transaction."""
    transaction = service.lookup(key, new_transaction={"read_write": {}}).transaction
    put = threading.Thread(target=service.put, args=(key,), kwargs={"a": 2})
    put.start()
    until_waiting(engine, 1)
    clock.ahead += open_transactions.UNCLAIMED + 1
    put.join(60)
    assert service.get(key) == {"a": 2}
    with assert_refused("ABORTED"):  # The transaction is still open and is validated as usual
        service.commit(upsert(service, key, a=3), transaction=transaction)


def test_a_claimed_transaction_keeps_the_locks_of_its_first_read(
    service: service_calls.Service,
    key: Any,
    clock: shifted_clock.ShiftedClock,
    impatient: None,
) -> None:
    transaction = service.lookup(key, new_transaction={"read_write": {}}).transaction
    service.get(service.key("T", "other"), transaction=transaction)
    clock.ahead += open_transactions.UNCLAIMED + 1
    with assert_refused("ABORTED"):
        service.put(key, a=2)
    service.commit(upsert(service, key, a=3), transaction=transaction)


@pytest.mark.parametrize("options", [{}, {"read_only": {}}])
def test_reads_outside_and_read_only_transactions_lock_nothing(
    service: service_calls.Service, key: Any, impatient: None, options: dict[str, dict[Any, Any]]
) -> None:
    transaction = service.begin(**options) if options else None
    read = {"transaction": transaction} if transaction else {}
    assert service.get(key, **read) == {"a": 1}
    service.put(key, a=2)


@pytest.mark.parametrize(("uses", "seconds"), [(0, 61), (5, 50)])
@pytest.mark.usefixtures("patient")
def test_a_change_does_not_wait_for_an_expired_transaction(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    clock: shifted_clock.ShiftedClock,
    uses: int,
    seconds: int,
) -> None:
    transaction = service.begin()
    service.get(key, transaction=transaction)
    for _ in range(uses):
        clock.ahead += seconds
        service.get(key, transaction=transaction)
    put = threading.Thread(target=service.put, args=(key,))
    put.start()
    until_waiting(engine, 1)
    clock.ahead += seconds
    put.join(60)
    with service_calls.assert_refused("INVALID_ARGUMENT", "expired"):
        service.commit(upsert(service, key, a=3), transaction=transaction)


def test_every_request_keeps_a_transaction_and_its_locks_alive(
    service: service_calls.Service,
    key: Any,
    clock: shifted_clock.ShiftedClock,
    impatient: None,
) -> None:
    transaction = service.begin()
    service.get(key, transaction=transaction)
    for _ in range(4):
        clock.ahead += 50
        assert service.names("Other", transaction=transaction) == []
    with assert_refused("ABORTED"):
        service.put(key, a=2)
    service.commit(upsert(service, key, a=3), transaction=transaction)


def test_several_requests_of_one_transaction_can_run_at_once(
    service: service_calls.Service, key: Any, threads: futures.ThreadPoolExecutor
) -> None:
    keys = [key, *(service.key("T", number) for number in range(2, 18))]
    transaction = service.begin()
    found = list(threads.map(lambda each: service.get(each, transaction=transaction), keys))
    assert found == [{"a": 1}] + [None] * 16
    service.commit(upsert(service, key, a=2), transaction=transaction)


@pytest.mark.slow
def test_sixty_four_threads_increment_one_counter_and_lose_nothing(
    service: service_calls.Service,
) -> None:
    key = service.key("T", "counter")
    service.put(key, n=0)
    service_calls.increment_from_64_threads(service, key)
    assert service.get(key) == {"n": 64}


@pytest.mark.usefixtures("patient")
def test_a_transaction_inherits_the_age_of_its_previous_attempt(
    service: service_calls.Service,
    key: Any,
    engine: inprocess.Engine,
    threads: futures.ThreadPoolExecutor,
) -> None:
    previous = service.begin()
    older = service.begin()
    service.rollback(previous)
    again = service.begin(read_write={"previous_transaction": previous})
    for transaction in (older, again):
        service.get(key, transaction=transaction)
    commit = threads.submit(service.commit, upsert(service, key, a=2), transaction=older)
    until_waiting(engine, 1)
    service.commit(upsert(service, key, a=3), transaction=again)
    with assert_refused("ABORTED"):
        commit.result(60)


def test_a_known_previous_attempt_must_not_be_read_only(
    service: service_calls.Service,
) -> None:
    with assert_refused("INVALID_ARGUMENT", "read-only"):
        service.begin(read_write={"previous_transaction": service.begin(read_only={})})
    service.commit(transaction=service.begin(read_write={"previous_transaction": b"unknown"}))


def test_without_a_lock_the_commit_is_still_validated(
    near: service_calls.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_manager.LockManager, "share", lambda *_: None)
    key = near.key("T", 1)
    transaction = near.begin()
    near.get(key, transaction=transaction)
    near.put(key, a=1)
    with assert_refused("ABORTED"):
        near.commit(upsert(near, key, a=2), transaction=transaction)
