"""A worker thread survives failures and stops when it is told."""

import queue

import pytest

from comments import errors
from comments.store import connection
from comments.upkeep import worker_threads
from tests.support import programs


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
