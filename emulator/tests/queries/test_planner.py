"""Query plans: the index that serves a query, and the recommended index if no index does."""

from typing import Any

import pytest

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.queries import filters, parser, planner, query_cursors, query_plan

HERE = keys.Partition("p")
OPERATORS = {"<": 1, ">": 3, ">=": 4, "=": 5, "in": 6}


def query(
    *filters: tuple[Any, ...],
    order: list[str] | tuple[()] = (),
    projection: list[str] | tuple[()] = (),
) -> parser.Query:
    made = protobufs.Query(kind=[{"name": "K"}])
    if filters:
        made.filter.composite_filter.op = 1
    for name, operator, given in filters:
        part = made.filter.composite_filter.filters.add().property_filter
        part.property.name = name
        part.op = OPERATORS[operator]
        numbers = given if isinstance(given, list) else [given]
        if operator == "in":
            part.value.array_value.values.extend(protobufs.Value(integer_value=n) for n in numbers)
        else:
            part.value.integer_value = given
    for name in order:
        made.order.add(property={"name": name.lstrip("-")}, direction=1 + name.startswith("-"))
    for name in projection:
        made.projection.add(property={"name": name})
    return parser.parse(made, HERE)


def index(*names: str) -> indexes.Index:
    return indexes.Index("K", tuple((name.lstrip("-"), name.startswith("-")) for name in names))


def scans(plan: query_plan.QueryPlan) -> list[list[list[str]]]:
    return [
        [[name for name, _ in scan.index.properties] for scan in branch.scans]
        for branch in plan.branches
    ]


def test_one_index_for_all_filters_is_preferred_to_a_join() -> None:
    asked = query(("a", "=", 1), ("b", "=", 2), order=["c"])
    both, left, right = index("a", "b", "c"), index("a", "c"), index("b", "c")
    assert scans(planner.plan(asked, [left, right, both])) == [[["a", "b", "c"]]]
    assert scans(planner.plan(asked, [left, right])) == [[["a", "c"], ["b", "c"]]]
    with pytest.raises(errors.MissingIndex) as caught:
        planner.plan(asked, [left])
    assert caught.value.recommended == (
        "- kind: K\n  properties:\n  - name: a\n  - name: b\n  - name: c\n"
    )


def test_a_descending_column_can_serve_an_equality() -> None:
    asked = query(("a", "=", 1), order=["c"])
    assert scans(planner.plan(asked, [index("-a", "c")])) == [[["a", "c"]]]


def test_two_values_of_one_property_are_two_scans() -> None:
    asked = query(("a", "=", 1), ("a", "=", 2), order=["c"])
    assert scans(planner.plan(asked, [index("a", "c")])) == [[["a", "c"], ["a", "c"]]]


def test_in_is_a_union_of_branches_and_one_value_is_one_branch() -> None:
    assert len(planner.plan(query(("a", "in", [1, 2, 3])), []).branches) == 3
    assert len(planner.plan(query(("a", "in", [1, 1])), []).branches) == 1


def test_filters_that_contradict_each_other_scan_nothing() -> None:
    plan = planner.plan(query(("a", ">", 5), ("a", "<", 3)), [])
    assert [branch.segments for branch in plan.branches] == [()]


def test_a_filter_that_nothing_meets_still_needs_its_index() -> None:
    asked = query(("a", "in", [1]), ("b", ">", 5), ("b", "<", 3))
    with pytest.raises(errors.MissingIndex):
        planner.plan(asked, [])
    assert scans(planner.plan(asked, [index("a", "b")])) == [[["a", "b"]]]


def test_an_equal_value_inside_a_range_meets_it() -> None:
    assert scans(planner.plan(query(("a", "=", 5), ("a", ">", 3)), [])) == [[["a"]]]
    with pytest.raises(errors.MissingIndex):
        planner.plan(query(("a", "=", 1), ("a", ">", 3)), [])


def test_a_projection_takes_the_order_of_its_index() -> None:
    asked = query(projection=["a", "b"])
    assert planner.plan(asked, [index("b", "-a")]).columns == (("b", False), ("a", True))


def test_constants_are_inserted_into_positions_and_removed() -> None:
    asked = query(("b", "in", [1, 2]), order=["a", "-b", "c"])
    plan = planner.plan(asked, [index("b", "a", "c")])
    suffix = b"\x31" + b"\x30" + b"\x10key"
    first, second = plan.branches
    positions = [plan.position(branch, suffix) for branch in plan.branches]
    assert positions[1] < positions[0]  # B is descending
    for branch, position in zip(plan.branches, positions, strict=True):
        assert plan.suffix_from(branch, position, past=False) == suffix
        assert plan.suffix_from(branch, position, past=True) == suffix + b"\x00"
    assert plan.suffix_from(first, positions[1], past=True) == b"\x31"
    assert plan.suffix_from(second, positions[0], past=True) == b"\x31\xff"


def test_segments_are_between_two_cursors() -> None:
    plan = planner.plan(query(order=["a"]), [])
    branch = plan.branches[0]
    start, end = query_cursors.Position(b"\x31a"), query_cursors.Position(b"\x31c", is_before=True)
    assert plan.segments(branch, start, end) == ((b"\x31a\x00", b"\x31c"),)
    assert plan.segments(branch, query_cursors.Position(b""), None) == ((b"", b"\xff"),)
    assert plan.segments(branch, query_cursors.Position(b"\xff"), None) == ()


def test_ranges_keep_the_narrower_bound() -> None:
    whole = filters.Range()
    low = whole.narrow(4, b"c").narrow(3, b"c").narrow(4, b"b").narrow(4, b"c")
    assert (low.low, low.is_low_open) == (b"c", True)
    high = low.narrow(2, b"x").narrow(1, b"x").narrow(2, b"y").narrow(2, b"x")
    assert (high.high, high.is_high_open) == (b"x", True)
    assert [high.contains(value) for value in (b"b", b"c", b"d", b"w", b"x", b"y")] == [
        False, False, True, True, False, False,
    ]  # fmt: skip
    assert filters.Range(b"a", b"a", is_low_open=True).is_empty
    assert not filters.Range(b"a", b"a", is_low_open=True).is_point
