"""Compacting sets loses no member in any of these hazardous step orders."""

import dataclasses
from collections.abc import Iterable

import pytest

from comments import errors
from comments.domain import records
from comments.store import connection, reads
from comments.store.large_sets import membership, segments, set_compaction, set_search
from datastore_emulator import faults, inprocess, testing

NAME = records.SetName("a set")


@pytest.fixture(autouse=True)
def _small(store: connection.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all these tests inside the store, with segments small enough for a short list."""
    monkeypatch.setattr(set_compaction, "SEGMENT_BYTES", 60)
    monkeypatch.setattr(membership, "AT_ONCE", 3)


def join(*ids: str) -> None:
    for each in ids:
        membership.mark(NAME, each, belongs=True)


def leave(*ids: str) -> None:
    for each in ids:
        membership.mark(NAME, each, belongs=False)


def members() -> list[str]:
    return list(membership.every(NAME, limit=4))


def prepared(base: membership.Pointer) -> set_compaction.PreparedSegments:
    found = set_compaction.prepare(NAME, base)
    assert found is not None
    return found


def assert_settled(expected: Iterable[str]) -> None:
    """Check that after compaction the list has exactly these members and nothing else is stored."""
    while set_compaction.is_marked(NAME):
        assert set_compaction.compact(NAME)
    set_compaction.clean(NAME)
    assert members() == sorted(expected)
    at = membership.pointer(NAME)
    assert at.directory.count == len(members())
    assert stored("FollowerMark") == set()
    assert stored("FollowerSegment") == set(membership.keys(NAME, at.directory))


def stored(kind: str) -> set[str]:
    query = reads.Query(kind, keys_only=True)
    return {message.key.path[-1].name for message in reads.fetch(query)}


def test_marks_written_while_a_generation_is_closed_are_neither_lost_nor_compacted_with_it() -> (
    None
):
    join("ann", "bob")
    base = set_compaction.close(NAME)
    join("cid")
    leave("bob")
    found = prepared(base)
    join("dan")
    assert members() == ["ann", "cid", "dan"]
    assert set_compaction.switch(found)
    assert members() == ["ann", "cid", "dan"]
    set_compaction.clean(NAME)
    assert members() == ["ann", "cid", "dan"]
    assert stored("FollowerMark") == {"0000000002bob", "0000000002cid", "0000000002dan"}
    assert_settled(["ann", "cid", "dan"])


def test_of_two_compactions_one_switches_and_the_other_leaves_nothing() -> None:
    join("ann", "bob")
    first, second = set_compaction.close(NAME), set_compaction.close(NAME)
    assert first == second
    one, other = prepared(first), prepared(second)
    assert set_compaction.switch(one)
    leave("ann")
    assert not set_compaction.switch(other)
    assert_settled(["bob"])


def test_a_switch_whose_answer_was_lost_is_recognized() -> None:
    join("ann")
    found = prepared(set_compaction.close(NAME))
    assert set_compaction.switch(found)
    assert set_compaction.switch(found)
    assert_settled(["ann"])


def test_a_late_switch_does_not_restore_a_member_who_left() -> None:
    join("ann", "bob")
    late = prepared(set_compaction.close(NAME))
    assert set_compaction.compact(NAME)
    leave("ann")
    assert set_compaction.compact(NAME)
    assert not set_compaction.switch(late)
    assert_settled(["bob"])


def test_a_closed_generation_left_by_another_process_is_compacted_first() -> None:
    join("ann")
    set_compaction.close(NAME)
    leave("ann")
    join("bob")
    assert set_compaction.compact(NAME)
    assert members() == ["bob"]
    assert_settled(["bob"])


def test_cleaning_spares_the_segments_of_an_attempt_that_may_still_switch() -> None:
    join("ann")
    assert set_compaction.compact(NAME)
    join("bob")
    found = prepared(set_compaction.close(NAME))
    set_compaction.clean(NAME)
    assert set_compaction.switch(found)
    assert_settled(["ann", "bob"])


def test_late_cleaning_deletes_no_newer_mark() -> None:
    join("ann", "bob")
    assert set_compaction.switch(prepared(set_compaction.close(NAME)))
    leave("ann")
    set_compaction.clean(NAME)
    assert members() == ["bob"]
    assert_settled(["bob"])


def test_a_slow_compaction_finds_a_segment_deleted_and_gives_up() -> None:
    set_compaction.load(NAME, [f"{number:02d}" for number in range(30)])
    base = set_compaction.close(NAME)
    leave(*(f"{number:02d}" for number in range(30)))
    assert set_compaction.compact(NAME)
    assert set_compaction.compact(NAME)
    join("00")
    slow = dataclasses.replace(set_compaction.close(NAME), directory=base.directory)
    assert set_compaction.prepare(NAME, slow) is None
    assert_settled(["00"])


@pytest.mark.slow
def test_unchanged_segments_are_kept_and_small_ones_join_their_neighbors() -> None:
    names = [f"{number:03d}" for number in range(80)]
    set_compaction.load(NAME, names)
    before = membership.pointer(NAME).directory.lines
    leave("000")
    assert set_compaction.compact(NAME)
    after = membership.pointer(NAME).directory.lines
    assert after[1:] == before[1:]
    assert after[0].key != before[0].key
    staying = names[7::8]  # One or two ids from each segment
    leave(*({*names} - {*staying}))
    assert set_compaction.compact(NAME)
    assert len(membership.pointer(NAME).directory.lines) <= 3
    assert_settled(staying)
    leave(*names)
    assert_settled([])
    assert membership.pointer(NAME).directory == segments.SetDirectory()


def test_loading_adds_each_id_once_even_if_it_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_compaction, "LOADED", 7)
    names = [f"{number:02d}" for number in range(30)]
    join("10", "ann")
    leave("20")
    expected = sorted([*names, "ann"])
    for again in ((name for name in reversed(names)), ["ann", *names, "ann"]):
        set_compaction.load(NAME, again)
        assert members() == expected
        assert membership.count(NAME) == len(expected)
    assert_settled(expected)


def test_loading_a_list_with_a_closed_generation_readds_members_who_left() -> None:
    join("ann")
    set_compaction.close(NAME)
    leave("ann")
    set_compaction.load(NAME, ["ann", "bob"])
    assert members() == ["ann", "bob"]
    leave("ann")
    assert_settled(["bob"])


def test_loading_beside_faster_compactions_loses_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    join("ann")
    ours = set_compaction.switch
    faster = iter([True, True, False])

    def overtaken(found: set_compaction.PreparedSegments) -> bool:
        if next(faster, False):
            other = set_compaction.prepare(NAME, found.base)
            assert other is not None
            assert ours(other)
        return ours(found)

    monkeypatch.setattr(set_compaction, "switch", overtaken)
    set_compaction.load(NAME, ["bob", "cid"])
    monkeypatch.undo()
    assert members() == ["ann", "bob", "cid"]


@pytest.mark.slow
def test_an_interrupted_cleaning_is_found_through_the_remaining_mark(
    engine: inprocess.Engine, store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let each commit of the cleanup fail once."""
    monkeypatch.setattr(membership, "MARKS", 4)
    names = [f"{number:02d}" for number in range(20)]
    failing = 0
    for failing in range(1, 100):
        join(*names)
        assert NAME in set_search.sets_to_compact()
        assert set_compaction.switch(prepared(set_compaction.close(NAME)))
        rule = {"rpc": "Commit", "call": failing, "status": "INVALID_ARGUMENT"}
        engine.install_faults(faults.Plan.parse({"rules": [rule]}))
        try:
            set_compaction.clean(NAME)
        except errors.Overloaded:
            engine.install_faults(None)
            assert set_search.sets_to_compact() == [NAME]
            assert set_compaction.compact(NAME)
        else:
            break
    engine.install_faults(None)
    assert failing > 7  # Twenty marks in batches of three, then the segments
    assert set_search.sets_to_compact() == []
    assert_settled(names)


@pytest.mark.slow
def test_the_cost_of_a_compaction(
    engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # Restore the real sizes of queries
    monkeypatch.setattr(set_compaction, "SEGMENT_BYTES", set_compaction.SEGMENT_BYTES // 8)
    names = [f"{number:05d}" for number in range(8_000)]
    set_compaction.load(NAME, names)
    segments = len(membership.pointer(NAME).directory.lines)
    assert segments == 3
    leave(*names[::125])
    with testing.meter(engine) as cost:
        assert set_compaction.compact(NAME)
    assert (cost.writes, cost.deletes) == (segments + 2, segments + 64)
    assert segments < cost.reads <= segments + 11


def test_a_generation_without_marks_writes_no_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process crashed, no mark would lead other processes to these segments."""
    monkeypatch.setattr(set_compaction, "DIRECTORY_BYTES", 1)
    monkeypatch.setattr(set_compaction, "LINES", 2)
    ids = [f"member {number:02}" for number in range(20)]
    set_compaction.load(NAME, ids)
    before = stored("FollowerSegment")
    assert membership.pointer(NAME).directory.depth > 0
    made = prepared(set_compaction.close(NAME))
    assert stored("FollowerSegment") == before
    assert set_compaction.switch(made)
    assert_settled(ids)
