"""Many marks of one transaction have the same effect as single marks, in two look-ups."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comments.domain import records
from comments.store import connection, transactions
from comments.store.large_sets import many_marks, membership, set_compaction, set_search
from datastore_emulator import inprocess, testing

NAMES = [records.SetName(f"set {number}") for number in range(3)]
CHANGES = st.dictionaries(
    st.sampled_from(NAMES), st.dictionaries(st.sampled_from("abcde"), st.booleans()), max_size=3
)


def change(changes: many_marks.Changes) -> tuple[records.SetName, ...]:
    def body() -> tuple[records.SetName, ...]:
        marked = many_marks.mark_many(changes)
        transactions.apply(marked.writes)
        return marked.asking

    return transactions.transaction(body)


@pytest.mark.usefixtures("store")
@settings(max_examples=10)
@given(st.lists(st.tuples(CHANGES, st.sampled_from([None, *NAMES])), max_size=4))
def test_sets_equal_python_sets_after_any_changes_and_compactions(
    history: list[tuple[many_marks.Changes, records.SetName | None]],
) -> None:
    for name in NAMES:
        set_compaction.remove(name)
    oracle: dict[records.SetName, set[str]] = {name: set() for name in NAMES}
    for changes, compacted in history:
        change(changes)
        for name, members in changes.items():
            for each, belongs in members.items():
                (oracle[name].add if belongs else oracle[name].discard)(each)
        if compacted is not None:
            assert set_compaction.compact(compacted)
        for name, expected in oracle.items():
            assert list(membership.every(name, limit=9)) == sorted(expected)


def test_each_set_is_read_once_and_a_mark_that_exists_is_not_written_again(
    store: connection.Store, engine: inprocess.Engine
) -> None:
    changes = {name: {"a": True, "b": True, "c": False} for name in NAMES}
    for writes in (9, 0):
        with testing.meter(engine) as cost:
            change(changes)
        assert (cost.reads, cost.writes) == (3 + 9, writes)
    with testing.meter(engine) as cost:
        change({})
    assert (cost.reads, cost.writes) == (0, 0)


def test_the_sets_that_need_a_compaction_are_named(
    store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "MARKS", 1)
    asking = change({NAMES[0]: {"a": True, "b": True}, NAMES[2]: {"a": True}})
    assert list(asking) == [NAMES[0], NAMES[2]] == set_search.sets_to_compact()
