"""Test when votes are counted and deleted, by which process, and what readers see."""

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
from comments.posting import cast_vote, own_comment
from comments.reading.materialized import directories, view_cache
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree import votes
from comments.tree.counters import totals
from comments.tree.lists import ordered_query
from comments.upkeep import background_worker
from datastore_emulator import inprocess, testing
from tests.comments.conftest import Clock
from tests.support import datastores
from tests.support.store_interceptors import TRANSIENT, Faults
from tests.support.threads import compaction, sample_threads, sample_votes

NAME = records.ThreadName("demo", "page")


@pytest.fixture
def row(store: connection.Store, site: records.Site) -> records.Comment:
    return sample_threads.post(site, "text")


def _votes(comment: records.Comment) -> dict[str, int]:
    return sample_votes.cast().get(comment.id, {})


@pytest.mark.parametrize("status", TRANSIENT[:2])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["BeginTransaction", "Lookup", "RunAggregationQuery", "Commit"])
@pytest.mark.usefixtures("brief_doubt")
def test_a_count_whose_store_call_fails_once_counts_once(
    row: records.Comment, faults: Faults, method: str, when: str, status: grpc.StatusCode
) -> None:
    for voter, value in [("ann", 1), ("bob", 1), ("cid", -1)]:
        sample_votes.vote(row, voter, value)
    faults.lose(method, when, status)
    sample_votes.count_all()
    assert sample_votes.stored(row.id) == (2, 1, 1)
    sample_votes.assert_counted()


def test_a_burst_of_votes_is_one_write_of_the_row(
    engine: inprocess.Engine, row: records.Comment
) -> None:
    for number in range(100):
        sample_votes.vote(row, f"{number}")
    assert len(cast_vote.waiting_comments(sample_votes.LATER)) == 1
    votes.count(row.id)  # The first query makes its index, which may repeat a transaction.
    with testing.meter(engine) as cost:
        cast_vote.count(row.id, now=sample_votes.LATER)
    # The count reads the mark, the comment, two vote counts, and the thread's and the author's
    # counters. The count writes the comment, these counters and the event, and it deletes the mark.
    assert (cost.reads, cost.writes, cost.deletes) == (6, 4, 1)
    stored = reads.get(comment_rows.comment_key(row.id))
    assert (stored.up, stored.revision) == (100, 2)
    with testing.meter(engine) as cost:
        cast_vote.count(row.id, now=sample_votes.LATER)
    assert (cost.reads, cost.writes, cost.deletes) == (1, 0, 0)


def test_a_worker_counts_ten_seconds_after_the_first_vote_and_readers_see_it(
    open_store: connection.Store, store: connection.Store, site: records.Site, clock: Clock
) -> None:
    backlog.BACKLOG.put(open_store, backlog.Backlog(clock)).open()
    row = sample_threads.post(site, "text")
    worker = background_worker.BackgroundWorker(open_store)
    worker.step()
    sample_votes.vote(row, "ann")
    clock.now += backlog.COUNT_AFTER - 1
    sample_votes.vote(row, "bob")
    worker.step()
    assert sample_votes.stored(row.id) == (0, 0, 0)
    clock.now += 1
    worker.step()
    assert sample_votes.stored(row.id) == (2, 0, 2)
    sample_votes.vote(row, "cid")
    clock.now += backlog.COUNT_AFTER - 1
    worker.step()
    assert sample_votes.stored(row.id) == (2, 0, 2)
    clock.now += 1
    worker.step()
    assert sample_votes.stored(row.id) == (3, 0, 3)
    clock.now += backlog.TELL_AFTER
    worker.step()
    assert totals.of_site("demo")["score"] == 3
    sample_votes.assert_counted()


def test_a_worker_counts_a_vote_whose_answer_was_lost(
    open_store: connection.Store, store: connection.Store, site: records.Site, faults: Faults,
    clock: Clock,
) -> None:  # fmt: skip
    backlog.BACKLOG.put(open_store, backlog.Backlog(clock)).open()
    row = sample_threads.post(site, "text")
    worker = background_worker.BackgroundWorker(open_store)
    worker.step()
    faults.lose("Commit", "after", grpc.StatusCode.UNAVAILABLE)
    sample_votes.vote(row, "ann")
    clock.now += backlog.COUNT_AFTER
    worker.step()
    assert sample_votes.stored(row.id) == (1, 0, 1)


def test_another_process_counts_the_votes_of_a_dead_process(
    open_store: connection.Store, row: records.Comment, clock: Clock
) -> None:
    sample_votes.vote(row, "ann")  # Without an open backlog, this process forgets the vote
    backlog.BACKLOG.put(open_store, backlog.Backlog(clock)).open()
    background_worker.BackgroundWorker(open_store).step()
    assert sample_votes.stored(row.id) == (1, 0, 1)


def test_votes_are_not_due_before_their_time_for_any_process(row: records.Comment) -> None:
    sample_votes.vote(row, "ann")
    due = sample_threads.START + timedelta(seconds=10)
    assert cast_vote.waiting_comments(due - timedelta(seconds=1)) == []
    assert cast_vote.waiting_comments(due) == [records.VotedComment(row.id)]


