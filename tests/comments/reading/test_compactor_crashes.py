"""If a compaction dies or stops at any commit, threads stay correct and no erased text remains.

A process dies before or after any of its commits, or it stops there and continues after other
processes have done all the work. Later processes know only the store's contents
(`scheduler.find_due_work`). They must leave no flag, no bucket without a directory, and no byte of
a retracted text.
"""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from comments.domain import records
from comments.events import backlog
from comments.posting import cast_vote, own_comment
from comments.reading.compaction import bucket_layout, compactor, leftovers
from comments.reading.materialized import directories, ranking
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows
from comments.upkeep import scheduler
from datastore_emulator import inprocess
from tests.support import datastores, prepared_stores
from tests.support.threads import compaction, reader_processes, sample_threads, sample_votes

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
CANARY = "quetzalcoatlus"
WHOLE, IN_PARTS = 4096, 120  # Bytes of a directory that one entity may contain.
# Buckets, ranking, directory, deletions and flags; with fewer commits, the scene would be too
# small.
LEAST_COMMITS = 8


class Killed(BaseException):
    """An error that simulates the end of a process in the middle of a call."""


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class CompactingProcess(reader_processes.Reader):
    """A process that compacts by its own clock, like upkeep, and counts its own commits."""

    def __init__(
        self,
        datastore: datastores.Datastore,
        before: Callable[[int], object] = lambda _commit: None,
    ) -> None:
        self.commits = 0
        self._before = before
        super().__init__(datastore, seen=self._count)
        self.clock = Clock()
        self._upkeep = scheduler.Scheduler(clock=self.clock)

    def _count(self, method: str, _request: object) -> None:
        if method.endswith("Commit"):
            self.commits += 1
            self._before(self.commits)

    def work(self, pass_grace: Callable[[], object]) -> None:
        """Do all due compaction and vote counting, and clear flags after the grace period."""
        for name in self.do(scheduler.find_due_work):
            self.do(lambda name=name: self._work_at(name))  # type: ignore[misc]
        pass_grace()
        self.clock.now += compactor.GRACE
        for switched in self._upkeep.uncleared_compactions:
            self.do(lambda switched=switched: compactor.clear(switched.result, switched.orphans))  # type: ignore[misc]

    def _work_at(self, name: backlog.Name) -> None:
        if isinstance(name, records.VotedComment):
            cast_vote.count(name.id, now=sample_votes.LATER)
        elif isinstance(name, records.ThreadName):
            self._upkeep.compact(name)


class Scene:
    """A thread with texts for the test to retract, and two processes that have read it."""

    def __init__(self, engine: inprocess.Engine) -> None:
        self.engine = engine
        self.readers = [
            reader_processes.Reader(datastores.Embedded(engine), ahead=ahead)
            for ahead in (0.0, 600.0)
        ]
        self.said: list[records.Comment] = []

    def take_back(self) -> None:
        """Retract the scene's texts."""
        for row in self.said:
            own_comment.retract(
                row.id, author_id=row.author.id, revision=None, now=sample_threads.START
            )

    def pass_grace(self) -> None:
        for reader in self.readers:
            reader.now += compactor.GRACE

    def assert_readers_current(self) -> None:
        for reader in (*self.readers, reader_processes.Reader(datastores.Embedded(self.engine))):
            reader.assert_current(NAME)

    def finish(self) -> None:
        """Let fresh processes do all due work; check readers, buckets and erased texts."""
        self.assert_readers_current()
        for _ in range(3):
            CompactingProcess(datastores.Embedded(self.engine)).work(self.pass_grace)
            self.assert_readers_current()
        assert scheduler.find_due_work() == []
        directory = directories.load_directory(NAME)
        named = {line.key for line in directory.lines}.union(directories.parts_of(NAME))
        if directory.content.best is not None:
            named.add(directory.content.best.top)
        assert _stored("Bucket") == named
        assert _kinds_that_hold(CANARY) == set()


def _stored(kind: str) -> set[str]:
    return {each.key.path[-1].name for each in reads.fetch(reads.Query(kind))}


