"""Values and limits: valid entities are returned unchanged, and all others are refused."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import errors, inprocess, protobufs
from datastore_emulator.encoding import indexes
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

MIB = 1024 * 1024


def plain_texts(
    service: service_calls.Service, count: int, size: int, unindexed: type[service_calls.Unindexed]
) -> dict[str, service_calls.Unindexed]:
    return {f"p{n}": unindexed("x" * size) for n in range(count)}


def test_an_entity_has_up_to_1_mib(
    near: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    near.put(near.key("T", 1), **plain_texts(near, 10, 104_000, unindexed))
    near.put(near.key("T", 2), **{f"p{n}": "x" * 1400 for n in range(735)})
    with assert_refused("INVALID_ARGUMENT"):
        near.put(near.key("T", 3), **plain_texts(near, 10, 105_000, unindexed))
    with assert_refused("INVALID_ARGUMENT", "too big"):
        near.put(near.key("T", 4), **{f"p{n}": "x" * 1400 for n in range(755)})


def test_an_entity_is_measured_as_the_documentation_does(
    near: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    """The size is 32 bytes, 16 plus the path for the key, plus each property's name and value."""
    own, names = 32 + 16 + (2 + 8), 2 + 2 + 2
    rest = 1_048_572 - own - names - 1_048_487 - 8
    fields = {"p": unindexed(b"x" * 1_048_487), "n": 1}
    near.put(near.key("T", 1), **fields, s="x" * (rest - 1))
    with assert_refused("INVALID_ARGUMENT", "too big"):
        near.put(near.key("T", 1), **fields, s="x" * rest)
    with assert_refused("INVALID_ARGUMENT", "1048487"):
        near.put(near.key("T", 1), p=unindexed(b"x" * 1_048_487), q=unindexed(b"x"))


def test_an_unindexed_value_has_up_to_1_mib_and_the_error_names_it(
    near: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    near.put(near.key("T", 1), text=unindexed("x" * 1_048_000))
    text = 'The value of property "text" is longer than 1048487 bytes.'
    for value in ("x" * 1_048_488, b"x" * 1_048_488, "é" * 524_244):
        with assert_refused("INVALID_ARGUMENT", text):
            near.put(near.key("T", 1), text=unindexed(value))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda value: value,
        lambda value: [value],
        lambda value: {"inner": value},
        lambda value: [{"inner": [value]}],
    ],
    ids=["alone", "in an array", "in an entity", "in an array in an entity in an array"],
)
def test_indexed_texts_have_up_to_1500_bytes_at_every_depth(
    near: service_calls.Service,
    wrap: Callable[..., Any],
    unindexed: type[service_calls.Unindexed],
) -> None:
    for value in (
        "x" * 1500,
        b"x" * 1500,
        "é" * 750,
        unindexed("x" * 1501),
        unindexed(b"x" * 1501),
    ):
        near.put(near.key("T", 1), p=wrap(value))
    for value in ("x" * 1501, b"x" * 1501, "é" * 751):
        with assert_refused("INVALID_ARGUMENT", "is longer than 1500 bytes."):
            near.put(near.key("T", 1), p=wrap(value))


