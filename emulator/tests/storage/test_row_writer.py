"""An update changes only the index rows of changed properties.

The rows are compared with newly computed rows, both through the pure function that computes the
difference and in a file with many overwritten entities.
"""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datastore_emulator import inprocess
from datastore_emulator.encoding import indexes, keys
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

HERE = keys.Partition("test")
NAMES = ("a", "b", "c", "n.x", "n.y")

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(["", "x", "y", "x" * 40]),
)
maybe_unindexed = st.one_of(values, values.map(service_calls.Unindexed))
fields = st.dictionaries(
    st.sampled_from("abcd"),
    st.one_of(maybe_unindexed, st.lists(maybe_unindexed, max_size=4)),
    max_size=4,
)
inner = st.dictionaries(st.sampled_from("xy"), maybe_unindexed, max_size=2)


@st.composite
def contents(draw: Callable[..., Any]) -> dict[str, Any]:
    """The properties of an entity, possibly including an embedded entity."""
    return draw(fields) | ({"n": draw(inner)} if draw(st.booleans()) else {})


@st.composite
def definitions(draw: Callable[..., Any]) -> tuple[Any, ...]:
    """Composite indexes for the kind T."""
    made = st.builds(
        lambda named, has_ancestor, is_last: indexes.Index(
            "T", tuple(named), has_ancestor=has_ancestor, is_key_descending=is_last
        ),
        st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=3),
        st.booleans(),
        st.booleans(),
    )
    found = draw(st.lists(made, max_size=4))
    return tuple(dict.fromkeys(each for each in found if not each.is_builtin))


SERVICE = service_calls.Service(None)  # type: ignore[arg-type]
KEYS = (
    SERVICE.key("T", "one"),
    SERVICE.key("P", 1, "T", "two"),
    SERVICE.key("P", 1, "P", "m", "T", 3),
)


@given(st.sampled_from(KEYS), contents(), contents(), definitions())
def test_the_differing_entries_turn_the_old_rows_into_the_new_ones(
    key: Any, old: dict[str, Any], new: dict[str, Any], composites: tuple[Any, ...]
) -> None:
    path = keys.encode_path(key)
    entities = [SERVICE.entity(key, **each) for each in (old, new)]
    before, after = (indexes.membership(each, HERE, path, composites) for each in entities)
    had, has = (indexes.indexed_values(each, HERE) for each in entities)
    gone, come = indexes.changed_entries("T", path, had, has, composites)
    assert gone.items() <= before.items()
    updated = {code: listed for code, listed in before.items() if code not in gone} | come
    assert updated == after
    # Indexes without a changed property are left out.
    changed = {name for name in {*had, *has} if had.get(name) != has.get(name)}
    for code in {*gone, *come}:
        assert changed & {name for name, _ in indexes.decode(code).properties}


@given(st.sampled_from(KEYS), contents(), definitions())
def test_an_entity_with_few_entries_is_far_within_the_limits(
    key: Any, content: dict[str, Any], composites: tuple[Any, ...]
) -> None:
    path, entity = keys.encode_path(key), SERVICE.entity(key, **content)
    if indexes.are_surely_few(path, indexes.indexed_values(entity, HERE), composites):
        found = indexes.membership(entity, HERE, path, composites)
        composite = [each for code, each in found.items() if not indexes.decode(code).is_builtin]
        assert sum(map(len, found.values())) <= 2 * indexes.MAX_ENTRIES
        assert sum(len(entry) for each in composite for entry in each) <= (
            indexes.MAX_COMPOSITE_BYTES
        )


@pytest.mark.parametrize("width", [1, 20])
def test_an_entity_with_long_entries_is_counted(width: int) -> None:
    path = keys.encode_path(KEYS[2])
    indexed = {name: [b"v" * 1_500] for name in NAMES}
    wide = tuple((name, False) for name in NAMES) * width
    composites = [indexes.Index("T", wide[: n + 1], has_ancestor=True) for n in range(len(wide))]
    entries = [each for index in composites for each in indexes.entries(index, path, indexed)]
    is_within = sum(map(len, entries)) <= indexes.MAX_COMPOSITE_BYTES
    assert indexes.are_surely_few(path, indexed, composites) == is_within == (width == 1)


def rows(engine: inprocess.Engine) -> list[tuple[bytes | int, ...]]:
    """Return a file's index rows by entity, without versions and index ids."""
    with contextlib.closing(sqlite3.connect(engine.storage.path)) as connection:
        return sorted(
            connection.execute(
                "SELECT key, partition, code, entry, is_multiple FROM index_entries "
                "JOIN indexes ON indexes.id = index_id JOIN entities ON entities.id = entity_id"
            )
        )


def test_rows_after_updates_equal_those_of_entities_written_once(index_yaml: Path) -> None:
    updated = inprocess.open_engine(None, indexes=index_yaml)
    fresh = inprocess.open_engine(None, indexes=index_yaml)

    @given(st.lists(st.tuples(st.sampled_from(KEYS), contents()), min_size=2, max_size=6))
    @settings(max_examples=60)
    def law(writes: list[Any]) -> None:
        last = {key.SerializeToString(): (key, content) for key, content in writes}
        for engine, several in ((updated, writes), (fresh, last.values())):
            engine.reset()
            service = service_calls.Service(inprocess.Channel(engine))
            for key, content in several:
                service.put(key, **content)
        assert rows(updated) == rows(fresh)

    with updated, fresh:
        law()


def test_a_change_of_an_unindexed_property_touches_no_index_row(
    near: service_calls.Service, engine: inprocess.Engine
) -> None:
    key = near.key("T", 1)
    near.put(key, a=1, b=2, text=service_calls.Unindexed("before"))
    with engine.storage.read() as snapshot:
        before = snapshot.version
    answer = near.commit(
        {"upsert": near.entity(key, a=1, b=2, text=service_calls.Unindexed("after"))}
    )
    assert answer.index_updates == 0
    with engine.storage.read() as snapshot:
        found = snapshot._connection.execute("SELECT max(version) FROM index_entries").fetchone()
        assert found[0] <= before < snapshot.version
    answer = near.commit(
        {"upsert": near.entity(key, a=1, b=3, text=service_calls.Unindexed("after"))}
    )
    assert answer.index_updates == len(composites_of(engine, "b")) * 2 + 4


def test_an_update_is_checked_against_the_limits_even_without_indexed_changes(
    near: service_calls.Service, engine: inprocess.Engine
) -> None:
    # A new index can make a stored entity exceed the limits, which are not checked at that time.
    key, some = near.key("T", 1), list(range(100))
    near.put(key, p=some, q=some, text=service_calls.Unindexed("within"))
    with engine.storage.write() as writer:
        names = (("p", False), ("q", False))
        new = [indexes.Index("T", names), indexes.Index("T", names[::-1])]
        writer.define([*writer.definitions.composites, *new])
    with assert_refused("INVALID_ARGUMENT", "more than 20000 index entries"):
        near.put(key, p=some, q=some, text=service_calls.Unindexed("beyond"))
    near.delete(key)


def composites_of(engine: inprocess.Engine, name: str) -> list[indexes.Index]:
    """Return the composite indexes of the named property that contain only a, b or both."""
    with engine.storage.read() as snapshot:
        return [
            index
            for index in snapshot.definitions.composites
            if name in dict(index.properties)
            and {each for each, _ in index.properties} <= {"a", "b"}
        ]
