"""Upkeep in running processes compacts and clears changed threads and survives faults."""

import re
import threading
import time
from typing import Any

import flask
import pytest

from comments import app as apps
from comments import config, errors
from comments.domain import presentation, records
from comments.events import backlog
from comments.reading.compaction import compactor, leftovers
from comments.reading.materialized import directories
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import bucket_rows, comment_rows
from comments.tree.counters import sharding
from comments.tree.lists import ordered_query
from comments.upkeep import background_worker, scheduler
from datastore_emulator import faults, inprocess
from tests.comments.conftest import Clock
from tests.support import programs
from tests.support.histories import counter_oracle
from tests.support.threads import compaction, raw_changes, sample_threads

SCHEME = sample_threads.SETTINGS.scheme
SECRET = "a secret of the tasks"
ABORTING = {"rules": [{"rpc": "Commit", "status": "ABORTED"}]}


@pytest.fixture
def worker(open_store: connection.Store, clock: Clock) -> background_worker.BackgroundWorker:
    """A worker; the test triggers its steps."""
    backlog.BACKLOG.put(open_store, backlog.Backlog(clock)).open()
    return background_worker.BackgroundWorker(open_store)


@pytest.fixture
def name(site: records.Site) -> records.ThreadName:
    return sample_threads.name_of(site)


def _flags(name: records.ThreadName) -> int:
    where = (("thread", "=", comment_rows.thread_key_name(name)), ("unfolded", "=", True))
    return reads.count(reads.Query("Comment", where=where))


def _assert_reader_right(name: records.ThreadName) -> None:
    expected = [presentation.fragment(row) for row in ordered_query.thread(name)]
    assert compaction.with_view(name, lambda v: [each.json for each in v.rows()]) == expected


def test_jobs_gather_the_counters_of_quiet_threads(
    open_store: connection.Store,
    store: connection.Store,
    clock: Clock,
    site: records.Site,
    name: records.ThreadName,
) -> None:
    sharding.SHARDS.put(open_store, sharding.Shards(clock))
    sample_threads.post(site, "text")
    sharding.spread(name, 4)
    scheduler.continue_jobs(sample_threads.START, steps=1)
    assert reads.get(comment_rows.thread_key(name)).shards == 4
    clock.now += sharding.QUIET
    scheduler.continue_jobs(sample_threads.START, steps=1)
    assert reads.get(comment_rows.thread_key(name)).shards == 1
    counter_oracle.assert_counted()


def test_a_worker_compacts_due_threads_and_clears_them_after_the_grace(
    store: connection.Store,
    worker: background_worker.BackgroundWorker,
    clock: Clock,
    site: records.Site,
    name: records.ThreadName,
) -> None:
    worker.step()
    sample_threads.post(site, "text")
    assert worker.step() == scheduler.RoundSummary(0, 0, 0)
    clock.now += backlog.FOLD_AFTER
    assert worker.step() == scheduler.RoundSummary(1, 0, 1)
    assert _flags(name) == 1
    clock.now += compactor.GRACE - 1
    assert worker.step() == scheduler.RoundSummary(0, 0, 1)
    assert _flags(name) == 1
    clock.now += 1
    assert worker.step() == scheduler.RoundSummary(0, 1, 0)
    assert _flags(name) == 0
    _assert_reader_right(name)


def test_a_starting_process_finishes_the_work_of_another(
    store: connection.Store,
    worker: background_worker.BackgroundWorker,
    clock: Clock,
    site: records.Site,
    name: records.ThreadName,
) -> None:
    sample_threads.post(site, "folded and not cleared")
    assert compactor.compact(SCHEME, name) is not None
    sample_threads.post(site, "not folded", thread="x" * 600)
    assert set(scheduler.find_due_work()) == {name, sample_threads.name_of(site, "x" * 600)}
    assert worker.step() == scheduler.RoundSummary(2, 0, 2)
    clock.now += compactor.GRACE
    assert worker.step().cleared == 2
    assert scheduler.find_due_work() == []


def test_a_starting_process_serves_readers_before_it_looks_for_others_work(
    store: connection.Store,
    clock: Clock,
    site: records.Site,
    name: records.ThreadName,
) -> None:
    sample_threads.post(site, "left by another process", thread="other")
    backlog.BACKLOG.forget(store)  # Simulates the end of that process
    backlog.BACKLOG.put(store, backlog.Backlog(clock)).open()
    worker = background_worker.BackgroundWorker(store, first=5.0)
    sample_threads.post(site, "changed here")
    backlog.note_erasure(name)
    clock.now += 4
    assert worker.step().compacted == 1
    assert directories.load_directory(name).version
    assert not directories.load_directory(sample_threads.name_of(site, "other")).version
    clock.now += 1
    worker.step()
    assert directories.load_directory(sample_threads.name_of(site, "other")).version


