"""Filters: OR, !=, NOT_IN, several inequalities, and keys combined with other properties."""

import pytest

from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused, put_all


@pytest.fixture
def grid(near: service_calls.Service) -> service_calls.Service:
    """Store the entities 11, 12, ... 55: a is the first digit, and b is the second digit."""
    put_all(near, *((10 * a + b, {"a": a, "b": b}) for a in range(1, 6) for b in range(1, 6)))
    return near


def test_or_finds_what_either_side_finds_once_and_in_key_order(
    service: service_calls.Service,
) -> None:
    put_all(service, (1, {"a": 1}), (2, {"a": 1, "b": 2}), (3, {"b": 2}), (4, {"a": 3, "b": 3}))
    assert service.names("T", ("or", ("a", "=", 1), ("b", "=", 2))) == [1, 2, 3]
    assert service.names("T", ("or", ("a", "=", 3), ("a", "=", 3), ("a", "in", [3, 4]))) == [4]
    assert service.count(service.query("T", ("or", ("a", "=", 1), ("b", "=", 2))), None) == [3]


def test_and_and_or_can_be_nested(grid: service_calls.Service) -> None:
    either = ("or", ("a", "=", 1), ("and", ("a", "=", 2), ("b", "in", [1, 2])))
    assert grid.names("T", either) == [11, 12, 13, 14, 15, 21, 22]
    assert grid.names("T", either, ("or", ("b", "=", 2), ("b", "=", 5))) == [12, 15, 22]
    assert grid.names("T", ("or", ("or", ("and", ("a", "=", 4))), either), ("b", "=", 3)) == [
        13,
        43,
    ]


def test_an_inequality_in_one_branch_requires_the_property_in_all_results(
    service: service_calls.Service,
) -> None:
    put_all(service, ("nob", {"a": 1}), (1, {"a": 1, "b": 1}), (2, {"b": 3}), (3, {"a": 1, "b": 4}))
    either = ("or", ("a", "=", 1), ("b", ">", 2))
    assert service.names("T", either) == [1, 2, 3]
    assert service.names("T", ("or", ("a", "=", 1), ("b", "=", 3))) == [1, 2, 3, "nob"]


def test_at_most_30_disjunctions_are_allowed(near: service_calls.Service) -> None:
    put_all(near, (1, {"a": 1, "b": 1, "x": 1}))
    five = ("or", *(("a", "=", n) for n in range(5)))
    six = ("or", *(("b", "=", n) for n in range(6)))
    assert near.names("T", five, six) == [1]
    assert near.names("T", ("or", five, six), ("x", "in", [1, 2])) == [1]
    for filters in (
        (five, six, ("x", "in", [1, 2])),
        (("or", *(("a", "=", n) for n in range(31))),),
        (("or", ("a", "in", list(range(20))), ("b", "in", list(range(11)))),),
    ):
        with assert_refused("INVALID_ARGUMENT", "30 disjunctions"):
            near.names("T", *filters)


def test_all_disjunctions_share_one_ancestor(near: service_calls.Service) -> None:
    for n in (1, 2):
        near.put(near.key("A", n, "T", n), a=n)
    under = ("__key__", "under", near.key("A", 1))
    other = ("__key__", "under", near.key("A", 2))
    one, two = ("a", "=", 1), ("a", "=", 2)
    assert near.names("T", under, ("or", one, two)) == [1]
    assert near.names("T", ("or", ("and", under, one), ("and", under, two))) == [1]
    for filters in (
        (("or", ("and", under, one), ("and", other, two)),),
        (("or", ("and", under, one), two),),
    ):
        with assert_refused("INVALID_ARGUMENT", "HAS_ANCESTOR"):
            near.names("T", *filters)
    with assert_refused("INVALID_ARGUMENT", "duplicate ancestor"):
        near.names("T", under, ("or", ("and", under, one), two))


