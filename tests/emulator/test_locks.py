"""What waits for what in pessimistic mode, how waiting ends, and who gives up."""

import threading
from concurrent import futures

import grpc
import pytest

from emulator import inprocess, locks, pool, server, testing
from tests.emulator import conftest


@pytest.fixture
def engine(index_yaml, clock):
    with inprocess.open_engine(
        None, indexes=index_yaml, clock=clock, concurrency="pessimistic"
    ) as opened:
        yield opened


@pytest.fixture
def threads():
    with futures.ThreadPoolExecutor(16) as executor:
        yield executor


@pytest.fixture
def impatient(monkeypatch):
    """Waiting is over before it has begun."""
    monkeypatch.setattr(locks, "WRITE_WAIT", 0.0)
    monkeypatch.setattr(locks, "COMMIT_WAIT", 0.0)


@pytest.fixture
def patient(monkeypatch):
    """Only what ends waiting for a reason of its own ends it in these tests."""
    for name in ("WRITE_WAIT", "COMMIT_WAIT", "READ_WAIT"):
        monkeypatch.setattr(locks, name, 300.0)


@pytest.fixture
def key(service):
    key = service.key("T", 1)
    service.put(key, a=1)
    return key


def upsert(service, key, **properties):
    return {"upsert": service.entity(key, **properties)}


def waiting(engine):
    """How many requests wait in an engine."""
    return len(engine._transactions._locks._waiters)


def until_waiting(engine, number):
    conftest.until(lambda: waiting(engine) == number, f"{number} requests wait")


def test_a_put_outside_loses_to_a_transaction_that_has_read_the_entity(
    service, key, impatient, refused
):
    transaction = service.begin()
    service.get(key, transaction=transaction)
    with refused("ABORTED", "contention"):
        service.put(key, a=2)
    service.commit(upsert(service, key, a=3), transaction=transaction)
    assert service.get(key) == {"a": 3}


def test_a_put_outside_waits_for_the_end_of_the_transaction(service, key, engine, threads, patient):
    transaction = service.begin()
    service.get(key, transaction=transaction)
    put = threads.submit(service.put, key, a=2)
    until_waiting(engine, 1)
    service.commit(upsert(service, key, a=3), transaction=transaction)
    put.result(30)
    assert service.get(key) == {"a": 2}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.usefixtures("patient")
def test_of_two_that_read_and_write_one_entity_the_younger_gives_up_at_once(
    service, key, engine, threads, first, refused
):
    begun = [service.begin(), service.begin()]
    for transaction in begun:
        service.get(key, transaction=transaction)
    commits = {}
    for number in (first, 1 - first):
        change = upsert(service, key, a=10 + number)
        commits[number] = threads.submit(service.commit, change, transaction=begun[number])
        if number == first:
            until_waiting(engine, 1)
    commits[0].result(30)
    with refused("ABORTED"):
        commits[1].result(30)
    assert service.get(key) == {"a": 10}


def test_opposite_orders_resolve(service, engine, threads, patient, refused):
    one, two = service.key("T", 1), service.key("T", 2)
    older, younger = service.begin(), service.begin()
    service.get(one, transaction=older)
    service.get(two, transaction=younger)
    commit = threads.submit(service.commit, upsert(service, one), transaction=younger)
    until_waiting(engine, 1)
    service.commit(upsert(service, two), transaction=older)
    with refused("ABORTED"):
        commit.result(30)


def test_two_hundred_waiting_requests_do_not_keep_the_holder_from_committing(
    index_yaml, make_service, threads, patient
):
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
        assert len(puts) > server.THREADS
        until_waiting(engine, 200)
        service.commit(upsert(service, key, a=3), transaction=transaction)
        for put in puts:
            put.join(30)
        assert service.get(key) == {}


def test_a_pool_of_one_thread_serves_those_whom_others_wait_for():
    threads = pool.Pool(1)
    goes, ended = threading.Event(), threading.Event()

    def wait():
        with pool.waiting():
            return goes.wait(30)

    waiting = [threads.submit(wait) for _ in range(20)]
    threads.submit(goes.set)
    assert all(each.result(30) for each in waiting)
    threads.submit(ended.set).result(30)
    threads.shutdown()
    with pytest.raises(RuntimeError):
        threads.submit(wait)
