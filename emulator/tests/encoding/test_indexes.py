"""Index rows: the rows of an entity, and the valid content of an index.yaml."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.execution import automatic_indexes
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

HERE = keys.Partition("p")


def test_an_index_yaml_names_composite_indexes_once(tmp_path: Path) -> None:
    path = tmp_path / "index.yaml"
    path.write_text(
        "indexes:\n"
        "- kind: K\n  properties:\n  - name: a\n"  # A built-in index
        "- kind: K\n  ancestor: yes\n  properties:\n  - name: a\n    direction: desc\n"
        "- kind: K\n  ancestor: no\n  properties:\n  - name: a\n  - name: b\n    direction: asc\n"
        "- kind: K\n  properties:\n  - name: a\n  - name: b\n  - name: __key__\n"
        "- kind: K\n  properties:\n  - name: __key__\n    direction: desc\n  - name: b\n"
    )
    assert automatic_indexes.read_file(path) == (
        indexes.Index("K", (("a", True),), has_ancestor=True),
        indexes.Index("K", (("a", False), ("b", False))),
        indexes.Index("K", (), is_key_descending=True),
    )


def test_an_empty_index_yaml_has_no_indexes(tmp_path: Path) -> None:
    path = tmp_path / "index.yaml"
    for text in ("", "indexes:\n"):
        path.write_text(text)
        assert automatic_indexes.read_file(path) == ()


@pytest.mark.parametrize(
    "text",
    ["a: [", "[1]", "indexes: 5", "indexes: [{properties: [{name: a}]}]",
     "indexes: [{kind: K, properties: 5}]", "indexes: [{kind: K, properties: [{}]}]",
     "indexes: [{kind: K, properties: [{name: a, direction: up}]}]"],
)  # fmt: skip
def test_an_invalid_index_yaml_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "index.yaml"
    path.write_text(text)
    with pytest.raises(errors.InvalidArgument):
        automatic_indexes.read_file(path)


@pytest.mark.parametrize(
    ("index", "code"),
    [
        (indexes.Index("K"), "4b00014e"),
        (indexes.Index("K", (("a", True),)), "4b00014e6100012d"),
        (
            indexes.Index("K", (("a", False), ("b", True)), has_ancestor=True),
            "4b0001416100012b6200012d",
        ),
        (indexes.Index("K", (), is_key_descending=True), "4b00014e5f5f6b65795f5f00012d"),
    ],
)
def test_the_stored_code_of_an_index_is_fixed(index: indexes.Index, code: str) -> None:
    assert index.code.hex() == code
    assert indexes.decode(index.code) == index


def test_the_stored_entries_of_an_entity_are_fixed() -> None:
    entity = protobufs.Entity()
    entity.key.path.add(kind="A", id=1)
    entity.key.path.add(kind="K", name="x")
    entity.properties["a"].integer_value = 5
    for text in ("u", "v", "u"):
        entity.properties["b"].array_value.values.add(string_value=text)
    path = keys.encode_path(entity.key)
    assert path.hex() == "104100012080000000000000011" + "04b000130780001" + "00"
    indexed = indexes.indexed_values(entity, HERE)
    index = indexes.Index("K", (("a", True), ("b", False)))
    assert [each.hex() for each in indexes.entries(index, path, indexed)] == [
        "df7ffffffffffffffa" + "41750001" + path.hex(),
        "df7ffffffffffffffa" + "41760001" + path.hex(),
    ]
    above = indexes.Index("K", (("a", False),), has_ancestor=True)
    value = "208000000000000005"
    assert [each.hex() for each in indexes.entries(above, path, indexed)] == [
        keys.ancestors(path)[0].hex() + value + path.hex(),
        path.hex() + value + path.hex(),
    ]
    assert indexes.entries(indexes.Index("K", (("missing", False),)), path, indexed) == []
    everything = indexes.membership(entity, HERE, path, [index, above])
    assert {code: len(listed) for code, listed in everything.items()} == {
        indexes.builtin("K").code: 1,
        indexes.builtin("K", "a").code: 1,
        indexes.builtin("K", "a", is_descending=True).code: 1,
        indexes.builtin("K", "b").code: 2,
        indexes.builtin("K", "b", is_descending=True).code: 2,
        index.code: 2,
        above.code: 2,
    }


# Queries that need no composite index. The properties a, b and c have equal values.
SERVED = [
    {},
    {"filters": [("a", "=", 1)]},
    {"filters": [("a", ">", 0)]},
    {"order": ["a"]},
    {"order": ["-a"]},
    {"filters": [("a", ">", 0)], "order": ["-a"]},
    {"filters": [("a", "=", 1), ("b", "=", 1), ("c", "=", 1)]},
    {"filters": ["below", ("a", "=", 1), ("b", "=", 1)]},
    {"filters": ["after"]},
    {"filters": ["after", ("a", "=", 1), ("b", "=", 1)]},
    {"filters": [("a", "=", 1)], "order": ["__key__"]},
    {"filters": ["below"]},
    {"filters": ["below"], "order": ["__key__"]},
    {"filters": [("a", "=", 1)], "order": ["a"]},
    {"projection": ["a"]},
    {"filters": [("a", "in", [1, 2]), ("b", "=", 1)]},
    {"filters": [("or", ("a", "=", 1), ("b", "=", 1))]},
]
REFUSED = [
    ({"filters": [("a", "=", 1)], "order": ["b"]}, "properties:\n  - name: a\n  - name: b\n"),
    ({"order": ["a", "b"]}, "properties:\n  - name: a\n  - name: b\n"),
    ({"filters": [("a", ">", 0)], "order": ["a", "-b"]}, "- name: b\n    direction: desc\n"),
    ({"filters": [("a", ">", 0), ("b", "=", 1)]}, "properties:\n  - name: b\n  - name: a\n"),
    ({"filters": ["below", ("a", ">", 0)]}, "  ancestor: yes\n  properties:\n  - name: a\n"),
    ({"filters": ["below"], "order": ["a"]}, "  ancestor: yes\n  properties:\n  - name: a\n"),
    ({"projection": ["a", "b"]}, "properties:\n  - name: a\n  - name: b\n"),
    ({"order": ["-__key__"]}, "properties:\n  - name: __key__\n    direction: desc\n"),
    ({"filters": [("a", "=", 1)], "order": ["-__key__"]}, "- name: __key__\n    direction: desc\n"),
]


@pytest.fixture
def ask(near: service_calls.Service) -> Callable[..., Any]:
    """Query the U entities, of which one is below A:1 and one is a root."""
    special = {
        "below": ("__key__", "under", near.key("A", 1)),
        "after": ("__key__", ">", near.key("A", 1)),
    }
    for path in (("A", 1, "U", 1), ("U", 2)):
        near.put(near.key(*path), a=1, b=1, c=1)

    def ask(filters: list[Any] | tuple[()] = (), **fields: Any) -> list[int]:
        given = (special[each] if isinstance(each, str) else each for each in filters)
        return near.names("U", *given, **fields)

    return ask


@pytest.mark.parametrize("asked", SERVED, ids=str)
def test_queries_of_one_property_or_of_equalities_need_no_composite_index(
    ask: Callable[..., Any], asked: dict[str, Any]
) -> None:
    assert ask(**asked) == ([1] if "below" in asked.get("filters", ()) else [1, 2])


@pytest.mark.parametrize(("asked", "recommended"), REFUSED, ids=str)
def test_queries_that_need_a_composite_index_recommend_it(
    ask: Callable[..., Any], asked: dict[str, Any], recommended: str
) -> None:
    with assert_refused("FAILED_PRECONDITION", recommended):
        ask(**asked)
