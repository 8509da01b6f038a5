"""Metadata kinds list existing names in order, and the amount of data does not affect the cost."""

import datetime as dt
import sqlite3
from operator import ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import inprocess
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.execution import metadata_kinds
from emulator.tests.support import service_calls, shifted_clock
from emulator.tests.support.service_calls import assert_refused

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - protobuf takes naive UTC


def fill(service: service_calls.Service, unindexed: type[service_calls.Unindexed]) -> None:
    """Store two kinds in the default namespace, and one kind in each of two other namespaces."""
    service.put(service.key("B", 1), n=1, o={"x": "s", "list": [1.5]}, hidden=unindexed(1))
    service.put(service.key("B", 1, "A", 1), n=None, m=[1, "x", True])
    service.put(service.key("B", 2), n=EPOCH)
    service.put(service.key("C", 1, namespace="b"), z=1)
    service.put(service.key("C", 1, namespace="a"), y=1)


@pytest.fixture
def filled(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> service_calls.Service:
    fill(service, unindexed)
    return service


def properties(
    service: service_calls.Service, *filters: tuple[str, str, Any], **fields: Any
) -> list[Any]:
    found = service.results(service.query("__property__", *filters, **fields))
    return [
        (*(element.name for element in each.entity.key.path), *service.plain(each.entity).values())
        for each in found
    ]


def test_namespaces_are_listed_from_any_namespace_the_default_one_first(
    filled: service_calls.Service,
) -> None:
    for namespace in ("", "a", "none"):
        assert filled.names("__namespace__", namespace=namespace) == [1, "a", "b"]
    found = filled.results(filled.query("__namespace__"), "a")
    assert found[1].entity.key == filled.key("__namespace__", "a", namespace="a")
    filled.delete(filled.key("C", 1, namespace="a"))
    assert filled.names("__namespace__") == [1, "b"]


def test_namespaces_can_be_queried_by_key_ranges(
    filled: service_calls.Service,
) -> None:
    def between(namespace: str, *bounds: tuple[Any, ...]) -> list[Any]:
        filters = [
            ("__key__", operator, filled.key("__namespace__", name, namespace=namespace))
            for operator, name in bounds
        ]
        return filled.names("__namespace__", *filters, namespace=namespace)

    for namespace in ("", "b"):
        assert between(namespace, (">=", "a")) == ["a", "b"]
        assert between(namespace, (">", "a")) == ["b"]
        assert between(namespace, ("<", "b")) == [1, "a"]
        assert between(namespace, (">", 1), ("<=", "a")) == ["a"]
        assert between(namespace, ("=", "b")) == ["b"]
        assert between(namespace, ("<=", 1)) == [1]


def test_only_kinds_with_entities_in_the_namespace_are_listed(
    filled: service_calls.Service,
) -> None:
    assert filled.names("__kind__") == ["A", "B"]
    assert filled.names("__kind__", namespace="a") == ["C"]
    assert filled.names("__kind__", namespace="none") == []
    filled.delete(filled.key("B", 1, "A", 1))
    assert filled.names("__kind__") == ["B"]
    assert filled.plain(filled.results(filled.query("__kind__"))[0].entity) == {}


def test_kinds_can_be_queried_by_key_ranges(filled: service_calls.Service) -> None:
    filled.put(filled.key("Aa", 1))
    key = filled.key("__kind__", "A")
    assert filled.names("__kind__", ("__key__", ">=", key)) == ["A", "Aa", "B"]
    assert filled.names("__kind__", ("__key__", ">", key)) == ["Aa", "B"]
    assert filled.names("__kind__", ("__key__", "<=", key)) == ["A"]
    assert filled.names("__kind__", ("__key__", "=", key)) == ["A"]
    assert filled.names("__kind__", ("__key__", "in", [filled.key("__kind__", "B"), key])) == [
        "A", "B",
    ]  # fmt: skip
    assert filled.names("__kind__", ("__key__", ">", filled.key("T", 1))) == ["A", "Aa", "B"]
    assert filled.names("__kind__", ("__key__", ">", filled.key("z", 1))) == []
    assert filled.names("__kind__", ("__key__", ">", filled.key("__kind__", 5))) == ["A", "Aa", "B"]


def test_indexed_properties_are_listed_with_their_types(
    filled: service_calls.Service,
) -> None:
    expected = [
        ("A", "m", ["INT64", "BOOLEAN", "STRING"]),
        ("A", "n", ["NULL"]),
        ("B", "n", ["INT64"]),
        ("B", "o.list", ["DOUBLE"]),
        ("B", "o.x", ["STRING"]),
    ]
    assert [(each[0], *each[1:]) for each in properties(filled)] == expected
    assert properties(filled, keys_only=True) == [each[:2] for each in expected]
    found = filled.results(filled.query("__property__"))[0].entity.key
    assert found == filled.key("__kind__", "A", "__property__", "m")


def test_every_type_of_value_has_a_representation(service: service_calls.Service) -> None:
    all_types: dict[str, list[Any]] = {
        "NULL": [None, []], "INT64": [1, EPOCH], "BOOLEAN": [True, False], "STRING": ["x", b"x"],
        "DOUBLE": [0.5], "POINT": [(1.0, 2.0)], "REFERENCE": [service.key("A", 1)],
    }  # fmt: skip
    for name, values in all_types.items():
        for number, value in enumerate(values, 1):
            service.put(service.key(f"{name}{number}", 1), p=value)
            kind = service.key("__kind__", f"{name}{number}")
            assert properties(service, ("__key__", "under", kind)) == [
                (f"{name}{number}", "p", [name])
            ]


def test_properties_can_be_limited_by_an_ancestor_and_a_range(
    filled: service_calls.Service,
) -> None:
    kind = filled.key("__kind__", "B")
    names = ["n", "o.list", "o.x"]
    assert filled.names("__property__", ("__key__", "under", kind)) == names
    second = filled.key("__kind__", "B", "__property__", "o.list")
    for operator, expected in ((">=", names[1:]), (">", names[2:]), ("<", names[:1])):
        query = (("__key__", "under", kind), ("__key__", operator, second))
        assert filled.names("__property__", *query) == expected
    assert filled.names("__property__", ("__key__", ">=", second)) == names[1:]
    one = filled.key("__kind__", "B", "__property__", "n")
    assert filled.names("__property__", ("__key__", "under", one)) == ["n"]
    none = filled.key("__kind__", "None")
    assert filled.names("__property__", ("__key__", "under", none)) == []


def test_composite_indexes_add_no_properties(service: service_calls.Service) -> None:
    service.put(service.key("T", 1), a=1, b=2, c=3)
    assert [each[:2] for each in properties(service)] == [("T", "a"), ("T", "b"), ("T", "c")]


def test_metadata_supports_every_operator_on_keys(filled: service_calls.Service) -> None:
    keys = [filled.key("__kind__", name) for name in ("A", "B", "C")]
    assert filled.names("__kind__", ("__key__", "!=", keys[0])) == ["B"]
    assert filled.names("__kind__", ("__key__", "not in", keys[1:])) == ["A"]
    assert filled.names("__kind__", ("__key__", "in", keys)) == ["A", "B"]
    assert filled.names("__kind__", ("__key__", "in", keys), keys_only=True) == ["A", "B"]
    assert filled.count(filled.query("__kind__", ("__key__", "!=", keys[0])), None) == [1]


def test_a_property_without_entities_is_not_listed(filled: service_calls.Service) -> None:
    filled.put(filled.key("B", 1), n=1)
    assert [each[:2] for each in properties(filled)] == [("A", "m"), ("A", "n"), ("B", "n")]


def test_metadata_is_paged_counted_and_limited_like_any_query(
    filled: service_calls.Service,
) -> None:
    expected = properties(filled)
    paged = []
    cursor = b""
    for _ in expected:
        query = filled.query("__property__", limit=1, start_cursor=cursor)
        batch = filled.batch(query)
        paged += [last.entity.key.path[1].name for last in batch.entity_results]
        cursor = batch.end_cursor
    assert paged == [each[1] for each in expected]
    assert properties(filled, offset=2, limit=2) == expected[2:4]
    assert filled.count(filled.query("__property__"), None, 2) == [5, 2]
    assert filled.count(filled.query("__kind__", offset=1), None) == [1]
    assert filled.count(filled.query("__namespace__"), None) == [3]


def test_metadata_results_carry_a_version(filled: service_calls.Service) -> None:
    for kind in ("__namespace__", "__kind__", "__property__"):
        batch = filled.batch(filled.query(kind))
        assert batch.entity_result_type == 1
        assert all(each.version == batch.snapshot_version for each in batch.entity_results)
        assert filled.batch(filled.query(kind, keys_only=True)).entity_result_type == 3


def test_metadata_can_be_read_in_a_transaction(filled: service_calls.Service) -> None:
    transaction = filled.begin()
    assert filled.names("__kind__", transaction=transaction) == ["A", "B"]
    filled.put(filled.key("D", 1))
    assert filled.names("__kind__", transaction=transaction) == ["A", "B"]
    key = filled.key("E", 1)
    filled.commit({"upsert": filled.entity(key)}, transaction=transaction)
    assert filled.names("__kind__") == ["A", "B", "D", "E"]


@pytest.mark.parametrize("kind", ["__namespace__", "__kind__", "__property__"])
def test_metadata_can_be_queried_only_by_key(near: service_calls.Service, kind: str) -> None:
    for filters, fields in (
        ([("a", "=", 1)], {}),
        ([("a", ">", 1)], {}),
        ([("a", "in", [1, 2])], {}),
        ([("a", "=", 1), ("b", ">", 2)], {"order": ["b", "c"]}),
        ([], {"order": ["a"]}),
        ([], {"order": ["-__key__"]}),
        ([], {"projection": ["property_representation"]}),
    ):
        with assert_refused("INVALID_ARGUMENT"):
            near.results(near.query(kind, *filters, **fields))
    if kind != "__property__":
        with assert_refused("INVALID_ARGUMENT"):
            near.names(kind, ("__key__", "under", near.key("__kind__", "A")))
    with assert_refused("INVALID_ARGUMENT"):
        near.call(
            "RunAggregationQuery",
            aggregation_query={
                "nested_query": near.query(kind),
                "aggregations": [{"sum": {"property": {"name": "a"}}}],
            },
        )
    query = near.query(kind)
    query.distinct_on.add(name="a")
    with assert_refused("INVALID_ARGUMENT"):
        near.results(query)
    assert near.names(kind, order=["__key__"]) == []


def test_databases_and_projects_see_only_their_own(
    filled: service_calls.Service, make_service: type[service_calls.Service]
) -> None:
    other = make_service(filled.channel, "elsewhere")
    other.put(other.key("Z", 1, namespace="zz"), q=1)
    named = make_service(filled.channel)
    named.database = "named"
    for service in (other, named):
        assert service.names("__kind__") == []
    assert other.names("__namespace__") == ["zz"]
    assert named.names("__namespace__") == []
    assert filled.names("__namespace__") == [1, "a", "b"]


def test_other_reserved_kinds_are_empty(service: service_calls.Service) -> None:
    assert service.names("__other__") == []


@pytest.mark.parametrize("kind", ["__Stat_Total__", "__Stat_Kind__", "__Stat_Ns_Kind__"])
def test_statistics_are_empty(service: service_calls.Service, kind: str) -> None:
    assert service.names(kind) == []
    assert service.names(kind, ("a", "=", 1), order=["-b", "c"]) == []
    assert service.names(kind, ("a", "!=", 1), order=["a"]) == []
    query = service.query(kind)
    query.distinct_on.add(name="a")
    assert service.results(query) == []
    assert service.count(service.query(kind), None) == [0]


def test_metadata_and_statistics_cannot_be_written(near: service_calls.Service) -> None:
    for path in (("__kind__", "A"), ("__kind__", "A", "__property__", "p"), ("__Stat_Kind__", 1)):
        with assert_refused("INVALID_ARGUMENT"):
            near.put(near.key(*path))


some_names = st.sampled_from(["a", "aa", "b", "a\x00", "é", "Z"])
namespaces = st.sampled_from(["", "a", "aa", "b-c"])
entities = st.tuples(namespaces, some_names, st.sampled_from([1, "n"]))


@given(
    st.dictionaries(entities, st.dictionaries(some_names, st.integers(0, 1)), max_size=8),
    st.lists(entities, max_size=4),
    some_names,
    st.sampled_from([">", ">=", "<", "<="]),
)
def test_metadata_lists_exactly_the_stored_names(
    make_service: type[service_calls.Service],
    stored: dict[Any, Any],
    gone: list[Any],
    bound: str,
    operator: str,
) -> None:
    with inprocess.open_engine(None) as engine:
        service = make_service(inprocess.Channel(engine))
        for (namespace, kind, name), fields in stored.items():
            service.put(service.key(kind, name, namespace=namespace), **fields)
        for namespace, kind, name in gone:
            service.delete(service.key(kind, name, namespace=namespace))
            stored.pop((namespace, kind, name), None)
        compare = {">": gt, ">=": ge, "<": lt, "<=": le}[operator]
        assert service.names("__namespace__") == [
            name or 1 for name in sorted({namespace for namespace, _, _ in stored})
        ]
        for namespace in ("", "a"):
            here = [(kind, set(fields)) for (at, kind, _), fields in stored.items()
                    if at == namespace]  # fmt: skip
            kinds = sorted({kind for kind, _ in here}, key=str.encode)
            assert service.names("__kind__", namespace=namespace) == kinds
            key = service.key("__kind__", bound, namespace=namespace)
            assert service.names("__kind__", ("__key__", operator, key), namespace=namespace) == [
                kind for kind in kinds if compare(kind.encode(), bound.encode())
            ]
            found = service.results(service.query("__property__"), namespace)
            assert [
                tuple(element.name for element in each.entity.key.path) for each in found
            ] == sorted(
                {(kind, name) for kind, names in here for name in names},
                key=lambda pair: [text.encode() for text in pair],
            )


class Steps:
    """Counts the virtual machine steps of SQLite on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.count = 0
        connection.set_progress_handler(self, 1)

    def __call__(self) -> int:
        self.count += 1
        return 0


@pytest.mark.parametrize("kind", ["__namespace__", "__kind__", "__property__"])
def test_the_cost_of_metadata_depends_on_names_and_not_on_stored_data(
    make_service: type[service_calls.Service], kind: str
) -> None:
    engine = inprocess.open_engine(None, built_in_indexes="eager")
    near = make_service(inprocess.Channel(engine))

    def steps() -> tuple[int, int]:
        with engine._storage.read() as snapshot:
            counted = Steps(snapshot.connection)
            view = metadata_kinds.MetadataView(snapshot, kind)
            name = keys.Partition("test").encoded, indexes.builtin(kind).code
            found = list(view.scan(name, b"", b"\xff", with_entities=True))
            snapshot.connection.set_progress_handler(None, 0)
        return len(found), counted.count

    def put(first: int, count: int) -> None:
        near.commit(*(
            {"upsert": near.entity(near.key("T", n), a=n, b=f"{n}")}
            for n in range(first, first + count)
        ))  # fmt: skip

    with engine:
        put(1, 3)
        few = steps()
        put(4, 600)
        many = steps()
    assert few[0] == many[0] > 0
    assert many[1] < 2 * few[1]


def test_metadata_of_the_past_lists_the_old_names(
    near: service_calls.Service, clock: shifted_clock.ShiftedClock
) -> None:
    near.put(near.key("Old", 1), a=1)
    moment = near.lookup(near.key("Old", 1)).found[0].update_time
    clock.ahead += 5
    near.delete(near.key("Old", 1))
    near.put(near.key("New", 1, namespace="n"), b=1)
    assert near.names("__kind__") == []
    for kind, expected in (("__namespace__", [1]), ("__kind__", ["Old"]), ("__property__", ["a"])):
        found = near.results(near.query(kind), read_time=moment)
        assert [last.entity.key.path[-1].name or 1 for last in found] == expected


def test_the_types_of_extreme_values_are_listed(near: service_calls.Service) -> None:
    near.put(near.key("E", 1), blob=b"\xff", nan=float("nan"), huge=2**63 - 1)
    assert properties(near) == [
        ("E", "blob", ["STRING"]),
        ("E", "huge", ["INT64"]),
        ("E", "nan", ["DOUBLE"]),
    ]


def test_metadata_cannot_be_summed(near: service_calls.Service) -> None:
    near.put(near.key("E", 1), n=1)
    query = near.query("__kind__", ("__key__", "=", near.key("__kind__", "E")))
    with assert_refused("INVALID_ARGUMENT", "no indexed properties"):
        near.call(
            "RunAggregationQuery",
            aggregation_query={
                "nested_query": query,
                "aggregations": [{"sum": {"property": {"name": "n"}}}],
            },
        )
