"""The content of results: whole entities, keys, or values projected from an index."""

# ruff: noqa: DTZ001 - protobuf takes naive UTC

import datetime as dt
from typing import Any

import pytest

from datastore_emulator.execution import query_batches
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused, last, put_all

FULL, PROJECTION, KEY_ONLY = 1, 2, 3


@pytest.mark.parametrize(
    ("fields", "result_type", "names"),
    [
        ({}, FULL, ["a", "v"]),
        ({"projection": ["a"]}, PROJECTION, ["a"]),
        ({"projection": ["a"], "distinct": ["a"]}, PROJECTION, ["a"]),
        ({"distinct": ["a"]}, FULL, ["a", "v"]),
        ({"keys_only": True}, KEY_ONLY, []),
    ],
    ids=str,
)
def test_a_batch_states_the_type_of_its_results(
    service: service_calls.Service, fields: dict[str, Any], result_type: int, names: list[str]
) -> None:
    service.put(service.key("T", 1), a=1, v=2)
    batch = service.batch(service.query(**fields))
    assert batch.entity_result_type == result_type
    assert sorted(batch.entity_results[0].entity.properties) == names


def test_an_entity_without_a_projected_value_is_left_out(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    service.put(service.key("T", 1), a=1, b=1)
    service.put(service.key("T", 2), a=1)
    service.put(service.key("T", 3), a=1, b=unindexed(1))
    service.put(service.key("T", 4), a=1, b=None)
    service.put(service.key("T", 5), a=1, b=[2, unindexed(3)])
    query = service.query(projection=["a", "b"])
    found = [service.plain(each.entity) for each in service.results(query)]
    assert found == [{"a": 1, "b": None}, {"a": 1, "b": 1}, {"a": 1, "b": 2}]
    assert service.names(projection=["b"]) == [4, 1, 5]


def test_only_array_values_that_meet_the_inequalities_are_projected(
    service: service_calls.Service,
) -> None:
    service.put(service.key("T", 1), a=[1, 3, 5, 7], b=["x", "y"])
    within = (("a", ">", 1), ("a", "<", 7))
    single = service.results(service.query("T", *within, projection=["a"]))
    assert [service.plain(each.entity) for each in single] == [{"a": 3}, {"a": 5}]
    both = service.results(service.query("T", *within, projection=["a", "b"]))
    assert [tuple(service.plain(each.entity).values()) for each in both] == [
        (3, "x"), (3, "y"), (5, "x"), (5, "y"),
    ]  # fmt: skip


def test_without_an_order_projections_follow_the_order_of_the_index(
    service: service_calls.Service,
) -> None:
    """The index sorts by a, then b; the query may name both in any order."""
    for number, (a, b) in enumerate([(2, "x"), (1, "z"), (2, "a"), (1, "b")], 1):
        service.put(service.key("T", number), a=a, b=b)
    for names in (["a", "b"], ["b", "a"]):
        assert service.names(projection=names) == [4, 2, 3, 1]


def test_keys_only_is_a_projection_of_the_key_alone(service: service_calls.Service) -> None:
    service.put(service.key("T", 1), a=1)
    assert service.names(projection=["__key__"]) == [1]
    with assert_refused("INVALID_ARGUMENT"):
        service.names(projection=["__key__", "__key__"])


@pytest.mark.parametrize("names", [["__key__", "a"], ["a", "__key__"]], ids=str)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"order": ["-a"]},
        {"order": ["a", "__key__"]},
        {"order": ["a", "-__key__"]},
        {"distinct": ["a"]},
        {"distinct": ["a"], "order": ["-a"]},
        {"limit": 2, "offset": 1, "order": ["a"]},
    ],
    ids=str,
)
def test_the_key_can_be_projected_with_properties(
    service: service_calls.Service, names: list[str], fields: dict[str, Any]
) -> None:
    """Each result contains its key anyway, so projecting the key changes only the cursors."""
    put_all(service, (1, {"a": [2, 3]}), (2, {"a": 2}), (3, {"b": 1}), ("x", {"a": 1}))

    def found(projection: list[str]) -> list[tuple[Any, Any]]:
        batch = service.batch(service.query(projection=projection, **fields))
        assert batch.entity_result_type == PROJECTION
        return [(each.entity.key.path[-1], each.entity) for each in batch.entity_results]

    assert found(names) == found(["a"])
    assert found(names)


def test_pages_of_keys_and_properties_follow_each_other(service: service_calls.Service) -> None:
    put_all(service, *((number, {"a": number % 3, "b": number}) for number in range(1, 8)))
    fields = {"projection": ["__key__", "a"], "order": ["-a", "b"]}
    whole = [
        (last(each.entity.key), service.plain(each.entity))
        for each in service.results(service.query("T", **fields))
    ]
    query, paged = service.query("T", limit=2, **fields), []
    while (batch := service.batch(query)).entity_results:
        paged += [
            (last(each.entity.key), service.plain(each.entity)) for each in batch.entity_results
        ]
        query.start_cursor = batch.end_cursor
    assert paged == whole
    assert [name for name, _ in whole] == [2, 5, 1, 4, 7, 3, 6]


def test_keys_only_answers_keys_without_properties(service: service_calls.Service) -> None:
    put_all(service, (1, {"a": 1}), ("né", {"a": 2}), (-3, {"a": 3}))
    batch = service.batch(service.query(order=["a"], keys_only=True))
    assert batch.entity_result_type == 3
    assert [r.entity.key for r in batch.entity_results] == [
        service.key("T", 1), service.key("T", "né"), service.key("T", -3),
    ]  # fmt: skip
    assert all(not r.entity.properties and r.cursor for r in batch.entity_results)