def test_a_failed_compaction_is_retried_and_others_proceed(
    store: connection.Store,
    worker: background_worker.BackgroundWorker,
    clock: Clock,
    site: records.Site,
    engine: inprocess.Engine,
) -> None:
    name = sample_threads.name_of(site)
    store.deadline = 0.25
    for thread in ("page", "other"):
        sample_threads.post(site, "text", thread=thread)
    engine.install_faults(faults.Plan.parse(ABORTING))
    assert worker.step() == scheduler.RoundSummary(0, 0, 0)
    engine.install_faults(None)
    clock.now += 2 * 5.0
    assert worker.step() == scheduler.RoundSummary(2, 0, 2)
    engine.install_faults(faults.Plan.parse(ABORTING))
    clock.now += compactor.GRACE
    worker.step()
    assert _flags(name) == 1
    engine.install_faults(None)
    clock.now += 5.0
    assert worker.step().cleared == 2
    assert _flags(name) == 0


@pytest.mark.parametrize("damage", [{"content": b"no"}, {"content": b"", "parts": ["gone"]}])
def test_a_damaged_directory_is_rebuilt(
    store: connection.Store,
    worker: background_worker.BackgroundWorker,
    site: records.Site,
    name: records.ThreadName,
    damage: dict[str, Any],
) -> None:
    damaged = sample_threads.name_of(site, "damaged")
    for each in (damaged, name):
        sample_threads.post(site, "text", thread=each.id)
    row = bucket_rows.BucketDirectoryRow(
        key=bucket_rows.directory_key(damaged), version="v", **damage
    )
    writes = ownership.Writes("compactor", put=(row,))
    transactions.transaction(lambda: transactions.apply(writes))
    assert worker.step() == scheduler.RoundSummary(2, 0, 2)


def test_a_thread_that_cannot_be_compacted_stops_no_worker(
    store: connection.Store,
    worker: background_worker.BackgroundWorker,
    site: records.Site,
    name: records.ThreadName,
) -> None:
    sample_threads.post(site, "text", thread=name.id)
    row = sample_threads.post(site, "text", thread="damaged")
    raw_changes.comment(row.id, status="unknown")
    assert worker.step() == scheduler.RoundSummary(1, 0, 1)


def test_a_running_worker_compacts_an_edit_by_itself_and_stops(
    open_store: connection.Store, site: records.Site, name: records.ThreadName
) -> None:
    before = threading.active_count()
    worker = background_worker.BackgroundWorker(open_store)
    assert threading.active_count() == before  # Creating a worker starts no thread
    worker.start()
    with open_store.context():
        sample_threads.post(site, "text")
        backlog.note_erasure(name)
        programs.wait_until(lambda: directories.load_directory(name).version)
        _assert_reader_right(name)
    assert worker.stop(programs.PATIENCE)


def test_a_waiting_worker_can_be_stopped(open_store: connection.Store) -> None:
    worker = background_worker.BackgroundWorker(open_store)
    worker.start()
    assert worker.stop(programs.PATIENCE)


@pytest.fixture
def commands(app: flask.Flask, monkeypatch: pytest.MonkeyPatch) -> flask.testing.FlaskCliRunner:
    monkeypatch.setattr(compactor, "GRACE", 0.0)
    return app.test_cli_runner()


def test_the_command_compacts_clears_and_removes_orphans(
    open_store: connection.Store,
    site: records.Site,
    name: records.ThreadName,
    commands: flask.testing.FlaskCliRunner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compactor, "TAIL_ROWS", 0)
    with open_store.context():
        for thread in ("page", "other"):
            sample_threads.post(site, "text", thread=thread)
        orphan = compactor.prepare(SCHEME, name)
    assert orphan is not None
    assert orphan.written
    result = commands.invoke(args=["compact", "--wait"])
    assert result.exit_code == 0, result.output
    assert "Compacted 2 threads; 0 still to be cleaned up." in result.stdout
    with open_store.context():
        assert scheduler.find_due_work() == []
        assert leftovers.orphans(name) == []
        _assert_reader_right(name)


