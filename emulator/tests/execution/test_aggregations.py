"""COUNT, SUM and AVG, through both transports."""

# ruff: noqa: DTZ001 - protobuf takes naive UTC

import datetime as dt
import math
import threading
from typing import Any

import pytest

from emulator.tests.support import service_calls
from emulator.tests.support.aggregation_calls import batch, one, over, put_all, run
from emulator.tests.support.service_calls import assert_refused

CHARACTERS = (
    ("Rickard", 9, "Stark"),
    ("Eddard", 9, "Stark"),
    ("Catelyn", 26, ["Stark", "Tully"]),
    ("Arya", 33, "Stark"),
    ("Sansa", 31, "Stark"),
    ("Robb", 22, "Stark"),
    ("Bran", 25, "Stark"),
    ("Jon Snow", 32, "Stark"),
)


@pytest.fixture
def characters(service: service_calls.Service) -> None:
    for name, appearances, family in CHARACTERS:
        service.put(service.key("T", name), a=appearances, c=family)


def test_the_results_of_googles_own_system_tests(
    service: service_calls.Service, characters: None
) -> None:
    query = service.query()
    assert one(service, query, over("a"), over("a", "avg"), {"count": {}}) == [187, 23.375, 8]
    assert one(service, query, over("c"), over("c", "avg")) == [0, None]
    starks = service.query("T", ("c", "=", "Stark"), ("a", ">=", 20))
    assert one(service, starks, over("a", "avg")) == [28.166666666666668]
    nobody = service.query("T", ("c", "=", "NoMatch"))
    assert one(service, nobody, over("a"), over("a", "avg")) == [0, None]


def test_a_limit_without_an_order_takes_the_smallest_values(
    service: service_calls.Service, characters: None
) -> None:
    assert one(service, service.query(limit=7), over("a")) == [154]
    assert one(service, service.query(limit=5), over("a"), over("a", "avg")) == [91, 18.2]
    assert one(service, service.query(limit=2, offset=3), over("a"), {"count": {}}) == [51, 2]
    assert one(service, service.query(order=["-a"], limit=2), over("a")) == [65]
    assert one(service, service.query(limit=0), over("a"), over("a", "avg")) == [0, None]


def test_integers_stay_exact_and_become_a_double_beyond_64_bits(
    service: service_calls.Service,
) -> None:
    low = -(2**63)
    put_all(service, {"a": low}, {"b": low}, {"a": low, "b": -1, "c": 1}, {"b": 2**63 - 1, "c": 1})
    (found,) = one(service, service.query(), over("a"))
    assert (type(found), found) == (float, -1.8446744073709552e19)
    (found,) = one(service, service.query(limit=1), over("a"))
    assert (type(found), found) == (int, low)
    (found,) = one(service, service.query(), over("b"))
    assert (type(found), found) == (int, -2)
    (found,) = one(service, service.query(), over("b", "avg"))
    assert (type(found), found) == (float, -2 / 3)


def test_any_double_makes_the_sum_a_double(service: service_calls.Service) -> None:
    put_all(service, {"a": 1}, {"a": 2.0}, {"b": 4}, {"b": "x"}, {"b": None}, {"b": True})
    (found,) = one(service, service.query(), over("a"))
    assert (type(found), found) == (float, 3.0)
    (found,) = one(service, service.query(), over("b"))
    assert (type(found), found) == (int, 4)
    (found,) = one(service, service.query("T", ("a", "=", 2.0)), over("a"))
    assert (type(found), found) == (float, 2.0)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([math.nan, 1], math.nan),
        ([math.inf, 1], math.inf),
        ([-math.inf, 1.0], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([1e308, 1e308], math.inf),
        ([-1e308, -1e308], -math.inf),
        ([1e308, 1e308, -1e308], 1e308),
        ([0.1] * 10, 1.0),
    ],
)
def test_sums_of_doubles_follow_ieee_754_and_are_rounded_once(
    near: service_calls.Service, numbers: list[Any], expected: float
) -> None:
    put_all(near, *({"a": number} for number in numbers))
    (total,) = one(near, near.query(), over("a"))
    assert isinstance(total, float)
    assert total == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


def test_the_mean_of_two_huge_doubles_does_not_overflow(near: service_calls.Service) -> None:
    put_all(near, {"a": 1e308}, {"a": 1e308})
    assert one(near, near.query(), over("a", "avg")) == [1e308]


