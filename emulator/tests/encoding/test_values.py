"""The stored bytes of values: changing an encoding would make every data file wrong."""

# ruff: noqa: DTZ001 - protobuf and NDB take naive UTC

import datetime as dt
import itertools
import math
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import protobufs
from datastore_emulator.encoding import keys, values

HERE = keys.Partition("p", "d", "n")
int64s = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
names = st.text(st.sampled_from("\x00\x01aé\U0001f600"), min_size=1, max_size=3)
ids = st.one_of(int64s.filter(bool), names)
paths = st.lists(st.tuples(names, ids), min_size=1, max_size=3)


def key(path: list[Any], partition: keys.Partition = HERE) -> Any:
    made = protobufs.Key()
    made.partition_id.project_id = partition.project
    made.partition_id.database_id = partition.database
    made.partition_id.namespace_id = partition.namespace
    for kind, name in path:
        made.path.add(kind=kind, **{"name" if isinstance(name, str) else "id": name})
    return made


def key_order(path: list[Any]) -> list[Any]:
    return [
        (kind.encode(), isinstance(name, str), name.encode() if isinstance(name, str) else name)
        for kind, name in path
    ]


def double_order(number: float) -> tuple[float, bool, float]:
    return math.inf if math.isnan(number) else number, math.isnan(number), math.copysign(1, number)


# For each type: values, a function that puts them in a message, and their sort key in Python.
TYPES = [
    (st.none(), lambda _: {"null_value": 0}, lambda _: 0),
    (int64s, lambda v: {"integer_value": v}, lambda v: v),
    (st.booleans(), lambda v: {"boolean_value": v}, lambda v: v),
    (
        st.one_of(st.binary(max_size=6), texts),
        lambda v: {"blob_value" if isinstance(v, bytes) else "string_value": v},
        lambda v: v if isinstance(v, bytes) else v.encode(),
    ),
    (st.floats(), lambda v: {"double_value": v}, double_order),
    (
        st.tuples(st.floats(-90, 90), st.floats(-180, 180)),
        lambda v: {"geo_point_value": {"latitude": v[0], "longitude": v[1]}},
        lambda v: [double_order(number) for number in v],
    ),
    (paths, lambda v: {"key_value": key(v)}, key_order),
]


@st.composite
def ordered_values(draw: Callable[..., Any]) -> tuple[Any, ...]:
    place = draw(st.integers(0, len(TYPES) - 1))
    strategy, fields, order = TYPES[place]
    value = draw(strategy)
    return (place, order(value)), protobufs.Value(**fields(value))


def sign(left: Any, right: Any) -> int:
    return (left > right) - (left < right)


@given(ordered_values(), ordered_values())
def test_bytes_sort_as_values_do(left: tuple[Any, ...], right: tuple[Any, ...]) -> None:
    encoded = [values.encode(value, HERE) for _, value in (left, right)]
    same_type = left[0][0] == right[0][0]
    expected = sign(left[0], right[0]) if same_type else sign(left[0][0], right[0][0])
    assert sign(*encoded) == expected
    assert sign(*map(values.complement, encoded)) == -expected


@given(ordered_values(), ordered_values())
def test_no_encoded_value_is_a_prefix_of_another(
    left: tuple[Any, ...], right: tuple[Any, ...]
) -> None:
    first, second = (values.encode(value, HERE) for _, value in (left, right))
    assert first == second or not second.startswith(first)
    assert first < values.ABOVE


@given(st.lists(st.tuples(ordered_values(), st.booleans()), max_size=4))
def test_entries_are_split_into_their_values(
    columns: list[tuple[tuple[tuple[Any, ...], Any], bool]],
) -> None:
    parts = [
        values.complement(values.encode(value, HERE)) if down else values.encode(value, HERE)
        for (_, value), down in columns
    ]
    directions = tuple(down for _, down in columns)
    rest = keys.encode_path(key([("K", 1)]))
    assert values.split(b"".join(parts) + rest, directions) == [*parts, rest]


@given(ordered_values())
def test_a_projected_value_is_the_one_that_was_encoded(pair: tuple[Any, ...]) -> None:
    value = pair[1]
    found = values.project(values.encode(value, HERE))
    assert found.meaning == 18
    found.ClearField("meaning")
    if value.HasField("blob_value") and found.HasField("string_value"):
        # An index does not distinguish byte strings in UTF-8 from strings.
        assert found.string_value.encode() == value.blob_value
        return
    assert found == value or math.isnan(value.double_value)


@given(paths, paths)
def test_keys_sort_by_ancestor_path(left: list[Any], right: list[Any]) -> None:
    encoded = [keys.encode_path(key(path)) for path in (left, right)]
    assert sign(*encoded) == sign(key_order(left), key_order(right))