def test_the_command_compacts_one_thread_and_leaves_the_clearing_to_others(
    open_store: connection.Store,
    site: records.Site,
    name: records.ThreadName,
    commands: flask.testing.FlaskCliRunner,
) -> None:
    with open_store.context():
        for thread in ("page", "other"):
            sample_threads.post(site, "text", thread=thread)
    result = commands.invoke(args=["compact", "demo", "page"])
    assert "Compacted 1 thread; 1 still to be cleaned up." in result.stdout
    with open_store.context():
        assert _flags(name) == 1
        assert directories.load_directory(name).version
        assert not directories.load_directory(sample_threads.name_of(site, "other")).version
    for unknown in (["compact", "nobody"], ["compact", "demo", "nothing"]):
        assert commands.invoke(args=unknown).exit_code == 1


def test_the_command_waits_for_the_grace_only_if_asked_and_names_its_end(
    open_store: connection.Store,
    site: records.Site,
    name: records.ThreadName,
    app: flask.Flask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with open_store.context():
        sample_threads.post(site, "text")
    result = app.test_cli_runner().invoke(args=["compact"])
    assert slept == []
    assert "A running server does that within 22 minutes" in result.stdout
    with open_store.context():
        assert _flags(name) == 1
    result = app.test_cli_runner().invoke(args=["compact", "--wait"])
    assert slept == [compactor.GRACE]
    assert re.search(r"The clean-up starts at \d\d:\d\d:\d\d, in 65 s\.", result.stderr)
    assert "; 0 still to be cleaned up." in result.stdout
    assert "A running server does that within" not in result.stdout
    with open_store.context():
        assert _flags(name) == 0


def _client(store: connection.Store, **settings: object) -> flask.testing.FlaskClient:
    made = config.Settings(secret="a secret of the tests", **settings)  # type: ignore[arg-type]
    return apps.create_app(made, store).test_client()


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({"on_app_engine": True}, {"X-Appengine-Cron": "true"}),
        ({"tasks_secret": SECRET}, {"Authorization": f"Bearer {SECRET}"}),
    ],
)
def test_cron_is_admitted_by_its_own_credentials(
    open_store: connection.Store,
    site: records.Site,
    name: records.ThreadName,
    given: dict[str, object],
    headers: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compactor, "GRACE", 0.0)
    client = _client(open_store, **given)
    with open_store.context():
        sample_threads.post(site, "text")
    assert client.get("/tasks/upkeep", headers=headers).json == {
        "folded": 1,
        "cleared": 1,
        "waiting": 0,
    }
    with open_store.context():
        assert _flags(name) == 0
        _assert_reader_right(name)


@pytest.mark.parametrize("given", ["", SECRET])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Appengine-Cron": "true", "X-Appengine-QueueName": "default"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {SECRET}x"},
        {"Authorization": f"Basic {SECRET}"},
        {"Authorization": "Bearer ä".encode().decode("latin-1")},
    ],
)
def test_the_app_engine_cron_header_is_ignored_elsewhere(
    open_store: connection.Store, site: records.Site, given: str, headers: dict[str, str]
) -> None:
    with open_store.context():
        sample_threads.post(site, "text")
    refused = _client(open_store, tasks_secret=given).get("/tasks/upkeep", headers=headers)
    assert refused.status_code == 403
    with open_store.context():
        assert not directories.load_directory(sample_threads.name_of(site)).version


def test_on_app_engine_only_cron_may_compact(open_store: connection.Store) -> None:
    client = _client(open_store, on_app_engine=True, tasks_secret=SECRET)
    for headers in ({}, {"X-Appengine-Cron": "false"}, {"Authorization": f"Bearer {SECRET}"}):
        assert client.get("/tasks/upkeep", headers=headers).status_code == 403


def test_only_app_engines_variable_enables_app_engine_mode(tmp_path: object) -> None:
    given = {"SECRET": "0123456789abcdef"}
    assert config.load(given | {"GAE_ENV": "standard"}).on_app_engine
    assert not config.load(given).on_app_engine
    assert config.load(given | {"TASKS_SECRET": SECRET}).tasks_secret == SECRET
    with pytest.raises(errors.Misconfigured, match=r"^TASKS_SECRET must have at least"):
        config.load(given | {"TASKS_SECRET": "short"})


def test_a_look_needs_no_sites(store: connection.Store) -> None:
    assert list(site_settings.every()) == []
    assert scheduler.find_due_work() == []
