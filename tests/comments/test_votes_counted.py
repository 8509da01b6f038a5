"""Claims about counting votes: when, by whom, what readers see of it, and what becomes of votes."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import grpc
import pytest

from comments import errors
from comments.domain import presentation, records
from comments.domain.records import Status
from comments.events import backlog
from comments.jobs import worker_thread
from comments.posting import cast_vote, submission
from comments.reading.materialized import directories, thread_view, view_cache
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree import ordered_query, votes
from comments.tree.counters import totals
from emulator import inprocess, testing
from tests import ballots, folds, trees
from tests.comments.conftest import Clock
from tests.comments.interceptors import TRANSIENT, Faults

NAME = records.ThreadName("demo", "page")


@pytest.fixture
def interceptor(faults: Faults) -> Faults:
    return faults


@pytest.fixture
def row(store: connection.Store, site: records.Site) -> records.Comment:
    return trees.post(site, "text")


def _votes(comment: records.Comment) -> dict[str, int]:
    return ballots.cast().get(comment.id, {})


@pytest.mark.parametrize("status", TRANSIENT)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["BeginTransaction", "Lookup", "RunAggregationQuery", "Commit"])
@pytest.mark.usefixtures("brief_doubt")
def test_a_count_whose_call_fails_once_counts_once(
    row: records.Comment, faults: Faults, method: str, when: str, status: grpc.StatusCode
) -> None:
    for voter, value in [("ann", 1), ("bob", 1), ("cid", -1)]:
        ballots.vote(row, voter, value)
    faults.lose(method, when, status)
    ballots.count_all()
    assert ballots.stored(row.id) == (2, 1, 1)
    ballots.check()


def test_a_burst_of_votes_is_one_write_of_the_row(
    engine: inprocess.Engine, row: records.Comment
) -> None:
    for number in range(100):
        ballots.vote(row, f"{number}")
    assert len(cast_vote.waiting(ballots.LATER)) == 1
    with testing.meter(engine) as cost:
        cast_vote.count(row.id, now=ballots.LATER)
    # The comment, two counts, the counters of thread and author; the event and that it is done.
    assert (cost.reads, cost.writes, cost.deletes) == (6, 4, 1)
    stored = reads.get(comment_rows.comment_key(row.id))
    assert (stored.up, stored.revision) == (100, 2)
    with testing.meter(engine) as cost:
        cast_vote.count(row.id, now=ballots.LATER)
    assert (cost.reads, cost.writes, cost.deletes) == (1, 0, 0)


def test_a_worker_counts_ten_seconds_after_the_first_vote_and_then_readers_see_it(
    open_store: connection.Store, store: connection.Store, site: records.Site, clock: Clock
) -> None:
    backlog.BACKLOG.put(open_store, backlog.Backlog(clock)).open()
    row = trees.post(site, "text")
    worker = worker_thread.Worker(open_store, trees.SETTINGS.scheme)
    worker.step()
    ballots.vote(row, "ann")
    clock.now += backlog.COUNT_AFTER - 1
    ballots.vote(row, "bob")
    worker.step()
    assert ballots.stored(row.id) == (0, 0, 0)
    clock.now += 1
    worker.step()
    assert ballots.stored(row.id) == (2, 0, 2)
    ballots.vote(row, "cid")
    clock.now += backlog.COUNT_AFTER - 1
    worker.step()
    assert ballots.stored(row.id) == (2, 0, 2)
    clock.now += 1
    worker.step()
    assert ballots.stored(row.id) == (3, 0, 3)
    clock.now += backlog.TELL_AFTER
    worker.step()
    assert totals.of_site("demo")["score"] == 3
    ballots.check()


def test_a_worker_counts_a_vote_whose_answer_was_lost(
    open_store: connection.Store, store: connection.Store, site: records.Site, faults: Faults,
    clock: Clock,
) -> None:  # fmt: skip
    backlog.BACKLOG.put(open_store, backlog.Backlog(clock)).open()
    row = trees.post(site, "text")
    worker = worker_thread.Worker(open_store, trees.SETTINGS.scheme)
    worker.step()
    faults.lose("Commit", "after", grpc.StatusCode.UNAVAILABLE)
    ballots.vote(row, "ann")
    clock.now += backlog.COUNT_AFTER
    worker.step()
    assert ballots.stored(row.id) == (1, 0, 1)


def test_votes_of_a_process_that_is_gone_are_counted_by_the_next_that_looks(
    open_store: connection.Store, row: records.Comment, clock: Clock
) -> None:
    ballots.vote(row, "ann")  # nothing is open here, so nobody was told
    backlog.BACKLOG.put(open_store, backlog.Backlog(clock)).open()
    worker_thread.Worker(open_store, trees.SETTINGS.scheme).step()
    assert ballots.stored(row.id) == (1, 0, 1)


def test_a_count_waits_for_its_time_whoever_looks(row: records.Comment) -> None:
    ballots.vote(row, "ann")
    due = trees.START + timedelta(seconds=10)
    assert cast_vote.waiting(due - timedelta(seconds=1)) == []
    assert cast_vote.waiting(due) == [records.VotedComment(row.id)]


def test_a_vote_between_count_and_commit_is_in_that_count_or_the_next(
    engine: inprocess.Engine, row: records.Comment
) -> None:
    ballots.vote(row, "ann")
    others = connection.Store(inprocess.Channel(engine), project="test")
    plan = ["Commit"]

    def meanwhile(method: str, _: Any, proceed: Callable[..., Any]) -> Any:
        answer = proceed()
        if plan and method == "RunAggregationQuery":
            plan.clear()
            helper = threading.Thread(target=vote)
            helper.start()
            helper.join(1)  # it may have to wait for the count's locks
            helpers.append(helper)
        return answer

    def vote() -> None:
        with others.context():
            ballots.vote(row, "bob")

    helpers: list[threading.Thread] = []
    counting = connection.Store(inprocess.Channel(engine, interceptor=meanwhile), project="test")

    def work() -> None:
        with counting.context():
            cast_vote.count(row.id, now=ballots.LATER)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    helpers[0].join()
    assert _votes(row) == {"g:ann": 1, "g:bob": 1}
    ballots.count_all()
    assert ballots.stored(row.id) == (2, 0, 2)
    ballots.check()


def test_imported_votes_stay_beside_those_that_are_cast(
    store: connection.Store, site: records.Site
) -> None:
    node = trees.node("old", None, Status.APPROVED, author="g:ann", up=7, down=2)
    trees.store_imported(NAME, node)
    row = conversion.comment_record(reads.get(comment_rows.comment_key(node.id)))
    for voter, value in [("bob", 1), ("cid", -1), ("dan", -1)]:
        ballots.vote(row, voter, value)
    ballots.count_all()
    assert ballots.stored(row.id) == (8, 4, 4)
    ballots.vote(row, "bob", 0)
    ballots.count_all()
    assert ballots.stored(row.id) == (7, 4, 3)
    ballots.check()


@pytest.mark.parametrize("is_late", [True, False])
def test_with_a_retraction_votes_stop_to_count_and_are_deleted(
    row: records.Comment, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    monkeypatch.setattr(votes, "AT_ONCE", 3)
    for number in range(7):
        ballots.vote(row, f"{number}")
    ballots.count_all()
    if is_late:
        ballots.vote(row, "late")
    trees.retract(row)
    assert ballots.stored(row.id) == (0, 0, 0)
    ballots.count_all()
    assert (ballots.cast(), ballots.networks()) == ({}, [])
    ballots.check()
    assert "score" not in totals.of_site("demo")


def test_votes_on_a_comment_that_is_gone_are_deleted(row: records.Comment) -> None:
    ballots.vote(row, "ann")
    key = comment_rows.comment_key(row.id)
    transactions.transaction(lambda: transactions.apply(ownership.Writes("tree", delete=(key,))))
    for name in cast_vote.waiting(ballots.LATER):
        cast_vote.count(name.id, now=ballots.LATER)
    assert (ballots.cast(), ballots.networks(), cast_vote.waiting(ballots.LATER)) == ({}, [], [])


def test_votes_reach_pages_and_folding_like_every_change(
    open_store: connection.Store, site: records.Site, row: records.Comment
) -> None:
    second = trees.post(site, "second")
    folds.whole(NAME)
    changed = ordered_query.changed(NAME)
    for voter in ("ann", "bob"):
        ballots.vote(second, voter)
    ballots.count_all()

    def scores() -> list[int]:
        return thread_view.using(
            NAME, lambda view: [presentation.read(each.json, 0).score for each in view.rows()]
        )

    assert scores() == [0, 2]
    folds.whole(NAME)
    view_cache.HOLDINGS.forget(open_store)  # this process's copy, which the grace is for
    assert scores() == [0, 2]
    best = ordered_query.thread(NAME)
    assert [each.score for each in best] == [0, 2]
    assert ordered_query.changed(NAME) == changed
    stored = reads.get(comment_rows.comment_key(second.id))
    assert (stored.unfolded, stored.rewrites) == (False, False)
    directory = directories.load_directory(NAME)
    assert directory.content.best is not None


def test_votes_do_not_refuse_an_edit_and_a_change_of_the_text_does(row: records.Comment) -> None:
    def edit(body: str, revision: int) -> records.Comment:
        return submission.edit(
            row.id, author_id=row.author.id, body=body, revision=revision,
            settings=trees.SETTINGS, now=trees.START,
        )  # fmt: skip

    ballots.vote(row, "ann")
    ballots.count_all()
    ballots.vote(row, "bob")
    ballots.count_all()
    assert edit("new", row.revision).revision == 4
    ballots.vote(row, "cid")
    ballots.count_all()
    for stale in (1, 3, 6):
        with pytest.raises(errors.RevisionMismatch):
            edit("newer", stale)
    assert edit("newer", 4).revision == 6