@given(paths)
def test_a_path_decodes_to_its_ancestors_and_its_key(path: list[Any]) -> None:
    made = key(path)
    encoded = keys.encode_path(made)
    above = [keys.encode_path(key(path[: end + 1])) for end in range(len(path))]
    assert keys.ancestors(encoded) == above
    assert protobufs.Key.FromString(keys.key_bytes(HERE, encoded)) == made
    assert keys.decode(keys.encode(HERE, made)) == (HERE, encoded)
    for ancestor in above:
        low, high = keys.descendants(ancestor)
        assert low <= encoded < high


@given(paths, paths)
def test_only_descendants_lie_in_the_range_of_descendants(
    ancestor: list[Any], other: list[Any]
) -> None:
    low, high = keys.descendants(keys.encode_path(key(ancestor)))
    is_below = other[: len(ancestor)] == ancestor
    assert (low <= keys.encode_path(key(other)) < high) == is_below


@given(int64s)
def test_a_timestamp_and_its_microseconds_are_one_value(micros: int) -> None:
    seconds, rest = divmod(micros, 1_000_000)
    stamp = protobufs.Value(timestamp_value={"seconds": seconds, "nanos": rest * 1000 + 999})
    assert values.encode(stamp, HERE) == values.encode(protobufs.Value(integer_value=micros), HERE)


def test_minus_zero_and_zero_are_two_values_and_nan_is_one() -> None:
    minus, plus = (values.encode_double(number) for number in (-0.0, 0.0))
    assert minus < plus
    other_nan = struct.unpack(">d", b"\xff\xf8\x00\x00\x00\x00\x00\x01")[0]
    assert values.encode_double(math.nan) == values.encode_double(other_nan)
    assert values.encode_double(math.nan) > values.encode_double(math.inf)


GOLDEN = {
    "08": {"null_value": 0},
    "208000000000000005": {"integer_value": 5},
    "207fffffffffffffff": {"integer_value": -1},
    "30": {"boolean_value": False},
    "31": {"boolean_value": True},
    "416100ff0001": {"blob_value": b"a\x00"},
    "41c3a90001": {"string_value": "é"},
    "50bff8000000000000": {"double_value": 1.5},
    "504007ffffffffffff": {"double_value": -1.5},
    "50ffffffffffffffff": {"double_value": math.nan},
    "60bff00000000000003fffffffffffffff": {"geo_point_value": {"latitude": 1.0, "longitude": -2.0}},
    "707000016400016e000110410001208000000000000001104200013062000100": {
        "key_value": key([("A", 1), ("B", "b")])
    },
}


@pytest.mark.parametrize(("expected", "fields"), GOLDEN.items(), ids=str)
def test_the_stored_bytes_of_a_value_are_fixed(expected: str, fields: dict[str, Any]) -> None:
    assert values.encode(protobufs.Value(**fields), HERE).hex() == expected


def test_a_key_value_without_a_project_has_the_requests_project() -> None:
    bare = protobufs.Key(path=[{"kind": "A", "id": 1}])
    assert values.encode(protobufs.Value(key_value=bare), keys.Partition("p")) == values.encode(
        protobufs.Value(key_value=key([("A", 1)], keys.Partition("p"))), HERE
    )


@pytest.mark.parametrize("fields", [{}, {"array_value": {}}, {"entity_value": {}}])
def test_arrays_entities_and_unset_values_cannot_be_encoded(
    fields: dict[str, dict[Any, Any]],
) -> None:
    with pytest.raises(TypeError):
        values.encode(protobufs.Value(**fields), HERE)


def test_times_before_1970_sort_before_it() -> None:
    stamps = [
        dt.datetime(1, 1, 1),
        dt.datetime(1969, 12, 31),
        dt.datetime(1970, 1, 1),
    ]
    encoded = []
    for stamp in stamps:
        value = protobufs.Value()
        value.timestamp_value.FromDatetime(stamp)
        encoded.append(values.encode(value, HERE))
    assert all(low < high for low, high in itertools.pairwise(encoded))


@given(st.integers(0, 2**63))
def test_varints_match_protobuf(number: int) -> None:
    written = protobufs.number_field(4, number % 2**63)
    assert protobufs.EntityResult.FromString(written).version == number % 2**63


@given(st.integers(0, 2**52))
def test_timestamps_match_protobuf(micros: int) -> None:
    written = protobufs.field(5, protobufs.timestamp(micros))
    found: Any = protobufs.EntityResult.FromString(written).update_time
    assert found.ToMicroseconds() == micros


@given(st.integers(0, 20_000))
def test_an_entity_is_split_after_its_key(size: int) -> None:
    entity = protobufs.Entity(key=key([("A", "x" * (size + 1))]))
    entity.properties["a"].integer_value = 1
    stored = entity.SerializeToString(deterministic=True)
    end = protobufs.end_of_key(stored)
    assert stored[:end] == protobufs.Entity(key=entity.key).SerializeToString(deterministic=True)
    assert protobufs.Entity.FromString(stored[end:]).properties["a"].integer_value == 1


@given(st.integers(0, 63), st.integers(0, 20_000))
def test_a_field_is_its_opening_plus_its_content(number: int, size: int) -> None:
    assert protobufs.field(number, b"x" * size) == protobufs.opening(number, size) + b"x" * size
