"""The process that wrote an event delivers it; if it cannot, a different process or cron does."""

import math
import queue
import threading
from collections.abc import Iterator
from typing import Any

import flask
import pytest

from comments import app as apps
from comments import config
from comments.domain import records
from comments.events import backlog, outbox
from comments.reading.compaction import compactor
from comments.store import connection
from comments.upkeep import background_worker
from comments.upkeep.migrations import thread_count_rows
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
    thread_count_rows.complete("demo")
    sample_threads.grow(site, sample_threads.TREE)
    worker.step()
    assert len(counter_oracle.events()) == 8
    clock.now += backlog.TELL_AFTER
    faults.calls.clear()
    worker.step()
    assert "RunQuery" not in faults.calls
    assert faults.calls.count("Commit") == 1
    counter_oracle.assert_all_counted()


def test_more_events_than_one_portion_are_delivered_in_one_step(
    worker: background_worker.BackgroundWorker,
    site: records.Site,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backlog, "TOLD_AT_ONCE", 3)
    sample_threads.grow(site, sample_threads.TREE)
    clock.now += backlog.TELL_AFTER
    worker.step()
    counter_oracle.assert_all_counted()


def test_events_are_delivered_between_two_compactions(
    worker: background_worker.BackgroundWorker,
    site: records.Site,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a busy site's threads are compacted, readers post and see their comments counted."""
    names = [sample_threads.name_of(site, f"{number}") for number in range(3)]
    for name in names:
        sample_threads.post(site, "early", thread=name.id)
    clock.now += backlog.TELL_AFTER
    worker.step()
    assert counter_oracle.events() == []
    waiting: list[int] = []
    compact = compactor.compact

    def compact_slowly(*given: Any, **more: Any) -> Any:
        waiting.append(len(counter_oracle.events()))
        sample_threads.post(site, "during", thread="busy")
        clock.now += backlog.TELL_AFTER
        return compact(*given, **more)

    monkeypatch.setattr(compactor, "compact", compact_slowly)
    for name in names:
        backlog.note_changes(name, changes=backlog.FOLD_ROWS)
    worker.step()
    assert waiting == [0] * len(names)
    counter_oracle.assert_all_counted()


def test_a_sweep_finds_the_events_of_a_dead_process(
    worker: background_worker.BackgroundWorker,
    store: connection.Store,
    site: records.Site,
    clock: Clock,
) -> None:
    backlog.BACKLOG.forget(store)  # Simulates a process that posts and dies
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
    faults.plan = ["late"] * 100
    worker.step()
    faults.plan = []
    (row,) = outbox.read(counter_oracle.events())
    assert row.attempts == 0  # The event is not to blame for the failure
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


def test_events_are_collected_while_more_arrive(open_store: connection.Store, clock: Clock) -> None:
    waiting = backlog.Backlog(clock)
    waiting.open()
    first, events = clock.now, []
    while clock.now < first + backlog.TELL_WITHIN:
        assert waiting.take_events() == []
        events.append(f"{len(events)}")
        waiting.tell(events[-1])
        clock.now += backlog.TELL_AFTER / 2
    assert waiting.next_due == first + backlog.TELL_WITHIN
    assert waiting.take_events() == events
    assert waiting.next_due == math.inf
    waiting.tell("alone")
    assert waiting.next_due == clock.now + backlog.TELL_AFTER


def test_only_earlier_work_wakes_up_the_worker(open_store: connection.Store) -> None:
    waiting = backlog.Backlog()
    waiting.open()
    taken: queue.SimpleQueue[list[backlog.Name]] = queue.SimpleQueue()

    def work() -> None:
        while waiting.wait(math.inf):
            taken.put(waiting.take())

    worker = threading.Thread(target=work)
    worker.start()
    names = [records.ThreadName("demo", f"{number}") for number in range(50)]
    for name in names:
        waiting.add(name)
    waiting.add(names[7], within=0.0)
    wakes = 1
    while not taken.get(timeout=60):
        wakes += 1
    assert wakes <= 2  # For the first entry, which has a time when it is due, and for the last one
    waiting.close()
    worker.join(60)
    assert not worker.is_alive()


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
