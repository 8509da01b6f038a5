"""Compacting follower lists loses no follower in any of these hazardous step orders."""

import dataclasses
from collections.abc import Iterable

import pytest

from comments import errors
from comments.domain import records
from comments.notifications import follower_compaction, follower_lists, id_sets
from comments.store import connection, reads
from emulator import inprocess, testing
from emulator.fault_injection import fault_plans

NAME = records.ListName("a list")


@pytest.fixture(autouse=True)
def _small(store: connection.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all these tests inside the store, with segments small enough for a short list."""
    monkeypatch.setattr(follower_compaction, "SEGMENT_BYTES", 60)
    monkeypatch.setattr(follower_lists, "AT_ONCE", 3)


def join(*ids: str) -> None:
    for each in ids:
        follower_lists.mark(NAME, each, follows=True)


def leave(*ids: str) -> None:
    for each in ids:
        follower_lists.mark(NAME, each, follows=False)


def members() -> list[str]:
    return list(follower_lists.every(NAME, limit=4))


def prepared(base: follower_lists.Pointer) -> follower_compaction.PreparedSegments:
    found = follower_compaction.prepare(NAME, base)
    assert found is not None
    return found


def assert_settled(expected: Iterable[str]) -> None:
    """Check that after compaction the list has exactly these members and nothing else is stored."""
    while follower_compaction.is_marked(NAME):
        assert follower_compaction.compact(NAME)
    follower_compaction.clean(NAME)
    assert members() == sorted(expected)
    at = follower_lists.pointer(NAME)
    assert at.directory.count == len(members())
    assert stored("FollowerMark") == set()
    assert stored("FollowerSegment") == set(follower_lists.keys(NAME, at.directory))


def stored(kind: str) -> set[str]:
    query = reads.Query(kind, keys_only=True)
    return {message.key.path[-1].name for message in reads.fetch(query)}


def test_marks_written_while_a_generation_is_closed_are_neither_lost_nor_compacted_with_it() -> (
    None
):
    join("ann", "bob")
    base = follower_compaction.close(NAME)
    join("cid")
    leave("bob")
    found = prepared(base)
    join("dan")
    assert members() == ["ann", "cid", "dan"]
    assert follower_compaction.switch(found)
    assert members() == ["ann", "cid", "dan"]
    follower_compaction.clean(NAME)
    assert members() == ["ann", "cid", "dan"]
    assert stored("FollowerMark") == {"0000000002bob", "0000000002cid", "0000000002dan"}
    assert_settled(["ann", "cid", "dan"])


def test_of_two_compactions_one_switches_and_the_other_leaves_nothing() -> None:
    join("ann", "bob")
    first, second = follower_compaction.close(NAME), follower_compaction.close(NAME)
    assert first == second
    one, other = prepared(first), prepared(second)
    assert follower_compaction.switch(one)
    leave("ann")
    assert not follower_compaction.switch(other)
    assert_settled(["bob"])


def test_a_switch_whose_answer_was_lost_is_recognized() -> None:
    join("ann")
    found = prepared(follower_compaction.close(NAME))
    assert follower_compaction.switch(found)
    assert follower_compaction.switch(found)
    assert_settled(["ann"])


def test_a_late_switch_does_not_restore_a_member_who_left() -> None:
    join("ann", "bob")
    late = prepared(follower_compaction.close(NAME))
    assert follower_compaction.compact(NAME)
    leave("ann")
    assert follower_compaction.compact(NAME)
    assert not follower_compaction.switch(late)
    assert_settled(["bob"])


def test_a_closed_generation_left_by_another_process_is_compacted_first() -> None:
    join("ann")
    follower_compaction.close(NAME)
    leave("ann")
    join("bob")
    assert follower_compaction.compact(NAME)
    assert members() == ["bob"]
    assert_settled(["bob"])


def test_cleaning_spares_the_segments_of_an_attempt_that_may_still_switch() -> None:
    join("ann")
    assert follower_compaction.compact(NAME)
    join("bob")
    found = prepared(follower_compaction.close(NAME))
    follower_compaction.clean(NAME)
    assert follower_compaction.switch(found)
    assert_settled(["ann", "bob"])


def test_late_cleaning_deletes_no_newer_mark() -> None:
    join("ann", "bob")
    assert follower_compaction.switch(prepared(follower_compaction.close(NAME)))
    leave("ann")
    follower_compaction.clean(NAME)
    assert members() == ["bob"]
    assert_settled(["bob"])


def test_a_slow_compaction_finds_a_segment_deleted_and_gives_up() -> None:
    follower_compaction.load(NAME, [f"{number:02d}" for number in range(30)])
    base = follower_compaction.close(NAME)
    leave(*(f"{number:02d}" for number in range(30)))
    assert follower_compaction.compact(NAME)
    assert follower_compaction.compact(NAME)
    join("00")
    slow = dataclasses.replace(follower_compaction.close(NAME), directory=base.directory)
    assert follower_compaction.prepare(NAME, slow) is None
    assert_settled(["00"])


def test_unchanged_segments_are_kept_and_small_ones_join_their_neighbors() -> None:
    names = [f"{number:03d}" for number in range(80)]
    follower_compaction.load(NAME, names)
    before = follower_lists.pointer(NAME).directory.lines
    leave("000")
    assert follower_compaction.compact(NAME)
    after = follower_lists.pointer(NAME).directory.lines
    assert after[1:] == before[1:]
    assert after[0].key != before[0].key
    staying = names[7::8]  # one or two ids from each segment
    leave(*({*names} - {*staying}))
    assert follower_compaction.compact(NAME)
    assert len(follower_lists.pointer(NAME).directory.lines) <= 3
    assert_settled(staying)
    leave(*names)
    assert_settled([])
    assert follower_lists.pointer(NAME).directory == id_sets.IdSetDirectory()


def test_loading_adds_each_id_once_even_if_it_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_compaction, "LOADED", 7)
    names = [f"{number:02d}" for number in range(30)]
    join("10", "ann")
    leave("20")
    expected = sorted([*names, "ann"])
    for again in ((name for name in reversed(names)), ["ann", *names, "ann"]):
        follower_compaction.load(NAME, again)
        assert members() == expected
        assert follower_lists.count(NAME) == len(expected)
    assert_settled(expected)


def test_loading_a_list_with_a_closed_generation_readds_members_who_left() -> None:
    join("ann")
    follower_compaction.close(NAME)
    leave("ann")
    follower_compaction.load(NAME, ["ann", "bob"])
    assert members() == ["ann", "bob"]
    leave("ann")
    assert_settled(["bob"])


def test_loading_beside_faster_compactions_loses_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    join("ann")
    ours = follower_compaction.switch
    faster = iter([True, True, False])

    def overtaken(found: follower_compaction.PreparedSegments) -> bool:
        if next(faster, False):
            other = follower_compaction.prepare(NAME, found.base)
            assert other is not None
            assert ours(other)
        return ours(found)

    monkeypatch.setattr(follower_compaction, "switch", overtaken)
    follower_compaction.load(NAME, ["bob", "cid"])
    monkeypatch.undo()
    assert members() == ["ann", "bob", "cid"]


def test_an_interrupted_cleaning_is_found_through_the_remaining_mark(
    engine: inprocess.Engine, store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let each commit of the cleanup fail once."""
    monkeypatch.setattr(follower_lists, "MARKS", 4)
    names = [f"{number:02d}" for number in range(20)]
    failing = 0
    for failing in range(1, 100):
        join(*names)
        assert NAME in follower_lists.asking()
        assert follower_compaction.switch(prepared(follower_compaction.close(NAME)))
        rule = {"rpc": "Commit", "call": failing, "status": "INVALID_ARGUMENT"}
        engine.install_faults(fault_plans.Plan.parse({"rules": [rule]}))
        try:
            follower_compaction.clean(NAME)
        except errors.Overloaded:
            engine.install_faults(None)
            assert follower_lists.asking() == [NAME]
            assert follower_compaction.compact(NAME)
        else:
            break
    engine.install_faults(None)
    assert failing > 7  # twenty marks in batches of three, then the segments
    assert follower_lists.asking() == []
    assert_settled(names)


def test_the_cost_of_a_compaction(
    engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # restore the real sizes of segments and queries
    names = [f"{number:05d}" for number in range(64_000)]
    follower_compaction.load(NAME, names)
    segments = len(follower_lists.pointer(NAME).directory.lines)
    assert segments == 3
    leave(*names[::1000])
    with testing.meter(engine) as cost:
        assert follower_compaction.compact(NAME)
    assert (cost.writes, cost.deletes) == (segments + 2, segments + 64)
    assert segments < cost.reads <= segments + 11


def test_a_generation_without_marks_writes_no_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process crashed, no mark would lead other processes to these segments."""
    monkeypatch.setattr(follower_compaction, "DIRECTORY_BYTES", 1)
    monkeypatch.setattr(follower_compaction, "LINES", 2)
    ids = [f"follower {number:02}" for number in range(20)]
    follower_compaction.load(NAME, ids)
    before = stored("FollowerSegment")
    assert follower_lists.pointer(NAME).directory.depth > 0
    made = prepared(follower_compaction.close(NAME))
    assert stored("FollowerSegment") == before
    assert follower_compaction.switch(made)
    assert_settled(ids)
