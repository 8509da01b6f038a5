"""Repeated queries are planned only once, with the current indexes."""

from pathlib import Path

from datastore_emulator import inprocess
from datastore_emulator.execution import automatic_indexes
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused, put_all


def test_a_missing_composite_index_is_refused_with_the_index_to_add(
    service: service_calls.Service,
) -> None:
    with assert_refused(
        "FAILED_PRECONDITION",
        "no matching index found. recommended index is:\n- kind: T\n  properties:\n  - name: b\n"
        "  - name: a\n    direction: desc\n",
    ):
        service.names("T", ("b", "=", 1), order=["-a"])
    with assert_refused(
        "FAILED_PRECONDITION", "- kind: T\n  ancestor: yes\n  properties:\n  - name: b\n"
    ):
        service.names("T", ("__key__", "under", service.key("A", 1)), ("b", ">", 1))
    with assert_refused("FAILED_PRECONDITION", "  - name: __key__\n    direction: desc\n"):
        service.names("U", order=["-__key__"])
    with assert_refused("FAILED_PRECONDITION", "  - name: b\n  - name: z\n"):
        service.names("T", order=["b", "z"])
    with assert_refused("FAILED_PRECONDITION"):
        service.results(service.query("T", projection=["y", "z"]))


def test_a_repeated_query_is_planned_with_the_current_indexes(
    service: service_calls.Service,
    engine: inprocess.Engine,
    index_yaml: Path,
) -> None:
    put_all(service, (1, {"a": 1, "b": 2}), (2, {"a": 1, "b": 1}))
    for _ in range(2):
        assert service.names("T", ("a", "=", 1), order=["b"]) == [2, 1]
    with engine.storage.write() as writer:
        writer.define(())
    for _ in range(2):
        with assert_refused("FAILED_PRECONDITION"):
            service.names("T", ("a", "=", 1), order=["b"])
    with engine.storage.write() as writer:
        writer.define(automatic_indexes.read_file(index_yaml))
    assert service.names("T", ("a", "=", 1), order=["b"]) == [2, 1]


def test_the_same_query_in_another_namespace_has_its_own_plan(
    service: service_calls.Service,
) -> None:
    put_all(service, (1, {"a": 1}))
    query = service.query("T", order=["a"])
    for _ in range(2):
        assert len(service.results(query)) == 1
        assert service.results(query, "other") == []


def test_the_number_of_cached_plans_is_limited(
    near: service_calls.Service, engine: inprocess.Engine
) -> None:
    long = [(name, "=", name * 1_400) for name in ("a", "b", "c")]
    near.names("T", *long)  # Makes the indexes
    for number in range(600):
        near.names("T", ("a", "=", number))
    near.names("T", *long)
    with engine.storage.read() as snapshot:
        kept = snapshot.definitions.plans
    assert 0 < len(kept) <= 256
    assert max(len(message) for _, message in kept) <= 4096