@pytest.mark.embedded  # Emulators get no aggregation query
def test_a_vote_between_count_and_commit_is_in_this_count_or_the_next(
    datastore: datastores.Datastore, row: records.Comment
) -> None:
    sample_votes.vote(row, "ann")
    others = datastore.connect()
    plan = ["Commit"]

    def meanwhile(method: str, _: Any, proceed: Callable[..., Any]) -> Any:
        answer = proceed()
        if plan and method == "RunAggregationQuery":
            plan.clear()
            helper = threading.Thread(target=vote)
            helper.start()
            helper.join(1)  # The vote may have to wait for the count's locks
            helpers.append(helper)
        return answer

    def vote() -> None:
        with others.context():
            sample_votes.vote(row, "bob")

    helpers: list[threading.Thread] = []
    counting = datastore.connect(meanwhile)

    def work() -> None:
        with counting.context():
            cast_vote.count(row.id, now=sample_votes.LATER)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    helpers[0].join()
    assert _votes(row) == {"g:ann": 1, "g:bob": 1}
    sample_votes.count_all()
    assert sample_votes.stored(row.id) == (2, 0, 2)
    sample_votes.assert_counted()


def test_imported_votes_are_added_to_votes_cast_here(
    store: connection.Store, site: records.Site
) -> None:
    node = sample_threads.node("old", None, Status.APPROVED, author="g:ann", up=7, down=2)
    sample_threads.store_imported(NAME, node)
    row = conversion.comment_record(reads.get(comment_rows.comment_key(node.id)))
    for voter, value in [("bob", 1), ("cid", -1), ("dan", -1)]:
        sample_votes.vote(row, voter, value)
    sample_votes.count_all()
    assert sample_votes.stored(row.id) == (8, 4, 4)
    sample_votes.vote(row, "bob", 0)
    sample_votes.count_all()
    assert sample_votes.stored(row.id) == (7, 4, 3)
    sample_votes.assert_counted()


@pytest.mark.parametrize("is_late", [True, False])
def test_votes_on_a_retracted_comment_stop_counting_and_are_deleted(
    row: records.Comment, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    monkeypatch.setattr(votes, "AT_ONCE", 3)
    for number in range(7):
        sample_votes.vote(row, f"{number}")
    sample_votes.count_all()
    if is_late:
        sample_votes.vote(row, "late")
    sample_threads.retract(row)
    assert sample_votes.stored(row.id) == (0, 0, 0)
    sample_votes.count_all()
    assert (sample_votes.cast(), sample_votes.networks()) == ({}, [])
    sample_votes.assert_counted()
    assert "score" not in totals.of_site("demo")


def test_votes_on_a_deleted_comment_are_deleted(row: records.Comment) -> None:
    sample_votes.vote(row, "ann")
    key = comment_rows.comment_key(row.id)
    transactions.transaction(lambda: transactions.apply(ownership.Writes("tree", delete=(key,))))
    for name in cast_vote.waiting_comments(sample_votes.LATER):
        cast_vote.count(name.id, now=sample_votes.LATER)
    assert (
        sample_votes.cast(),
        sample_votes.networks(),
        cast_vote.waiting_comments(sample_votes.LATER),
    ) == ({}, [], [])


def test_votes_reach_pages_and_compaction_like_any_change(
    open_store: connection.Store, site: records.Site, row: records.Comment
) -> None:
    second = sample_threads.post(site, "second")
    compaction.whole(NAME)
    changed = ordered_query.last_change(NAME)
    for voter in ("ann", "bob"):
        sample_votes.vote(second, voter)
    sample_votes.count_all()

    def scores() -> list[int]:
        return compaction.with_view(
            NAME, lambda view: [presentation.read(each.json, 0).score for each in view.rows()]
        )

    assert scores() == [0, 2]
    compaction.whole(NAME)
    # The grace period protects this process's cached directory, so drop it.
    view_cache.HOLDINGS.forget(open_store)
    assert scores() == [0, 2]
    best = ordered_query.thread(NAME)
    assert [each.score for each in best] == [0, 2]
    assert ordered_query.last_change(NAME) == changed
    stored = reads.get(comment_rows.comment_key(second.id))
    assert (stored.unfolded, stored.rewrites) == (False, False)
    directory = directories.load_directory(NAME)
    assert directory.content.best is not None


def test_votes_do_not_conflict_with_an_edit_but_another_edit_does(row: records.Comment) -> None:
    def edit(body: str, revision: int) -> records.Comment:
        return own_comment.edit(
            row.id, author_id=row.author.id, body=body, revision=revision,
            settings=sample_threads.SETTINGS, now=sample_threads.START,
        )  # fmt: skip

    sample_votes.vote(row, "ann")
    sample_votes.count_all()
    sample_votes.vote(row, "bob")
    sample_votes.count_all()
    assert edit("new", row.revision).revision == 4
    sample_votes.vote(row, "cid")
    sample_votes.count_all()
    for stale in (1, 3, 6):
        with pytest.raises(errors.RevisionMismatch):
            edit("newer", stale)
    assert edit("newer", 4).revision == 6
