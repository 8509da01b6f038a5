"""Commits with several mutations: the allowed sequences, and the limit on their number."""

import pytest

from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("insert", "insert", "ALREADY_EXISTS"),
        ("update", "insert", "ALREADY_EXISTS"),
        ("upsert", "insert", "ALREADY_EXISTS"),
        ("delete", "update", "NOT_FOUND"),
        ("insert", "update", None),
        ("insert", "upsert", None),
        ("insert", "delete", None),
        ("update", "update", None),
        ("update", "delete", None),
        ("upsert", "update", None),
        ("upsert", "upsert", None),
        ("upsert", "delete", None),
        ("delete", "insert", None),
        ("delete", "upsert", None),
        ("delete", "delete", None),
    ],
)
def test_each_mutation_sees_the_result_of_the_previous_one(
    near: service_calls.Service,
    first: str,
    second: str,
    status: str | None,
) -> None:
    key = near.key("T", 1)
    stored = None if first == "insert" else {"a": 0}
    if stored:
        near.put(key, **stored)
    mutations = [
        {operation: key if operation == "delete" else near.entity(key, a=number)}
        for number, operation in enumerate((first, second), 1)
    ]
    if status is None:
        near.commit(*mutations, transaction=near.begin())
        assert near.get(key) == (None if second == "delete" else {"a": 2})
        return
    with assert_refused(status):
        near.commit(*mutations, transaction=near.begin())
    assert near.get(key) == stored


@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_without_a_transaction_an_entity_can_be_named_once(
    service: service_calls.Service, operation: str
) -> None:
    entity = service.entity(service.key("T", 1))
    with assert_refused("INVALID_ARGUMENT", "multiple mutations affecting the same entity"):
        service.commit({operation: entity}, {"delete": entity.key})
    assert service.get(entity.key) is None


@pytest.mark.slow
def test_more_than_10000_keys_can_be_deleted_at_once(near: service_calls.Service) -> None:
    kept = near.key("T", 20_000)
    near.put(kept)
    keys = [near.key("T", n + 1) for n in range(10_001)]
    near.put(keys[-1])
    response = near.commit(*({"delete": key} for key in keys))
    assert len(response.mutation_results) == 10_001
    assert near.names() == [20_000]


def test_a_transaction_can_span_any_number_of_roots_and_queries_without_an_ancestor(
    service: service_calls.Service,
) -> None:
    keys = [service.key("T", n + 1) for n in range(60)]
    transaction = service.begin()
    assert service.names("T", transaction=transaction) == []
    assert service.names(None, transaction=transaction) == []
    assert len(service.lookup(*keys, transaction=transaction).missing) == 60
    service.commit(*({"insert": service.entity(key)} for key in keys), transaction=transaction)
    assert len(service.names()) == 60
