"""Queries, in process and over gRPC: results, their order, and refusals."""

# ruff: noqa: DTZ001 - protobuf and NDB take naive UTC

import datetime as dt
import math
from typing import Any

import grpc
import pytest

from datastore_emulator import inprocess
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused, put_all


def test_a_query_of_a_kind_is_in_key_order_ids_before_names(service: service_calls.Service) -> None:
    put_all(service, *(((name), {}) for name in ("b", "a", 10, 2, "B")))
    assert service.names() == [2, 10, "B", "a", "b"]
    assert service.names("U") == []


def test_values_of_all_types_are_ordered(service: service_calls.Service) -> None:
    ordered = [
        None, -5, 3, dt.datetime(1970, 1, 1, microsecond=4), 5, False, True,
        "", b"A", "B", "a", b"aa", "\uffff", "\U0001f600", b"\xff",
        -math.inf, -1.5, 0.0, 1.5, math.inf, math.nan,
        (1.0, 2.0), (1.0, 3.0), service.key("A", 1), service.key("A", 1, "K", 2),
        service.key("A", 2), service.key("A", "x"),
    ]  # fmt: skip
    put_all(service, *((place + 1, {"v": value}) for place, value in enumerate(ordered)))
    expected = list(range(1, len(ordered) + 1))
    assert service.names(order=["v"]) == expected
    assert service.names(order=["-v"]) == expected[::-1]
    assert service.names("T", ("v", ">", 5)) == expected[5:]
    assert service.names("T", ("v", "<", "B")) == expected[:9]
    assert service.names("T", ("v", ">=", b"a"), ("v", "<", b"b")) == expected[10:12]
    for place, value in enumerate(ordered):
        if not isinstance(value, dt.datetime):
            assert service.names("T", ("v", "=", value)) == [place + 1]


def test_a_string_equals_the_same_bytes(service: service_calls.Service) -> None:
    put_all(service, (1, {"v": "a"}), (2, {"v": b"a"}), (3, {"v": ["b", b"a", "a"]}))
    for given in ("a", b"a"):
        assert service.names("T", ("v", "=", given)) == [1, 2, 3]
        assert service.names("T", ("v", "not in", [given])) == [3]
    found = service.results(service.query(projection=["v"]))
    assert [service.plain(each.entity)["v"] for each in found] == ["a", "a", "a", "b"]


def test_an_integer_does_not_equal_a_double(service: service_calls.Service) -> None:
    put_all(service, (1, {"v": 1}), (2, {"v": 1.0}))
    assert service.names("T", ("v", "=", 1)) == [1]
    assert service.names("T", ("v", "=", 1.0)) == [2]


def test_ties_are_broken_by_ascending_key_in_both_directions(
    service: service_calls.Service,
) -> None:
    put_all(service, (2, {"a": 1}), (1, {"a": 1}), (3, {"a": 0}))
    assert service.names(order=["a"]) == [3, 1, 2]
    assert service.names(order=["-a"]) == [1, 2, 3]


