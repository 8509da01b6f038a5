"""Large sets equal a Python set after any sequence of steps.

Ids join and leave. Two compactors take their steps in any order and crash between two steps or in
the middle of a write. Commits lose their answers, a compactor overtakes marks between their read
and their commit, and a reader pages all the time.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from comments import errors
from comments.domain import records
from comments.store import connection, reads, transactions
from comments.store.large_sets import membership, set_compaction, set_search
from datastore_emulator import errors as engine_errors
from datastore_emulator import faults, inprocess
from tests.support import programs

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

NAME = records.SetName("a set")
IDS = [f"{letter}{number}" for letter in "abc" for number in range(5)]
MEMBERS = st.sampled_from(IDS)
FOLDERS = st.sampled_from(["one", "other"])
SMALL = {"SEGMENT_BYTES": 25, "DIRECTORY_BYTES": 90, "LINES": 2, "AT_ONCE": 2}
INDEXES = programs.ROOT / "index.yaml"
Step = Callable[[], "Step | None"]


def compacting() -> Step:
    """Return the first step of a compaction; each step returns its successor."""

    def close() -> Step | None:
        base = set_compaction.close(NAME)

        def prepare() -> Step | None:
            found = set_compaction.prepare(NAME, base)
            return None if found is None else lambda: switch(found)

        return prepare

    def switch(found: set_compaction.PreparedSegments) -> Step | None:
        set_compaction.switch(found)
        return clean

    def clean() -> None:
        set_compaction.clean(NAME)

    return close


class Lists(RuleBasedStateMachine):
    """A state machine with one list, two compactors and one reader."""

    def __init__(self) -> None:
        super().__init__()
        self.oracle: set[str] = set()
        self.steps: dict[str, Step] = {}
        self.position: str | None = None
        self.met: list[str] = []
        self.steady: set[str] = set()
        self.before_commit: Callable[[], object] | None = None
        self.patches = mock.patch.multiple(set_compaction, **SMALL)  # type: ignore[call-overload]
        self.patches.start()
        self.bounds = mock.patch.multiple(membership, MARKS=4, AT_ONCE=2)
        self.bounds.start()
        self.engine = inprocess.open_engine(None, indexes=INDEXES, concurrency="optimistic")
        self.store = connection.Store(inprocess.Channel(self.engine, self._call), project="test")
        self.other = connection.Store(inprocess.Channel(self.engine), project="test")
        self.context = self.store.context()
        self.context.__enter__()

    def teardown(self) -> None:
        try:
            self._assert_settled()
        finally:
            self.context.__exit__(None, None, None)
            self.engine.close()
            self.bounds.stop()
            self.patches.stop()

    def _call(self, method: str, _: object, proceed: Callable[[], Any]) -> Any:
        if method.endswith("Commit") and self.before_commit is not None:
            run, self.before_commit = self.before_commit, None
            run()
        return proceed()

    def _plan(self, **fault: object) -> None:
        self.engine.install_faults(faults.Plan.parse({"rules": [{"rpc": "Commit", **fault}]}))

    def _mark(self, member: str, *, belongs: bool) -> None:
        membership.mark(NAME, member, belongs=belongs)
        (self.oracle.add if belongs else self.oracle.discard)(member)
        self.steady &= self.oracle

    @rule(member=MEMBERS, belongs=st.booleans())
    def mark(self, member: str, *, belongs: bool) -> None:
        self._mark(member, belongs=belongs)

    @rule(member=MEMBERS, belongs=st.booleans(), when=st.sampled_from(["before", "after"]))
    def mark_and_lose_the_answer(self, member: str, *, belongs: bool, when: str) -> None:
        self._plan(call=1, when=when, status="UNAVAILABLE")
        self._mark(member, belongs=belongs)
        self.engine.install_faults(None)

    @rule(member=MEMBERS, belongs=st.booleans(), folder=FOLDERS, steps=st.integers(1, 4))
    def mark_overtaken_by_a_folder(
        self, member: str, *, belongs: bool, folder: str, steps: int
    ) -> None:
        def run() -> None:
            with self.other.context():
                for _ in range(steps):
                    self._step(folder)

        with ThreadPoolExecutor(1) as pool:
            self.before_commit = lambda: pool.submit(run).result()
            self._mark(member, belongs=belongs)
        self.before_commit = None

    @rule(ids=st.sets(MEMBERS, max_size=6))
    def load(self, ids: set[str]) -> None:
        set_compaction.load(NAME, ids)
        self.oracle |= ids

    def _step(self, folder: str) -> None:
        step = self.steps.pop(folder, None) or compacting()
        following = step()
        if following is not None:
            self.steps[folder] = following

    @rule(folder=FOLDERS)
    def step(self, folder: str) -> None:
        self._step(folder)

    @rule(folder=FOLDERS, call=st.integers(1, 4), when=st.sampled_from(["before", "after"]))
    def step_and_crash(self, folder: str, call: int, when: str) -> None:
        self._plan(call=call, when=when, status="INVALID_ARGUMENT")
        try:
            self._step(folder)
        except errors.Overloaded:
            self.steps.pop(folder, None)
        finally:
            self.engine.install_faults(None)

    @rule(folder=FOLDERS)
    def step_and_lose_the_answer(self, folder: str) -> None:
        self._plan(call=1, when="after", status="UNAVAILABLE")
        self._step(folder)
        self.engine.install_faults(None)

    @precondition(lambda self: self.steps)
    @rule(folder=FOLDERS)
    def crash(self, folder: str) -> None:
        self.steps.pop(folder, None)

    @precondition(lambda self: self.position is None)
    @rule()
    def open_the_list(self) -> None:
        self.position, self.met, self.steady = "", [], set(self.oracle)

    @precondition(lambda self: self.position is not None)
    @rule(limit=st.integers(1, 5))
    def turn_a_page(self, limit: int) -> None:
        found = membership.page(NAME, after=str(self.position), limit=limit)
        assert set(found.ids) <= self.oracle
        self.met += found.ids
        self.position = found.position
        if self.position is None:
            assert len(self.met) == len(set(self.met))
            assert self.steady <= set(self.met)

    @invariant()
    def the_list_is_the_set(self) -> None:
        assert list(membership.every(NAME, limit=8)) == sorted(self.oracle)

    @rule(member=MEMBERS)
    def look(self, member: str) -> None:
        assert membership.contains(NAME, member) == (member in self.oracle)
        assert membership.count(NAME) == len(self.oracle)
        below = sorted(each for each in self.oracle if each < member)
        assert membership.page(NAME, before=member, limit=99).ids == tuple(below)
        above = transactions.snapshot(lambda: membership.count_within(NAME, after=member))
        assert above == sum(each > member for each in self.oracle)

    def _assert_settled(self) -> None:
        """Let other processes finish; check that they leave no marks and no unused segments."""
        for _ in range(3):
            assert set_compaction.compact(NAME)
        self.the_list_is_the_set()
        at = membership.pointer(NAME)
        assert at.directory.count == len(self.oracle)
        assert not set_search.sets_to_compact()
        query = reads.Query("FollowerMark", keys_only=True)
        assert list(reads.fetch(query)) == []
        query = reads.Query("FollowerSegment", keys_only=True)
        stored = {message.key.path[-1].name for message in reads.fetch(query)}
        assert stored == set(membership.keys(NAME, at.directory))


TestLists = Lists.TestCase
TestLists.settings = settings(max_examples=15, stateful_step_count=25)


def test_a_mark_read_before_a_generation_is_closed_belongs_to_the_next_one() -> None:
    machine = Lists()
    machine.mark_overtaken_by_a_folder("a1", belongs=True, folder="one", steps=4)
    machine.the_list_is_the_set()
    query = reads.Query("FollowerMark", keys_only=True)
    assert [each.key.path[-1].name for each in reads.fetch(query)] == ["0000000002a1"]
    machine.teardown()


def test_a_commit_that_arrives_after_its_caller_gave_up_reverts_no_later_change() -> None:
    """Neither the commit nor the rollback reaches the store in time."""
    late: list[Callable[[], Any]] = []
    is_slow = False

    def network(method: str, _: object, proceed: Callable[[], Any]) -> Any:
        if is_slow and method.endswith(("Commit", "Rollback")):
            late.extend([proceed] if method.endswith("Commit") else [])
            error = engine_errors.DatastoreError("too slow")
            error.status = "DEADLINE_EXCEEDED"
            raise error
        return proceed()

    with inprocess.open_engine(None, indexes=INDEXES, concurrency="optimistic") as engine:
        store = connection.Store(inprocess.Channel(engine, network), project="test", deadline=0.1)
        with store.context():
            membership.mark(NAME, "ann", belongs=False)
            is_slow = True
            with pytest.raises(errors.Overloaded):
                membership.mark(NAME, "ann", belongs=True)
            is_slow = False
            assert late
            membership.mark(NAME, "ann", belongs=True)
            membership.mark(NAME, "ann", belongs=False)
            for commit in late:
                with pytest.raises(engine_errors.Aborted):
                    commit()
            assert not membership.contains(NAME, "ann")


def _contains() -> list[bool]:
    return [membership.contains(NAME, each) for each in ("a2", "a3")]


def _members() -> list[str]:
    return list(membership.page(NAME, limit=9).ids)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (_contains, [False, True]),
        (_members, ["a1", "a3"]),
        (lambda: membership.count(NAME), 2),
    ],
    ids=["contains", "page", "count"],
)
def test_a_read_during_a_compaction_is_from_one_moment(
    read: Callable[[], object], expected: object
) -> None:
    """Run a complete compaction just before one of the reader's calls."""
    calls: list[str] = []
    overtaken = 0

    def fold() -> None:
        with connection.Store(inprocess.Channel(engine), project="test").context():
            assert set_compaction.compact(NAME)

    def call(method: str, _: object, proceed: Callable[[], Any]) -> Any:
        calls.append(method)
        if len(calls) == overtaken:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(fold).result()
        return proceed()

    with inprocess.open_engine(None, indexes=INDEXES, concurrency="optimistic") as engine:
        with connection.Store(inprocess.Channel(engine, call), project="test").context():
            for overtaken in range(1, 30):
                # Segments and marks contain both joins and leaves.
                membership.mark(NAME, "a1", belongs=True)
                membership.mark(NAME, "a2", belongs=True)
                membership.mark(NAME, "a3", belongs=False)
                assert set_compaction.compact(NAME)
                membership.mark(NAME, "a2", belongs=False)
                membership.mark(NAME, "a3", belongs=True)
                calls.clear()
                assert read() == expected, overtaken
                if len(calls) < overtaken:
                    break
        assert overtaken > 4
