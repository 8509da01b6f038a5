"""The audit checks threads slowly, within its reads, and reports problems until they are gone."""

import logging
import time
from datetime import timedelta
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.events import backlog
from comments.store import connection
from comments.upkeep import background_worker
from comments.upkeep.integrity import repair, thread_audit
from datastore_emulator import inprocess, testing
from tests.comments.conftest import Clock
from tests.support import datastores
from tests.support.threads import compaction, raw_changes, reader_processes, sample_threads

NOW = sample_threads.START
MUCH = 10_000
THREADS = ("a", "b", "c")


@pytest.fixture(autouse=True)
def posted(store: connection.Store, site: records.Site) -> dict[str, records.Comment]:
    """A comment in each of three compacted threads."""
    found = {}
    for thread in THREADS:
        found[thread] = sample_threads.post(site, thread, thread=thread)
        compaction.whole(sample_threads.name_of(site, thread))
    return found


def _state() -> thread_audit.AuditState:
    state = thread_audit.state()
    assert state is not None
    return state


def _one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each run check one thread."""
    times = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: next(times) * 0.6)
    monkeypatch.setattr(thread_audit, "SECONDS", 1.0)


def test_a_pass_checks_every_thread_and_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _one_each(monkeypatch)
    seen: list[str] = []
    find = repair.find_problems

    def noted(scheme: Any, name: records.ThreadName) -> Any:
        seen.append(name.id)
        return find(scheme, name)

    monkeypatch.setattr(repair, "find_problems", noted)
    for _ in range(4):
        assert thread_audit.check_threads(MUCH, now=NOW) == 1
    assert seen == ["a", "b", "c", "a"]
    assert (_state().checked, _state().last, _state().found) == (4, NOW, ())


def test_a_problem_is_logged_and_reported_until_it_is_repaired(
    app: flask.Flask,
    client: FlaskClient,
    posted: dict[str, records.Comment],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _one_each(monkeypatch)
    raw_changes.comment(posted["b"].id, html="<p>other</p>")
    with caplog.at_level(logging.WARNING, "flatthread"):
        for _ in THREADS:
            thread_audit.check_threads(MUCH, now=NOW)
    (line,) = caplog.messages
    assert line.startswith("The audit found 2 problems in the thread b of demo: html, page html.")
    (found,) = _state().found
    assert (found.site, found.thread, found.fields) == ("demo", "b", ("html", "page html"))
    assert client.get("/healthz").json == {
        "status": "ok",
        "audit": {"checked": 3, "skipped": 0, "last": NOW.isoformat(), "with_problems": 1},
    }
    assert app.test_cli_runner().invoke(args=["repair", "--fix"]).exit_code == 0
    assert _state().found == ()
    health = client.get("/healthz").json
    assert health is not None
    assert health["audit"]["with_problems"] == 0


def test_a_problem_that_is_gone_at_the_next_check_is_not_reported_any_more(
    posted: dict[str, records.Comment], monkeypatch: pytest.MonkeyPatch
) -> None:
    _one_each(monkeypatch)
    raw_changes.comment(posted["a"].id, score=7)
    thread_audit.check_threads(MUCH, now=NOW)
    assert len(_state().found) == 1
    raw_changes.comment(posted["a"].id, score=0)
    for _ in THREADS:
        thread_audit.check_threads(MUCH, now=NOW)
    assert _state().found == ()


def test_the_reads_of_all_processes_in_an_hour_are_bounded(datastore: datastores.Datastore) -> None:
    other = reader_processes.Reader(datastore)
    most = 45  # Two threads of 21 reads each
    checked = thread_audit.check_threads(most, now=NOW) + other.do(
        lambda: thread_audit.check_threads(most, now=NOW)
    )
    assert (checked, _state().reads) == (2, 42)
    assert thread_audit.check_threads(most, now=NOW) == 0
    assert thread_audit.check_threads(most, now=NOW + timedelta(hours=1)) == 2
    assert _state().checked == 4


@pytest.mark.parametrize("comments", [1, 40])
def test_a_check_costs_no_more_reads_than_it_claims(
    engine: inprocess.Engine,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
    comments: int,
) -> None:
    for number in range(comments):
        sample_threads.post(site, f"a{number}", thread="a")
    compaction.small_buckets(monkeypatch, 16)
    compaction.whole(sample_threads.name_of(site, "a"))
    _one_each(monkeypatch)
    with testing.meter(engine) as cost:
        assert thread_audit.check_threads(MUCH, now=NOW) == 1
    assert comments < cost.reads <= _state().reads


def test_a_thread_that_needs_more_reads_than_an_hour_has_is_skipped(site: records.Site) -> None:
    for number in range(5):
        sample_threads.post(site, f"b{number}", thread="b")
    assert thread_audit.check_threads(25, now=NOW) == 1
    assert thread_audit.check_threads(25, now=NOW + timedelta(hours=1)) == 0
    assert thread_audit.check_threads(25, now=NOW + timedelta(hours=2)) == 1
    assert (_state().checked, _state().skipped) == (2, 1)


def test_without_reads_the_audit_is_off() -> None:
    assert thread_audit.check_threads(0, now=NOW) == 0
    assert thread_audit.state() is None


@pytest.mark.parametrize("given", [0, MUCH])
def test_the_background_worker_audits_at_its_pace(
    store: connection.Store, clock: Clock, given: int
) -> None:
    backlog.BACKLOG.forget(store)
    backlog.BACKLOG.put(store, backlog.Backlog(clock)).open()
    worker = background_worker.BackgroundWorker(store, audit_reads=given)
    worker.step()
    assert thread_audit.state() is None
    clock.now += background_worker.AUDIT_EVERY
    worker.step()
    assert (thread_audit.state() is not None) == bool(given)
