"""Distinct results: the first result of each group, paging, and refused queries."""

from typing import Any

import pytest

from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


@pytest.fixture
def people(near: service_calls.Service) -> service_calls.Service:
    """Store five people in three groups of a."""
    rows: dict[str, dict[str, Any]] = {
        "Arya": {"tag": "x", "a": 1, "b": 3},
        "Bran": {"tag": "x", "a": 1, "b": 2},
        "Catelyn": {"tag": "y", "a": 2, "b": 1},
        "Eddard": {"tag": "y", "a": 1, "b": 2},
        "Jon": {"a": 3, "b": 9},
    }
    near.commit(
        *({"upsert": near.entity(near.key("T", name), **held)} for name, held in rows.items())
    )
    return near


def test_the_first_result_of_each_group_is_a_whole_entity(service: service_calls.Service) -> None:
    for name, alive in (("Arya", True), ("Bran", True), ("Catelyn", False), ("Rickard", False)):
        service.put(service.key("T", name), alive=alive, x=1)
    found = service.results(service.query(distinct=["alive"]))
    assert [each.entity.key.path[-1].name for each in found] == ["Catelyn", "Arya"]
    assert service.plain(found[0].entity) == {"alive": False, "x": 1}
    assert service.count(service.query(distinct=["alive"]), None) == [2]
    assert service.names(distinct=["alive"], keys_only=True) == ["Catelyn", "Arya"]


def test_groups_follow_the_order_and_the_first_of_each_too(people: service_calls.Service) -> None:
    assert people.names(distinct=["a"]) == ["Arya", "Catelyn", "Jon"]
    assert people.names(distinct=["a"], order=["-a"]) == ["Jon", "Catelyn", "Arya"]
    assert people.names(distinct=["a"], order=["a", "b"]) == ["Bran", "Catelyn", "Jon"]
    assert people.names(distinct=["a", "b"]) == ["Bran", "Arya", "Catelyn", "Jon"]
    assert people.names("T", ("a", ">", 1), distinct=["a"]) == ["Catelyn", "Jon"]
    assert people.names("T", ("a", ">", 1), ("b", ">", 1), distinct=["a", "b"]) == ["Jon"]


def test_a_filter_can_leave_one_group(people: service_calls.Service) -> None:
    assert people.names("T", ("a", "=", 1), distinct=["a"]) == ["Arya"]
    assert people.names("T", ("a", "in", [1, 2]), distinct=["a"]) == ["Arya", "Catelyn"]
    either = ("or", ("a", "=", 3), ("tag", "=", "x"))
    assert people.names("T", either, ("a", ">", 0), distinct=["a"]) == ["Arya", "Jon"]


def test_a_projection_can_be_distinct(people: service_calls.Service) -> None:
    query = people.query(projection=["a"], distinct=["a"])
    assert [people.plain(each.entity) for each in people.results(query)] == [
        {"a": 1}, {"a": 2}, {"a": 3},
    ]  # fmt: skip
    both = people.query(projection=["a", "b"], distinct=["a"])
    assert [people.plain(each.entity) for each in people.results(both)] == [
        {"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 3, "b": 9},
    ]  # fmt: skip


def test_an_array_is_in_the_group_of_its_first_value_and_projected_in_all(
    near: service_calls.Service,
) -> None:
    near.put(near.key("T", 1), a=[1, 2, 3])
    near.put(near.key("T", 2), a=[2, 3])
    assert near.names(distinct=["a"]) == [1, 2]
    assert near.names(distinct=["a"], order=["-a"]) == [1]
    assert near.names(distinct=["a"], projection=["a"]) == [1, 1, 1]


@pytest.mark.parametrize("order", [[], ["a"], ["-a"], ["a", "b"], ["-a", "b"]])
def test_every_cursor_resumes_after_its_group(
    people: service_calls.Service, order: list[str]
) -> None:
    whole = people.batch(people.query(distinct=["a"], order=order)).entity_results
    assert len(whole) == 3
    for place, result in enumerate(whole):
        later = people.query(distinct=["a"], order=order, start_cursor=result.cursor)
        assert people.batch(later).entity_results == whole[place + 1 :]
        before = people.query(distinct=["a"], order=order, end_cursor=result.cursor)
        assert people.batch(before).entity_results == whole[: place + 1]
        skipped = people.query(distinct=["a"], order=order, offset=place + 1)
        assert people.batch(skipped).entity_results == whole[place + 1 :]


def test_a_group_is_returned_once_even_if_its_first_result_is_deleted(
    people: service_calls.Service,
) -> None:
    cursor = people.batch(people.query(distinct=["a"], limit=1)).end_cursor
    people.delete(people.key("T", "Arya"))
    assert people.names(distinct=["a"], start_cursor=cursor) == ["Catelyn", "Jon"]


def test_many_groups_come_in_batches(near: service_calls.Service) -> None:
    near.commit(
        *({"upsert": near.entity(near.key("T", n + 1), a=n // 3, b=n % 3)} for n in range(400))
    )
    near.commit(
        *({"upsert": near.entity(near.key("T", n + 1), a=n // 3, b=n % 3)} for n in range(400, 760))
    )
    first = [3 * group + 1 for group in range(254)]
    assert near.names(distinct=["a"]) == first
    assert near.names(distinct=["a", "b"]) == list(range(1, 761))
    assert len(near.batch(near.query(distinct=["a", "b"])).entity_results) == 300
    assert near.names(distinct=["a"], offset=250) == first[250:]


def test_distinct_properties_come_first_in_the_order(people: service_calls.Service) -> None:
    refusable: list[dict[str, Any]] = [
        {"distinct": ["a"], "order": ["b"]},
        {"distinct": ["a"], "order": ["b", "a"]},
        {"distinct": ["a", "b"], "order": ["a", "x", "b"]},
    ]
    for asked in refusable:
        with assert_refused(
            "INVALID_ARGUMENT", "items in the group by clause must be specified first"
        ):
            people.names(**asked)
    assert people.names(distinct=["a", "b"], order=["a"]) == ["Bran", "Arya", "Catelyn", "Jon"]
    with assert_refused("INVALID_ARGUMENT", "must be among the properties of distinct_on"):
        people.names("T", ("b", ">", 1), distinct=["a"])
    with assert_refused("INVALID_ARGUMENT", "a must be ordered before __key__"):
        people.names(distinct=["a"], order=["__key__"])
    for name in ("", "__key__"):
        with assert_refused("INVALID_ARGUMENT"):
            people.names(distinct=[name])
    with assert_refused("FAILED_PRECONDITION", "  - name: x\n  - name: a\n"):
        people.names(distinct=["x", "a"])


def test_a_cursor_of_all_results_is_refused_for_distinct_ones(
    people: service_calls.Service,
) -> None:
    cursor = people.batch(people.query(order=["a"], limit=1)).end_cursor
    with assert_refused("INVALID_ARGUMENT", "Cursor does not match query"):
        people.batch(people.query(order=["a"], distinct=["a"], start_cursor=cursor))
