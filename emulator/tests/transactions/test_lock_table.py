"""The lock table: conflicting locks, and the holder that gives up in a cycle."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator.storage import read_sets
from datastore_emulator.transactions import lock_table

KINDS = ((b"p1", b"i1"), (b"p1", b"i2"), (b"p", b"1i1"), read_sets.ENTITIES)
names = st.sampled_from(KINDS)
entries = st.binary(max_size=2)
spans = st.tuples(names, entries, entries)
points = st.tuples(names, entries)


def read_set(ranges: list[Any], entries: list[Any]) -> read_sets.ReadSet:
    reads = read_sets.ReadSet()
    reads.ranges.update(ranges)
    for name, entry in entries:
        if name == read_sets.ENTITIES:
            reads.entities[entry] = 1
        else:
            reads.entries.add((name, entry))
    return reads


@given(st.lists(spans, max_size=3), st.lists(points, max_size=3), st.lists(points, max_size=4))
def test_a_change_conflicts_with_locks_that_contain_it(
    ranges: list[Any], read: list[Any], changed: list[Any]
) -> None:
    footprint = lock_table.footprint(read_set(ranges, read))
    wanted = lock_table.places(changed)
    expected = any(
        place in read
        or any(place[0] == name and low <= place[1] < high for name, low, high in ranges)
        for place in changed
    )
    table = lock_table.LockTable()
    table.apply(["open", "a", 1.0, 2.0])
    table.apply(["read", "a", 3.0, footprint.places, footprint.ranges])
    table.apply(["want", "a", 4.0, wanted])
    holder = table.holders["a"]
    assert holder.conflicts_with(wanted) is expected
    assert holder.is_to_change(footprint) is expected
    assert (holder.age, holder.until) == (1.0, 4.0)


@given(st.lists(points, min_size=2, max_size=2))
def test_places_sort_as_bytes_do_within_an_index(two: list[Any]) -> None:
    if two[0][0] == two[1][0]:
        assert lock_table.places(two) == [lock_table.places([each])[0] for each in sorted(two)]
    else:
        assert len(set(lock_table.places(two))) == 2


def test_a_table_can_be_rebuilt_from_its_events() -> None:
    table = lock_table.LockTable()
    for event in (
        ["open", "a", 1.0, 2.0],
        ["open", "b", 1.0, 2.0],
        ["read", "a", 3.0, ["E1", "E2"], [("I1", "I2")]],
        ["want", "a", 4.0, ["E3"]],
        ["wait", "b", ["a"]],  # As former versions write it
        ["open", "c", 1.0, 2.0],
        ["open", "d", 1.0, 2.0],
        ["wait", "d", ["b"], ["E1"]],
        ["end", "c"],
        ["end", "never seen"],
    ):
        table.apply(event)
    again = lock_table.LockTable()
    for event in table.events():
        again.apply(event)
    assert again.holders == table.holders
    assert set(again.holders) == {"a", "b", "d"}
    assert (again.holders["d"].awaited, again.holders["d"].queued) == ({"b"}, {"E1"})
    again.apply(["wait", "d", []])
    assert not again.holders["d"].queued


def waiting(graph: dict[str, Any]) -> dict[str, lock_table.Holder]:
    """Create holders whose names give their age; each waits for the given holders."""
    return {
        name: lock_table.Holder(float(ord(name)), 0.0, awaited=frozenset(awaited))
        for name, awaited in graph.items()
    }


def test_only_the_youngest_in_a_cycle_gives_up() -> None:
    ring = waiting({"a": "b", "b": "c", "c": "a", "d": "a", "e": "z"})
    assert [name for name in ring if lock_table.leads_to(ring, ring[name].awaited, name)] == [
        "a",
        "b",
        "c",
    ]
    assert [name for name in ring if lock_table.is_victim(ring, name)] == ["c"]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef")), max_size=6).map(
        lambda graph: {name: awaited - {name} for name, awaited in graph.items()}
    )
)
def test_without_the_victims_no_cycle_is_left_and_the_oldest_is_no_victim(
    graph: dict[str, Any],
) -> None:
    waits = waiting(graph)
    victims = {name for name in waits if lock_table.is_victim(waits, name)}
    left = {name: holder for name, holder in waits.items() if name not in victims}
    assert not any(lock_table.leads_to(left, left[name].awaited, name) for name in left)
    if waits:
        assert min(waits) not in victims
