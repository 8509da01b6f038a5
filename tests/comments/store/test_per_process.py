"""Each per-process object is created once for each store."""

import threading

import pytest

from comments.store import connection
from comments.store.memory import per_process
from tests.support import datastores


@pytest.fixture
def other_store(datastore: datastores.Datastore) -> connection.Store:
    """A second store in the same process."""
    return datastore.connect()


def test_an_empty_object_is_kept(store: connection.Store) -> None:
    kept = per_process.PerProcess(set[str])
    first = kept.get()
    assert not first
    assert kept.get() is first
    first.add("noted")
    assert kept.get() == {"noted"}


def test_two_stores_share_nothing(store: connection.Store, other_store: connection.Store) -> None:
    kept = per_process.PerProcess(list[str])
    kept.of(other_store).append("theirs")
    assert kept.get() == []
    assert kept.of(other_store) == ["theirs"]


def test_concurrent_threads_get_one_object(store: connection.Store) -> None:
    everyone_asks = threading.Barrier(8)
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    kept = per_process.PerProcess(make)
    found: list[object] = []

    def ask() -> None:
        everyone_asks.wait(60)
        found.append(kept.of(store))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == made * 8


def test_an_object_may_need_another_one(store: connection.Store) -> None:
    inner = per_process.PerProcess(list[str])
    outer = per_process.PerProcess(lambda: [inner.get()])
    assert outer.get()[0] is inner.get()


def test_a_fresh_process_keeps_nothing(store: connection.Store) -> None:
    kept = per_process.PerProcess(list[str])
    before = kept.get()
    per_process.fresh_process(store)
    assert kept.get() is not before


def test_an_object_can_be_replaced_or_forgotten(store: connection.Store) -> None:
    kept = per_process.PerProcess(list[str])
    assert kept.put(store, ["mine"]) is kept.get()
    kept.forget(store)
    assert kept.get() == []


def test_an_object_that_takes_settings_is_made_by_its_first_caller(
    store: connection.Store,
) -> None:
    kept = per_process.PerProcess[str]()
    with pytest.raises(RuntimeError):
        kept.get()
    assert kept.of(store, lambda: "first") == "first"
    assert kept.of(store, lambda: "second") == "first"
