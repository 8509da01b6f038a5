"""Counters that event handlers maintain stay exact even if events are reordered or repeated."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from comments.domain import records
from comments.domain.counters import counting
from comments.events import dispatcher, outbox
from comments.store import connection, reads
from comments.store.models import counter_rows
from comments.tree.counters import totals
from comments.upkeep import wiring
from datastore_emulator import inprocess, testing
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads import sample_threads

NAME = records.ThreadName("demo", "page")
NOW = sample_threads.START + timedelta(days=1)


@pytest.fixture
def faults(interceptor: InterceptorSlot) -> Commits:
    return interceptor.use(Commits())


def _deliver() -> dispatcher.DeliveryCounts:
    return dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


def test_sites_and_authors_are_counted_from_events(
    store: connection.Store, site: records.Site
) -> None:
    grown = sample_threads.grow(site, sample_threads.TREE)
    sample_threads.post(site, "elsewhere", thread="other", author=sample_threads.author("1"))
    sample_threads.retract(grown["1.1"])
    assert _deliver() == dispatcher.DeliveryCounts(10, 0)
    counter_oracle.assert_all_counted()
    assert totals.of_site("demo") == {"approved": 8, "retracted": 1, "participants": 7}
    assert totals.of_site("never seen") == {}


def test_categories_and_days_are_counted_from_events(
    store: connection.Store, site: records.Site
) -> None:
    site = sample_threads.filing(site, "news", "sport")
    ann, bob = sample_threads.author("ann"), sample_threads.author("bob")
    late = sample_threads.START + timedelta(days=1)
    rows = [
        sample_threads.post(site, "1", author=ann, categories=("news", "sport")),
        sample_threads.post(site, "2", author=ann, now=late),
        # This post keeps the thread's categories after the first comment is retracted.
        sample_threads.post(site, "3", author=bob, categories=("news", "sport")),
        sample_threads.post(site, "4", author=bob, thread="other", categories=("news",)),
        sample_threads.post(site, "5", author=bob, thread="plain"),
    ]
    _deliver()
    counter_oracle.assert_all_counted()
    day, next_day = "2026-01-02", "2026-01-03"
    assert _numbers(counting.category_scope("demo", "news")) == {"approved": 4, "participants": 2}
    assert _numbers(counting.category_scope("demo", "sport")) == {"approved": 3, "participants": 2}
    assert _numbers(counting.day_scope("demo", day)) == {
        "approved": 4, "participants": 2,
    }  # fmt: skip
    assert _numbers(counting.day_scope("demo", next_day)) == {
        "approved": 1, "participants": 1,
    }  # fmt: skip
    assert _numbers(counting.day_scope("demo", day, "sport")) == {"approved": 2, "participants": 2}
    for row in rows[:2]:
        sample_threads.retract(row)
    _deliver()
    counter_oracle.assert_all_counted()
    numbers = {"approved": 1, "participants": 1, "retracted": 2}
    assert _numbers(counting.category_scope("demo", "sport")) == numbers
    assert _numbers(counting.day_scope("demo", next_day)) == {"retracted": 1}
    assert (
        reads.get(counter_rows.statistics_key(counting.day_scope("demo", day, "", "g:ann"))) is None
    )


def _numbers(scope: counting.Scope) -> counter_rows.Numbers:
    return counter_rows.numbers_of(reads.get(counter_rows.statistics_key(scope)))


def test_events_delivered_repeatedly_late_and_in_any_order_count_once(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.retract(sample_threads.grow(site, sample_threads.TREE)["3"])
    events = sorted(counter_oracle.events(), reverse=True)
    for event in events:
        dispatcher.deliver([event, event], now=NOW, handlers=wiring.HANDLERS)
    assert dispatcher.deliver(
        events, now=NOW, handlers=wiring.HANDLERS
    ) == dispatcher.DeliveryCounts(9, 0)
    counter_oracle.assert_all_counted()


def test_concurrent_deliveries_of_the_same_events_count_them_once(
    open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        sample_threads.grow(site, {f"{n}": {} for n in range(45)})
        events = counter_oracle.events()
    gate = threading.Barrier(4)

    def work(_: int) -> None:
        with open_store.context():
            gate.wait(60)
            dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    with open_store.context():
        counter_oracle.assert_all_counted()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_delivery_whose_answer_is_lost_counts_once(
    store: connection.Store, site: records.Site, faults: Commits, when: str
) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    faults.plan = [when, when]
    _deliver()
    counter_oracle.assert_all_counted()


@pytest.mark.slow
def test_changes_beyond_one_transaction_are_delivered_in_parts(
    store: connection.Store, site: records.Site, faults: Commits
) -> None:
    for batch in range(3):
        sample_threads.store_imported(NAME, *(_node(f"{batch}.{n}") for n in range(80)))
    faults.calls.clear()
    assert _deliver() == dispatcher.DeliveryCounts(3, 0)
    assert faults.calls.count("Commit") == 3
    counter_oracle.assert_all_counted()
    assert totals.of_site("demo")["participants"] == 240


def test_a_delivered_retraction_removes_the_author_from_all_counters(
    store: connection.Store, site: records.Site
) -> None:
    ann = records.Author("Ann", "https://ann.example", "ann@mail.example", "g:ann")
    rows = [sample_threads.post(site, f"{n}", author=ann) for n in range(2)]
    assert all(
        personal not in str(row)
        for row in outbox.read(counter_oracle.events())
        for personal in ("Ann", "ann.example")
    )
    for row in rows:
        sample_threads.retract(row)
    _deliver()
    counter_oracle.assert_all_counted()
    for kind in (
        "Comment", "Counter", "Participation", "Standing", "Category", "Day", "Month",
        "Appearance", "Event",
    ):  # fmt: skip
        assert "g:ann" not in str(list(reads.fetch(reads.Query(kind))))


def test_the_best_authors_of_a_site_are_one_query(
    store: connection.Store, site: records.Site, engine: inprocess.Engine, faults: Commits
) -> None:
    for number in range(12):
        sample_threads.store_imported(NAME, _node(f"{number:02}", up=number, down=1))
    _deliver()
    faults.calls.clear()
    with testing.meter(engine) as cost:
        best = totals.best_authors("demo", 3)
    assert [(each.author, each.score) for each in best] == [
        ("g:11", 10), ("g:10", 9), ("g:09", 8)
    ]  # fmt: skip
    assert faults.calls == ["RunQuery"]
    assert cost.reads <= 3


def _node(text: str, **votes: int) -> records.ImportedComment:
    """Return a comment by an author who wrote no other comment."""
    return sample_threads.node(text, author=f"g:{text}", **votes)  # type: ignore[arg-type]
