"""A removed set leaves no row and never returns; a bounded set keeps its first ids."""

import pytest

from comments import errors
from comments.domain import records
from comments.store import connection, reads
from comments.store.large_sets import membership, set_compaction
from datastore_emulator import faults, inprocess

NAME = records.SetName("a set")
KINDS = ("FollowerList", "FollowerMark", "FollowerSegment")


@pytest.fixture(autouse=True)
def _small(store: connection.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all these tests inside the store, with segments small enough for a short set."""
    monkeypatch.setattr(set_compaction, "SEGMENT_BYTES", 60)
    monkeypatch.setattr(membership, "AT_ONCE", 3)


def join(*ids: str) -> None:
    for each in ids:
        membership.mark(NAME, each, belongs=True)


def members() -> list[str]:
    return list(membership.every(NAME, limit=4))


def rows() -> int:
    queries = (reads.Query(kind, keys_only=True) for kind in KINDS)
    return sum(1 for query in queries for _ in reads.fetch(query))


def filled() -> None:
    """Fill the set with segments, compacted marks, and marks of two generations."""
    set_compaction.load(NAME, [f"{number:02d}" for number in range(20)])
    join("ann", "bob")
    set_compaction.close(NAME)
    join("cid")


def test_a_removed_set_leaves_no_row() -> None:
    filled()
    set_compaction.remove(NAME)
    assert rows() == 0
    set_compaction.remove(NAME)
    assert rows() == 0


def test_marks_alone_are_removed_too() -> None:
    join("ann")
    set_compaction.remove(NAME)
    assert rows() == 0


def test_a_set_that_was_removed_can_be_filled_again() -> None:
    filled()
    set_compaction.remove(NAME)
    join("dan")
    assert members() == ["dan"]
    assert set_compaction.compact(NAME)
    assert members() == ["dan"]


def test_a_compaction_that_began_before_the_removal_restores_nothing() -> None:
    """The set is filled again, so its generations are the same as before."""
    join("ann")
    late = set_compaction.prepare(NAME, set_compaction.close(NAME))
    assert late is not None
    set_compaction.remove(NAME)
    join("dan")
    set_compaction.close(NAME)
    assert not set_compaction.switch(late)
    assert members() == ["dan"]


def test_a_late_compaction_deletes_its_own_segments_of_a_removed_set() -> None:
    filled()
    base = set_compaction.close(NAME)
    set_compaction.remove(NAME)
    late = set_compaction.prepare(NAME, base, ["eve"])
    assert late is None or not set_compaction.switch(late)
    set_compaction.clean(NAME)
    assert rows() == 0


def test_an_id_that_joins_during_the_removal_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    filled()
    clean = set_compaction.clean

    def joined_before(name: records.SetName) -> None:
        join("dan")
        clean(name)

    monkeypatch.setattr(set_compaction, "clean", joined_before)
    set_compaction.remove(NAME)
    assert members() == ["dan"]


def test_an_interrupted_removal_is_finished_by_the_next(engine: inprocess.Engine) -> None:
    failed = 0
    before = [*(f"{number:02d}" for number in range(20)), "ann", "bob", "cid"]
    for call in range(1, 40):
        filled()
        rule = {"rpc": "Commit", "call": call, "status": "INVALID_ARGUMENT"}
        engine.install_faults(faults.Plan.parse({"rules": [rule]}))
        try:
            set_compaction.remove(NAME)
        except errors.Overloaded:
            failed += 1
        else:
            break
        finally:
            engine.install_faults(None)
        assert members() == ([] if call > 1 else before)
        set_compaction.remove(NAME)
        assert rows() == 0
    assert failed > 3


@pytest.mark.parametrize("most", [0, 1, 7, 30])
def test_a_bounded_set_keeps_its_first_ids(most: int) -> None:
    ids = [f"{number:02d}" for number in range(20)]
    set_compaction.load(NAME, ids)
    join("99", "00a")
    membership.mark(NAME, "03", belongs=False)
    expected = sorted([*ids, "99", "00a"])
    expected.remove("03")
    assert set_compaction.compact(NAME, most=most)
    assert members() == expected[:most]
    assert membership.pointer(NAME).directory.count == min(most, len(expected))
    join("01", "zz")
    assert set_compaction.compact(NAME, most=most)
    assert members() == [*expected[:most], "zz"][:most] or most == 0
