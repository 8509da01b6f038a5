"""Property masks: their effect on reads and writes, and invalid paths."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import errors
from datastore_emulator.encoding import entities, property_masks, property_paths
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

STORED = {"a": 1, "b": {"c": 2, "d": {"e": 3, "f": 4}}, "list": [1, 2], "x.y": 5}


def masked(
    service: service_calls.Service,
    given: Any,
    *mask: str,
    operation: str = "upsert",
    **properties: Any,
) -> Any:
    entity = service.entity(given, **properties)
    return service.commit({operation: entity, "property_mask": {"paths": mask}})


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([], {}),
        (["a"], {"a": 1}),
        (["__key__"], {}),
        (["__key__", "a", "a"], {"a": 1}),
        (["b"], {"b": STORED["b"]}),
        (["b.c"], {"b": {"c": 2}}),
        (["b.d.e", "b.c"], {"b": {"c": 2, "d": {"e": 3}}}),
        (["b.d.e", "b.d", "b.d.f"], {"b": {"d": {"e": 3, "f": 4}}}),
        (["b.none", "none", "none.x", "a.x", "list.x"], {}),
        (["x.y"], {}),
        (["x\\.y"], {"x.y": 5}),
    ],
)
def test_a_lookup_and_a_query_return_only_masked_properties(
    service: service_calls.Service, mask: list[str], expected: dict[str, Any]
) -> None:
    key = service.key("T", 1)
    service.put(key, **STORED)
    found = service.call("Lookup", keys=[key], property_mask={"paths": mask}).found[0]
    assert found.entity.key == key
    assert service.plain(found.entity) == expected
    batch = service.call(
        "RunQuery",
        query=service.query(order=["a"]),
        partition_id={"project_id": "test"},
        property_mask={"paths": mask},
    ).batch
    assert batch.entity_result_type == 1
    assert service.plain(batch.entity_results[0].entity) == expected
    assert batch.entity_results[0].version == found.version


def test_a_masked_embedded_entity_keeps_its_key_and_its_settings(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    value = service.value({"x": 1, "y": 2})
    value.entity_value.key.CopyFrom(service.key("Inner", 7))
    value.exclude_from_indexes = True
    service.put(service.key("T", 1), v=value)
    found = service.call("Lookup", keys=[service.key("T", 1)], property_mask={"paths": ["v.x"]})
    del value.entity_value.properties["y"]
    assert found.found[0].entity.properties["v"] == value


def test_a_projection_cannot_have_a_mask(service: service_calls.Service) -> None:
    for fields in ({"projection": ["a"]}, {"keys_only": True}):
        with assert_refused("INVALID_ARGUMENT", "mask"):
            service.call(
                "RunQuery",
                query=service.query(**fields),
                partition_id={"project_id": "test"},
                property_mask={"paths": ["a"]},
            )


@pytest.mark.parametrize("operation", ["update", "upsert"])
def test_a_masked_write_changes_named_and_removes_absent_properties(
    service: service_calls.Service, operation: str
) -> None:
    key = service.key("T", 1)
    service.put(key, a=1, b=2, c=3)
    masked(service, key, "a", "b", operation=operation, a=9, c=9, d=9)
    assert service.get(key) == {"a": 9, "c": 3}
    assert service.names("T", ("a", "=", 9)) == [1]
    assert service.names("T", ("b", "=", 2)) == []


@pytest.mark.parametrize(
    ("mask", "properties", "expected"),
    [
        (["b.c"], {"b": {"c": 9, "z": 9}}, {"b": {"c": 9, "d": {"e": 3, "f": 4}}}),
        (["b.c"], {}, {"b": {"d": {"e": 3, "f": 4}}}),
        (["b.c", "b.d"], {"b": 5}, {"b": {}}),
        (["b.d.new"], {"b": {"d": {"new": 1}}}, {"b": {"c": 2, "d": {"e": 3, "f": 4, "new": 1}}}),
        (["b"], {"b": {"z": 1}}, {"b": {"z": 1}}),
        (["b.d.e", "b"], {"b": {"z": 1}}, {"b": {"z": 1}}),
        (["a.x"], {"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}),
        (["a.x"], {}, {}),
        (["n.x"], {"n": {"x": 1, "y": 2}}, {"n": {"x": 1}}),
        (["n.x"], {"n": {"y": 2}}, {}),
        (["list.x"], {"list": {"x": 1}}, {"list": {"x": 1}}),
        (["x\\.y"], {"x.y": 6}, {"x.y": 6}),
        (["__key__"], {"a": 9}, {}),
        ([], {"a": 9}, {}),
    ],
)
def test_a_masked_write_can_change_embedded_entities(
    service: service_calls.Service,
    mask: list[str],
    properties: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    key = service.key("T", 1)
    service.put(key, **STORED)
    masked(service, key, *mask, **properties)
    assert service.get(key) == STORED | expected


def test_a_masked_write_of_a_missing_entity_stores_only_named_properties(
    service: service_calls.Service,
) -> None:
    for number, operation in enumerate(("insert", "upsert"), 1):
        key = service.key("T", number)
        masked(service, key, "a", "b.c", operation=operation, a=1, b={"c": 2, "d": 3}, z=9)
        assert service.get(key) == {"a": 1, "b": {"c": 2}}
    made = masked(service, service.key("T"), "a", a=1, z=9).mutation_results[0].key
    assert service.get(made) == {"a": 1}


def test_a_masked_write_keeps_the_settings_of_other_properties(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    key = service.key("T", 1)
    service.put(key, a=unindexed("x" * 2000), b=1)
    masked(service, key, "b", b=2)
    assert service.lookup(key).found[0].entity.properties["a"].exclude_from_indexes


def test_a_masked_write_that_makes_the_entity_too_big_is_refused(
    service: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    key = service.key("T", 1)
    service.put(key, a=unindexed("x" * 600_000))
    with assert_refused("INVALID_ARGUMENT"):
        masked(service, key, "b", b=unindexed("x" * 600_000))
    assert sorted(service.get(key)) == ["a"]


def test_the_mask_of_a_delete_is_ignored(service: service_calls.Service) -> None:
    key = service.key("T", 1)
    service.put(key, a=1)
    service.commit({"delete": key, "property_mask": {"paths": ["a", ".."]}})
    assert service.get(key) is None


def test_a_path_of_a_mask_cannot_lead_into_a_given_array(service: service_calls.Service) -> None:
    with assert_refused("INVALID_ARGUMENT", "array"):
        masked(service, service.key("T", 1), "list.x", list=[{"x": 1}])


BAD_PATHS = [
    "", ".", "a.", ".a", "a..b", "\\", "a\\", "a\\b", "__x__", "a.__x__", "__key__.a", "a.__key__",
    "n" * 1501, "a." * 21 + "a",
]  # fmt: skip


@pytest.mark.parametrize("path", BAD_PATHS)
def test_bad_paths_are_refused(near: service_calls.Service, path: str) -> None:
    key = near.key("T", 1)
    with assert_refused("INVALID_ARGUMENT"):
        masked(near, key, path, a=1)
    with assert_refused("INVALID_ARGUMENT"):
        near.call("Lookup", keys=[key], property_mask={"paths": [path]})
    assert near.get(key) is None


names = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(".\\`_"), min_size=1)


@given(st.lists(names.filter(lambda name: not entities.is_reserved(name)), min_size=1, max_size=5))
def test_a_path_parses_to_the_names_that_were_escaped_and_joined(path: list[str]) -> None:
    escaped = ".".join(name.replace("\\", "\\\\").replace(".", "\\.") for name in path)
    assert property_paths.parse(escaped) == tuple(path)


@given(st.text(st.sampled_from("ab.\\_`"), max_size=12))
def test_any_text_is_a_valid_path_or_refused(text: str) -> None:
    try:
        path = property_paths.parse(text)
    except errors.InvalidArgument:
        return
    assert all(path)
    assert property_masks.parse([text])


# The laws of masks: entities are dicts of dicts, and reads and writes use the same mask.
trees = st.recursive(
    st.integers(0, 3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
entity_dicts = st.dictionaries(st.sampled_from("abc"), trees, max_size=3)
path_lists = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(".".join), max_size=4
)


def leaves(tree: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Return the value at each path that ends in a number or an empty entity."""
    found = {}
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            found |= leaves(value, f"{above}{name}.")
        else:
            found[above + name] = value
    return found