def test_projections_give_each_index_entry_with_meaning_18(
    service: service_calls.Service,
) -> None:
    put_all(
        service,
        (1, {"a": [1, 2], "b": ["x", "y"]}),
        (2, {"a": 3}),
        (3, {"a": dt.datetime(2020, 1, 1), "b": "z"}),
    )
    found = service.results(service.query(projection=["a", "b"]))
    stamp = 1_577_836_800_000_000
    assert [tuple(service.plain(r.entity).values()) for r in found] == [
        (1, "x"), (1, "y"), (2, "x"), (2, "y"), (stamp, "z"),
    ]  # fmt: skip
    assert {v.meaning for r in found for v in r.entity.properties.values()} == {18}
    single = service.results(service.query("T", ("a", ">", 1), projection=["a"]))
    assert [service.plain(r.entity)["a"] for r in single] == [2, 3, stamp]
    ordered = service.results(service.query(order=["a", "b"], projection=["b"]))
    assert [(last(r.entity.key), service.plain(r.entity)["b"]) for r in ordered] == [
        (1, "x"), (1, "y"), (1, "x"), (1, "y"), (3, "z"),
    ]  # fmt: skip


def test_projected_values_are_returned_as_stored(service: service_calls.Service) -> None:
    stored = [
        None,
        True,
        False,
        b"\x00\xff",
        "s\x00",
        -0.0,
        1.5,
        (1.0, -2.0),
        service.key("A", "x", "B", 2),
    ]
    put_all(service, *((n + 1, {"v": value}) for n, value in enumerate(stored)))
    found = service.results(service.query(projection=["v"]))
    values = {last(r.entity.key): r.entity.properties["v"] for r in found}
    for number, given in enumerate(stored):
        expected = service.value(given)
        expected.meaning = 18
        assert values[number + 1] == expected


def test_a_projection_after_an_order_by_key_has_the_direction_of_the_key(
    service: service_calls.Service,
) -> None:
    service.put(service.key("T", "a"), tag=[2, 3], n=[5, 4])
    service.put(service.key("T", "b"), tag=1, n=9)
    service.put(service.key("T", "c"), n=1)
    found = [("a", 2, 4), ("a", 2, 5), ("a", 3, 4), ("a", 3, 5), ("b", 1, 9)]
    for order, wanted in (("__key__", found), ("-__key__", found[::-1])):
        query = service.query(projection=["tag", "n"], order=[order])
        every = service.results(query)
        shown = [(last(each.entity.key), service.plain(each.entity)) for each in every]
        assert [(name, plain["tag"], plain["n"]) for name, plain in shown] == wanted
        for place, result in enumerate(every):
            query.start_cursor = result.cursor
            assert service.results(query) == every[place + 1 :]
            query.start_cursor = b""
            query.end_cursor = result.cursor
            assert service.results(query) == every[: place + 1]
            query.end_cursor = b""


def test_illegal_projections_are_refused(service: service_calls.Service) -> None:
    with assert_refused(
        "INVALID_ARGUMENT", "cannot use projection on a property with an equality filter"
    ):
        service.results(service.query("T", ("a", "=", 1), projection=["a"]))
    for names in (["a", "a"], ["__key__", "a", "__key__"], [""]):
        with assert_refused("INVALID_ARGUMENT"):
            service.results(service.query("T", projection=names))
    for names in (["a"], ["__key__", "a"]):
        with assert_refused("INVALID_ARGUMENT"):
            service.results(service.query(None, projection=names))
    with assert_refused("INVALID_ARGUMENT", "distinct on the property"):
        service.results(service.query("T", projection=["__key__", "a"], distinct=["__key__"]))


def test_a_cached_projection_is_not_used_for_another_query(
    service: service_calls.Service,
) -> None:
    """Results of both queries have index positions with the same bytes but different meanings."""

    def found(namespace: str = "", **fields: Any) -> tuple[str, str, dict[str, int]]:
        (result,) = service.results(service.query(**fields), namespace=namespace)
        space = result.entity.key.partition_id.namespace_id
        return result.entity.key.path[-1].kind, space, service.plain(result.entity)

    service.put(service.key("T", 1), a=1, b=2)
    service.put(service.key("T", 1, namespace="x"), a=1, b=2)
    service.put(service.key("U", 1), b=1)
    for _ in range(2):  # The second time from the cache
        assert found(projection=["a"]) == ("T", "", {"a": 1})
        assert found(projection=["a"], namespace="x") == ("T", "x", {"a": 1})
        assert found(projection=["b"], kind="U") == ("U", "", {"b": 1})
        assert found(order=["a", "b"], projection=["a", "b"]) == ("T", "", {"a": 1, "b": 2})
        assert found(order=["a", "b"], projection=["b"]) == ("T", "", {"b": 2})
        assert found(order=["a", "b"], projection=["a"]) == ("T", "", {"a": 1})
    service.put(service.key("T", 1), c=1, a=2)
    assert found(order=["c", "a"], projection=["a"]) == ("T", "", {"a": 2})


def test_the_number_of_cached_projections_is_limited(
    service: service_calls.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_batches, "_projected", {})
    monkeypatch.setattr(query_batches, "_MOST_PROJECTED", 5)
    put_all(service, *((number, {"v": number}) for number in range(1, 13)))
    for _ in range(2):
        assert service.names(projection=["v"]) == list(range(1, 13))
    if query_batches._projected:  # Only if the engine runs in this process
        assert len(query_batches._projected) <= 5
