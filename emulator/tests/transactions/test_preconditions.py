"""Preconditions: expected versions, conflicts, and single-use transactions."""

from typing import Any

import pytest

from datastore_emulator import inprocess
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

SERVER_VALUE, FAIL = 1, 3


@pytest.fixture
def key(service: service_calls.Service) -> Any:
    return service.key("T", 1)


def version(service: service_calls.Service, key: Any) -> int:
    return service.lookup(key).found[0].version


@pytest.mark.parametrize("operation", ["update", "upsert", "delete"])
@pytest.mark.parametrize("strategy", [0, SERVER_VALUE, FAIL])
def test_a_mutation_of_the_expected_version_is_applied(
    service: service_calls.Service, key: Any, operation: str, strategy: int
) -> None:
    service.put(key, a=1)
    given = key if operation == "delete" else service.entity(key, a=2)
    result = service.commit(
        {
            operation: given,
            "base_version": version(service, key),
            "conflict_resolution_strategy": strategy,
        }
    ).mutation_results[0]
    assert not result.conflict_detected
    assert service.get(key) == (None if operation == "delete" else {"a": 2})


@pytest.mark.parametrize("operation", ["update", "upsert", "delete"])
@pytest.mark.parametrize("strategy", [0, SERVER_VALUE])
def test_a_conflict_keeps_the_stored_entity_and_returns_its_version(
    service: service_calls.Service, key: Any, operation: str, strategy: int
) -> None:
    service.put(key, a=1)
    stored = service.lookup(key).found[0]
    given = key if operation == "delete" else service.entity(key, a=2)
    step = [{"property": "a", "increment": {"integer_value": 1}}]
    response = service.commit(
        {
            operation: given,
            "base_version": stored.version - 1,
            "conflict_resolution_strategy": strategy,
            "property_transforms": [] if operation == "delete" else step,
        },
        {"upsert": service.entity(service.key("T", 2), a=3)},
    )
    result, other = response.mutation_results
    assert result.conflict_detected
    assert result.version == stored.version
    assert (result.create_time, result.update_time) == (stored.create_time, stored.update_time)
    assert not result.transform_results
    assert not other.conflict_detected
    assert service.get(key) == {"a": 1}
    assert service.get(service.key("T", 2)) == {"a": 3}


def test_a_conflict_fails_a_transaction_if_requested(
    service: service_calls.Service, key: Any
) -> None:
    service.put(key, a=1)
    with assert_refused("FAILED_PRECONDITION", "does not match the required base version"):
        service.commit(
            {"upsert": service.entity(service.key("T", 2))},
            {
                "upsert": service.entity(key, a=2),
                "base_version": version(service, key) - 1,
                "conflict_resolution_strategy": FAIL,
            },
            transaction=service.begin(),
        )
    assert service.get(key) == {"a": 1}
    assert service.get(service.key("T", 2)) is None


@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_base_version_0_expects_no_entity(
    service: service_calls.Service, key: Any, operation: str
) -> None:
    given = key if operation == "delete" else service.entity(key, a=1)
    mutation = {operation: given, "base_version": 0}
    assert not service.commit(mutation).mutation_results[0].conflict_detected
    service.put(key, a=5)
    assert service.commit(mutation).mutation_results[0].conflict_detected
    assert service.get(key) == {"a": 5}


def test_an_expected_version_of_a_deleted_entity_conflicts(
    service: service_calls.Service, key: Any
) -> None:
    service.put(key, a=1)
    base = version(service, key)
    deleted = service.delete(key).mutation_results[0].version
    result = service.commit({"upsert": service.entity(key, a=2), "base_version": base})
    assert result.mutation_results[0].conflict_detected
    assert result.mutation_results[0].version > deleted
    assert not result.mutation_results[0].HasField("update_time")
    assert service.get(key) is None


def test_the_operations_own_condition_is_checked_first(
    service: service_calls.Service, key: Any
) -> None:
    with assert_refused("NOT_FOUND"):
        service.commit({"update": service.entity(key), "base_version": 5})
    service.put(key)
    with assert_refused("ALREADY_EXISTS"):
        service.commit({"insert": service.entity(key), "base_version": 0})


def test_a_version_that_was_never_reached_is_refused(
    service: service_calls.Service, key: Any
) -> None:
    service.put(key)
    with assert_refused(
        "INVALID_ARGUMENT", "Invalid base version, it is greater than the stored version"
    ):
        service.commit({"upsert": service.entity(key), "base_version": version(service, key) + 1})


