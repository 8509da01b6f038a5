"""The behavior that every client library must observe over both transports.

The tests use the libraries through `driver.Driver`, so they test each behavior only once. If a
library merges or retries on its own, the tests check the result that its caller receives.
"""

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from emulator.tests.clients import datastore_driver, driver, ndb_driver
from emulator.tests.clients.conftest import only
from emulator.tests.clients.driver import (
    Asked,
    Both,
    Either,
    Path,
    Point,
    Row,
    Where,
    assert_refused,
)

WHEN = dt.datetime(2020, 1, 2, 3, 4, 5, 678_000, dt.UTC)
VALUES = {
    "yes": True,
    "no": False,
    "small": 0,
    "largest": 2**63 - 1,
    "smallest": -(2**63),
    "half": 1.5,
    "whole": 3.0,
    "infinite": math.inf,
    "text": "é\x00\U0001f600",
    "empty": "",
    "raw": b"\x00\xff",
    "when": WHEN,
    "where": Point(-90.0, 180.0),
    "link": Path(("Other", "x", "T", 7)),
    "list": [1, 2, 2],
    "nested": {"x": 1, "y": "z"},
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_returned_as_stored(
    client: datastore_driver.Datastore | ndb_driver.Ndb, name: str
) -> None:
    client.put(("T", "a"), v=VALUES[name])
    (row,) = client.get(("T", "a"))
    assert row == Row(("T", "a"), {"v": VALUES[name]})
    assert type(row.properties["v"]) is type(VALUES[name])


@only("google-cloud-datastore", "node")  # NDB's generic properties read null as unset
@pytest.mark.parametrize("value", [None, [1, "a", None], []])
def test_null_is_returned_as_null(
    client: datastore_driver.Datastore, value: list[int | str | None] | None
) -> None:
    client.put(("T", "a"), v=value)
    assert client.get(("T", "a")) == [Row(("T", "a"), {"v": value})]


@pytest.mark.parametrize("number", [math.nan, -0.0])
def test_nan_and_minus_zero_are_returned(
    client: datastore_driver.Datastore | ndb_driver.Ndb, number: float
) -> None:
    client.put(("T", "a"), v=number)
    found = client.get(("T", "a"))[0].properties["v"]
    assert math.isnan(found) if math.isnan(number) else math.copysign(1, found) == -1


def test_a_new_entity_gets_an_id_of_sixteen_digits(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    first, second = (client.put(("Parent", "p", "T"), v=1) for _ in range(2))
    assert first[:3] == second[:3] == ("Parent", "p", "T")
    assert first[3] != second[3]
    assert {len(str(path[3])) for path in (first, second)} == {16}
    assert client.get(first) == [Row(first, {"v": 1})]


def test_allocated_ids_are_distinct_and_create_no_entity(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    paths = client.allocate(("T",), 20)
    assert len(set(paths)) == 20
    assert client.get(*paths) == []


def test_several_entities_are_read_and_missing_ones_left_out(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    for name in ("a", "b"):
        client.put(("T", name), v=name)
    found = client.get(("T", "a"), ("T", "none"), ("T", "b"))
    assert sorted(row.path for row in found) == [("T", "a"), ("T", "b")]


def test_a_deleted_entity_is_not_found_by_lookups_or_queries(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    client.put(("T", "a"), v=1)
    client.delete(("T", "a"), ("T", "never there"))
    assert client.get(("T", "a")) == []
    assert client.query(Asked("T")).rows == []


def fill(client: datastore_driver.Datastore | ndb_driver.Ndb) -> None:
    """Store the entities a to e: a to d have v = 0 to 3, e has no v, and their tags overlap."""
    for number, name in enumerate("abcd"):
        client.put(("T", name), v=number, even=number % 2 == 0, tag=[number, number + 1])
    client.put(("T", "e"), other=1)


def names(page: driver.Page) -> str:
    """Return the names of the results, in order."""
    return "".join(path[-1] for path in page.paths)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (Where("v", "=", 2), "c"),
        (Where("v", "<", 2), "ab"),
        (Where("v", "<=", 2), "abc"),
        (Where("v", ">", 1), "cd"),
        (Where("v", ">=", 1), "bcd"),
        (Where("v", "!=", 1), "acd"),
        (Where("v", "IN", [3, 1, 7]), "bd"),
        (Where("v", "NOT_IN", [3, 1, 7]), "ac"),
        (Where("tag", "=", 2), "bc"),
        (Both((Where("tag", "=", 2), Where("tag", "=", 3))), "c"),
        (Both((Where("v", ">", 0), Where("v", "<", 3))), "bc"),
        (Both((Where("even", "=", value=True), Where("tag", "=", 3))), "c"),
        (Either((Where("v", "=", 3), Where("v", "=", 0))), "ad"),
        (Either((Where("tag", "=", 1), Where("even", "=", value=False))), "abd"),
        (Where("v", "=", 1.0), ""),
    ],
    ids=str,
)
def test_a_filter_finds_the_matching_entities(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
    where: driver.Both | driver.Either | driver.Where,
    found: str,
) -> None:
    fill(client)
    assert "".join(sorted(names(client.query(Asked("T", where))))) == found


def test_orders_leave_out_entities_without_the_property(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    fill(client)
    assert names(client.query(Asked("T", order=("v",)))) == "abcd"
    assert names(client.query(Asked("T", order=("-v",)))) == "dcba"
    assert names(client.query(Asked("T"))) == "abcde"


def test_values_of_all_types_have_one_order(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    ordered = [None, -5, 3, False, True, "", "B", "a", -1.5, 1.5, Point(1.0, 2.0), Path(("K", 1))]
    for number, value in enumerate(ordered):
        client.put(("T", number + 1), v=value)
    expected = list(range(1, len(ordered) + 1))
    assert [path[-1] for path in client.query(Asked("T", order=("v",))).paths] == expected
    assert [path[-1] for path in client.query(Asked("T", order=("-v",))).paths] == expected[::-1]


def test_an_ancestor_query_finds_the_ancestor_and_all_below(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    for path in (("T", "r"), ("T", "r", "T", "s"), ("T", "r", "T", "s", "T", "t"), ("T", "x")):
        client.put(path, v=1)
    assert names(client.query(Asked("T", ancestor=("T", "r")))) == "rst"
    assert names(client.query(Asked(None, ancestor=("T", "r", "T", "s")))) == "st"


def test_an_unindexed_value_is_stored_but_not_found(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    client.put_unindexed(("T", "a"), ["v"], v="x" * 2000, w=1)
    assert client.get(("T", "a"))[0].properties == {"v": "x" * 2000, "w": 1}
    assert client.query(Asked("T", order=("v",))).rows == []
    assert client.query(Asked("T", Where("w", "=", 1))).paths == [("T", "a")]


def test_an_indexed_text_beyond_1500_bytes_is_refused(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    client.put(("T", "a"), v="x" * 1500)
    with assert_refused("INVALID_ARGUMENT"):
        client.put(("T", "b"), v="é" * 751)
    assert client.get(("T", "b")) == []


def test_keys_only_results_have_no_properties(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    fill(client)
    page = client.query(Asked("T", projection=("__key__",)))
    assert page.rows == [Row(("T", name), {}) for name in "abcde"]


@only("google-cloud-datastore", "node")  # NDB refuses such a projection, but sends one itself
def test_the_key_may_be_projected_with_a_property(client: datastore_driver.Datastore) -> None:
    fill(client)
    asked = Asked("T", projection=("__key__", "tag"), order=("-tag",), limit=3)
    first = client.query(asked)
    assert first.rows == [
        Row(("T", "d"), {"tag": 4}), Row(("T", "c"), {"tag": 3}), Row(("T", "d"), {"tag": 3}),
    ]  # fmt: skip
    second = client.query(replace(asked, cursor=first.cursor))
    assert names(second) == "bca"[: len(second.rows)]
    grouped = replace(asked, order=("v",), projection=("__key__", "v"), distinct=("v",), limit=None)
    assert [(row.path[-1], row.properties) for row in client.query(grouped).rows] == [
        ("a", {"v": 0}), ("b", {"v": 1}), ("c", {"v": 2}), ("d", {"v": 3}),
    ]  # fmt: skip


def test_a_projection_returns_one_result_per_value(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    client.put(("T", "a"), tag=[2, 1], v=WHEN)
    client.put(("T", "b"), tag=[3], v=WHEN)
    page = client.query(Asked("T", projection=("tag",), order=("tag",)))
    assert [(row.path[-1], row.properties["tag"]) for row in page.rows] in (
        [("a", 1), ("a", 2), ("b", 3)],
        [("a", [1]), ("a", [2]), ("b", [3])],  # NDB returns lists, because the property is repeated
    )
    dates = client.query(Asked("T", projection=("v",), order=("v",))).rows
    # An index stores a time as microseconds; NDB's typed properties convert the microseconds back.
    assert [row.properties["v"] for row in dates] == [1_577_934_245_678_000] * 2


def test_distinct_keeps_the_first_of_each_value(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    for name, v in (("a", 1), ("b", 2), ("c", 1), ("d", 2)):
        client.put(("T", name), v=v)
    page = client.query(Asked("T", projection=("v",), distinct=("v",), order=("v",)))
    assert [row.properties["v"] for row in page.rows] == [1, 2]


def test_pages_return_every_entity_once_while_others_change(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    for number in range(25):
        client.put(("T", number + 1), v=number)
    seen = []
    page = client.query(Asked("T", order=("v",), limit=10))
    while page.rows:
        seen += [row.properties["v"] for row in page.rows]
        if page.is_end:
            break
        client.put(("T", 1000), v=-1)  # Sorts before every cursor
        client.delete(page.paths[-1])
        page = client.query(Asked("T", order=("v",), limit=10, cursor=page.cursor))
    assert seen == list(range(25))


def test_an_offset_skips_results(client: datastore_driver.Datastore | ndb_driver.Ndb) -> None:
    fill(client)
    assert names(client.query(Asked("T", order=("v",), offset=1, limit=2))) == "bc"
    assert names(client.query(Asked("T", order=("v",), offset=9, limit=2))) == ""


@pytest.mark.slow
def test_a_query_of_many_batches_is_read_whole(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    for number in range(320):  # A batch has up to 300
        client.put(("T", number + 1), v=number)
    assert len(client.query(Asked("T")).rows) == 320


def test_a_count_counts(client: datastore_driver.Datastore | ndb_driver.Ndb) -> None:
    fill(client)
    assert client.aggregate(Asked("T"), "count") == 5
    assert client.aggregate(Asked("T", Where("v", ">", 0)), "count") == 3


@only("google-cloud-datastore", "node")  # NDB has no sums
def test_sums_and_averages_use_only_numbers(client: datastore_driver.Datastore) -> None:
    fill(client)
    client.put(("T", "f"), v="no number")
    assert client.aggregate(Asked("T"), "sum", "v") == 6
    assert client.aggregate(Asked("T"), "avg", "v") == 1.5
    assert client.aggregate(Asked("None"), "sum", "v") == 0
    # The Python library converts the null to 0.0.
    assert client.aggregate(Asked("None"), "avg", "v") in (None, 0.0)


def test_a_query_without_its_index_is_refused(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    fill(client)
    with assert_refused("FAILED_PRECONDITION"):
        client.query(Asked("T", Where("v", "=", 1), order=("other",)))


def test_namespaces_and_databases_are_separate(make_driver: Callable[..., Any]) -> None:
    drivers = [make_driver(*scope) for scope in (("", ""), ("n", ""), ("", "d"), ("n", "d"))]
    for number, each in enumerate(drivers):
        each.put(("T", "a"), v=number)
    for number, each in enumerate(drivers):
        assert each.get(("T", "a")) == [Row(("T", "a"), {"v": number})]
        assert each.query(Asked("T", Where("v", "=", number))).paths == [("T", "a")]
        assert each.query(Asked("T", Where("v", "!=", number))).rows == []


@only("node")  # The other libraries do not support transforms
@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        ({"increment": 4}, 7),
        ({"maximum": 5}, 5),
        ({"maximum": 1}, 3),
        ({"minimum": 1}, 1),
        ({"minimum": 5}, 3),
        ({"appendMissingElements": ["b", "c"]}, ["b", "c"]),
        ({"removeAllFromArray": ["b"]}, []),
    ],
    ids=str,
)
def test_transforms_change_an_entity_of_the_same_commit(
    client: Any, transform: Any, expected: Any
) -> None:
    client.transform(("T", "a"), [{"property": "n", **transform}], n=3)
    assert client.get(("T", "a"))[0].properties == {"n": expected}


@only("node")
def test_transforms_are_applied_in_order_and_to_arrays(client: Any) -> None:
    steps = [
        {"property": "list", "appendMissingElements": ["b", "c"]},
        {"property": "list", "removeAllFromArray": ["a"]},
        {"property": "when", "setToServerValue": True},
    ]
    client.transform(("T", "a"), steps, list=["a", "b", "a"])
    found = client.get(("T", "a"))[0].properties
    assert found["list"] == ["b", "c"]
    assert isinstance(found["when"], dt.datetime)


@only("node")  # Other tests cover google-cloud-datastore, and NDB has no explain
@pytest.mark.parametrize("is_run", [False, True])
def test_a_query_is_explained(client: Any, is_run: Any) -> None:
    fill(client)
    count, metrics = client.explain(Asked("T", order=("v",)), is_run=is_run)
    assert metrics["planSummary"]["indexesUsed"] == [
        {"query_scope": "Collection group", "properties": "(v ASC, __name__ ASC)"}
    ]
    assert count == (4 if is_run else 0)
    if is_run:
        assert metrics["executionStats"]["resultsReturned"] == 4
        assert metrics["executionStats"]["readOperations"] == 4
    else:
        assert "executionStats" not in metrics


@only("node")
def test_sums_take_the_smallest_values_of_a_limit(client: Any) -> None:
    for name, v in (("a", 26), ("b", 9), ("c", 0), ("d", 33)):
        client.put(("T", name), v=v)
    assert client.aggregate(Asked("T", limit=2), "sum", "v") == 9
    assert client.aggregate(Asked("T", limit=3), "sum", "v") == 35
