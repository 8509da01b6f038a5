"""A worker thread survives failures and stops when it is told."""

import queue

import pytest

from comments import errors
from comments.domain import records
from comments.store import connection
from comments.upkeep import scheduler, worker_threads
from comments.upkeep.migrations import upgrades
from tests.support import programs
from tests.support.threads import sample_threads


class Failing(worker_threads.WorkerThread):
    """Fails in every step with the next of some errors, and then works."""

    def __init__(self, store: connection.Store, *failures: Exception) -> None:
        super().__init__(store, "failing", "Failing")
        self._failures = list(failures)
        self.done = queue.SimpleQueue[int]()

    def _step(self) -> None:
        self.nudge()
        if self._failures:
            raise self._failures.pop(0)
        self.done.put(len(self._failures))


def test_each_exception_is_logged_once_and_the_thread_goes_on(
    open_store: connection.Store, caplog: pytest.LogCaptureFixture
) -> None:
    thread = Failing(open_store, errors.Overloaded("busy"), ValueError("text of a reader"))
    thread.start()
    try:
        thread.done.get(timeout=programs.PATIENCE)
    finally:
        assert thread.stop(programs.PATIENCE)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"Failing failed and will be retried: {errors.Overloaded('busy')}"),
        ("ERROR", "Failing failed and will be retried"),
    ]


def test_a_thread_that_never_started_has_stopped(open_store: connection.Store) -> None:
    assert Failing(open_store).stop(0)


def test_a_thread_stops_before_its_first_step(open_store: connection.Store) -> None:
    thread = worker_threads.MessageThread(open_store, pytest.fail, first=programs.PATIENCE)
    thread.start()
    assert thread.stop(programs.PATIENCE / 2)


class SteppedJobs(worker_threads.JobThread):
    """Takes its steps one at a time."""

    def step(self) -> bool:
        """Take a step; return whether the next one follows soon."""
        return self._step() is not None


def test_one_step_of_jobs_upgrades_a_part_of_the_comments(
    store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_threads.grow(site, {"a": {}, "b": {}, "c": {}, "d": {}, "e": {}})
    monkeypatch.setattr(upgrades, "AT_ONCE", 2)
    seen: list[int] = []
    walk = upgrades._WALKS[-1]._replace(mend=lambda found: seen.append(len(found)))
    monkeypatch.setattr(upgrades, "_WALKS", (*upgrades._WALKS[:-1], walk))
    upgrades.begin()
    jobs = SteppedJobs(store, scheduler.of_process())
    counts = []
    while jobs.step():
        counts.append(sum(seen))
        seen.clear()
    assert counts == [0, 0, 0, 0, 2, 2, 1]  # The thread three times, the site, the comments