def test_preconditions_that_can_never_hold_are_refused(
    service: service_calls.Service, key: Any
) -> None:
    text = "Cannot insert an entity with a base version greater than zero"
    entity = service.entity(key)
    with assert_refused("INVALID_ARGUMENT", text):
        service.commit({"insert": entity, "base_version": 1})
    with assert_refused("INVALID_ARGUMENT", text):
        service.commit({"upsert": service.entity(service.key("T")), "base_version": 1})
    for bad in (
        {"insert": entity, "update_time": {"seconds": 1}},
        {"upsert": entity, "base_version": -1},
        {"upsert": entity, "update_time": {"seconds": 0}},
        {"upsert": entity, "update_time": {"seconds": 1, "nanos": -1}},
        {"upsert": entity, "conflict_resolution_strategy": FAIL},
        {"delete": key, "conflict_resolution_strategy": SERVER_VALUE},
        {"upsert": entity, "base_version": 1, "conflict_resolution_strategy": 2},
    ):
        with assert_refused("INVALID_ARGUMENT"):
            service.commit(bad)
    made = service.commit({"insert": service.entity(service.key("T")), "base_version": 0})
    assert made.mutation_results[0].key.path[0].id


@pytest.mark.parametrize("operation", ["update", "upsert", "delete"])
def test_an_expected_update_time_is_compared_exactly(
    service: service_calls.Service, key: Any, operation: str
) -> None:
    service.put(key, a=1)
    stored = service.lookup(key).found[0]
    given = key if operation == "delete" else service.entity(key, a=2)
    stored.update_time.nanos += 1
    mutation = {operation: given, "update_time": stored.update_time}
    result = service.commit(mutation).mutation_results[0]
    assert result.conflict_detected
    assert result.version == stored.version
    stored.update_time.nanos -= 1
    mutation = {operation: given, "update_time": stored.update_time}
    assert not service.commit(mutation).mutation_results[0].conflict_detected
    assert service.get(key) == (None if operation == "delete" else {"a": 2})


def test_an_expected_version_sees_the_previous_mutation(
    service: service_calls.Service, key: Any
) -> None:
    service.put(key, a=1)
    base = version(service, key)
    results = service.commit(
        {"upsert": service.entity(key, a=2), "base_version": base},
        {"upsert": service.entity(key, a=3), "base_version": base},
        transaction=service.begin(),
    ).mutation_results
    assert [each.conflict_detected for each in results] == [False, True]
    assert results[0].version == results[1].version
    assert service.get(key) == {"a": 2}


def single_use(
    service: service_calls.Service, *mutations: dict[str, Any], mode: int = 1, **options: Any
) -> Any:
    return service.call("Commit", mode=mode, mutations=mutations, single_use_transaction=options)


@pytest.mark.parametrize("mode", [0, 1])
def test_a_single_use_transaction_applies_all_mutations_in_order(
    service: service_calls.Service, key: Any, mode: int
) -> None:
    response = single_use(
        service,
        {"insert": service.entity(key, a=1)},
        {"update": service.entity(key, a=2)},
        mode=mode,
        read_write={},
    )
    assert response.commit_time.ToMicroseconds() == version(service, key)
    assert service.get(key) == {"a": 2}


def test_a_failed_single_use_transaction_applies_nothing_and_is_closed(
    near: service_calls.Service, engine: inprocess.Engine
) -> None:
    key = near.key("T", 1)
    with assert_refused("NOT_FOUND"):
        single_use(
            near,
            {"insert": near.entity(key, a=1)},
            {"update": near.entity(near.key("T", 2))},
            read_write={},
        )
    with assert_refused("INVALID_ARGUMENT"):
        single_use(near, {}, read_write={})
    assert near.get(key) is None
    assert not engine._transactions._open


def test_an_empty_commit_has_the_time_of_the_snapshot(service: service_calls.Service) -> None:
    service.put(service.key("T", 2))
    for options in ({"read_write": {}}, {"read_only": {}}):
        transaction = service.begin(**options)
        found = service.lookup(service.key("T", 2), transaction=transaction)
        committed = service.commit(transaction=transaction)
        assert committed.commit_time == found.read_time
    assert not service.call("Commit", mode=2).HasField("commit_time")


def test_a_single_use_transaction_writes_and_is_transactional(
    service: service_calls.Service, key: Any
) -> None:
    mutation = {"upsert": service.entity(key)}
    with assert_refused("INVALID_ARGUMENT"):
        single_use(service, mutation, read_only={})
    with assert_refused("INVALID_ARGUMENT"):
        single_use(service, mutation, read_write={}, mode=2)
    assert service.get(key) is None
    assert single_use(service, read_write={}).HasField("commit_time")
