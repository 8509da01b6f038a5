"""Claims about folding: whoever folds, stops or reads when, a view equals the floor.

The machine is a store with two processes that read with caches of their own, clocks that differ,
and folders that stop at any step. After every step both processes read the thread whole, and one
page of it, and compare with the one ordered query.
"""

import contextlib
import dataclasses

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from comments import (
    datastore,
    errors,
    floor,
    folding,
    materialized,
    models,
    posting,
    public,
    records,
    sites,
)
from emulator import inprocess
from tests import trees
from tests.conftest import ROOT

NAME = records.ThreadName("demo", "page")
SCHEME = trees.SETTINGS.scheme


class Process:
    """A process: a store with its own caches, and a clock that runs ahead of the others'."""

    def __init__(self, engine: inprocess.Engine, ahead: float) -> None:
        self.now = ahead
        self.store = datastore.Store(inprocess.Channel(engine), project="test")
        self.store.kept(materialized.HOLDINGS, lambda: materialized.Holdings(lambda: self.now))


@dataclasses.dataclass
class Folder:
    """A folder of a process that may go on at any time, or never."""

    process: Process
    prepared: folding.Prepared
    folded: folding.Folded | None = None
    may_clear: float = 0.0


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which a short history makes and splits buckets."""
    monkeypatch.setattr(folding, "BUCKET_ROWS", 4)
    monkeypatch.setattr(folding, "TAIL_ROWS", 3)


class Machine(RuleBasedStateMachine):
    """Writers, folders and readers in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.engine = self.stack.enter_context(
            inprocess.open_engine(None, indexes=ROOT / "index.yaml")
        )
        self.processes = [Process(self.engine, ahead) for ahead in (0.0, 600.0)]
        self.folders: list[Folder] = []
        self.comments: list[str] = []
        self.shown: dict[str, object] = {}
        with self.processes[0].store.context():
            self.site = sites.add("demo", ["https://a.example"], scheme=SCHEME, now=trees.START)
            # Folded once, so that readers have a directory from the start.
            self._post(None)
            assert folding.fold(SCHEME, NAME) is not None

    def teardown(self) -> None:
        self.stack.close()

    def _post(self, parent: str | None) -> None:
        with contextlib.suppress(errors.Conflict, errors.NotFound):
            posted = trees.post(self.site, f"c{len(self.comments)}", parent)
            self.comments.append(posted.id)

    def _owner(self, comment_id: str) -> str:
        return str(datastore.get(models.comment_key(comment_id)).author_id)

    def _pick(self, pick: int) -> str:
        return self.comments[pick % len(self.comments)]

    @rule(pick=st.integers(0, 99), is_root=st.booleans(), by=st.integers(0, 1))
    def post(self, pick: int, *, is_root: bool, by: int) -> None:
        with self.processes[by].store.context():
            self._post(None if is_root else self._pick(pick))

    @rule(pick=st.integers(0, 99), by=st.integers(0, 1))
    def retract(self, pick: int, by: int) -> None:
        comment_id = self._pick(pick)
        with self.processes[by].store.context():
            owner = self._owner(comment_id)
            posting.retract(comment_id, author_id=owner, revision=None, now=trees.START)

    @rule(pick=st.integers(0, 99), by=st.integers(0, 1), text=st.integers(0, 9))
    def edit(self, pick: int, by: int, text: int) -> None:
        comment_id = self._pick(pick)
        with (
            self.processes[by].store.context(),
            contextlib.suppress(errors.NotFound, errors.Forbidden),
        ):
            posting.edit(
                comment_id,
                author_id=self._owner(comment_id) or "g:nobody",
                body=f"edited {text}",
                revision=None,
                settings=trees.SETTINGS,
                now=trees.START,
            )

    @rule(by=st.integers(0, 1))
    def start_folding(self, by: int) -> None:
        with self.processes[by].store.context():
            prepared = folding.prepare(SCHEME, NAME)
        if prepared is not None:
            self.folders.append(Folder(self.processes[by], prepared))

    @precondition(lambda self: any(each.folded is None for each in self.folders))
    @rule(pick=st.integers(0, 9))
    def switch(self, pick: int) -> None:
        waiting = [each for each in self.folders if each.folded is None]
        folder = waiting[pick % len(waiting)]
        with folder.process.store.context():
            folder.folded = folding.switch(folder.prepared)
        folder.may_clear = folder.process.now + folding.GRACE
        if folder.folded is None:
            self.folders.remove(folder)

    @precondition(lambda self: any(each.folded is not None for each in self.folders))
    @rule(pick=st.integers(0, 9))
    def clear_when_the_grace_is_over(self, pick: int) -> None:
        waiting = [each for each in self.folders if each.folded is not None]
        folder = waiting[pick % len(waiting)]
        assert folder.folded is not None
        self._wait_until(folder)
        with folder.process.store.context():
            folding.clear(folder.folded)
        self.folders.remove(folder)

    def _wait_until(self, folder: Folder) -> None:
        self.pass_time(max(0.0, folder.may_clear - folder.process.now))

    @rule(pick=st.integers(0, 9))
    def stop_for_good(self, pick: int) -> None:
        if self.folders:
            del self.folders[pick % len(self.folders)]

    @rule(by=st.integers(0, 1))
    def sweep(self, by: int) -> None:
        with self.processes[by].store.context():
            found = folding.sweep(NAME)
            self.pass_time(folding.GRACE)
            folding.delete_orphans(NAME, found)

    @rule(seconds=st.sampled_from((1.0, 20.0, 59.0, 61.0)))
    def pass_time(self, seconds: float) -> None:
        for process in self.processes:
            process.now += seconds

    @rule(by=st.integers(0, 1))
    def read(self, by: int) -> None:
        process = self.processes[by]
        with process.store.context():
            expected = [public.fragment(row) for row in floor.thread(NAME)]
            assert materialized.using(NAME, lambda v: [row.json for row in v.rows()]) == expected
            view = materialized.view(NAME)
            assert view.total == len(expected)
            # A tag names what is shown, in every process and for ever.
            assert self.shown.setdefault(view.tag, expected) == expected

    @rule(by=st.integers(0, 1))
    def count(self, by: int) -> None:
        with self.processes[by].store.context():
            rows = floor.thread(NAME)
            sizes = materialized.using(NAME, lambda v: [v.below(row.sort_hash) for row in rows])
        below = [
            sum(other.sort_hash.startswith(row.sort_hash) for other in rows) - 1 for row in rows
        ]
        assert sizes == below


@pytest.mark.slow
def test_views_equal_the_floor_whatever_happens_meanwhile() -> None:
    run = settings(
        max_examples=200, stateful_step_count=50, suppress_health_check=list(HealthCheck)
    )
    Machine.TestCase.settings = run
    Machine.TestCase("runTest").runTest()
