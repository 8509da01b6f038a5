"""Ids: assigned by commits, allocated, and reserved."""

import pytest

from datastore_emulator.transactions import mutations
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


def test_automatic_ids_are_sixteen_digits_unordered_and_never_repeated(
    service: service_calls.Service,
) -> None:
    made = service.commit(*({"insert": service.entity(service.key("T"))} for _ in range(200)))
    ids = [result.key.path[0].id for result in made.mutation_results]
    keys = service.call("AllocateIds", keys=[service.key("P", "x", "T") for _ in range(200)]).keys
    ids += [key.path[-1].id for key in keys]
    assert len(set(ids)) == 400
    assert all(len(str(number)) == 16 and number < 2**53 for number in ids)
    assert ids[:200] != sorted(ids[:200])


def test_allocated_ids_create_no_entities_and_keep_the_partition(
    service: service_calls.Service,
) -> None:
    answered = service.call("AllocateIds", keys=[service.key("T", 1, "U", namespace="n")]).keys[0]
    assert answered.partition_id == service.key("T", 1, namespace="n").partition_id
    assert answered.path[0].id == 1
    assert service.get(answered) is None
    assert not service.call("AllocateIds").keys


def test_allocate_ids_requires_incomplete_and_reserve_ids_complete_keys(
    service: service_calls.Service,
) -> None:
    with assert_refused("INVALID_ARGUMENT", "Key path is complete: [T: 1]"):
        service.call("AllocateIds", keys=[service.key("T", 1)])
    with assert_refused("INVALID_ARGUMENT", "Key path is incomplete: [T: null]"):
        service.call("ReserveIds", keys=[service.key("T")])


def test_a_name_can_be_reserved_without_effect(service: service_calls.Service) -> None:
    service.call("ReserveIds", keys=[service.key("T", "name"), service.key("T", 5)])
    service.commit({"insert": service.entity(service.key("T", "name"))})


def test_ids_in_use_or_reserved_are_skipped(
    near: service_calls.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutations, "scatter", lambda counter, _seed: counter)
    near.put(near.key("T", 1))
    near.call("ReserveIds", keys=[near.key("T", 2)])
    assert near.call("AllocateIds", keys=[near.key("T")]).keys[0].path[0].id == 3
