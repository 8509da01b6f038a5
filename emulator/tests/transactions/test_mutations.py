"""Commits in process and over gRPC: mutations, limits, ids, and refusals."""

# ruff: noqa: DTZ001 - protobuf and NDB take naive UTC

import datetime as dt
import math
from typing import Any

import pytest
from google.protobuf import timestamp_pb2

from emulator.tests.support import service_calls, shifted_clock
from emulator.tests.support.service_calls import assert_refused


def test_every_value_is_returned_exactly_as_stored(
    service: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
    make_service: type[service_calls.Service],
) -> None:
    other = make_service(service.channel, "elsewhere")
    blank = service.value("x" * 3)
    blank.meaning = 15
    entity = service.entity(
        service.key("T", 1),
        ints=[0, -1, 2**63 - 1, -(2**63)],
        doubles=[-0.0, math.inf, -math.inf, 1.5],
        texts=["", "\x00", "\U0001f600", "é"],
        blobs=[b"", b"\x00\xff"],
        mixed=[None, True, (90.0, -180.0), unindexed("z" * 3000)],
        empty=[],
        nested={"x": {"y": 1}, "e": {}},
        reference=other.key("A", "b", "C", -5, namespace="n"),
        meaning=blank,
    )
    entity.properties["nan"].double_value = math.nan
    entity.properties["inner"].entity_value.key.CopyFrom(service.key("I", 2))
    service.commit({"upsert": entity})
    found = service.lookup(service.key("T", 1)).found[0].entity
    assert found.SerializeToString(deterministic=True) == entity.SerializeToString(
        deterministic=True
    )
    queried = service.results(service.query())[0].entity
    assert queried.SerializeToString(deterministic=True) == found.SerializeToString(
        deterministic=True
    )


def test_timestamps_are_truncated_to_microseconds(service: service_calls.Service) -> None:
    value = service.value(None)
    value.timestamp_value.CopyFrom(timestamp_pb2.Timestamp(seconds=-5, nanos=123_456_789))
    service.put(service.key("T", 1), t=value)
    found = service.get(service.key("T", 1))["t"]
    assert (found.seconds, found.nanos) == (-5, 123_456_000)


def test_insert_update_upsert_and_delete_work(service: service_calls.Service) -> None:
    key = service.key("T", 1)
    with assert_refused("NOT_FOUND", "no entity to update"):
        service.commit({"update": service.entity(key, a=1)})
    service.commit({"insert": service.entity(key, a=1)})
    with assert_refused("ALREADY_EXISTS", "entity already exists"):
        service.commit({"insert": service.entity(key, a=2)})
    service.commit({"update": service.entity(key, a=3)})
    assert service.get(key) == {"a": 3}
    service.commit({"delete": key})
    assert service.get(key) is None
    service.commit({"delete": key})


@pytest.mark.parametrize(
    ("failing", "status"),
    [
        ("insert", "ALREADY_EXISTS"),
        ("update", "NOT_FOUND"),
        ("version", "FAILED_PRECONDITION"),
        ("array", "INVALID_ARGUMENT"),
    ],
)
@pytest.mark.parametrize("is_transactional", [True, False])
def test_a_failing_mutation_leaves_those_before_it_unless_in_a_transaction(
    service: service_calls.Service, failing: str, status: str, *, is_transactional: bool
) -> None:
    old = service.key("T", "old")
    service.put(old, a=0)
    elements = {"values": [{"integer_value": n} for n in range(10_001)]}
    bad = {
        "insert": {"insert": service.entity(old, a=1)},
        "update": {"update": service.entity(service.key("T", "none"), a=1)},
        "version": {
            "upsert": service.entity(old, a=1), "base_version": 1, "conflict_resolution_strategy": 3
        },
        "array": {
            "upsert": service.entity(old, a=1),
            "property_transforms": [{"property": "a", "append_missing_elements": elements}],
        },
    }[failing]  # fmt: skip
    with assert_refused(status):
        service.commit(
            {"upsert": service.entity(service.key("T", "first"), a=1)},
            {"delete": service.key("T", "second")},
            bad,
            {"upsert": service.entity(service.key("T", "last"), a=1)},
            transaction=service.begin() if is_transactional else None,
        )
    stored = [] if is_transactional else ["first"]
    assert service.names("T", ("a", "=", 1)) == stored
    assert service.names() == [*stored, "old"]
    assert service.get(old) == {"a": 0}


def test_what_can_never_be_valid_refuses_a_whole_commit(service: service_calls.Service) -> None:
    with assert_refused("INVALID_ARGUMENT", "longer than 1500 bytes"):
        service.commit(
            {"upsert": service.entity(service.key("T", 1))},
            {"upsert": service.entity(service.key("T", 2), a="x" * 1501)},
        )
    assert service.names() == []