def _kinds_that_hold(text: str) -> set[str]:
    return {
        kind
        for kind in ("Comment", "Thread", "Ranking", "Bucket", "BucketDirectory")
        for message in reads.fetch(reads.Query(kind))
        if text.encode() in message.SerializeToString() + reader_processes.decompressed(message)
    }


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a short thread every kind of bucket: runs, a top, parts of a directory."""
    compaction.small_buckets(monkeypatch, 4, 3)
    monkeypatch.setattr(compactor, "MOST_CLEARING", 3)
    monkeypatch.setattr(leftovers, "AT_ONCE", 4)
    monkeypatch.setattr(ranking, "TOP_ROWS", 4)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Scene]:
    """Open a data file, and yield a scene inside its store's context.

    The engine is optimistic, because a compactor that dies or stops here is not a real process, so
    the engine would not release its locks.
    """
    with (
        prepared_stores.opened(path, "optimistic") as engine,
        reader_processes.Reader(datastores.Embedded(engine)).store.context(),
    ):
        yield Scene(engine)


@contextlib.contextmanager
def _copied(path: Path, said: list[records.Comment]) -> Iterator[Scene]:
    """Open a copy of a scene's data file. Its readers read the thread."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _opened(Path(shutil.copy(path, folder))) as scene,
    ):
        scene.said = said
        scene.assert_readers_current()
        yield scene


def _grow(scene: Scene) -> None:
    site = site_settings.add("demo", ["https://a.example"], scheme=SCHEME, now=sample_threads.START)
    rows = sample_threads.grow(site, {f"{n}": {f"{n}.1": {}} for n in range(5)})
    first = sample_threads.post(site, f"{CANARY} in a bucket", rows["0"].id)
    _vote(rows["0"], 3)
    _vote(rows["2"], 9)
    CompactingProcess(datastores.Embedded(scene.engine)).work(scene.pass_grace)
    last = sample_threads.post(site, f"{CANARY} in the tail")
    CompactingProcess(datastores.Embedded(scene.engine)).work(scene.pass_grace)
    scene.assert_readers_current()
    assert _kinds_that_hold(CANARY) >= {"Comment", "Bucket"}
    scene.said = [first, last, sample_threads.post(site, f"{CANARY} in a row")]
    _vote(rows["1"], 5)
    sample_threads.grow(site, {f"later {n}": {} for n in range(6)})
    scene.assert_readers_current()


def _vote(row: records.Comment, votes: int) -> None:
    def body() -> None:
        stored = reads.get(comment_rows.comment_key(row.id))
        stored.up += votes
        stored.revision += 1
        stored.unfolded = True
        transactions.apply(ownership.Writes("tree", put=(stored,)))

    transactions.transaction(body)


def _end_at_every_commit(
    path: Path, play: Callable[[Scene, int], CompactingProcess], first: int = 1, step: int = 1
) -> None:
    """Play the scene once for each of a compaction's commits, or for each `step`-th commit."""
    with _opened(path) as grown:
        _grow(grown)
    for commit in itertools.count(first, step):
        with _copied(path, grown.said) as scene:
            process = play(scene, commit)
            scene.take_back()
            scene.finish()
        if process.commits < commit:
            assert commit > LEAST_COMMITS
            return


@pytest.mark.parametrize("part", [WHOLE, IN_PARTS])
def test_a_compactor_that_dies_before_any_commit_leaves_nothing_behind(
    tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_layout, "PART_BYTES", part)

    def play(scene: Scene, commit: int) -> CompactingProcess:
        def die(number: int) -> None:
            if number == commit:
                raise Killed

        scene.take_back()
        process = CompactingProcess(datastores.Embedded(scene.engine), die)
        with contextlib.suppress(Killed):
            process.work(scene.pass_grace)
        return process

    _end_at_every_commit(tmp_path / "data", play)


@pytest.mark.parametrize(("more", "part"), [(1, WHOLE), (2, IN_PARTS), (100, WHOLE)])
def test_a_compactor_that_is_stopped_while_others_work_leaves_nothing_behind(
    tmp_path: Path, more: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process reads texts, wakes after others retract and compact, and makes `more` commits.

    It is stopped before every second commit: in the first case before the even ones.
    """
    monkeypatch.setattr(bucket_layout, "PART_BYTES", part)

    def play(scene: Scene, commit: int) -> CompactingProcess:
        def stop(number: int) -> None:
            if number == commit:
                reader_processes.Reader(datastores.Embedded(scene.engine)).do(scene.take_back)
                CompactingProcess(datastores.Embedded(scene.engine)).work(scene.pass_grace)
                assert _work_to_do(scene) == []
            elif number >= commit + more:
                raise Killed

        process = CompactingProcess(datastores.Embedded(scene.engine), stop)
        with contextlib.suppress(Killed):
            process.work(scene.pass_grace)
        return process

    _end_at_every_commit(tmp_path / "data", play, first=1 + more % 2, step=2)


def _work_to_do(scene: Scene) -> list[records.ThreadName]:
    return reader_processes.Reader(datastores.Embedded(scene.engine)).do(scheduler.find_due_work)  # type: ignore[arg-type]
