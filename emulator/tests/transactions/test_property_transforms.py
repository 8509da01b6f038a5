"""Property transforms: their arithmetic, their results, and refused requests."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

TOP, BOTTOM = 2**63 - 1, -(2**63)


def transform(service: service_calls.Service, path: str, kind: str, operand: Any) -> dict[str, Any]:
    if kind == "set_to_server_value":
        return {"property": path, kind: operand}
    value = service.value(operand)
    return {"property": path, kind: value.array_value if isinstance(operand, list) else value}


def commit(
    service: service_calls.Service,
    key: Any,
    *transforms: tuple[Any, ...],
    mask: list[str] | tuple[()] = (),
    **mutation: Any,
) -> Any:
    """Transform a stored entity and return the only result."""
    made = [transform(service, *each) for each in transforms]
    fields = {"upsert": service.entity(key), "property_mask": {"paths": mask}} | mutation
    return service.commit({**fields, "property_transforms": made}).mutation_results[0]


def typed(value: Any) -> list[Any] | tuple[Any, ...]:
    """Return a value with its type, so that 3 and 3.0 differ but all NaNs are equal."""
    kind = value.WhichOneof("value_type")
    if kind == "array_value":
        return [typed(each) for each in value.array_value.values]
    found = getattr(value, kind)
    return kind, repr(found) if isinstance(found, float) else found


MISSING = object()


@pytest.mark.parametrize(
    ("kind", "stored", "operand", "expected"),
    [
        ("increment", 2, 3, 5),
        ("increment", 2, -3, -1),
        ("increment", 2, 0.5, 2.5),
        ("increment", 0.5, 2, 2.5),
        ("increment", MISSING, 3, 3),
        ("increment", "x", 3.5, 3.5),
        ("increment", None, 3, 3),
        ("increment", [1], 3, 3),
        ("increment", TOP, 1, TOP),
        ("increment", BOTTOM, -1, BOTTOM),
        ("increment", TOP, BOTTOM, -1),
        ("increment", TOP, 1.0, 2.0**63),
        ("increment", 1, math.nan, math.nan),
        ("increment", math.inf, -math.inf, math.nan),
        ("maximum", 2, 3, 3),
        ("maximum", 3, 2, 3),
        ("maximum", 2, 2.5, 2.5),
        ("maximum", 2.5, 2, 2.5),
        ("maximum", 2.5, 3, 3),
        ("maximum", 3, 3.0, 3),
        ("maximum", 3.0, 3, 3.0),
        ("maximum", 0, -0.0, 0),
        ("maximum", -0.0, 0.0, -0.0),
        ("maximum", TOP, 2.0**63, 2.0**63),
        ("maximum", 2**53 + 1, 2.0**53, 2**53 + 1),
        ("maximum", 5, math.nan, math.nan),
        ("maximum", math.nan, 5, math.nan),
        ("maximum", "x", 5, 5),
        ("maximum", MISSING, 5, 5),
        ("minimum", 2, 3, 2),
        ("minimum", 3, 2, 2),
        ("minimum", 2, 1.5, 1.5),
        ("minimum", 1.5, 1, 1),
        ("minimum", 3, 3.0, 3),
        ("minimum", 0.0, -0.0, 0.0),
        ("minimum", 5, math.nan, math.nan),
        ("minimum", math.nan, 5, math.nan),
        ("minimum", True, 5, 5),
        ("minimum", MISSING, 5, 5),
    ],
)
def test_numbers_are_computed_by_the_server(
    near: service_calls.Service, kind: str, stored: Any, operand: float, expected: float
) -> None:
    key = near.key("T", 1)
    near.put(key, **({} if stored is MISSING else {"n": stored}))
    result = commit(near, key, ("n", kind, operand))
    found = near.lookup(key).found[0].entity.properties["n"]
    assert typed(found) == typed(near.value(expected))
    assert [typed(each) for each in result.transform_results] == [typed(near.value(expected))]


@pytest.mark.parametrize("operand", [math.nan, math.inf])
def test_every_computed_nan_is_the_same(near: service_calls.Service, operand: float) -> None:
    key = near.key("T", 1)
    near.put(key, n=-math.inf)
    commit(near, key, ("n", "increment", operand), ("n", "maximum", 1))
    assert math.copysign(1, near.get(key)["n"]) == 1


NAN = math.nan


@pytest.mark.parametrize(
    ("kind", "stored", "operand", "expected"),
    [
        ("append_missing_elements", [1, 2], [2, 3], [1, 2, 3]),
        ("append_missing_elements", [3], [3.0, 4, 4.0], [3, 4]),
        ("append_missing_elements", [1, 1], [2], [1, 1, 2]),
        ("append_missing_elements", [0], [-0.0, 0.0], [0]),
        ("append_missing_elements", [NAN, None], [NAN, None], [NAN, None]),
        ("append_missing_elements", ["a", b"a", True], ["a", b"a", True, 1], ["a", b"a", True, 1]),
        ("append_missing_elements", [2**53], [2**53 + 1, 2.0**53], [2**53, 2**53 + 1]),
        ("append_missing_elements", [{"x": 3}], [{"x": 3.0}, {"x": 4}], [{"x": 3}, {"x": 4}]),
        ("append_missing_elements", [{"x": [1]}], [{"x": [1.0]}], [{"x": [1]}]),
        ("append_missing_elements", [(1.0, 2.0)], [(1.0, 2.0)], [(1.0, 2.0)]),
        ("append_missing_elements", 5, [1], [1]),
        ("append_missing_elements", MISSING, [1, 1], [1]),
        ("append_missing_elements", MISSING, [], []),
        ("remove_all_from_array", [1, 2, 1], [1], [2]),
        ("remove_all_from_array", [3, 3.0, 4], [3.0], [4]),
        ("remove_all_from_array", [NAN, None, "x"], [None, NAN], ["x"]),
        ("remove_all_from_array", [1], [2], [1]),
        ("remove_all_from_array", [1], [], [1]),
        ("remove_all_from_array", "x", ["x"], []),
        ("remove_all_from_array", MISSING, [1], []),
    ],
)
def test_array_transforms_change_the_array_and_return_null(
    near: service_calls.Service, kind: str, stored: Any, operand: list[Any], expected: list[Any]
) -> None:
    key = near.key("T", 1)
    near.put(key, **({} if stored is MISSING else {"n": stored}))
    result = commit(near, key, ("n", kind, operand))
    found = near.lookup(key).found[0].entity.properties["n"]
    assert typed(found) == typed(near.value(expected))
    assert [each.WhichOneof("value_type") for each in result.transform_results] == ["null_value"]


def test_the_server_time_is_one_per_commit_and_in_milliseconds(
    service: service_calls.Service,
) -> None:
    first, second = service.key("T", 1), service.key("T", 2)
    now = {"property_transforms": [{"property": "t", "set_to_server_value": 1}] * 2}
    response = service.commit(
        {"insert": service.entity(first, t=1)} | now,
        {"insert": service.entity(second)} | now,
        transaction=service.begin(),
    )
    stamps = [each.timestamp_value for one in response.mutation_results
              for each in one.transform_results]  # fmt: skip
    assert len(stamps) == 4
    assert all(stamp == stamps[0] for stamp in stamps)
    assert stamps[0].nanos % 1_000_000 == 0
    assert 0 <= response.commit_time.ToNanoseconds() - stamps[0].ToNanoseconds() < 1_000_000
    assert service.get(second)["t"] == stamps[0]


def test_transforms_are_applied_and_answered_in_order(
    service: service_calls.Service,
) -> None:
    key = service.key("T", 1)
    service.put(key, n=100, gone=1)
    result = commit(
        service,
        key,
        ("n", "increment", 1),
        ("n", "maximum", 10),
        ("list", "append_missing_elements", ["x"]),
        ("n", "increment", 0.5),
        upsert=service.entity(key, n=5),
        property_mask=None,
    )
    assert service.get(key) == {"n": 10.5, "list": ["x"]}
    found = [service.python(each) for each in result.transform_results]
    assert found == [6, 10, None, 10.5]
    assert service.names("T", ("n", "=", 10.5)) == [1]
    assert service.names("T", ("list", "=", "x")) == [1]


@pytest.mark.parametrize("operation", ["insert", "update", "upsert"])
def test_transforms_work_with_every_storing_operation(
    service: service_calls.Service, operation: str
) -> None:
    key = service.key("T", 1)
    if operation == "update":
        service.put(key)
    entity = {operation: service.entity(key, n=1), "property_mask": None}
    commit(service, key, ("n", "increment", 1), **({"upsert": None} | entity))
    assert service.get(key) == {"n": 2}


def test_a_transform_ignores_the_mask(service: service_calls.Service) -> None:
    key = service.key("T", 1)
    service.put(key, n=1, a=1)
    commit(service, key, ("n", "increment", 5), mask=["a"], upsert=service.entity(key, a=2, n=70))
    assert service.get(key) == {"a": 2, "n": 6}


def test_transforms_change_and_create_embedded_entities(
    service: service_calls.Service,
) -> None:
    key = service.key("T", 1)
    service.put(key, o={"n": 1, "m": {"x.y": 1}}, s=5)
    commit(
        service,
        key,
        ("o.n", "increment", 1),
        ("o.m.x\\.y", "increment", 1),
        ("new.deep.n", "maximum", 7),
        ("s.n", "increment", 1),
    )
    assert service.get(key) == {
        "o": {"n": 2, "m": {"x.y": 2}}, "new": {"deep": {"n": 7}}, "s": {"n": 1},
    }  # fmt: skip
    assert service.names("T", ("new.deep.n", "=", 7)) == [1]


def test_a_computed_value_stays_out_of_indexes_if_the_property_was(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    key = service.key("T", 1)
    service.put(key, n=unindexed(1), t=unindexed(None), m=unindexed(1))
    commit(
        service,
        key,
        ("n", "increment", 1),
        ("t", "set_to_server_value", 1),
        ("m", "minimum", -5),
        ("o", "increment", unindexed(2)),
    )
    found = service.lookup(key).found[0].entity.properties
    assert all(found[name].exclude_from_indexes for name in "ntmo")
    assert (found["n"].integer_value, found["m"].integer_value) == (2, -5)


def test_a_failed_transform_stores_nothing(
    service: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    key = service.key("T", 1)
    service.put(key, list=[1])
    with assert_refused("INVALID_ARGUMENT"):
        commit(
            service, key, ("n", "increment", 1),
            ("list", "append_missing_elements", list(range(20_001))),
        )  # fmt: skip
    assert service.get(key) == {"list": [1]}


@pytest.mark.parametrize(
    "bad",
    [
        {"property": "n"},
        {"property": "n", "set_to_server_value": 0},
        {"property": "n", "set_to_server_value": 2},
        {"property": "n", "increment": {"string_value": "x"}},
        {"property": "n", "increment": {}},
        {"property": "n", "maximum": {"null_value": 0}},
        {"property": "n", "minimum": {"timestamp_value": {"seconds": 1}}},
        {"property": "n", "append_missing_elements": {"values": [{"array_value": {}}]}},
        {"property": "n", "remove_all_from_array": {"values": [{}]}},
        {"property": "", "increment": {"integer_value": 1}},
        {"property": "a..b", "increment": {"integer_value": 1}},
        {"property": "__key__", "increment": {"integer_value": 1}},
        {"property": "a." * 20 + "__x__", "increment": {"integer_value": 1}},
    ],
    ids=str,
)
def test_bad_transforms_are_refused(near: service_calls.Service, bad: dict[str, Any]) -> None:
    key = near.key("T", 1)
    with assert_refused("INVALID_ARGUMENT"):
        near.commit({"upsert": near.entity(key, n=1), "property_transforms": [bad]})
    assert near.get(key) is None


def test_a_delete_takes_no_transforms(near: service_calls.Service) -> None:
    with assert_refused("INVALID_ARGUMENT"):
        commit(near, near.key("T", 1), ("n", "increment", 1), upsert=None,
               delete=near.key("T", 1))  # fmt: skip


def test_an_entity_takes_500_transforms_in_a_commit_and_no_more(
    near: service_calls.Service,
) -> None:
    key, other = near.key("T", 1), near.key("T", 2)
    step = {"property": "n", "increment": {"integer_value": 1}}
    near.commit(
        {"upsert": near.entity(key), "property_transforms": [step] * 500},
        {"upsert": near.entity(other), "property_transforms": [step] * 500},
        {"insert": near.entity(near.key("T")), "property_transforms": [step] * 500},
        {"insert": near.entity(near.key("T")), "property_transforms": [step] * 500},
    )
    assert near.get(key) == near.get(other) == {"n": 500}
    half = {"upsert": near.entity(key), "property_transforms": [step] * 251}
    with assert_refused("INVALID_ARGUMENT", "500"):
        near.commit(half, half, transaction=near.begin())
    assert near.get(key) == {"n": 500}


numbers = st.one_of(
    st.integers(BOTTOM, TOP), st.floats(), st.sampled_from([0, 0.0, -0.0, 3, 3.0, TOP, BOTTOM])
)


@given(numbers, numbers)
def test_maximum_and_minimum_are_mathematically_exact(
    near: service_calls.Service, stored: float, operand: float
) -> None:
    key = near.key("T", 1)
    near.put(key, high=stored, low=stored)
    commit(near, key, ("high", "maximum", operand), ("low", "minimum", operand))
    found = near.get(key)
    if math.isnan(stored) or math.isnan(operand):
        assert math.isnan(found["high"])
        assert math.isnan(found["low"])
        return
    assert (found["high"], found["low"]) == (max(stored, operand), min(stored, operand))
    if stored == operand:
        assert repr((found["high"], found["low"])) == repr((stored, stored))


elements = st.one_of(numbers, st.sampled_from([None, "", "3", b"3", True, False]))


def same(left: Any, right: Any) -> bool:
    """Return whether two elements are equal; unlike in Python, True is not 1."""
    if isinstance(left, float) and isinstance(right, float) and left != left:  # noqa: PLR0124
        return right != right  # noqa: PLR0124
    return (isinstance(left, bool) == isinstance(right, bool)) and left == right


def is_in(element: Any, array: list[Any]) -> bool:
    return any(same(element, each) for each in array)


@given(st.lists(elements, max_size=6), st.lists(elements, max_size=6))
def test_appended_elements_appear_once_and_removed_ones_not_at_all(
    near: service_calls.Service, stored: list[Any], operand: list[Any]
) -> None:
    key = near.key("T", 1)
    near.put(key, more=stored, less=stored)
    commit(
        near,
        key,
        ("more", "append_missing_elements", operand),
        ("less", "remove_all_from_array", operand),
    )
    expected = list(stored)
    for each in operand:
        if not is_in(each, expected):
            expected.append(each)
    found = near.get(key)
    assert repr(found["more"]) == repr(expected)
    assert repr(found["less"]) == repr([each for each in stored if not is_in(each, operand)])