def test_results_are_in_order_and_name_only_new_keys(
    service: service_calls.Service,
) -> None:
    response = service.commit(
        {"upsert": service.entity(service.key("U", 1))},
        {"insert": service.entity(service.key("U"))},
        {"delete": service.key("U", 9)},
    )
    complete, made, deleted = response.mutation_results
    assert not complete.HasField("key")
    assert not deleted.HasField("key")
    assert made.key.path[0].id
    assert made.version == complete.version > 0
    assert response.index_updates == 2
    assert not response.HasField("commit_time")


def test_versions_and_update_times_grow_and_create_times_stay(
    service: service_calls.Service,
) -> None:
    key = service.key("T", 1)
    service.put(key, a=1)
    first = service.lookup(key).found[0]
    service.put(key, a=1)
    second = service.lookup(key).found[0]
    assert 0 < first.version < second.version
    assert first.create_time == first.update_time == second.create_time
    assert first.update_time.ToNanoseconds() < second.update_time.ToNanoseconds()
    queried = service.results(service.query())[0]
    assert (queried.version, queried.update_time) == (second.version, second.update_time)
    deleted = service.delete(key).mutation_results[0].version
    assert deleted > second.version


def test_versions_rise_even_if_the_clock_goes_back(
    near: service_calls.Service, clock: shifted_clock.ShiftedClock
) -> None:
    first = near.put(near.key("T", 1)).mutation_results[0].version
    clock.ahead = -3600
    assert near.put(near.key("T", 1)).mutation_results[0].version == first + 1


def test_a_non_transactional_commit_takes_one_mutation_per_entity(
    service: service_calls.Service,
) -> None:
    with assert_refused("INVALID_ARGUMENT", "multiple mutations affecting the same entity"):
        service.commit({"delete": service.key("T", 1)}, {"delete": service.key("T", 1)})


def test_a_transactional_commit_applies_mutations_of_one_entity_in_order(
    service: service_calls.Service,
) -> None:
    key = service.key("T", 1)
    mutations = [
        {"insert": service.entity(key, a=1)},
        {"update": service.entity(key, a=2)},
        {"delete": key},
        {"insert": service.entity(key, a=3)},
    ]
    response = service.commit(*mutations, transaction=service.begin())
    assert response.commit_time.seconds
    assert service.get(key) == {"a": 3}
    for bad, status in (
        (({"upsert": service.entity(key)}, {"insert": service.entity(key)}), "ALREADY_EXISTS"),
        (({"delete": key}, {"update": service.entity(key)}), "NOT_FOUND"),
    ):
        with assert_refused(status):
            service.commit(*bad, transaction=service.begin())


def test_incomplete_keys_are_only_for_insert_and_upsert_and_only_at_the_end(
    service: service_calls.Service,
) -> None:
    assert service.commit({"upsert": service.entity(service.key("T"))}).mutation_results[0].key
    inner = service.key("T", None, "U", 1)
    for bad in (
        {"update": service.entity(service.key("T"))},
        {"delete": service.key("T")},
        {"upsert": service.entity(inner)},
    ):
        with assert_refused("INVALID_ARGUMENT", "Key path is incomplete"):
            service.commit(bad)
    with assert_refused("INVALID_ARGUMENT"):
        service.lookup(service.key("T"))


@pytest.mark.parametrize(
    "path",
    [(), ("", 1), ("T", 0), ("T", ""), ("__x__", 1), ("T", "__x__"), ("k" * 1501, 1),
     ("T", "é" * 751), ("T", 1) * 101, ("k" * 1500, "n" * 1500) * 3],
)  # fmt: skip
def test_bad_keys_are_refused(service: service_calls.Service, path: tuple[Any, ...]) -> None:
    key = service.key(*path)
    if path == ("T", ""):
        key.path[0].name = ""
    with assert_refused("INVALID_ARGUMENT"):
        service.put(key)


def test_long_keys_and_negative_ids_are_legal(service: service_calls.Service) -> None:
    for path in (("k" * 1500, "n" * 1500), ("T", -7), ("T", 1) * 100):
        service.put(service.key(*path), a=1)
        assert service.get(service.key(*path)) == {"a": 1}


@pytest.mark.parametrize("namespace", ["__x__", "a b", "x" * 101])
def test_bad_namespaces_are_refused(service: service_calls.Service, namespace: str) -> None:
    with assert_refused("INVALID_ARGUMENT"):
        service.put(service.key("T", 1, namespace=namespace))


