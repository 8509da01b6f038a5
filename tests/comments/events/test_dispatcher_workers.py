"""The process that wrote an event delivers it; if it cannot, a different process or cron does."""

from collections.abc import Iterator

import flask
import pytest

from comments import app as apps
from comments import config
from comments.domain import records
from comments.events import backlog, outbox
from comments.jobs import background_worker
from comments.store import connection
from tests.comments.conftest import Clock
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads import sample_threads

SECRET = "a secret of the tasks"


@pytest.fixture
def faults(interceptor: InterceptorSlot) -> Commits:
    return interceptor.use(Commits())


@pytest.fixture
def worker(
    open_store: connection.Store, clock: Clock
) -> Iterator[background_worker.BackgroundWorker]:
    """A worker that has taken its first step; tests trigger its next steps."""
    backlog.BACKLOG.put(open_store, backlog.Backlog(clock)).open()
    made = background_worker.BackgroundWorker(open_store)
    with open_store.context():
        made.step()
        yield made


def test_the_process_that_posted_delivers_soon_without_a_query(
    worker: background_worker.BackgroundWorker, site: records.Site, clock: Clock, faults: Commits
) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    worker.step()
    assert len(counter_oracle.events()) == 8
    clock.now += backlog.TELL_AFTER
    faults.calls.clear()
    worker.step()
    assert "RunQuery" not in faults.calls
    assert faults.calls.count("Commit") == 1
    counter_oracle.assert_all_counted()


def test_a_sweep_finds_the_events_of_a_dead_process(
    worker: background_worker.BackgroundWorker,
    store: connection.Store,
    site: records.Site,
    clock: Clock,
) -> None:
    backlog.BACKLOG.forget(store)  # simulates a process that posts and dies
    sample_threads.grow(site, sample_threads.TREE)
    worker.step()
    assert len(counter_oracle.events()) == 8
    clock.now += background_worker.SWEEP_EVERY
    worker.step()
    counter_oracle.assert_all_counted()


def test_a_failing_store_stops_no_worker(
    worker: background_worker.BackgroundWorker,
    store: connection.Store,
    site: records.Site,
    clock: Clock,
    faults: Commits,
) -> None:
    sample_threads.post(site, "text")
    clock.now += backlog.TELL_AFTER
    store.deadline = 0.1
    faults.plan = ["before"] * 100
    worker.step()
    faults.plan = []
    (row,) = outbox.read(counter_oracle.events())
    assert row.attempts == 0  # the event is not to blame for the failure
    clock.now += background_worker.SWEEP_EVERY
    worker.step()
    counter_oracle.assert_all_counted()


def test_the_pending_events_of_a_process_are_bounded(
    open_store: connection.Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "MOST_EVENTS", 5)
    monkeypatch.setattr(backlog, "TOLD_AT_ONCE", 3)
    waiting = backlog.Backlog(clock)
    waiting.tell("nobody would deliver it")
    waiting.open()
    for n in range(9):
        waiting.tell(f"{n}")
    assert waiting.take_events() == []
    clock.now += backlog.TELL_AFTER
    assert [waiting.take_events() for _ in range(3)] == [["0", "1", "2"], ["3", "4"], []]


def test_cron_delivers_and_only_cron_may(open_store: connection.Store, site: records.Site) -> None:
    with open_store.context():
        sample_threads.grow(site, sample_threads.TREE)
    client = _client(open_store)
    assert client.get("/tasks/deliver").status_code == 403
    headers = {"Authorization": f"Bearer {SECRET}"}
    answer = client.get("/tasks/deliver", headers=headers)
    assert (answer.json, answer.headers["Cache-Control"]) == (
        {
            "delivered": 8, "failed": 0, "sent": 0, "unsent": 0,
            "waiting": 0, "oldest": 0, "dead": 0,
        },
        "no-store",
    )  # fmt: skip
    with open_store.context():
        counter_oracle.assert_all_counted()


def _client(store: connection.Store) -> flask.testing.FlaskClient:
    settings = config.Settings(secret="a secret of the tests", tasks_secret=SECRET)
    return apps.create_app(settings, store).test_client()
