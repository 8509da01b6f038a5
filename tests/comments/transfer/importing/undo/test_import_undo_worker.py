"""A server's worker runs an undo without pauses and ends it after the grace period."""

from pathlib import Path

import pytest

from comments.domain import records
from comments.events import audit_log, backlog
from comments.reading.compaction import compactor, due_threads
from comments.store import connection
from comments.transfer.importing import import_journal, import_undo
from comments.tree.bulk import bulk_removal
from comments.upkeep import background_worker, scheduler
from tests.comments.conftest import Clock
from tests.support.threads import compaction, sample_threads
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import NOW, comment

PAGES = ("roses", "tulips", "lilies")
EXPORT = [comment(f"{number}", page=PAGES[number % 3]) for number in range(1, 31)]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_removal, "AT_ONCE", 2)
    monkeypatch.setattr(import_undo, "STEPS", 3)
    compaction.small_buckets(monkeypatch)


class Server:
    """A process with a worker, whose steps the test triggers."""

    def __init__(self, store: connection.Store, clock: Clock) -> None:
        self.clock = clock
        backlog.BACKLOG.forget(store)
        scheduler.UPKEEP.put(store, scheduler.Scheduler(clock=clock, now=lambda: NOW))
        self.backlog = backlog.BACKLOG.put(store, backlog.Backlog(clock))
        self.backlog.open()
        self.worker = background_worker.BackgroundWorker(store)

    def work(self, seconds: float = 0.0) -> int:
        """Let time pass and do all work that becomes due; return the number of steps."""
        end, steps = self.clock.now + seconds, 0
        while True:
            self.worker.step()
            steps += 1
            assert steps < 500
            if self.backlog.next_due > self.clock.now:
                if self.clock.now >= end:
                    return steps
                self.clock.now = min(end, self.clock.now + 1.0)


@pytest.fixture
def server(open_store: connection.Store, clock: Clock) -> Server:
    return Server(open_store, clock)


@pytest.fixture
def found(garden: records.Site, server: Server, tmp_path: Path) -> import_journal.Import:
    """An import whose threads are compacted."""
    found = undone.brought(undone.saved(tmp_path / "export", EXPORT))
    server.work()
    undone.settle()
    server.work(compactor.GRACE)
    assert due_threads.find(NOW) == []
    return found


def press(found: import_journal.Import) -> None:
    act = audit_log.Act(sample_threads.ADA, import_undo.VERB)
    import_undo.start("garden", found.id, act, now=NOW, steps=1)


def stored(found: import_journal.Import) -> import_journal.Import:
    return import_journal.get("garden", found.id)


def test_an_undo_runs_without_pauses_and_ends_after_the_grace(
    found: import_journal.Import, server: Server
) -> None:
    press(found)
    assert server.work() > 5
    left = stored(found)
    assert (left.removed, left.waiting) == (len(EXPORT) - len(PAGES), len(PAGES))
    assert set(undone.bodies().values()) == {""}
    server.work(compactor.GRACE - 1)
    assert stored(found).is_being_undone
    server.work(backlog.ERASE_AFTER + 1)
    ended = stored(found)
    assert (ended.removed, ended.is_being_undone) == (len(EXPORT), False)
    assert undone.threads() == []


def test_other_work_goes_on_between_the_parts_of_an_undo(
    found: import_journal.Import, server: Server, garden: records.Site
) -> None:
    press(found)
    post = sample_threads.post(garden, "meanwhile", thread="other")
    backlog.again(records.ThreadName("garden", post.thread), within=0.0)
    server.worker.step()
    server.worker.step()
    assert stored(found).removed == 0
    assert server.worker.step().waiting  # The thread is compacted, and the undo still runs.
    server.work()
    assert stored(found).waiting


def test_a_waiting_undo_reads_nothing_until_its_threads_are_cleared(
    found: import_journal.Import,
    server: Server,
    garden: records.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[str] = []
    go_on = import_undo.go_on
    post = sample_threads.post(garden, "before", thread="other")
    backlog.again(records.ThreadName("garden", post.thread), within=0.0)
    server.work(30.0)
    press(found)
    server.work()
    monkeypatch.setattr(import_undo, "STEPS", 100)
    monkeypatch.setattr(
        import_undo, "go_on", lambda *args, **more: runs.append(args[1]) or go_on(*args, **more)
    )
    server.work(compactor.GRACE - 1)  # The other thread is cleared in this time.
    assert runs == []
    server.work(backlog.ERASE_AFTER + 1)
    assert runs == [found.id]
    assert not stored(found).is_being_undone


def test_a_starting_process_continues_the_undo_of_another(
    found: import_journal.Import, open_store: connection.Store, clock: Clock
) -> None:
    press(found)
    other = Server(open_store, clock)
    other.work(backlog.ERASE_AFTER)
    assert stored(found).waiting == len(PAGES)
    other.work(compactor.GRACE)
    assert not stored(found).is_being_undone


def test_an_undo_ends_soon_when_another_process_compacts_its_threads(
    found: import_journal.Import, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    press(found)
    with monkeypatch.context() as patch:
        patch.setattr(compactor, "compact", lambda *_, **__: None)
        server.work()
    undone.settle()
    assert stored(found).waiting == len(PAGES)
    server.work(compactor.GRACE + 15.0)
    assert not stored(found).is_being_undone


def test_an_undo_is_tried_again_after_an_error(
    found: import_journal.Import, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    press(found)
    with monkeypatch.context() as patch:
        patch.setattr(import_undo, "go_on", lambda *_, **__: 1 / 0)
        server.work()
    server.work(10.0)
    assert stored(found).waiting == len(PAGES)


def test_the_second_call_of_cron_ends_an_undo(
    found: import_journal.Import, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_undo, "STEPS", 100)
    undone.begin(found)

    def wait(seconds: float) -> None:
        clock.now += seconds

    for _ in range(2):
        assert stored(found).is_being_undone
        instance = scheduler.Scheduler(clock=clock, now=lambda: NOW)
        instance.compact_and_clear(scheduler.find_due_work(NOW), wait)
        import_undo.finish(now=NOW)
    assert not stored(found).is_being_undone