def test_not_equal_finds_other_existing_values(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    put_all(
        service,
        (1, {"a": 1}), (2, {"a": None}), (3, {"a": "x"}), (4, {}), (5, {"a": unindexed(2)}),
        (6, {"a": []}), (7, {"a": 0}), (8, {"a": ""}),
    )  # fmt: skip
    assert service.names("T", ("a", "!=", 1)) == [2, 6, 7, 8, 3]
    assert service.names("T", ("a", "not in", [1, "x"])) == [2, 6, 7, 8]
    assert service.names("T", ("a", "!=", 1), order=["-a"]) == [3, 8, 7, 2, 6]
    assert service.names("T", ("a", "!=", None)) == [7, 1, 8, 3]
    assert service.names("T", ("a", "!=", 1), ("a", ">", 0)) == [8, 3]


def test_not_in_finds_existing_values_outside_the_list(service: service_calls.Service) -> None:
    put_all(service, *((n, {"a": n}) for n in range(1, 8)), (8, {"a": None}), (9, {}))
    assert service.names("T", ("a", "not in", [2, 5, 6, 9, 2])) == [8, 1, 3, 4, 7]
    assert service.names("T", ("a", "not in", [2, 5, None]), order=["-a"]) == [7, 6, 4, 3, 1]
    assert service.names("T", ("a", "not in", [2]), ("a", "<", 4), ("a", ">=", 2)) == [3]


def test_one_value_of_an_array_must_meet_all_exclusions(
    near: service_calls.Service,
) -> None:
    put_all(near, (1, {"a": [1, 2]}), (2, {"a": [1]}), (3, {"a": [2, 3]}))
    assert near.names("T", ("a", "!=", 1)) == [1, 3]
    assert near.names("T", ("a", "not in", [1, 2])) == [3]


def test_not_equal_and_not_in_have_restricted_combinations(near: service_calls.Service) -> None:
    excluded = ("a", "not in", [1])
    for filters in (
        (("a", "!=", 1), ("a", "!=", 2)), (("a", "!=", 1), ("b", "!=", 2)),
        (("or", ("a", "!=", 1), ("a", "!=", 2)),),
        (excluded, ("b", "!=", 1)), (excluded, ("a", "not in", [2])), (excluded, ("b", "in", [1])),
        (excluded, ("or", ("b", "=", 1), ("b", "=", 2))),
        (("a", "not in", []),), (("a", "not in", 1),), (("a", "not in", list(range(11))),),
        (("a", "!=", [1]),), (("a", "not in", [[1]]),), (("a", "!=", {"x": 1}),),
    ):  # fmt: skip
        with assert_refused("INVALID_ARGUMENT"):
            near.names("T", *filters)
    for asked in (("a", "!=", 1), excluded):
        with assert_refused("INVALID_ARGUMENT", "The first sort property must be the same"):
            near.names("T", asked, order=["b"])
    assert near.names("T", ("a", "!=", 1), ("or", ("a", "=", 2), ("a", "=", 3))) == []
    assert near.names("T", ("a", "not in", [1] * 10)) == []


def test_inequalities_on_several_properties_follow_the_order_of_the_index(
    grid: service_calls.Service,
) -> None:
    both = (("a", ">", 3), ("b", "<", 3))
    assert grid.names("T", *both) == [41, 42, 51, 52]
    assert grid.names("T", *both, order=["-a"]) == [51, 52, 41, 42]
    assert grid.names("T", *both, order=["-a", "b"]) == [51, 52, 41, 42]
    assert grid.names("T", ("a", "!=", 3), ("b", ">", 4)) == [15, 25, 45, 55]
    with assert_refused("FAILED_PRECONDITION", "  - name: b\n    direction: desc\n  - name: a\n"):
        grid.names("T", *both, order=["-b"])
    with assert_refused(
        "FAILED_PRECONDITION", "- kind: T\n  properties:\n  - name: x\n  - name: y\n"
    ):
        grid.names("T", ("y", ">", 1), ("x", "<", 2))
    with assert_refused("FAILED_PRECONDITION", "  - name: c\n  - name: a\n  - name: b\n"):
        grid.names("T", *both, ("c", "=", 1))


def test_all_inequality_properties_come_before_other_orders(near: service_calls.Service) -> None:
    both = (("a", ">", 3), ("b", "<", 3))
    for order in (["c"], ["a", "c"], ["a", "c", "b"], ["c", "a", "b"]):
        with assert_refused("INVALID_ARGUMENT", "The first sort property must be the same"):
            near.names("T", *both, order=order)
    with assert_refused("INVALID_ARGUMENT", "The first sort property must be the same"):
        near.names("T", ("a", ">", 5), ("a", "<", 2), order=["b"])  # No value can match
    with assert_refused("INVALID_ARGUMENT", "at most 10 properties"):
        near.names("T", *((f"p{n}", ">", 1) for n in range(11)))
    with assert_refused("FAILED_PRECONDITION", "p9"):
        near.names("T", *((f"p{n}", ">", 1) for n in range(10)))


def test_key_filters_combine_with_orders_and_inequalities(grid: service_calls.Service) -> None:
    key = grid.key
    assert grid.names("T", ("__key__", "=", key("T", 32)), order=["-a"]) == [32]
    assert grid.names("T", ("__key__", "=", key("T", 32)), ("a", ">", 3)) == []
    grid.put(key("U", 1), a=1)
    assert grid.names("T", ("__key__", "=", key("U", 1)), order=["a"]) == []
    some = ("__key__", "in", [key("T", 12), key("T", 51), key("T", 24), key("T", 99), key("U", 1)])
    assert grid.names("T", some, order=["-a"]) == [51, 24, 12]
    assert grid.names("T", some, ("a", ">", 1), order=["a", "b"], keys_only=True) == [24, 51]
    assert grid.names("T", some, ("a", "=", 2)) == [24]
    assert grid.names("T", ("__key__", ">", key("T", 33)), ("a", "<", 4)) == [34, 35]
    assert grid.names("T", ("__key__", "<=", key("T", 51)), ("a", ">", 4), order=["-a"]) == [51]
    assert grid.names("T", ("__key__", "!=", key("T", 51)), ("a", ">", 4)) == [52, 53, 54, 55]
    assert grid.names("T", ("__key__", "not in", [key("T", n) for n in (11, 55)]))[:1] == [12]
    either = ("or", ("__key__", "<", key("T", 13)), ("a", "=", 5), ("__key__", "=", key("T", 51)))
    assert grid.names("T", either) == [11, 12, 51, 52, 53, 54, 55]
    after = ("__key__", ">", key("T", 52))
    assert grid.names("T", after, ("a", ">", 1), order=["a", "__key__"]) == [53, 54, 55]
    for filters, order in (
        ((after, ("a", ">", 1)), ["__key__", "a"]),
        ((after, ("a", ">", 1)), ["__key__"]),
        ((after,), ["a"]),
    ):
        with assert_refused("INVALID_ARGUMENT"):
            grid.names("T", *filters, order=order)


def test_kindless_queries_support_any_filter_on_keys(near: service_calls.Service) -> None:
    for path in (("A", 1), ("B", 1), ("B", 2), ("C", 1)):
        near.put(near.key(*path), x=1)
    b1, b2 = near.key("B", 1), near.key("B", 2)
    assert near.names(None, ("__key__", "!=", b1), keys_only=True) == [1, 2, 1]
    assert near.names(None, ("or", ("__key__", "=", b2), ("__key__", "<", b1))) == [1, 2]
    with assert_refused("INVALID_ARGUMENT", "kind is required for non-__key__ filters"):
        near.names(None, ("or", ("__key__", "=", b1), ("x", "=", 1)))
    with assert_refused("INVALID_ARGUMENT", "kind is required"):
        near.names(None, distinct=["x"])


def test_orders_on_properties_fixed_by_all_branches_are_ignored(
    near: service_calls.Service,
) -> None:
    put_all(near, (1, {"a": [1, 9], "b": 1}), (2, {"a": [1, 5], "b": 2}))
    either = ("or", ("b", "=", 1), ("b", "=", 2))
    assert near.names("T", either, ("a", "=", 1), order=["-a"]) == [1, 2]
    assert near.names("T", ("a", ">=", 1), ("a", "<=", 1), order=["-a"]) == [1, 2]
    assert near.names("T", ("or", ("a", "=", 9), ("a", "=", 5)), order=["a"]) == [2, 1]


def test_an_array_sorts_by_its_first_value_that_meets_a_branch(near: service_calls.Service) -> None:
    put_all(near, (1, {"a": [1, 9]}), (2, {"a": [4, 5, 6, 7]}), (3, {"a": 5}))
    assert near.names("T", ("a", "in", [9, 5, 6]), order=["a"]) == [2, 3, 1]
    assert near.names("T", ("a", "in", [9, 5, 6]), order=["-a"]) == [1, 2, 3]
    assert near.names("T", ("or", ("a", "=", 9), ("a", "<", 6)), order=["-a"]) == [1, 2, 3]
    assert near.names("T", ("a", "!=", 1), order=["a"]) == [2, 3, 1]


def test_every_missing_index_of_a_disjunction_is_recommended(near: service_calls.Service) -> None:
    with assert_refused(
        "FAILED_PRECONDITION",
        "recommended index is:\n- kind: T\n  properties:\n  - name: x\n  - name: z\n"
        "- kind: T\n  properties:\n  - name: y\n  - name: z\n",
    ):
        near.names("T", ("or", ("x", "=", 1), ("y", "=", 1)), order=["z"])
    with assert_refused("FAILED_PRECONDITION", "properties:\n  - name: x\n  - name: z\n"):
        near.names("T", ("x", "in", [1, 2]), order=["z", "x"])


def test_a_filter_value_excluded_from_indexes_is_refused(
    near: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    for operator, value in (
        ("=", unindexed(1)),
        ("in", unindexed([1])),
        ("in", [unindexed(1)]),
        ("not in", [1, unindexed(2)]),
    ):
        with assert_refused("INVALID_ARGUMENT", "excluded from indexes"):
            near.names("T", ("a", operator, value))


def test_an_array_sorts_by_its_first_filtered_value_and_projects_all(
    near: service_calls.Service,
) -> None:
    put_all(near, (1, {"a": [1, 4, 7]}), (2, {"a": 2}), (3, {"a": [1, 7]}))
    either = ("or", ("and", ("a", "in", [1]), ("a", "in", [4])), ("a", "in", [2]))
    assert near.names("T", either, order=["a"]) == [1, 2]
    assert near.names("T", either, order=["-a"]) == [1, 2]
    projected = near.results(near.query("T", either, order=["a"], projection=["a"]))
    assert [near.plain(each.entity)["a"] for each in projected] == [1, 2, 4]
