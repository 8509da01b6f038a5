"""Laws of aggregations: sums are exact, and counts and sums equal those of a brute-force search."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import inprocess, testing
from datastore_emulator.execution import aggregations
from emulator.tests.support import service_calls
from emulator.tests.support.aggregation_calls import one, over, put_all

INTEGERS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(INTEGERS | DOUBLES))
def test_a_sum_is_the_exact_sum_rounded_once_in_any_order(listed: list[Any]) -> None:
    exact = sum(map(Fraction, listed), Fraction(0))
    forward, backward = aggregations.Numbers(), aggregations.Numbers()
    for number in listed:
        forward.add(number)
    for number in reversed(listed):
        backward.add(number)
    is_integer = all(isinstance(each, int) for each in listed) and -(2**63) <= exact < 2**63
    try:
        expected = int(exact) if is_integer else float(exact)
        mean = float(exact / len(listed)) if listed else None
    except OverflowError:
        expected = math.inf if exact > 0 else -math.inf
        mean = forward.average()
    assert (type(forward.sum()), forward.sum()) == (type(expected), expected)
    assert backward.sum() == forward.sum()
    assert forward.average() == backward.average() == mean


SCALARS = st.none() | st.integers(-3, 3) | st.sampled_from([0.5, -1.5, 2.0]) | st.just("x")
HELD = SCALARS | st.lists(SCALARS, max_size=3)
ENTITIES = st.lists(st.fixed_dictionaries({}, optional={"a": HELD, "b": HELD}), max_size=6)
RANKS = {type(None): 0, int: 1, str: 2, float: 3}


def rank(value: float | str | None) -> tuple[Any, ...]:
    return (RANKS[type(value)], 0 if value is None else value)


def entries_of(value: Any) -> list[Any]:
    """Return the distinct index entries of a property, in order."""
    listed = value if isinstance(value, list) else [value]
    return sorted({rank(each): each for each in listed or [None]}.values(), key=rank)


FILTERS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["=", "<", ">=", "!="]), st.integers(-2, 2)),
    max_size=2,
)


@given(
    stored=ENTITIES,
    filters=FILTERS,
    order=st.sampled_from([[], ["a"], ["-a"], ["a", "b"], ["-__key__"]]),
    start=st.none() | st.integers(0, 4),
    end=st.none() | st.integers(0, 4),
    offset=st.integers(0, 3),
    limit=st.none() | st.integers(0, 5),
    most=st.none() | st.integers(0, 5) | st.just(2**63 - 1),
)
def test_a_count_by_sqlite_equals_one_by_a_recorded_scan(  # noqa: PLR0917
    make_service: type[service_calls.Service],
    index_yaml: Path,
    stored: list[Any],
    filters: list[tuple[str, str, int]],
    order: list[str],
    start: int | None,
    end: int | None,
    offset: int,
    limit: int | None,
    most: int | None,
) -> None:
    with inprocess.open_engine(None, indexes=index_yaml) as engine:
        service = make_service(inprocess.Channel(engine))
        put_all(service, *stored)
        query = service.query("T", *filters, order=order)
        try:
            cursors = [each.cursor for each in service.batch(query).entity_results]
        except grpc.RpcError:
            return  # No index serves the query, or it is invalid
        query.start_cursor = cursors[start] if start is not None and start < len(cursors) else b""
        query.end_cursor = cursors[end] if end is not None and end < len(cursors) else b""
        query.offset = offset
        if limit is not None:
            query.limit.value = limit
        up_to = {} if most is None else {"up_to": {"value": most}}
        walked = one(service, query, {"count": up_to}, transaction=service.begin())
        with testing.meter(engine) as cost:
            counted = one(service, query, {"count": up_to})
        assert counted == walked
        assert cost.index_entries >= counted[0]


@given(
    stored=ENTITIES,
    bound=st.none() | st.integers(-2, 2),
    is_descending=st.booleans(),
    offset=st.integers(0, 3),
    limit=st.none() | st.integers(0, 5),
    most=st.none() | st.integers(0, 5),
)
def test_aggregations_agree_with_brute_force_over_entries(  # noqa: PLR0917 - the arguments are drawn values
    make_service: type[service_calls.Service],
    index_yaml: Path,
    stored: list[Any],
    bound: int | None,
    is_descending: bool,
    offset: int,
    limit: int | None,
    most: int | None,
) -> None:
    rows = []
    for place, entity in enumerate(stored):
        if "a" in entity and "b" in entity:
            rows += [
                (a, b, place) for a in entries_of(entity["a"]) for b in entries_of(entity["b"])
            ]
    if bound is not None:
        rows = [row for row in rows if rank(row[0]) >= rank(bound)]
    rows.sort(key=lambda row: (rank(row[1]), row[2]))
    rows.sort(key=lambda row: rank(row[0]), reverse=is_descending)
    rows = rows[offset:][:limit]
    numbers = [each for _, each, _ in rows if isinstance(each, int | float)]

    with inprocess.open_engine(None, indexes=index_yaml) as engine:
        service = make_service(inprocess.Channel(engine))
        put_all(service, *stored)
        filters = [] if bound is None else [("a", ">=", bound)]
        order = ["-a" if is_descending else "a"]
        query = service.query("T", *filters, order=order, offset=offset, limit=limit)
        up_to = {} if most is None else {"up_to": {"value": most}}
        found = one(service, query, over("b"), over("b", "avg"), {"count": up_to})

    count = len(rows) if most is None else min(most, len(rows))
    mean = sum(numbers) / len(numbers) if numbers else None
    assert found == [sum(numbers), pytest.approx(mean), count]
    assert type(found[0]) is (float if any(isinstance(n, float) for n in numbers) else int)
