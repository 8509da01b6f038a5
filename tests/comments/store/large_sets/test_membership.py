"""Joining, leaving and paging through large sets have a limited cost."""

import itertools
from collections.abc import Callable, Iterable

import pytest

from comments import errors
from comments.domain import records
from comments.store import connection
from comments.store.large_sets import membership, segments, set_compaction, set_search
from comments.store.models import set_rows
from datastore_emulator import inprocess, testing

NAME = records.SetName("a set")
OTHER = records.SetName("a set of others")


@pytest.fixture(autouse=True)
def _small(store: connection.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all these tests inside the store, with segments small enough for a short list."""
    monkeypatch.setattr(set_compaction, "SEGMENT_BYTES", 60)
    monkeypatch.setattr(membership, "AT_ONCE", 3)


def join(ids: Iterable[str], name: records.SetName = NAME) -> None:
    for each in ids:
        membership.mark(name, each, belongs=True)


def leave(ids: Iterable[str]) -> None:
    for each in ids:
        membership.mark(NAME, each, belongs=False)


def folded(ids: Iterable[str]) -> None:
    join(ids)
    assert set_compaction.compact(NAME)


def members(limit: int = 4) -> list[str]:
    # The limit ends this loop even if paging never ends.
    return list(itertools.islice(membership.every(NAME, limit=limit), 1_000))


def test_an_unused_list_has_no_members() -> None:
    assert members() == []
    assert membership.count(NAME) == 0
    assert not membership.contains(NAME, "ann")
    leave(["ann"])
    assert members() == []


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_member_belongs_to_the_list_from_joining_to_leaving(*, is_compacted: bool) -> None:
    def fold() -> None:
        if is_compacted:
            assert set_compaction.compact(NAME)

    join(["ann", "bob"])
    fold()
    assert membership.contains(NAME, "ann")
    leave(["ann"])
    fold()
    assert not membership.contains(NAME, "ann")
    assert members() == ["bob"]
    join(["ann"])
    assert members() == ["ann", "bob"]
    fold()
    assert members() == ["ann", "bob"]
    assert membership.count(NAME) == 2


def test_joining_or_leaving_twice_counts_once() -> None:
    folded(["ann"])
    join(["ann", "ann"])
    assert (members(), membership.count(NAME)) == (["ann"], 1)
    leave(["ann", "ann"])
    assert (members(), membership.count(NAME)) == ([], 0)


def test_lists_are_independent() -> None:
    join(["ann"])
    join(["bob"], OTHER)
    assert set_compaction.compact(NAME)
    assert members() == ["ann"]
    assert list(membership.every(OTHER, limit=9)) == ["bob"]


# Ids that look like parts of keys are ordinary ids.
@pytest.mark.parametrize(
    "member", ["0000000002ann", "+", "a set", "é" * 250, "\U0001f388", "a\0b", "x" * 500, " "]
)
def test_any_text_up_to_500_bytes_is_an_id(member: str) -> None:
    join([member, "other"])
    assert membership.contains(NAME, member)
    assert set_compaction.compact(NAME)
    assert membership.contains(NAME, member)
    assert members() == sorted([member, "other"])
    leave([member])
    assert members() == ["other"]


@pytest.mark.parametrize("member", ["", "x" * 501, "é" * 251, "\ud800"])
def test_an_invalid_id_is_refused(member: str) -> None:
    for call in (
        lambda: join([member]),
        lambda: leave([member]),
        lambda: membership.contains(NAME, member),
        lambda: set_compaction.load(NAME, ["fine", member]),
    ):
        with pytest.raises(errors.BadInput) as refused:
            call()
        assert refused.value.field == "member"
    assert members() == []


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
def test_pages_contain_every_id_once_in_order(limit: int) -> None:
    names = [f"{number:02d}" for number in range(40)]
    folded(names[::2])
    join(names[1::2])
    leave(names[::5])
    expected = [name for name in names if int(name) % 5]
    assert members(limit) == expected
    first = membership.page(NAME, limit=limit)
    assert first.ids == tuple(expected[:limit])
    assert (first.position is None) == (limit > len(expected))


def test_paging_returns_each_staying_member_once_despite_compactions() -> None:
    names = [f"{number:02d}" for number in range(40)]
    folded(names)
    met: list[str] = []
    position: str | None = ""
    for turn in range(100):
        found = membership.page(NAME, after=str(position), limit=3)
        met += found.ids
        position = found.position
        if position is None:
            break
        leave(names[turn * 2 : turn * 2 + 1])
        join([f"{turn:02d} new"])
        assert set_compaction.compact(NAME)
    assert len(met) == len(set(met))
    assert {name for name in names if int(name) % 2} <= set(met)


@pytest.mark.slow
def test_a_directory_too_large_for_its_entity_is_split_and_reads_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(set_compaction, "DIRECTORY_BYTES", 1)
    monkeypatch.setattr(set_compaction, "LINES", 3)
    names = [f"{number:03d}" for number in range(120)]
    set_compaction.load(NAME, names)
    assert membership.pointer(NAME).directory.depth == 3
    leave(names[::7])
    join(["0000", "~"])
    expected = sorted({*names, "0000", "~"} - set(names[::7]))
    for _ in range(2):
        assert members(11) == expected
        assert membership.count(NAME) == len(expected)
        assert [name for name in names if membership.contains(NAME, name)] == expected[1:-1]
        assert membership.page(NAME, after="060", limit=2).ids == ("061", "062")
        assert set_compaction.compact(NAME)


def test_the_cost_of_a_mark_and_a_read(
    engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bill(call: Callable[[], object]) -> tuple[int, int, int]:
        with testing.meter(engine) as cost:
            call()
        return cost.reads, cost.writes, cost.deletes

    monkeypatch.setattr(membership, "MARKS", 1_000_000)  # No mark requests a compaction
    assert bill(lambda: join(["ann"])) == (2, 1, 0)
    assert bill(lambda: join(["ann"])) == (2, 0, 0)
    assert bill(lambda: leave(["ann"])) == (2, 1, 0)
    folded(["ann", "bob"])
    assert bill(lambda: leave(["ann"])) == (2, 1, 0)
    assert bill(lambda: membership.contains(NAME, "ann")) == (2, 0, 0)
    assert bill(lambda: membership.contains(NAME, "bob")) == (3, 0, 0)
    # A page reads the list, a segment, and the joining and leaving marks; a keys-only query without
    # results is free.
    assert bill(lambda: membership.page(NAME, limit=9)) == (3, 0, 0)
    set_compaction.close(NAME)
    monkeypatch.setattr(set_compaction, "DIRECTORY_BYTES", 1)
    set_compaction.load(NAME, [f"{number:03d}" for number in range(50)])
    set_compaction.close(NAME)
    assert membership.pointer(NAME).directory.depth == 1
    assert bill(lambda: membership.contains(NAME, "bob")) == (5, 0, 0)


def test_one_mark_in_many_requests_a_compaction_and_fewer_in_large_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asking(at: membership.Pointer) -> int:
        return sum(membership._requests_compaction(f"{n:010d}", NAME, at) for n in range(10_000))

    lines = (segments.SegmentSummary("key", "first", 200_000),)
    assert 10_000 / 64 * 0.7 < asking(membership.Pointer()) < 10_000 / 64 * 1.4
    large = membership.Pointer(directory=segments.SetDirectory(0, lines))
    assert 10_000 / 464 * 0.5 < asking(large) < 10_000 / 464 * 2


def test_a_list_requests_a_compaction_until_it_is_compacted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(membership, "MARKS", 1)
    assert membership.mark(NAME, "ann", belongs=True)
    assert membership.mark(NAME, "ann", belongs=True)  # Repeat the mark, as a retry does
    assert set_search.sets_to_compact() == [NAME]
    assert set_compaction.compact(NAME)
    assert set_search.sets_to_compact() == []


def test_the_keys_of_a_list_are_stable() -> None:
    assert set_rows.set_key(NAME) == (("FollowerList", "a set"),)
    mark = set_rows.mark_key(NAME, 12, "ann")
    assert mark == (("FollowerList", "a set"), ("FollowerMark", "0000000012ann"))
    assert set_rows.mark_entry(NAME, 12, belongs=True) == "0000000012+a set"
    assert set_rows.mark_entry(NAME, 12, belongs=False) == "0000000012-a set"
    segment = set_rows.segment_key(NAME, "0000000012-token-0")
    assert segment[1] == ("FollowerSegment", "0000000012-token-0")
    for name in ("0000000012ann", "0000000012-token-0"):
        assert set_rows.generation_of(name) == 12
    assert set_rows.member_of("0000000012ann") == "ann"