def is_covered(path: str, mask: list[str]) -> bool:
    return any(f"{path}.".startswith(f"{each}.") for each in mask)


@given(entity_dicts, path_lists)
def test_a_mask_reads_exactly_the_leaves_below_its_paths(
    near: service_calls.Service, tree: dict[str, Any], mask: list[str]
) -> None:
    found = property_masks.narrow(near.entity(near.key("T", 1), **tree), property_masks.parse(mask))
    expected = {path: value for path, value in leaves(tree).items() if is_covered(path, mask)}
    assert leaves(near.plain(found)) == expected


@given(entity_dicts, entity_dicts, path_lists)
def test_a_masked_read_returns_what_a_masked_write_stored(
    near: service_calls.Service, old: dict[str, Any], new: dict[str, Any], mask: list[str]
) -> None:
    key = near.key("T", 1)
    parsed = property_masks.parse(mask)
    before, given_ = near.entity(key, **old), near.entity(key, **new)
    after = property_masks.merge(before, given_, parsed)
    assert property_masks.narrow(after, parsed) == property_masks.narrow(given_, parsed)


@given(entity_dicts, path_lists)
def test_writing_an_entity_over_itself_changes_nothing(
    near: service_calls.Service, tree: dict[str, Any], mask: list[str]
) -> None:
    entity = near.entity(near.key("T", 1), **tree)
    assert property_masks.merge(entity, entity, property_masks.parse(mask)) == entity
