"""A bulk decision changes all comments of a filter once, leaves later changes, and is undone."""

import dataclasses
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.domain.records import Status, Verb
from comments.events import audit_log
from comments.moderation import bulk_decisions, decisions, review_queue
from comments.store import connection, reads
from comments.upkeep import scheduler
from datastore_emulator import inprocess
from tests.support import dying_programs
from tests.support.threads import sample_threads

NOW = sample_threads.START + timedelta(hours=1)
ADA, BOB = records.Actor("cli", "Ada"), records.Actor("b", "Bob")
HELD = review_queue.QueueFilter("demo")
NUMBER = 7


@pytest.fixture
def held(store: connection.Store, site: records.Site) -> list[str]:
    """The ids of held comments, oldest first."""
    return _hold(site)


def _hold(site: records.Site) -> list[str]:
    ids = []
    for number in range(NUMBER):
        now = sample_threads.START + timedelta(minutes=number)
        row = sample_threads.post(site, f"text {number}", now=now)
        ids.append(decisions.decide("demo", row.id, Verb.HOLD, ADA, now=now).id)
    return ids


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_decisions, "SLICE", 2)
    monkeypatch.setattr(bulk_decisions, "_COLLECTED_AT_ONCE", 3)


def _start(wanted: review_queue.QueueFilter = HELD, verb: Verb = Verb.APPROVE) -> str:
    return bulk_decisions.start(wanted, verb, BOB, now=NOW, reason="all fine").id


def _finish(job_id: str) -> bulk_decisions.BulkJob:
    return bulk_decisions.go_on("demo", job_id, now=NOW)


def _statuses(ids: list[str]) -> list[Status]:
    return [decisions.case("demo", name).comment.status for name in ids]


def test_a_job_decides_about_all_comments_that_match_and_is_undone_as_a_whole(
    held: list[str],
) -> None:
    job = _finish(_start())
    assert (job.state, job.total, job.seen, job.done) == ("decided", NUMBER, NUMBER, NUMBER)
    assert _statuses(held) == [Status.APPROVED] * NUMBER
    (entry,) = audit_log.log("demo", subject=held[0], limit=1)
    assert (entry.actor, entry.verb, entry.reason) == (BOB, "approve", "all fine")
    bulk_decisions.undo("demo", job.id, ADA, now=NOW)
    job = _finish(job.id)
    assert (job.state, job.decided, job.done) == ("undone", NUMBER, NUMBER)
    assert _statuses(held) == [Status.PENDING] * NUMBER
    with pytest.raises(errors.Conflict):
        bulk_decisions.undo("demo", job.id, ADA, now=NOW)


def test_only_one_of_several_jobs_that_start_at_once_runs(
    store: connection.Store, held: list[str]
) -> None:
    gate = threading.Barrier(8)

    def start(_: int) -> bool:
        with store.context():
            gate.wait(60)
            try:
                _start()
            except errors.Conflict:
                return False
            return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(start, range(8))) == 1
    assert len(bulk_decisions.jobs("demo")) == 1


def test_a_search_limits_a_job_to_its_matches(held: list[str]) -> None:
    job = _finish(_start(dataclasses.replace(HELD, text="text 3")))
    assert job.total == 1
    assert Counter(_statuses(held)) == {Status.APPROVED: 1, Status.PENDING: NUMBER - 1}


