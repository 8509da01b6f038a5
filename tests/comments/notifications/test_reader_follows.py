"""Readers follow threads, and processes compact follower lists in time."""

import dataclasses
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from comments import app as apps
from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.events import backlog, dispatcher
from comments.notifications import reader_follows, subscriptions, thread_followers
from comments.reading.compaction import compactor
from comments.store import connection, ownership, reads, transactions
from comments.store.large_sets import membership, set_compaction, set_search
from comments.store.models import comment_rows, counter_rows
from comments.tree.counters import totals
from comments.upkeep import background_worker, scheduler, wiring
from comments.upkeep.integrity import recount
from datastore_emulator import errors as engine_errors
from datastore_emulator import faults, inprocess, testing
from tests.support import datastores, programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

SCHEME = sample_threads.SETTINGS.scheme
THREAD = records.ThreadName("demo", "page")
OTHER = records.ThreadName("other", "page")
LIST = thread_followers.set_of(THREAD)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def worker(open_store: connection.Store, clock: Clock) -> background_worker.BackgroundWorker:
    """A worker; the test triggers its steps."""
    backlog.BACKLOG.put(open_store, backlog.Backlog(clock)).open()
    return background_worker.BackgroundWorker(open_store)


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every mark request a compaction."""
    monkeypatch.setattr(membership, "MARKS", 1)


def members() -> list[str]:
    return list(membership.every(LIST, limit=9))


def _marks() -> int:
    return reads.count(reads.Query("FollowerMark"))


def test_following_and_leaving_a_thread_are_idempotent(store: connection.Store) -> None:
    for _ in range(2):
        reader_follows.follow(THREAD, "ann", now=sample_threads.START)
        reader_follows.follow(THREAD, "bob", now=sample_threads.START)
    assert thread_followers.count(THREAD) == (2, 2)
    assert members() == ["~ann", "~bob"]
    for _ in range(2):
        reader_follows.unfollow(THREAD, "ann", now=sample_threads.START)
    assert not reader_follows.is_following(THREAD, "ann")
    assert members() == ["~bob"]


def test_readers_are_no_subscribers_and_get_no_mail(store: connection.Store) -> None:
    for name in ("ann", "bob"):
        reader_follows.follow(THREAD, name, now=sample_threads.START)
    where = subscriptions.SubscriptionTarget("demo", comment_rows.thread_key_name(THREAD))
    subscriptions.subscribe("z" * 26, "sealed", where, now=sample_threads.START)
    for _ in range(2):
        page = thread_followers.subscribers(THREAD, limit=9)
        assert page == membership.MemberPage(("z" * 26,), None)
        assert thread_followers.subscribers(THREAD, limit=1).ids == ("z" * 26,)
        assert thread_followers.count(THREAD) == (3, 2)
        set_compaction.compact(LIST)


def test_the_command_that_erases_an_author_also_erases_what_they_followed_before(
    open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        for thread in (THREAD, OTHER):
            for name in ("g:ann", "g:bob"):
                reader_follows.follow(thread, name, now=sample_threads.START)
            set_compaction.compact(thread_followers.set_of(thread))
        # After this, no row says that Ann followed the thread, but its segment contains her id.
        reader_follows.unfollow(THREAD, "g:ann", now=sample_threads.START)
    runner = apps.create_app(sample_threads.SETTINGS, open_store).test_cli_runner()
    result = runner.invoke(args=["author", "erase", "g:ann", "--yes"])
    assert result.exit_code == 0, result.output
    with open_store.context():
        assert list(set_search.sets_with("~g:ann")) == []
        assert list(reader_follows.of_author("g:ann")) == []
        for thread in (THREAD, OTHER):
            assert list(membership.every(thread_followers.set_of(thread), limit=9)) == ["~g:bob"]


class Lost:
    """An interceptor that passes on commits and loses the answers that the test selects."""

    def __init__(self) -> None:
        self.lost: list[bool] = []

    def __call__(self, method: str, _: Any, proceed: Callable[[], Any]) -> Any:
        answer = proceed()
        if method == "Commit" and self.lost and self.lost.pop(0):
            error = engine_errors.DatastoreError("planned")
            error.status = grpc.StatusCode.UNAVAILABLE.name
            raise error
        return answer


def _followers(thread: records.ThreadName = THREAD) -> int:
    return totals.of_threads([thread])[0].get("followers", 0)


def test_followers_are_counted_from_events_once_per_change(
    datastore: datastores.Datastore, site: records.Site
) -> None:
    lost = Lost()
    store = datastore.connect(lost)
    with store.context():
        sample_threads.post(site, "text")
        for name in ("ann", "bob", "cid"):
            lost.lost = [True]
            reader_follows.follow(THREAD, name, now=sample_threads.START)
        reader_follows.follow(THREAD, "ann", now=sample_threads.START)  # Changes nothing
        lost.lost = [True]
        reader_follows.unfollow(THREAD, "bob", now=sample_threads.START)
        reader_follows.unfollow(THREAD, "bob", now=sample_threads.START)
        reader_follows.unfollow(THREAD, "nobody", now=sample_threads.START)
        assert _followers() == 0
        lost.lost = [True]
        dispatcher.deliver(
            counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS
        )
        assert _followers() == 2
        counter_oracle.assert_all_counted()


def test_a_recount_of_followers_includes_pending_events_and_repairs_drift(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "text")
    for name in ("ann", "bob"):
        reader_follows.follow(THREAD, name, now=sample_threads.START)
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    for name in ("cid", "dan"):
        reader_follows.follow(THREAD, name, now=sample_threads.START)
    reader_follows.unfollow(THREAD, "ann", now=sample_threads.START)
    told: list[recount.Difference] = []
    assert recount.thread(THREAD, tell=told.append, fixes=True) == 0

    def drift() -> None:
        row = reads.get(counter_rows.thread_counter_key(THREAD, 0))
        numbers = counting.sums(counter_rows.numbers_of(row), {"followers": 5})
        transactions.apply(
            ownership.Writes("counters", put=(counter_rows.with_numbers(row, numbers),))
        )

    transactions.transaction(drift)
    assert recount.thread(THREAD, tell=told.append, fixes=True) == 1
    assert [(each.name, each.stored - each.expected) for each in told] == [("followers", 5)]
    assert recount.site("demo", tell=told.append, fixes=True) == 0
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    assert _followers() == 3
    counter_oracle.assert_all_counted()
    assert recount.site("demo", tell=told.append, fixes=True) == 0


@pytest.mark.slow
def test_many_concurrent_follows_and_leaves_are_counted_exactly(
    open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        sample_threads.post(site, "text")
    gate = threading.Barrier(8)

    def work(number: int) -> None:
        rng = random.Random(number)
        with open_store.context():
            gate.wait(60)
            for _ in range(12):
                reader = f"f{rng.randrange(6)}"
                if rng.random() < 0.5:
                    reader_follows.follow(THREAD, reader, now=sample_threads.START)
                else:
                    reader_follows.unfollow(THREAD, reader, now=sample_threads.START)
                if rng.random() < 0.3:
                    dispatcher.deliver(
                        counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS
                    )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    with open_store.context():
        dispatcher.deliver(
            counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS
        )
        counter_oracle.assert_all_counted()
        assert _followers() == thread_followers.count(THREAD).all


def test_following_costs_four_reads_and_three_writes(
    engine: inprocess.Engine, store: connection.Store
) -> None:
    for cost_of in (reader_follows.follow, reader_follows.unfollow):
        with testing.meter(engine) as cost:
            cost_of(THREAD, "ann", now=sample_threads.START)
        assert cost.reads <= 4
        assert cost.writes + cost.deletes <= 4


def test_threads_with_the_same_id_on_two_sites_have_their_own_followers(
    store: connection.Store,
) -> None:
    reader_follows.follow(THREAD, "ann", now=sample_threads.START)
    assert not reader_follows.is_following(OTHER, "ann")
    assert thread_followers.count(OTHER).all == 0


def test_the_longest_names_fit_into_the_keys(store: connection.Store) -> None:
    long = records.ThreadName("s" * 63, "t" * 500)
    assert len(thread_followers.set_of(long).text) <= 700
    reader_follows.follow(long, "x" * (membership.LONGEST - 1), now=sample_threads.START)
    assert reader_follows.is_following(long, "x" * (membership.LONGEST - 1))


def test_an_invalid_follower_is_refused(store: connection.Store) -> None:
    for change in (reader_follows.follow, reader_follows.unfollow):
        with pytest.raises(errors.BadInput, match="member"):
            change(THREAD, "x" * membership.LONGEST, now=sample_threads.START)


def test_the_name_of_a_threads_list_is_stable() -> None:
    assert thread_followers.set_of(THREAD).text == "thread:demo/page"


def test_a_requested_compaction_of_a_list_runs_at_the_next_step(
    store: connection.Store, worker: background_worker.BackgroundWorker, asking: None
) -> None:
    worker.step()
    reader_follows.follow(THREAD, "ann", now=sample_threads.START)
    reader_follows.follow(THREAD, "bob", now=sample_threads.START)
    assert worker.step() == scheduler.RoundSummary(1, 0, 0)
    assert _marks() == 0
    assert members() == ["~ann", "~bob"]
    assert worker.step() == scheduler.RoundSummary(0, 0, 0)


def test_a_list_without_a_request_is_not_compacted(
    store: connection.Store,
    worker: background_worker.BackgroundWorker,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(membership, "MARKS", 1_000_000_000)
    reader_follows.follow(THREAD, "ann", now=sample_threads.START)
    clock.now += backlog.FOLD_AFTER
    assert worker.step() == scheduler.RoundSummary(0, 0, 0)
    assert _marks() == 1


def test_a_starting_process_compacts_lists_that_requested_it_from_another(
    store: connection.Store,
    worker: background_worker.BackgroundWorker,
    site: records.Site,
    asking: None,
) -> None:
    reader_follows.follow(THREAD, "ann", now=sample_threads.START)
    sample_threads.post(site, "text")
    backlog.BACKLOG.of(store).take()
    assert scheduler.find_due_work() == [THREAD, LIST]
    assert worker.step() == scheduler.RoundSummary(2, 0, 1)
    assert _marks() == 0


def test_a_failed_compaction_of_a_list_is_retried(
    store: connection.Store,
    worker: background_worker.BackgroundWorker,
    clock: Clock,
    engine: inprocess.Engine,
    asking: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store.deadline = 0.25
    monkeypatch.setattr(reads, "LONGEST", 0.25)  # The scan has a separate deadline
    reader_follows.follow(THREAD, "ann", now=sample_threads.START)
    engine.install_faults(faults.Plan.parse({"rules": [{"rpc": "Commit", "status": "ABORTED"}]}))
    assert worker.step() == scheduler.RoundSummary(0, 0, 0)
    engine.install_faults(None)
    clock.now += 2 * 5.0
    assert worker.step() == scheduler.RoundSummary(1, 0, 0)
    assert _marks() == 0
    assert compactor.compact(SCHEME, THREAD) is not None  # The thread itself is still uncompacted


def test_cron_compacts_lists_that_request_it(
    open_store: connection.Store, site: records.Site, asking: None
) -> None:
    settings = dataclasses.replace(sample_threads.SETTINGS, tasks_secret="a secret of cron")
    client = apps.create_app(settings, open_store).test_client()
    with open_store.context():
        reader_follows.follow(THREAD, "ann", now=sample_threads.START)
    headers = {"Authorization": "Bearer a secret of cron"}
    assert client.get("/tasks/upkeep", headers=headers).json == {
        "folded": 1,
        "cleared": 0,
        "waiting": 0,
    }
    with open_store.context():
        assert _marks() == 0


def test_a_running_worker_compacts_a_list_by_itself(
    open_store: connection.Store, asking: None
) -> None:
    worker = background_worker.BackgroundWorker(open_store)
    worker.start()
    with open_store.context():
        reader_follows.follow(THREAD, "ann", now=sample_threads.START)
        programs.wait_until(lambda: _marks() == 0)
        assert reader_follows.is_following(THREAD, "ann")
    assert worker.stop(programs.PATIENCE)