def test_a_timestamp_counts_as_its_microseconds(service: service_calls.Service) -> None:
    put_all(service, {"a": dt.datetime(1970, 1, 1, 0, 0, 1)}, {"a": 5})
    assert one(service, service.query(), over("a")) == [1_000_005]


def test_entities_without_a_summed_property_are_left_out_of_every_aggregation(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    put_all(service, {"a": 1, "b": 1}, {"a": 2}, {"b": 4}, {"a": unindexed(8), "b": 8})
    query = service.query()
    assert one(service, query, {"count": {}}) == [4]
    assert one(service, query, {"count": {}}, over("a")) == [2, 3]
    assert one(service, query, {"count": {}}, over("a"), over("b", "avg")) == [1, 1, 1.0]


def test_each_array_value_that_meets_the_query_counts(service: service_calls.Service) -> None:
    put_all(service, {"a": [4, 5, 5, 6], "c": 1}, {"a": [1, 9]}, {"a": 5}, {"a": []})
    assert one(service, service.query(), {"count": {}}) == [4]
    assert one(service, service.query(order=["a"]), {"count": {}}) == [7]
    assert one(service, service.query("T", ("a", ">", 4)), {"count": {}}, over("a")) == [4, 25]
    assert one(service, service.query("T", ("a", "=", 5)), {"count": {}}, over("a")) == [2, 10]
    assert one(service, service.query(), over("a"), over("a", "avg")) == [30, 5.0]
    assert one(service, service.query(limit=3), over("a"), {"count": {}}) == [5, 3]


def test_a_sum_needs_the_index_that_holds_filters_orders_and_sum(
    service: service_calls.Service,
) -> None:
    put_all(service, {"a": 1, "b": 2, "c": 3}, {"a": 5, "c": 3})
    assert one(service, service.query("T", ("c", "=", 3)), over("a")) == [6]
    assert one(service, service.query(order=["-a"]), over("b")) == [2]
    wanted = "- kind: T\n  properties:\n  - name: b\n  - name: c\n"
    with assert_refused("FAILED_PRECONDITION", wanted):
        run(service, service.query("T", ("b", "=", 2)), over("c"))
    assert one(service, service.query("T", ("b", "=", 2)), over("b")) == [2]
    assert one(service, service.query("T", ("a", "in", [1, 5])), over("a")) == [6]


def test_sums_of_embedded_and_descendant_entities(service: service_calls.Service) -> None:
    parent = service.key("T", 1)
    service.put(parent, o={"x": 4}, a=1)
    service.put(service.key("T", 1, "T", 2), a=2, o={"x": 5})
    service.put(service.key("T", 3), a=4)
    assert one(service, service.query(), over("o.x")) == [9]
    below = service.query("T", ("__key__", "under", parent), order=["-a"])
    assert one(service, below, over("a"), {"count": {}}) == [3, 2]


def test_cursors_limit_an_aggregation_in_its_own_order(service: service_calls.Service) -> None:
    put_all(service, *({"a": n} for n in range(1, 7)))
    pages = service.batch(service.query(order=["a"], limit=2))
    query = service.query(order=["a"], start_cursor=pages.end_cursor)
    assert one(service, query, over("a"), {"count": {}}) == [18, 4]
    pages = service.batch(service.query(limit=2))
    query = service.query(end_cursor=pages.end_cursor)
    assert one(service, query, {"count": {}}) == [2]
    with assert_refused("UNIMPLEMENTED", "cursor"):
        run(service, query, over("a"))


def test_a_projection_limits_what_can_be_aggregated(service: service_calls.Service) -> None:
    put_all(service, {"a": 1, "b": 2}, {"a": [3, 4], "b": 5})
    both = service.query(projection=["a", "b"], order=["a", "b"])
    assert one(service, both, over("a"), over("b"), {"count": {}}) == [8, 12, 3]
    with assert_refused("INVALID_ARGUMENT", "projection"):
        run(service, service.query(projection=["a"]), over("b"))
    with assert_refused("INVALID_ARGUMENT", "projection"):
        run(service, service.query(keys_only=True), over("a"))
    assert one(service, service.query(keys_only=True), {"count": {}}) == [2]


def test_up_to_limits_only_counts(service: service_calls.Service) -> None:
    put_all(service, *({"a": n} for n in range(1, 7)))

    def up_to(most: int) -> dict[str, dict[str, dict[str, int]]]:
        return {"count": {"up_to": {"value": most}}}

    query = service.query()
    assert one(service, query, up_to(4), {"count": {}}, over("a")) == [4, 6, 21]
    assert one(service, query, up_to(0), over("a")) == [0, 21]
    assert one(service, query, up_to(0), up_to(5)) == [0, 5]
    assert one(service, query, up_to(2**63 - 1)) == [6]
    assert one(service, service.query(limit=3, offset=1), up_to(2), over("a")) == [2, 9]


def test_aliases_are_returned_and_unnamed_results_numbered(service: service_calls.Service) -> None:
    put_all(service, {"a": 1})
    found = run(
        service, service.query(), over("a"), over("a", "avg", "mean"), {"count": {}}, over("a")
    )
    assert found == {"property_1": 1, "mean": 1.0, "property_2": 1, "property_3": 1}
    answer = batch(service, service.query(), {"count": {}})
    assert answer.more_results == 3
    assert answer.read_time.seconds


def test_malformed_aggregations_are_refused(service: service_calls.Service) -> None:
    query = service.query()
    count = {"count": {}}
    asked: dict[str, list[Any]] = {
        "Received: 6": [count] * 6,
        "Received: 0": [],
        "duplicate alias: x": [over("a", alias="x"), {"count": {}, "alias": "x"}],
        "duplicate alias: property_1": [{"count": {}, "alias": "property_1"}, count],
        "not supported for the property: __key__": [over("__key__", "avg")],
        "empty string": [over("")],
        "no operator": [{"alias": "x"}],
        "up_to must not be negative": [{"count": {"up_to": {"value": -1}}}],
        "reserved": [{"count": {}, "alias": "__x__"}],
        "1 to 1500 bytes": [{"count": {}, "alias": "x" * 1501}],
    }
    for text, aggregated in asked.items():
        with assert_refused("INVALID_ARGUMENT", text):
            run(service, query, *aggregated)
    with assert_refused("INVALID_ARGUMENT", "kind is required"):
        run(service, service.query(None), over("a"))
    with assert_refused("INVALID_ARGUMENT", "nested_query"):
        service.call("RunAggregationQuery", aggregation_query={"aggregations": [count]})
    with assert_refused("INVALID_ARGUMENT"):
        service.call("RunAggregationQuery")
    with assert_refused("UNIMPLEMENTED", "two equality filters"):
        run(service, service.query("T", ("a", "=", 1), ("a", "=", 2)), over("a"))


@pytest.mark.parametrize(
    ("change", "is_aborted"),
    [({"a": 9}, True), ({"z": 1}, True), ({"a": 2, "z": 1}, False)],
    ids=["a summed value", "a value that is gone", "a property that was not read"],
)
def test_a_sum_in_a_transaction_aborts_if_its_reads_change(
    service: service_calls.Service,
    change: dict[str, int],
    is_aborted: bool,
) -> None:
    put_all(service, {"a": 1}, {"a": 2})
    transaction = service.begin()
    assert one(service, service.query(), over("a"), transaction=transaction) == [3]
    service.put(service.key("T", 2), **change)
    assert one(service, service.query(), over("a"), transaction=transaction) == [3]
    mutation = {"upsert": service.entity(service.key("U", 1))}
    if not is_aborted:
        service.commit(mutation, transaction=transaction)
        return
    with assert_refused("ABORTED"):
        service.commit(mutation, transaction=transaction)


def test_a_value_that_appears_in_a_summed_range_aborts(service: service_calls.Service) -> None:
    put_all(service, {"a": 1}, {"b": 2})
    transaction = service.begin()
    query = service.query("T", ("a", "<", 5))
    assert one(service, query, over("a"), transaction=transaction) == [1]
    service.put(service.key("T", 2), a=4)
    with assert_refused("ABORTED"):
        service.commit({"upsert": service.entity(service.key("U", 1))}, transaction=transaction)


def test_a_sum_begins_a_transaction(service: service_calls.Service) -> None:
    put_all(service, {"a": 1})
    response = service.call(
        "RunAggregationQuery",
        aggregation_query={"nested_query": service.query(), "aggregations": [over("a")]},
        read_options={"new_transaction": {}},
    )
    service.put(service.key("T", 1), a=2)
    with assert_refused("ABORTED"):
        service.commit(
            {"upsert": service.entity(service.key("U", 1))}, transaction=response.transaction
        )


def test_a_sum_of_an_earlier_moment(service: service_calls.Service) -> None:
    put_all(service, {"a": 1})
    before = batch(service, service.query(), over("a")).read_time
    put_all(service, {"a": 2}, {"a": 3})
    assert one(service, service.query(), over("a"), read_time=before) == [1]
    assert one(service, service.query(), over("a")) == [5]


def test_groups_of_distinct_results_count_once(service: service_calls.Service) -> None:
    put_all(service, *({"a": n % 3, "b": n} for n in range(7)))
    query = service.query(order=["a", "b"])
    query.distinct_on.add(name="a")
    assert one(service, query, {"count": {}}, over("b")) == [3, 3]
    assert one(service, query, {"count": {}}) == [3]
    query.offset = 1
    assert one(service, query, {"count": {}}, over("b")) == [2, 3]


def test_disjunctions_that_match_at_one_position_count_once(service: service_calls.Service) -> None:
    put_all(service, {"a": [1, 2], "c": 1}, {"a": 2}, {"a": 3})
    query = service.query("T", ("a", "in", [1, 2]))
    assert one(service, query, {"count": {}}) == [2]
    ordered = service.query("T", ("a", "in", [1, 2]), order=["a"])
    assert one(service, ordered, {"count": {}}, over("a")) == [3, 5]
    assert one(service, service.query("T", ("a", "!=", 1)), {"count": {}}, over("a")) == [3, 7]


def test_counts_of_an_earlier_moment(service: service_calls.Service) -> None:
    put_all(service, {"a": 1}, {"a": 2}, {"a": 3})
    before = batch(service, service.query(), {"count": {}}).read_time
    service.delete(service.key("T", 2))
    service.put(service.key("T", 3), a=9)
    for filters, then, now in (((), 3, 2), ((("a", "<", 4),), 3, 1)):
        query = service.query("T", *filters)
        assert one(service, query, {"count": {}}, read_time=before) == [then]
        assert one(service, query, {"count": {}}) == [now]
    up_to = {"count": {"up_to": {"value": 2}}}
    assert one(service, service.query(None), up_to, read_time=before) == [2]


def test_counts_with_inequalities_limits_and_offsets(near: service_calls.Service) -> None:
    put_all(near, *({"a": n % 5, "b": n % 4, "c": n % 2} for n in range(40)))
    count = {"count": {}}
    other = near.query("T", ("a", "!=", 2))
    assert one(near, other, count) == [32]
    other.limit.value, other.offset = 17, 3
    assert one(near, other, count) == [17]
    both = near.query("T", ("a", ">=", 3), ("b", "<", 2), order=["a", "b"])
    assert one(near, both, count) == [8]
    only = near.query("T", ("__key__", "=", near.key("T", 7)), ("a", ">=", 0), order=["a"])
    assert one(near, only, count) == [1]


def test_metadata_kinds_can_be_counted_but_not_summed(service: service_calls.Service) -> None:
    put_all(service, {"a": 1})
    service.put(service.key("U", 1))
    assert one(service, service.query("__kind__"), {"count": {}}) == [2]
    assert one(service, service.query("__kind__", limit=1), {"count": {}}) == [1]
    with assert_refused("INVALID_ARGUMENT"):
        run(service, service.query("__kind__"), over("a"))


@pytest.mark.slow
def test_concurrent_sums_and_transfers_always_see_the_same_total(
    near: service_calls.Service,
) -> None:
    put_all(near, {"a": 50}, {"a": 50})
    done = threading.Event()
    failures = []

    def watch() -> None:
        while not done.is_set():
            found = one(near, near.query(), over("a"), {"count": {}})
            if found != [100, 2]:
                failures.append(found)

    watchers = [threading.Thread(target=watch) for _ in range(2)]
    for each in watchers:
        each.start()
    for amount in range(50):
        near.commit(
            {"upsert": near.entity(near.key("T", 1), a=50 - amount)},
            {"upsert": near.entity(near.key("T", 2), a=50 + amount)},
        )
    done.set()
    for each in watchers:
        each.join()
    assert failures == []