def test_a_key_of_another_project_or_database_is_refused(
    service: service_calls.Service,
    make_service: type[service_calls.Service],
) -> None:
    other = make_service(service.channel, "elsewhere")
    with assert_refused("INVALID_ARGUMENT", "mismatched projects"):
        service.put(other.key("T", 1))
    other = make_service(service.channel)
    other.database = "named"
    with assert_refused("INVALID_ARGUMENT", "mismatched databases"):
        service.lookup(other.key("T", 1))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"a": "é" * 751}, 'The value of property "a" is longer than 1500 bytes.'),
        ({"a": b"x" * 1501}, "longer than 1500 bytes"),
        ({"a": ["x", "y" * 1501]}, "longer than 1500 bytes"),
        ({"a": {"b": "y" * 1501}}, "longer than 1500 bytes"),
        ({"a": service_calls.Unindexed({"b": "y" * 1501})}, 'property "b" is longer than 1500'),
        ({"a": service_calls.Unindexed({"b": [{"c": b"y" * 1501}]})}, 'property "c" is longer'),
        ({"a": [[1]]}, "must not contain an array"),
        ({"a": (90.5, 0.0)}, "globe"),
        ({"": 1}, "property name"),
        ({"n" * 1501: 1}, "property name"),
        ({"__a__": 1}, "reserved"),
        ({f"p{n}": "x" * 1400 for n in range(800)}, "too big"),
        ({"a": list(range(10_001))}, "20000 index entries"),
    ],
)
def test_properties_beyond_a_limit_are_refused(
    service: service_calls.Service, fields: dict[str, Any], text: str
) -> None:
    with assert_refused("INVALID_ARGUMENT", text):
        service.commit({"upsert": service.entity(service.key("T", 1), **fields)})
    assert service.get(service.key("T", 1)) is None


def test_unindexed_values_can_be_long_up_to_a_limit(
    service: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    key = service.key("T", 1)
    service.put(key, a=unindexed("x" * 1_000_000), b=unindexed({"c": unindexed("x" * 2000)}))
    with assert_refused("INVALID_ARGUMENT", "1048487"):
        service.put(key, a=unindexed("x" * 1_048_488))
    with assert_refused("INVALID_ARGUMENT"):
        service.put(key, a=unindexed(b"x" * 524_250), b=unindexed(b"x" * 524_250))


def test_the_product_of_arrays_in_a_composite_index_is_limited(
    service: service_calls.Service,
) -> None:
    with assert_refused("INVALID_ARGUMENT", "composite"):
        service.put(service.key("T", 1), a=list(range(200)), b=list(range(200)))


def test_values_without_a_type_or_path_are_refused(service: service_calls.Service) -> None:
    empty = service.value(None)
    empty.ClearField("null_value")
    excluded = service.value([1])
    excluded.exclude_from_indexes = True
    late = service.value(None)
    late.timestamp_value.seconds = 300_000_000_000
    torn = service.value(None)
    torn.timestamp_value.nanos = -1
    pathless = service.value(None)
    pathless.key_value.SetInParent()
    for value in (empty, excluded, late, torn, pathless):
        with assert_refused("INVALID_ARGUMENT"):
            service.put(service.key("T", 1), v=value)


def test_entities_nest_twenty_deep(service: service_calls.Service) -> None:
    nested: dict[str, Any] = {"x": 1}
    for _ in range(20):
        nested = {"n": nested}
    service.put(service.key("T", 1), **nested)
    with assert_refused("INVALID_ARGUMENT", "deeper"):
        service.put(service.key("T", 1), n=nested)


def test_key_values_without_a_project_get_the_request_project(
    service: service_calls.Service,
) -> None:
    reference = service.key("A", 1)
    reference.ClearField("partition_id")
    service.put(service.key("T", 1), k=reference)
    assert service.get(service.key("T", 1))["k"] == service.key("A", 1)
    assert service.names("T", ("k", "=", reference)) == [1]


def test_an_empty_mutation_is_refused_and_changes_nothing(service: service_calls.Service) -> None:
    entity = service.entity(service.key("T", 1), a=1)
    with assert_refused("INVALID_ARGUMENT"):
        service.commit({})
    assert service.get(entity.key) is None


def test_a_request_can_be_10_mib_and_no_larger(
    service: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    def mutations(count: int) -> list[dict[str, Any]]:
        return [
            {"upsert": service.entity(service.key("T", n + 1), v=unindexed(b"x" * 1_000_000))}
            for n in range(count)
        ]

    assert len(service.commit(*mutations(10)).mutation_results) == 10
    with assert_refused("INVALID_ARGUMENT", "larger"):
        service.commit(*mutations(11))


def test_a_commit_of_more_than_500_mutations_is_legal(service: service_calls.Service) -> None:
    service.commit(*({"delete": service.key("T", n + 1)} for n in range(2000)))


def test_dotted_property_names_are_legal(service: service_calls.Service) -> None:
    service.put(service.key("T", 1), **{"a.b": 1})
    assert service.names("T", ("a.b", "=", 1)) == [1]


def test_datetimes_before_1970_and_far_ahead_sort_by_time(service: service_calls.Service) -> None:
    early = dt.datetime(1, 1, 1)
    service.put(service.key("T", 1), t=early)
    service.put(service.key("T", 2), t=dt.datetime(9999, 12, 31))
    assert service.names(order=["t"]) == [1, 2]
    assert service.names("T", ("t", "=", early)) == [1]
