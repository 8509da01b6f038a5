"""Anomalies that must be impossible, each as a history of two transactions."""

import threading
from typing import Any

import pytest

from datastore_emulator.storage import file_store
from datastore_emulator.transactions import open_transactions
from emulator.tests.support import service_calls, shifted_clock
from emulator.tests.support.service_calls import assert_refused


@pytest.fixture
def accounts(service: service_calls.Service) -> tuple[Any, Any]:
    for name in ("a", "b"):
        service.put(service.key("T", name), a=1, x=0)
    return service.key("T", "a"), service.key("T", "b")


def set_to(service: service_calls.Service, key: Any, **properties: int) -> dict[str, Any]:
    return {"upsert": service.entity(key, **properties)}


def test_a_lost_update_is_aborted(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    key, _ = accounts
    first, second = service.begin(), service.begin()
    service.get(key, transaction=first)
    service.get(key, transaction=second)
    service.commit(set_to(service, key, a=2), transaction=first)
    with assert_refused("ABORTED", "cross-transaction contention"):
        service.commit(set_to(service, key, a=3), transaction=second)
    assert service.get(key) == {"a": 2}


def test_write_skew_is_aborted(service: service_calls.Service, accounts: tuple[Any, Any]) -> None:
    first, second = service.begin(), service.begin()
    for transaction in (first, second):
        service.lookup(*accounts, transaction=transaction)
    service.commit(set_to(service, accounts[0], a=0), transaction=first)
    with assert_refused("ABORTED"):
        service.commit(set_to(service, accounts[1], a=0), transaction=second)


def test_read_skew_is_impossible(service: service_calls.Service, accounts: tuple[Any, Any]) -> None:
    transaction = service.begin()
    service.get(accounts[0], transaction=transaction)
    service.commit(*(set_to(service, key, a=9) for key in accounts))
    assert service.get(accounts[1], transaction=transaction) == {"a": 1, "x": 0}
    assert service.names("T", ("a", "=", 9), transaction=transaction) == []


@pytest.mark.parametrize(
    "filters",
    [
        (("a", "=", 1),),
        (("a", ">=", 1),),
        (("a", "=", 1), ("x", "=", 0)),
        (),
        (("a", "in", [1, 2]),),
    ],
)
@pytest.mark.parametrize("keys_only", [False, True])
def test_a_phantom_is_aborted(
    service: service_calls.Service,
    accounts: tuple[Any, Any],
    filters: tuple[Any, ...],
    keys_only: bool,
) -> None:
    transaction = service.begin()
    found = service.names("T", *filters, keys_only=keys_only, transaction=transaction)
    assert found == ["a", "b"]
    service.put(service.key("T", "c"), a=1, x=0)
    with assert_refused("ABORTED"):
        service.commit(set_to(service, accounts[0], a=5), transaction=transaction)


@pytest.mark.parametrize("keys_only", [False, True])
@pytest.mark.parametrize("change", ["delete", "move"])
def test_a_result_that_vanishes_is_aborted(
    service: service_calls.Service,
    accounts: tuple[Any, Any],
    keys_only: bool,
    change: str,
) -> None:
    transaction = service.begin()
    service.names("T", ("a", "=", 1), keys_only=keys_only, transaction=transaction)
    if change == "delete":
        service.delete(accounts[1])
    else:
        service.put(accounts[1], a=7)
    with assert_refused("ABORTED"):
        service.commit(set_to(service, accounts[0], a=5), transaction=transaction)


def test_a_phantom_of_an_empty_kind_or_kindless_query_is_aborted(
    service: service_calls.Service,
) -> None:
    for kind in ("New", None):
        transaction = service.begin()
        assert service.names(kind, transaction=transaction) == []
        made = service.key("New", 1)
        service.put(made)
        with assert_refused("ABORTED"):
            service.commit(set_to(service, service.key("T", 5)), transaction=transaction)
        service.delete(made)


def test_a_phantom_of_a_count_is_aborted(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin()
    assert service.count(service.query("T", ("a", "=", 1)), None, transaction=transaction) == [2]
    service.delete(accounts[0])
    with assert_refused("ABORTED"):
        service.commit(set_to(service, accounts[1], a=2), transaction=transaction)


def test_a_kindless_keys_only_result_that_changes_is_aborted(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin()
    service.names(None, keys_only=True, transaction=transaction)
    service.delete(accounts[0])
    with assert_refused("ABORTED"):
        service.commit(set_to(service, accounts[1], a=2), transaction=transaction)


def test_changes_outside_the_reads_do_not_conflict(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin()
    service.get(accounts[0], transaction=transaction)
    service.names("T", ("a", "=", 1), limit=1, transaction=transaction)
    service.names("T", ("a", "<", 1), keys_only=True, transaction=transaction)
    service.names("T", ("a", "<", 1), offset=1, transaction=transaction)
    service.put(service.key("T", "z"), a=1)
    service.put(accounts[1], a=1, x=5)
    service.commit(set_to(service, accounts[0], a=5), transaction=transaction)


def test_a_limited_query_depends_on_what_comes_before_its_last_result(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin()
    assert service.names("T", ("a", "=", 1), limit=1, transaction=transaction) == ["a"]
    service.put(service.key("T", "Z"), a=1)
    with assert_refused("ABORTED"):
        service.commit(set_to(service, accounts[0], a=5), transaction=transaction)


def test_skipped_results_are_read_too(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin()
    assert service.names("T", ("a", "=", 1), offset=1, transaction=transaction) == ["b"]
    service.delete(accounts[0])
    with assert_refused("ABORTED"):
        service.commit(set_to(service, service.key("T", "q")), transaction=transaction)


def test_an_insert_of_an_entity_read_as_missing_aborts(service: service_calls.Service) -> None:
    key = service.key("T", "new")
    transaction = service.begin()
    assert service.get(key, transaction=transaction) is None
    service.put(key, a=1)
    with assert_refused("ABORTED"):
        service.commit({"insert": service.entity(key, a=2)}, transaction=transaction)


def test_a_transaction_does_not_see_its_own_writes_before_commit(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin()
    assert service.get(accounts[0], transaction=transaction) == {"a": 1, "x": 0}
    service.commit(set_to(service, accounts[0], a=2), transaction=transaction)
    assert service.get(accounts[0]) == {"a": 2}


def test_a_commit_without_mutations_ends_the_transaction(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin()
    service.get(accounts[0], transaction=transaction)
    service.put(accounts[0], a=8)
    assert not service.commit(transaction=transaction).mutation_results
    with assert_refused("INVALID_ARGUMENT", "committed"):
        service.get(accounts[0], transaction=transaction)


def test_ended_and_unknown_transactions_are_refused(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    rolled_back = service.begin()
    service.rollback(rolled_back)
    for transaction in (rolled_back, b"unknown", b""):
        with assert_refused("INVALID_ARGUMENT"):
            service.get(accounts[0], transaction=transaction)
        with assert_refused("INVALID_ARGUMENT"):
            service.commit(transaction=transaction)
        with assert_refused("INVALID_ARGUMENT"):
            service.rollback(transaction)


def test_an_aborted_transaction_can_be_rolled_back(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin()
    service.get(accounts[0], transaction=transaction)
    service.put(accounts[0], a=8)
    with assert_refused("ABORTED"):
        service.commit(set_to(service, accounts[0], a=2), transaction=transaction)
    service.rollback(transaction)
    with assert_refused("INVALID_ARGUMENT"):
        service.commit(transaction=transaction)


@pytest.mark.parametrize("seconds", [61, 271])
def test_transactions_expire(
    service: service_calls.Service,
    accounts: tuple[Any, Any],
    clock: shifted_clock.ShiftedClock,
    seconds: int,
) -> None:
    transaction = service.begin()
    service.get(accounts[0], transaction=transaction)
    clock.ahead += seconds
    with assert_refused("INVALID_ARGUMENT", "expired or is no longer valid"):
        service.get(accounts[0], transaction=transaction)


def test_a_used_transaction_lives_270_seconds(
    service: service_calls.Service,
    accounts: tuple[Any, Any],
    clock: shifted_clock.ShiftedClock,
) -> None:
    transaction = service.begin()
    for _ in range(5):
        clock.ahead += 50
        service.get(accounts[0], transaction=transaction)
    clock.ahead += 30
    with assert_refused("INVALID_ARGUMENT"):
        service.commit(transaction=transaction)


def test_a_read_only_transaction_reads_one_snapshot_and_writes_nothing(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin(read_only={})
    assert service.get(accounts[0], transaction=transaction) == {"a": 1, "x": 0}
    service.put(accounts[0], a=8)
    assert service.get(accounts[0], transaction=transaction) == {"a": 1, "x": 0}
    with assert_refused("INVALID_ARGUMENT", "read-only"):
        service.commit(set_to(service, accounts[0], a=2), transaction=transaction)
    service.commit(transaction=transaction)


@pytest.mark.parametrize("options", [{"read_only": {}}, {"read_write": {}}], ids=str)
def test_the_first_read_opens_the_snapshot(
    service: service_calls.Service, accounts: tuple[Any, Any], options: dict[str, dict[Any, Any]]
) -> None:
    transaction = service.begin(**options)
    service.put(accounts[0], a=8)
    assert service.get(accounts[0], transaction=transaction) == {"a": 8}
    service.put(accounts[0], a=9)
    assert service.get(accounts[0], transaction=transaction) == {"a": 8}


def test_a_previous_attempt_can_be_named(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    first = service.begin()
    service.get(accounts[0], transaction=first)
    service.put(accounts[0], a=8)
    with assert_refused("ABORTED"):
        service.commit(set_to(service, accounts[0], a=2), transaction=first)
    for previous in (first, b"unknown"):
        again = service.begin(read_write={"previous_transaction": previous})
        service.commit(set_to(service, accounts[0], a=2), transaction=again)


def test_a_read_can_begin_the_transaction(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    asked = {"new_transaction": {"read_write": {}}}
    response = service.lookup(accounts[0], **asked)
    service.put(accounts[0], a=8)
    with assert_refused("ABORTED"):
        service.commit(set_to(service, accounts[0], a=2), transaction=response.transaction)
    queried = service.call("RunQuery", query=service.query(), read_options=asked)
    service.commit(transaction=queried.transaction)
    counted = service.call(
        "RunAggregationQuery",
        aggregation_query={"nested_query": service.query(), "aggregations": [{"count": {}}]},
        read_options={"new_transaction": {"read_only": {}}},
    )
    service.commit(transaction=counted.transaction)
    with assert_refused("INVALID_ARGUMENT"):
        service.call("RunQuery", query=service.query(limit=-1), read_options=asked)


def test_modes_and_transactions_must_agree(service: service_calls.Service) -> None:
    with assert_refused("INVALID_ARGUMENT"):
        service.call("Commit", mode=1)
    with assert_refused("INVALID_ARGUMENT"):
        service.call("Commit", mode=0)
    with assert_refused("INVALID_ARGUMENT"):
        service.call("Commit", mode=2, transaction=service.begin())
    service.call("Commit", mode=0, transaction=service.begin())


def test_a_transaction_belongs_to_its_project_and_database(
    service: service_calls.Service,
    make_service: type[service_calls.Service],
) -> None:
    other = make_service(service.channel, "elsewhere")
    with assert_refused("INVALID_ARGUMENT"):
        other.commit(transaction=service.begin())


def test_transactions_that_only_write_do_not_conflict(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    first, second = service.begin(), service.begin()
    service.commit(set_to(service, accounts[0], a=2), transaction=first)
    service.commit(set_to(service, accounts[0], a=3), transaction=second)
    assert service.get(accounts[0]) == {"a": 3}


def test_several_requests_of_one_transaction_can_run_at_once(
    service: service_calls.Service, accounts: tuple[Any, Any]
) -> None:
    transaction = service.begin()
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(service.get(accounts[0], transaction=transaction))
        )
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"a": 1, "x": 0}] * 16
    service.commit(transaction=transaction)


def test_sixty_four_threads_increment_one_counter_and_lose_nothing(
    service: service_calls.Service,
) -> None:
    key = service.key("T", "counter")
    service.put(key, n=0)
    service_calls.increment_from_64_threads(service, key)
    assert service.get(key) == {"n": 64}


def test_without_validation_an_update_is_lost(
    near: service_calls.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show that the tests above can fail, because they would detect this anomaly."""
    monkeypatch.setattr(open_transactions, "validate", lambda *_: None)
    key = near.key("T", 1)
    near.put(key, a=0)
    first, second = near.begin(), near.begin()
    near.get(key, transaction=first)
    near.get(key, transaction=second)
    near.commit(set_to(near, key, a=1), transaction=first)
    near.commit(set_to(near, key, a=2), transaction=second)
    assert near.get(key) == {"a": 2}


@pytest.mark.slow
def test_too_many_open_snapshots_are_refused_and_released_again(
    near: service_calls.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = [near.begin() for _ in range(file_store.MAX_SNAPSHOTS + 1)]
    for transaction in begun[:-1]:
        near.get(near.key("T", 1), transaction=transaction)
    with assert_refused("RESOURCE_EXHAUSTED"):
        near.get(near.key("T", 1), transaction=begun[-1])
    for transaction in begun:
        near.rollback(transaction)
    assert near.get(near.key("T", 1)) is None


def test_the_number_of_remembered_transactions_is_limited(
    near: service_calls.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_transactions, "_MAX_REMEMBERED", 2)
    for _ in range(5):
        near.rollback(near.begin())