def test_a_job_leaves_comments_that_were_changed_after_it_collected_them(
    held: list[str], site: records.Site
) -> None:
    job_id = _start(verb=Verb.SPAM)
    while bulk_decisions.get("demo", job_id).wanted is not None:
        bulk_decisions.go_on("demo", job_id, now=NOW, steps=1)
    late = sample_threads.post(site, "late", now=NOW)
    decisions.decide("demo", late.id, Verb.HOLD, ADA, now=NOW)
    decisions.decide("demo", held[0], Verb.APPROVE, ADA, now=NOW)
    decisions.decide("demo", held[1], Verb.SPAM, ADA, now=NOW)
    job = _finish(job_id)
    assert (job.seen, job.done) == (NUMBER, NUMBER - 2)
    assert _statuses([*held[:3], late.id]) == [
        Status.APPROVED, Status.SPAM, Status.SPAM, Status.PENDING,
    ]  # fmt: skip
    decisions.decide("demo", held[2], Verb.APPROVE, ADA, now=NOW)
    bulk_decisions.undo("demo", job_id, BOB, now=NOW)
    job = _finish(job_id)
    assert (job.decided, job.done) == (NUMBER - 2, NUMBER - 3)
    assert _statuses(held) == [
        Status.APPROVED, Status.SPAM, Status.APPROVED, *[Status.PENDING] * (NUMBER - 3),
    ]  # fmt: skip


def test_a_cancelled_job_stops_and_what_it_did_can_be_undone(held: list[str]) -> None:
    job_id = _start()
    while bulk_decisions.get("demo", job_id).seen < 2:
        bulk_decisions.go_on("demo", job_id, now=NOW, steps=1)
    bulk_decisions.cancel("demo", job_id, now=NOW)
    job = _finish(job_id)
    assert (job.state, job.done) == ("cancelled", 2)
    assert _statuses(held).count(Status.APPROVED) == 2
    with pytest.raises(errors.Conflict):
        bulk_decisions.cancel("demo", job_id, now=NOW)
    bulk_decisions.undo("demo", job_id, BOB, now=NOW)
    assert _finish(job_id).done == 2
    assert _statuses(held) == [Status.PENDING] * NUMBER


def test_one_job_of_a_site_runs_at_a_time_and_the_worker_runs_it(held: list[str]) -> None:
    job_id = _start()
    with pytest.raises(errors.Conflict):
        _start()
    with pytest.raises(errors.NotFound):
        bulk_decisions.get("blog", job_id)
    process, work = scheduler.Scheduler(now=lambda: NOW), records.BulkDecision("demo", job_id)
    assert work in scheduler.find_due_work(NOW)
    process.round([work])
    assert _statuses(held) == [Status.APPROVED] * NUMBER
    assert work not in scheduler.find_due_work(NOW)
    _finish(_start())


def test_a_job_is_forgotten_when_it_can_no_longer_be_undone(held: list[str]) -> None:
    job = _finish(_start())
    assert bulk_decisions.expire(NOW) == 0
    later = NOW + bulk_decisions.TERM
    with pytest.raises(errors.Conflict):
        bulk_decisions.undo("demo", job.id, ADA, now=later)
    assert bulk_decisions.expire(later) == 1
    assert list(reads.fetch(reads.Query("Job"))) == []


def _run(job_id: str) -> None:
    bulk_decisions.SLICE, bulk_decisions._COLLECTED_AT_ONCE = 2, 3
    _finish(job_id)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[inprocess.Engine]:
    """An engine on a file that other processes share."""
    with inprocess.open_engine(tmp_path / "store.db", indexes=dying_programs.INDEXES) as engine:
        yield engine


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_job_that_is_killed_at_any_commit_decides_about_each_comment_once(
    tmp_path: Path, held: list[str], when: str
) -> None:
    job_id = _start()
    rule = {"rpc": "Commit", "call": 1, "when": when, "kill": True}
    deaths = 0
    while True:
        rule["call"] = 2 + deaths % 5
        status, _ = dying_programs.run(tmp_path / "store.db", [rule], _run, job_id)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        deaths += 1
        assert deaths < 100
        if bulk_decisions.get("demo", job_id).ended is not None:
            break
    assert deaths > 3
    job = _finish(job_id)
    assert (job.total, job.seen, job.done) == (NUMBER, NUMBER, NUMBER)
    for name in held:
        verbs = [entry.verb for entry in audit_log.log("demo", subject=name)]
        assert verbs == ["approve", "hold"]