def test_values_in_an_unindexed_entity_are_not_indexed(
    near: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    long = {"inner": unindexed("x" * 2000), "list": [unindexed("y" * 2000)], "n": 1}
    near.put(near.key("T", 1), p=unindexed(long))
    assert near.names("T", ("p.n", "=", 1)) == []
    assert near.names("T", order=["p.n"]) == []


def test_property_names_have_up_to_1500_bytes_and_can_contain_dots(
    near: service_calls.Service,
) -> None:
    near.put(near.key("T", 1), **{"é" * 750: 1, "a.b.": 2, ".": 3, "__a": 4, "a__": 5})
    assert near.names("T", ("é" * 750, "=", 1)) == [1]
    for name in ("", "é" * 750 + "x", "__a__", "____", "__a\n__"):
        with assert_refused("INVALID_ARGUMENT"):
            near.put(near.key("T", 2), **{name: 1})
        with assert_refused("INVALID_ARGUMENT"):
            near.put(near.key("T", 2), outer={name: 1})


def nested_request(pairs: int, entities: int) -> Any:
    """Return a commit of nested entities; all but the innermost are in an array.

    The message is built in place, because a message this deep cannot be copied.
    """
    request = protobufs.CommitRequest(project_id="test", mode=2)
    entity = request.mutations.add().upsert
    entity.key.path.add(kind="T", id=1)
    value = entity.properties["n"]
    for _ in range(pairs):
        value = value.array_value.values.add().entity_value.properties["n"]
    for _ in range(entities):
        value = value.entity_value.properties["n"]
    value.integer_value = 1
    return request


@pytest.mark.parametrize(
    ("pairs", "entities", "is_legal"),
    [(0, 20, True), (0, 21, False), (18, 1, True), (18, 2, False), (20, 0, False), (21, 0, False)],
)
def test_entities_nest_up_to_20_levels_if_a_response_can(
    near: service_calls.Service,
    pairs: int,
    entities: int,
    is_legal: bool,
) -> None:
    request = nested_request(pairs, entities)
    if not is_legal:
        with assert_refused("INVALID_ARGUMENT"):
            near.send("Commit", request)
        assert near.names() == []
        return
    near.send("Commit", request)
    found = near.results(near.query())[0].entity
    assert found.properties["n"] == request.mutations[0].upsert.properties["n"]


def test_an_array_keeps_its_meaning_and_allows_no_array_or_exclusion(
    near: service_calls.Service,
) -> None:
    value = near.value([1.5, 2.5])
    value.meaning = 31
    near.put(near.key("T", 1), v=value)
    assert near.lookup(near.key("T", 1)).found[0].entity.properties["v"] == value
    assert near.names("T", ("v", "=", 2.5)) == [1]
    value.exclude_from_indexes = True
    for bad in (value, [[1]], [1, []], {"inner": [[1]]}):
        with assert_refused("INVALID_ARGUMENT"):
            near.put(near.key("T", 2), v=bad)
    near.put(near.key("T", 2), v=[{"inner": [1]}])


@pytest.mark.slow
def test_an_entity_has_up_to_20000_indexed_values(
    near: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    near.put(near.key("U", 1), v=list(range(20_000)))
    assert near.names("U", ("v", "=", 19_999)) == [1]
    near.put(near.key("U", 2), v=[7] * 20_001)
    near.put(near.key("U", 3), v=[unindexed(n) for n in range(20_001)])
    with assert_refused("INVALID_ARGUMENT", "20000 index entries"):
        near.put(near.key("U", 4), v=list(range(20_000)), w=1)
    with assert_refused("INVALID_ARGUMENT", "20000 index entries"):
        near.put(near.key("U", 1), v=list(range(20_000)), w=1)


def test_composite_entries_are_limited_in_number_and_bytes(near: service_calls.Service) -> None:
    near.put(near.key("T", 1), a=list(range(60)), b=list(range(60)))
    with assert_refused("INVALID_ARGUMENT", "20000"):
        near.put(near.key("T", 2), a=list(range(120)), b=list(range(120)))
    long = "x" * 1000
    near.put(near.key("T", 3), a=[long + str(n) for n in range(20)], b=list(range(20)))
    with assert_refused("INVALID_ARGUMENT", "larger than 2097152 bytes"):
        near.put(near.key("T", 4), a=[long + str(n) for n in range(40)], b=list(range(30)))
    assert near.get(near.key("T", 4)) is None


def test_an_entity_that_a_new_index_makes_too_big_can_be_deleted(
    tmp_path: Path, make_service: type[service_calls.Service], index_yaml: Path
) -> None:
    with inprocess.open_engine(tmp_path / "data") as engine:
        service = make_service(inprocess.Channel(engine))
        values = list(range(90))
        service.put(service.key("T", 1), a=values, b=values)
    with inprocess.open_engine(tmp_path / "data", indexes=index_yaml) as engine:
        service = make_service(inprocess.Channel(engine))
        service.put(service.key("T", 1), a=1)
        service.delete(service.key("T", 1))
        assert service.names() == []


def test_invalid_latitudes_and_longitudes_are_refused(near: service_calls.Service) -> None:
    near.put(near.key("T", 1), v=[(90.0, 180.0), (-90.0, -180.0), (0.0, -0.0)])
    for bad in ((90.1, 0.0), (-90.1, 0.0), (0.0, 180.1), (0.0, -180.1), (math.nan, 0.0),
                (0.0, math.inf)):  # fmt: skip
        with assert_refused("INVALID_ARGUMENT", "globe"):
            near.put(near.key("T", 1), v=bad)


def stamp(seconds: int, nanos: int) -> Any:
    return protobufs.Value(timestamp_value={"seconds": seconds, "nanos": nanos})


FIRST, LAST = -62_135_596_800, 253_402_300_799


@pytest.mark.parametrize(
    ("seconds", "nanos", "kept"),
    [(0, 123_456_789, 123_456_000), (-1, 999_999_999, 999_999_000), (FIRST, 0, 0), (LAST, 999, 0)],
)
def test_timestamps_of_the_years_1_to_9999_are_truncated_to_microseconds(
    near: service_calls.Service, seconds: int, nanos: int, kept: int
) -> None:
    near.put(near.key("T", 1), a=stamp(seconds, nanos), b=[{"c": stamp(seconds, nanos)}])
    found = near.get(near.key("T", 1))
    for each in (found["a"], found["b"][0]["c"]):
        assert (each.seconds, each.nanos) == (seconds, kept)


@pytest.mark.parametrize("at", [(FIRST - 1, 0), (LAST + 1, 0), (0, -1), (0, 1_000_000_000)])
def test_invalid_timestamps_are_refused(near: service_calls.Service, at: tuple[int, int]) -> None:
    with assert_refused("INVALID_ARGUMENT"):
        near.put(near.key("T", 1), a=stamp(*at))


# Lookups and queries return any valid value, with any setting, exactly as it was stored.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
int64s = st.integers(-(2**63), 2**63 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4).filter(
    lambda name: not (name.startswith("__") and name.endswith("__"))
)
raw_keys = st.builds(
    lambda project, database, namespace, path: protobufs.Key(
        partition_id={
            "project_id": project, "database_id": database, "namespace_id": namespace,
        },
        path=[
            {"kind": kind, "name" if isinstance(name, str) else "id": name} for kind, name in path
        ],
    ),
    st.sampled_from(["test", "other", "example.com:p"]),
    st.sampled_from(["", "db"]),
    st.sampled_from(["", "n", "__reserved__"]),
    st.lists(st.tuples(names, names | int64s.filter(bool)), min_size=1, max_size=3),
)  # fmt: skip
scalars = st.one_of(
    st.just({"null_value": 0}),
    st.booleans().map(lambda v: {"boolean_value": v}),
    (int64s | st.sampled_from([2**63 - 1, -(2**63), 0])).map(lambda v: {"integer_value": v}),
    st.floats().map(lambda v: {"double_value": v}),
    texts.map(lambda v: {"string_value": v}),
    st.binary(max_size=20).map(lambda v: {"blob_value": v}),
    st.tuples(st.integers(FIRST, LAST), st.integers(0, 999_999)).map(
        lambda v: {"timestamp_value": {"seconds": v[0], "nanos": v[1] * 1000}}
    ),
    st.tuples(st.floats(-90, 90), st.floats(-180, 180)).map(
        lambda v: {"geo_point_value": {"latitude": v[0], "longitude": v[1]}}
    ),
    raw_keys.map(lambda v: {"key_value": v}),
)
meanings = st.sampled_from([0, 0, 9, 15, 16, 19, 20, 22, 24, -1, 2**31 - 1])
settings_of = st.tuples(meanings, st.booleans())


def with_settings(fields: dict[str, Any], settings: tuple[int, bool]) -> Any:
    meaning, is_excluded = settings
    return protobufs.Value(**fields, meaning=meaning, exclude_from_indexes=is_excluded)


def embedded(key: Any, properties: dict[str, Any]) -> dict[str, Any]:
    entity = protobufs.Entity()
    if key is not None:
        entity.key.CopyFrom(key)
    for name, value in properties.items():
        entity.properties[name].CopyFrom(value)
    return {"entity_value": entity}


def arrays(elements: Any) -> Any:
    return st.builds(
        lambda values, meaning: protobufs.Value(array_value={"values": values}, meaning=meaning),
        st.lists(elements, max_size=4),
        meanings,
    )


def entity_values(inner: Any) -> Any:
    return st.builds(
        lambda key, properties, settings: with_settings(embedded(key, properties), settings),
        st.none() | raw_keys,
        st.dictionaries(names, inner, max_size=3),
        settings_of,
    )


simple = st.builds(with_settings, scalars, settings_of)
singles = st.recursive(simple, lambda inner: entity_values(inner | arrays(inner)), max_leaves=6)
any_value = singles | arrays(singles)


@given(st.dictionaries(names, any_value, max_size=4))
def test_any_entity_is_returned_bit_for_bit(
    near: service_calls.Service, properties: dict[str, Any]
) -> None:
    key = near.key("T", 1)
    entity = protobufs.Entity(key=key)
    for name, value in properties.items():
        entity.properties[name].CopyFrom(value)
    expected = entity.SerializeToString(deterministic=True)
    near.commit({"upsert": entity})
    found = near.lookup(key).found[0].entity
    assert found.SerializeToString(deterministic=True) == expected
    queried = near.results(near.query("T"))[0].entity
    assert queried.SerializeToString(deterministic=True) == expected


def test_a_value_counts_as_one_entry_though_it_is_indexed_both_ways() -> None:
    ascending = indexes.builtin("T", "a").code
    descending = indexes.builtin("T", "a", is_descending=True).code
    most = [b"%d" % n for n in range(indexes.MAX_ENTRIES)]
    found = {indexes.builtin("T").code: [b"path"], ascending: most, descending: most}
    indexes.check_limits(found)
    composite = indexes.Index("T", (("a", False), ("b", True))).code
    with pytest.raises(errors.InvalidArgument, match="more than 20000"):
        indexes.check_limits(found | {composite: [b"one"]})


def test_loaded_entities_have_the_same_limits(
    near: service_calls.Service, engine: inprocess.Engine
) -> None:
    entity = near.entity(near.key("U", 1), v=list(range(20_000)), w=1)
    with pytest.raises(errors.InvalidArgument, match="20000 index entries"):
        engine.load([entity], "test")
    assert near.names("U") == []
