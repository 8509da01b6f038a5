"""Claims about variants: the plan of one is what the planner makes of it, whatever the values."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import errors, protobufs
from emulator.encoding import indexes, keys
from emulator.queries import filters, parser, planner, query_plan, query_shapes

HERE = keys.Partition("p")
NAMES = "abcd"
VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(lambda n: {"integer_value": n}),
    st.text(max_size=3).map(lambda text: {"string_value": text}),
    st.booleans().map(lambda flag: {"boolean_value": flag}),
    st.floats().map(lambda number: {"double_value": number}),
    st.binary(max_size=3).map(lambda blob: {"blob_value": blob}),
    st.just({"null_value": 0}),
    st.just({"timestamp_value": {"seconds": 5}}),
)
COLUMNS = st.tuples(st.sampled_from(NAMES), st.booleans())
COMPOSITES = st.lists(
    st.lists(COLUMNS, min_size=2, max_size=4, unique_by=lambda column: column[0]).map(
        lambda columns: indexes.Index("K", tuple(columns))
    ),
    max_size=4,
)


def asked(
    equals: dict[str, Any],
    order: list[tuple[str, bool]] | tuple[()] = (),
    projection: list[str] | tuple[()] = (),
    limit: int | None = None,
) -> Any:
    made = protobufs.Query(kind=[{"name": "K"}])
    if len(equals) > 1:
        made.filter.composite_filter.op = 1
    for name, value in equals.items():
        part = made.filter.composite_filter.filters.add() if len(equals) > 1 else made.filter
        part.property_filter.property.name = name
        part.property_filter.op = filters.EQUAL
        part.property_filter.value.CopyFrom(protobufs.Value(**value))
    for name, is_descending in order:
        made.order.add(property={"name": name}, direction=1 + is_descending)
    for name in projection:
        made.projection.add(property={"name": name})
    if limit is not None:
        made.limit.value = limit
    return made


@st.composite
def pairs(draw: Callable[..., Any]) -> tuple[Any, ...]:
    """Two queries that differ in values, perhaps with an index that serves them among others."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    order = draw(st.lists(COLUMNS, max_size=2, unique_by=lambda column: column[0]))
    projection = draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True))
    made = [asked({name: draw(VALUES) for name in names}, order, projection) for _ in range(2)]
    composites = draw(COMPOSITES)
    if draw(st.booleans()):
        fixed = [(name, draw(st.booleans())) for name in names]
        rest = [*order, *((name, False) for name in projection)]
        named = {name: (name, goes_down) for name, goes_down in (*rest, *fixed)}
        columns = [*fixed, *(each for each in named.values() if each[0] not in names)]
        composites.append(indexes.Index("K", tuple(columns)))
    return *made, composites


def planned(message: Any, composites: list[indexes.Index]) -> Any:
    try:
        return planner.plan(parser.parse(message, HERE), composites)
    except (errors.InvalidArgument, errors.MissingIndex, errors.Unimplemented) as refused:
        return type(refused), str(refused)


@given(pairs())
def test_the_plan_of_a_variant_is_what_the_planner_makes_of_it(case: tuple[Any, ...]) -> None:
    one, other, composites = case
    first, second = query_shapes.read(one, HERE), query_shapes.read(other, HERE)
    assert first.shape == second.shape
    plan, expected = planned(one, composites), planned(other, composites)
    if isinstance(expected, query_plan.Plan):
        assert query_shapes.like(plan, second.equals) == expected
    else:
        assert plan == expected


@given(pairs())
def test_taking_a_query_apart_leaves_it_as_it_is(case: tuple[Any, ...]) -> None:
    before = case[0].SerializeToString(deterministic=True)
    query_shapes.read(case[0], HERE)
    assert case[0].SerializeToString(deterministic=True) == before


@pytest.mark.parametrize(
    "more",
    [{"order": [("b", True)]}, {"projection": ["b"]}, {"limit": 2}, {"order": [("b", False)]}],
)
def test_whatever_else_a_query_says_is_part_of_its_shape(more: dict[str, Any]) -> None:
    one = {"a": {"integer_value": 1}}
    assert (
        query_shapes.read(asked(one), HERE).shape
        != query_shapes.read(asked(one, **more), HERE).shape
    )


def _or(made: Any) -> None:
    made.filter.composite_filter.op = 2


def _twice(made: Any) -> None:
    made.filter.composite_filter.filters[0].property_filter.property.name = "b"


def _greater(made: Any) -> None:
    made.filter.composite_filter.filters[0].property_filter.op = 3


def _key(made: Any) -> None:
    made.filter.composite_filter.filters[0].property_filter.property.name = "__key__"


def _nameless(made: Any) -> None:
    made.filter.composite_filter.filters[0].property_filter.property.name = ""


def _unindexed(made: Any) -> None:
    made.filter.composite_filter.filters[0].property_filter.value.exclude_from_indexes = True


def _valueless(made: Any) -> None:
    made.filter.composite_filter.filters[0].property_filter.ClearField("value")


def _listed(made: Any) -> None:
    value = made.filter.composite_filter.filters[0].property_filter.value
    value.array_value.values.add(integer_value=1)


def _referring(made: Any) -> None:
    value = made.filter.composite_filter.filters[0].property_filter.value
    value.key_value.path.add(kind="K", id=1)


def _nested(made: Any) -> None:
    made.filter.composite_filter.filters[0].composite_filter.op = 1


def _empty(made: Any) -> None:
    made.filter.composite_filter.ClearField("filters")


def _kindless(made: Any) -> None:
    made.ClearField("kind")


def _unfiltered(made: Any) -> None:
    made.ClearField("filter")


@pytest.mark.parametrize(
    "change",
    [
        *(_or, _twice, _greater, _key, _nameless, _unindexed, _valueless, _listed, _referring),
        *(_nested, _empty, _kindless, _unfiltered),
    ],
)
def test_what_differs_in_more_than_values_has_no_shape(change: Callable[..., Any]) -> None:
    made = asked({"a": {"integer_value": 1}, "b": {"integer_value": 2}})
    assert query_shapes.read(made, HERE) is not None
    change(made)
    assert query_shapes.read(made, HERE) is None