def test_only_entities_with_the_indexed_property_are_found(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    put_all(service, (1, {"a": 1}), (2, {}), (3, {"a": unindexed(1)}), (4, {"a": None}))
    assert service.names("T", ("a", "=", 1)) == [1]
    assert service.names("T", ("a", "=", None)) == [4]
    assert service.names(order=["a"]) == [4, 1]
    assert service.names() == [1, 2, 3, 4]


def test_an_empty_array_is_found_as_null(service: service_calls.Service) -> None:
    put_all(service, (1, {"a": []}), (2, {"a": [1]}))
    assert service.names("T", ("a", "=", None)) == [1]


def test_inequalities_limit_the_results(service: service_calls.Service) -> None:
    put_all(service, *((n, {"a": n}) for n in range(1, 8)))
    assert service.names("T", ("a", ">", 2), ("a", "<=", 5)) == [3, 4, 5]
    assert service.names("T", ("a", ">=", 2), ("a", "<", 5), ("a", ">", 1)) == [2, 3, 4]
    assert service.names("T", ("a", ">", 2), ("a", "<=", 5), order=["-a"]) == [5, 4, 3]
    assert service.names("T", ("a", ">", 5), ("a", "<", 2)) == []
    assert service.names("T", ("a", ">=", 3), ("a", "<=", 3), order=["b"]) == []
    assert service.names("T", ("a", ">=", 3), ("a", "<=", 3), order=["a"]) == [3]


def test_inequalities_on_an_array_must_be_met_by_one_value(service: service_calls.Service) -> None:
    put_all(service, (1, {"a": [1, 9]}), (2, {"a": [1, 5]}))
    assert service.names("T", ("a", ">", 3), ("a", "<", 7)) == [2]


def test_equalities_on_an_array_may_be_met_by_different_values(
    service: service_calls.Service,
) -> None:
    put_all(service, (1, {"a": [1, 9]}), (2, {"a": [1, 5]}))
    assert service.names("T", ("a", "=", 1), ("a", "=", 9)) == [1]


def test_an_array_sorts_by_its_smallest_and_greatest_value_and_appears_once(
    service: service_calls.Service,
) -> None:
    put_all(service, (1, {"a": [4, 5, 6, 7]}), (2, {"a": [1, 9]}), (3, {"a": 5}))
    assert service.names(order=["a"]) == [2, 1, 3]
    assert service.names(order=["-a"]) == [2, 1, 3]
    assert service.names("T", ("a", ">", 4)) == [1, 3, 2]
    assert service.names("T", ("a", "<", 7), order=["-a"]) == [1, 3, 2]


def test_equality_filters_are_joined_without_a_composite_index(
    service: service_calls.Service,
) -> None:
    put_all(
        service,
        *((n, {"x": n % 2, "y": n % 3, "z": n % 5}) for n in range(1, 61)),
    )
    assert service.names("T", ("x", "=", 1), ("y", "=", 1), ("z", "=", 1)) == [1, 31]
    assert service.names("T", ("x", "=", 0), ("y", "=", 7)) == []
    query = service.query("T", ("x", "=", 1), ("y", "=", 1), offset=3)
    assert len(service.results(query)) == 7


def test_composite_indexes_serve_orders_after_equalities(service: service_calls.Service) -> None:
    put_all(service, *((n, {"c": n % 2, "a": -n, "b": n % 3}) for n in range(1, 8)))
    assert service.names("T", ("c", "=", 1), order=["a"]) == [7, 5, 3, 1]
    assert service.names("T", ("c", "=", 1), ("a", "<", -2)) == [7, 5, 3]
    assert service.names(order=["a", "b"]) == [7, 6, 5, 4, 3, 2, 1]
    assert service.names(order=["-a", "b"]) == [1, 2, 3, 4, 5, 6, 7]


def test_two_composite_indexes_join_on_their_common_order(service: service_calls.Service) -> None:
    put_all(service, *((n, {"c": n % 2, "tag": [n % 3, "all"], "a": -n}) for n in range(1, 13)))
    query = (("c", "=", 0), ("tag", "=", 1))
    assert service.names("T", *query, order=["a"]) == [10, 4]
    assert service.names("T", *query, ("tag", "=", "all"), order=["a"]) == [10, 4]


def test_an_order_on_a_property_with_an_equality_is_ignored(service: service_calls.Service) -> None:
    put_all(service, (2, {"a": [1, 5]}), (1, {"a": [1, 7]}))
    assert service.names("T", ("a", "=", 1), order=["-a"]) == [1, 2]


def test_the_first_order_must_be_the_inequality_property(service: service_calls.Service) -> None:
    with assert_refused("INVALID_ARGUMENT", "The first sort property must be the same"):
        service.names("T", ("a", ">", 1), order=["b", "a"])


def test_in_finds_each_result_once_in_key_order_or_in_the_given_order(
    service: service_calls.Service,
) -> None:
    put_all(service, (1, {"a": [2, 3]}), (2, {"a": 1}), (3, {"a": 3}), (4, {"a": 9}))
    assert service.names("T", ("a", "in", [3, 2, 1, 1])) == [1, 2, 3]
    assert service.names("T", ("a", "in", [3, 2, 1]), order=["a"]) == [2, 1, 3]
    assert service.names("T", ("a", "in", [3, 2, 1]), order=["-a"]) == [1, 3, 2]


def test_in_joins_with_equalities_and_composite_orders(service: service_calls.Service) -> None:
    put_all(service, *((n, {"c": n % 4, "a": -n, "x": n % 2}) for n in range(1, 13)))
    assert service.names("T", ("c", "in", [1, 2]), order=["a"]) == [10, 9, 6, 5, 2, 1]
    assert service.names("T", ("c", "in", [1, 2]), ("x", "=", 1)) == [1, 5, 9]
    assert service.names("T", ("c", "in", [1, 2]), order=["c", "a"]) == [9, 5, 1, 10, 6, 2]


def test_in_requires_a_non_empty_array_of_limited_size(service: service_calls.Service) -> None:
    put_all(service, (7, {"a": 7, "b": 7}))
    assert service.names("T", ("a", "in", list(range(30)))) == [7]
    with assert_refused("INVALID_ARGUMENT", "30"):
        service.names("T", ("a", "in", list(range(31))))
    with assert_refused("INVALID_ARGUMENT", "30"):
        service.names("T", ("a", "in", [1, 2, 3, 4]), ("b", "in", list(range(8))))
    with assert_refused("INVALID_ARGUMENT", "'IN' property filter for 'a' requires a non-empty"):
        service.names("T", ("a", "in", []))
    with assert_refused("INVALID_ARGUMENT"):
        service.names("T", ("a", "in", 1))


def test_an_ancestor_query_finds_the_entity_and_all_descendants(
    service: service_calls.Service,
) -> None:
    for path in (("A", 1), ("A", 1, "T", 1), ("A", 1, "B", 1, "T", 2), ("A", 2, "T", 3), ("T", 4)):
        service.put(service.key(*path), a=path[-1], x=1)
    under = ("__key__", "under", service.key("A", 1))
    # A child of A:1/B comes before a child of A:1/T.
    assert service.names("T", under) == [2, 1]
    assert service.names(None, under) == [1, 2, 1][: len(service.names(None, under))]
    assert len(service.names(None, under)) == 3
    assert service.names("T", under, ("x", "=", 1)) == [2, 1]
    assert service.names("T", under, order=["-a"]) == [2, 1]
    assert service.names("T", under, ("a", "<", 2), order=["-a"]) == [1]
    assert service.names("T", ("__key__", "under", service.key("T", 4))) == [4]
    assert service.names("T", ("__key__", "under", service.key("A", 9))) == []


def test_an_ancestor_must_be_one_complete_key_of_the_partition(
    service: service_calls.Service,
) -> None:
    with assert_refused("INVALID_ARGUMENT", "duplicate ancestor"):
        under = ("__key__", "under", service.key("A", 1))
        service.names("T", under, under)
    for bad in (service.key("A"), service.key("A", 1, namespace="n"), 5):
        with assert_refused("INVALID_ARGUMENT"):
            service.names("T", ("__key__", "under", bad))
    with assert_refused("INVALID_ARGUMENT"):
        service.names("T", ("a", "under", service.key("A", 1)))


def test_key_filters_compare_keys(service: service_calls.Service) -> None:
    put_all(service, *((n, {"x": n % 2}) for n in range(1, 7)))
    key = service.key
    assert service.names("T", ("__key__", ">", key("T", 2)), ("__key__", "<=", key("T", 4))) == [
        3,
        4,
    ]
    assert service.names("T", ("__key__", "=", key("T", 4))) == [4]
    assert service.names("T", ("__key__", "in", [key("T", 4), key("T", 2), key("T", 99)])) == [2, 4]
    assert service.names("T", ("__key__", ">=", key("T", 3)), ("x", "=", 1)) == [3, 5]
    assert service.names("T", ("__key__", ">", key("S", 3))) == [1, 2, 3, 4, 5, 6]
    assert service.names("T", ("__key__", ">", key("Z", 3))) == []
    assert service.names("T", ("__key__", "<", key("T", 3)), order=["-__key__"]) == [2, 1]
    with assert_refused("INVALID_ARGUMENT", "__key__ filter value must be a Key"):
        service.names("T", ("__key__", "=", 5))
    with assert_refused("INVALID_ARGUMENT"):
        service.names("T", ("__key__", ">", key("T")))
    with assert_refused("INVALID_ARGUMENT"):
        service.names("T", ("__key__", ">", key("T", 1, namespace="other")))


def test_a_descending_key_order_needs_and_uses_its_index(service: service_calls.Service) -> None:
    put_all(service, *((n, {"a": n % 2}) for n in range(1, 6)))
    assert service.names(order=["-__key__"]) == [5, 4, 3, 2, 1]
    assert service.names(order=["a", "-__key__"]) == [4, 2, 5, 3, 1]
    assert service.names(order=["__key__"]) == [1, 2, 3, 4, 5]


def test_kindless_queries_return_all_kinds_in_key_order(service: service_calls.Service) -> None:
    for path in (("B", 1), ("A", 2), ("A", 1, "Z", 1)):
        service.put(service.key(*path))
    kinds = [r.entity.key.path[-1].kind for r in service.results(service.query(None))]
    assert kinds == ["Z", "A", "B"]
    assert service.names(None, ("__key__", ">", service.key("A", 1, "Z", 1))) == [2, 1]
    assert service.names(None, order=["__key__"], keys_only=True) == [1, 2, 1]
    with assert_refused("INVALID_ARGUMENT", "kind is required for non-__key__ filters"):
        service.names(None, ("a", "=", 1))
    with assert_refused(
        "INVALID_ARGUMENT", "kind is required for all orders except __key__ ascending"
    ):
        service.names(None, order=["a"])
    with assert_refused(
        "INVALID_ARGUMENT", "kind is required for all orders except __key__ ascending"
    ):
        service.names(None, order=["-__key__"])


def test_embedded_entities_are_found_by_dotted_names(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    put_all(
        service,
        (1, {"o": {"x": 1, "in": {"y": "deep"}}}),
        (2, {"o": [{"x": 1}, {"x": 2}]}),
        (3, {"o": unindexed({"x": 1})}),
        (4, {"o": {"x": unindexed(1)}}),
    )
    assert service.names("T", ("o.x", "=", 1)) == [1, 2]
    assert service.names("T", ("o.x", "=", 2)) == [2]
    assert service.names("T", ("o.in.y", "=", "deep")) == [1]
    assert service.names(order=["o"]) == []


def test_namespaces_databases_and_projects_are_separate(
    service: service_calls.Service, make_service: type[service_calls.Service]
) -> None:
    service.put(service.key("T", 1), a=1)
    service.put(service.key("T", 2, namespace="n"), a=1)
    named = make_service(service.channel)
    named.database = "other"
    named.put(named.key("T", 3), a=1)
    project = make_service(service.channel, "project2")
    project.put(project.key("T", 4), a=1)
    assert service.names(order=["a"]) == [1]
    assert service.names(order=["a"], namespace="n") == [2]
    assert named.names(None) == [3]
    assert project.names() == [4]
    assert service.get(service.key("T", 3)) is None


def test_count_supports_aliases_and_limits(service: service_calls.Service) -> None:
    put_all(service, *((n, {"a": n}) for n in range(1, 11)))
    query = service.query("T", ("a", ">", 3))
    assert service.count(query, None, 5, None) == [7, 5, 7]
    assert service.count(service.query(order=["a"], offset=2, limit=4), None) == [4]
    assert service.count(service.query("T", ("a", "<", 0)), None) == [0]

    def run(*aggregations: dict[str, Any]) -> Any:
        nested = {"nested_query": query, "aggregations": aggregations}
        return service.call("RunAggregationQuery", aggregation_query=nested).batch

    batch = run({"count": {}}, {"count": {}, "alias": "x"}, {"count": {}})
    assert set(batch.aggregation_results[0].aggregate_properties) == {
        "property_1",
        "x",
        "property_2",
    }
    assert batch.more_results == 3
    assert batch.read_time.seconds
    for bad in ([], [{"count": {}}] * 6, [{"count": {}, "alias": "x"}] * 2):
        with assert_refused("INVALID_ARGUMENT"):
            run(*bad)
    with assert_refused("INVALID_ARGUMENT"):
        service.count(query, -1)


def test_an_updated_entity_is_not_found_by_its_old_value(service: service_calls.Service) -> None:
    service.put(service.key("T", 1), a=1)
    service.put(service.key("T", 1), a=[2, 3])
    assert service.names("T", ("a", "=", 1)) == []
    assert service.names("T", ("a", ">=", 2)) == [1]
    service.put(service.key("T", 1), a=3)
    assert service.names(order=["a"]) == [1]
    service.delete(service.key("T", 1))
    assert service.names(order=["-a"]) == []


def test_an_unsupported_feature_is_refused_by_name(service: service_calls.Service) -> None:
    query = service.query()
    query.find_nearest.limit.value = 1
    with assert_refused("UNIMPLEMENTED"):
        service.results(query)


def test_malformed_queries_are_refused(service: service_calls.Service) -> None:
    several = service.query()
    several.kind.add(name="U")
    unset = service.query("T", ("a", "=", 1))
    unset.filter.composite_filter.op = 0
    no_operator = service.query("T", ("a", "=", 1))
    no_operator.filter.composite_filter.filters[0].property_filter.op = 0
    unknown = service.query("T", ("a", "=", 1))
    unknown.filter.composite_filter.filters[0].property_filter.op = 99
    hollow = service.query("T")
    hollow.filter.composite_filter.op = 1
    neither = service.query("T", ("a", "=", 1))
    neither.filter.composite_filter.filters.add()
    excluded = service.query("T", ("a", "=", 1))
    only = excluded.filter.composite_filter.filters[0].property_filter
    only.value.exclude_from_indexes = True
    for query in (
        several, unset, no_operator, unknown, hollow, neither, excluded,
        service.query(""), service.query("T", ("", "=", 1)), service.query(order=[""]),
        service.query("T", ("a", "=", {"x": 1})), service.query("T", ("a", "=", [1])),
        service.query("T", ("a", "=", service.key("K"))),
    ):  # fmt: skip
        with assert_refused("INVALID_ARGUMENT"):
            service.results(query)


def test_statistics_kinds_are_empty(service: service_calls.Service) -> None:
    assert service.names("__Stat_Total__") == []


@pytest.mark.parametrize("project", ["", "no spaces", "x" * 101])
def test_a_request_must_name_a_project(service: service_calls.Service, project: str) -> None:
    with assert_refused("INVALID_ARGUMENT"):
        service.call("RunQuery", project_id=project, query=service.query())


def test_the_default_database_has_no_name(service: service_calls.Service) -> None:
    with assert_refused("INVALID_ARGUMENT"):
        service.call("RunQuery", database_id="(default)", query=service.query())


def test_an_unknown_method_is_unimplemented(channel: grpc.Channel | inprocess.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/google.datastore.v1.Datastore/Nothing")(b"")  # type: ignore[arg-type]
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
