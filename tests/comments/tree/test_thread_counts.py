"""The counts of many threads are read from few rows, and equal the threads' own counters."""

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar

import pytest

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.events import dispatcher
from comments.store import connection, ownership, reads, transactions
from comments.store.memory import commit_counts, per_process
from comments.store.models import counter_rows
from comments.tree.counters import counter_repair, from_events, thread_counts, totals
from comments.upkeep import scheduler, wiring
from comments.upkeep.integrity import recount
from comments.upkeep.migrations import thread_count_rows, upgrades
from datastore_emulator import inprocess, testing
from tests.comments.conftest import Clock
from tests.support import datastores, stored_state
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Calls
from tests.support.threads import sample_threads

T = TypeVar("T")
NOW = sample_threads.START + timedelta(days=1)
PAGES = [f"page {number}" for number in range(50)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with two threads each, in at most four groups."""
    monkeypatch.setattr(thread_counts, "MOST", 2)
    monkeypatch.setattr(thread_counts, "MOST_GROUPS", 4)
    monkeypatch.setattr(totals, "FEW", 0)


def _deliver() -> None:
    scheduler.Scheduler(now=lambda: NOW).deliver(counter_oracle.events())


def _first() -> counter_rows.CounterRow:
    row: counter_rows.CounterRow = reads.get(counter_rows.site_counter_key("demo"))
    return row


def _groups() -> int:
    return thread_counts.decode(_first().listings).groups


def _in(store: connection.Store, call: Callable[[], T]) -> T:
    """Call a function in a different process."""

    def run() -> T:
        with store.context():
            return call()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result(60)


def _restart(store: connection.Store) -> None:
    """Forget what this process knows: its own changes and the number of groups."""
    per_process.fresh_process(store)


def _complete(numbers: Mapping[str, int]) -> None:
    """Store complete rows with these numbers."""

    def add(part: Mapping[str, int]) -> None:
        transactions.apply(from_events.sum_writes({counting.listings_scope("demo"): part}))

    digests = {counting.thread_digest(f"demo/{name}"): n for name, n in numbers.items()}
    transactions.transaction(lambda: add(digests))
    step = {counting.listings_scope("demo"): dict[str, int]()}
    transactions.transaction(
        lambda: transactions.apply(counter_repair.site_writes("demo", 0, step))
    )


@pytest.mark.parametrize(("threads", "most"), [(50, 1), (1300, 1), (2000, 2), (10_000, 10)])
def test_fifty_counts_cost_few_reads(
    threads: int,
    most: int,
    store: connection.Store,
    site: records.Site,
    engine: inprocess.Engine,
    calls: Calls,
) -> None:
    numbers = {f"page {number}": number + 1 for number in range(threads)}
    _complete(numbers)
    asked = [f"page {number}" for number in range(0, threads, threads // 50)]
    with testing.meter(engine) as cost:
        assert totals.listed_counts("demo", [*asked, "never seen"]) == [*map(numbers.get, asked), 0]
    assert cost.reads <= most
    calls.names.clear()
    with testing.meter(engine) as cost:
        totals.listed_counts("demo", asked)
    assert cost.reads <= most
    assert calls.names == ["Lookup"]


def test_a_new_website_gets_rows_with_its_first_delivery(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    for page in PAGES:
        sample_threads.post(site, "text", thread=page)
    _deliver()
    _restart(store)
    with testing.meter(engine) as cost:
        assert totals.listed_counts("demo", PAGES) == [1] * 50
    assert cost.reads == 1
    counter_oracle.assert_all_counted()
    assert stored_state.listings().keys() == {"demo"}


def test_a_delivery_reads_and_writes_no_more_entities(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    author = records.Author("Ann", id="g:ann")
    sample_threads.post(site, "first", author=author)
    _deliver()
    sample_threads.post(site, "second", author=author)
    with testing.meter(engine) as cost:
        _deliver()
    # The website, the day, the author on both, and the month. The event is read, and deleted.
    assert cost.writes == 5
    assert cost.deletes == 1
    assert "listings" in str(reads.read([counter_rows.site_counter_key("demo")]))


def test_own_comments_count_at_once_and_others_after_their_delivery(
    datastore: datastores.Datastore, store: connection.Store, site: records.Site, clock: Clock
) -> None:
    own = commit_counts._WRITTEN.put(store, commit_counts.CommitCounts(clock))
    for page in PAGES:
        sample_threads.post(site, "text", thread=page)
    _deliver()
    other = datastore.connect(None)
    row = sample_threads.post(site, "more", thread=PAGES[7])
    wanted = [1] * 7 + [2] + [1] * 42
    assert totals.listed_counts("demo", PAGES) == wanted
    assert _in(other, lambda: totals.listed_counts("demo", PAGES)) == [1] * 50
    _deliver()
    assert _in(other, lambda: totals.listed_counts("demo", PAGES)) == wanted
    clock.now += thread_counts.BEHIND + 1
    assert own.age("demo/page 7") > thread_counts.BEHIND
    assert totals.listed_counts("demo", PAGES) == wanted
    sample_threads.retract(row)
    assert totals.listed_counts("demo", PAGES) == [1] * 50
    assert _in(other, lambda: totals.listed_counts("demo", PAGES)) == wanted


def test_rows_divide_as_a_website_grows_until_it_has_too_many_threads(
    store: connection.Store, site: records.Site, small: None, engine: inprocess.Engine
) -> None:
    seen = []
    for number, page in enumerate(PAGES[:12], 1):
        sample_threads.post(site, "text", thread=page)
        _deliver()
        _restart(store)
        assert totals.listed_counts("demo", PAGES[:12]) == [1] * number + [0] * (12 - number)
        counter_oracle.assert_all_counted()
        seen.append(_groups())
    assert seen == sorted(seen, key=[1, 2, 4, 0].index)
    assert set(seen) == {1, 2, 4, 0}
    names = {stored_state.name_of(each) for each in stored_state.rows("Counter")}
    assert not [name for name in names if name.startswith("threads/")]
    with testing.meter(engine) as cost:
        totals.listed_counts("demo", PAGES)
    assert cost.reads == 50  # The process knows that there are no such rows


def test_a_website_with_too_many_threads_gets_no_rows(
    store: connection.Store, site: records.Site, small: None
) -> None:
    for page in PAGES[:12]:
        sample_threads.post(site, "text", thread=page)
    thread_count_rows.complete("demo")
    assert _groups() == 0
    _deliver()
    assert _groups() == 0
    assert totals.listed_counts("demo", PAGES) == [1] * 12 + [0] * 38
    counter_oracle.assert_all_counted()
    assert recount.site("demo", tell=print, fixes=True) == 0


def test_an_upgrade_makes_the_rows_of_older_releases(
    store: connection.Store, site: records.Site
) -> None:
    for page in PAGES[:3]:
        sample_threads.post(site, "text", thread=page)
    _deliver()
    sample_threads.post(site, "undelivered", thread=PAGES[0])
    row = _first()
    row.listings = ""  # An older release wrote this row
    _put(row)
    assert stored_state.listings() == {}
    upgrades.begin()
    upgrades.go_on(steps=None)
    assert sorted(stored_state.listings()["demo"].values()) == [1, 1, 1]
    _deliver()
    counter_oracle.assert_all_counted()


def test_rows_that_an_older_release_wrote_are_completed_by_the_next_delivery(
    store: connection.Store, site: records.Site, small: None
) -> None:
    for page in PAGES[:5]:
        sample_threads.post(site, "text", thread=page)
    _deliver()
    assert _groups() > 1
    row = _first()
    row.listings = ""
    _put(row)
    _restart(store)
    assert totals.listed_counts("demo", PAGES[:6]) == [1] * 5 + [0]
    sample_threads.post(site, "text", thread=PAGES[5])
    _deliver()
    assert stored_state.listings().keys() == {"demo"}
    counter_oracle.assert_all_counted()


def test_a_lost_row_is_not_used_and_is_restored(
    store: connection.Store, site: records.Site, small: None
) -> None:
    for page in PAGES[:5]:
        sample_threads.post(site, "text", thread=page)
    _deliver()
    groups = _groups()
    for group in range(1, groups):
        key = counter_rows.listings_key("demo", group)
        gone = ownership.Writes(counter_rows.OWNER, delete=(key,))
        transactions.transaction(lambda gone=gone: transactions.apply(gone))  # type: ignore[misc]
        _restart(store)
        assert totals.listed_counts("demo", PAGES[:5]) == [1] * 5
        more = [sample_threads.post(site, "more", thread=page) for page in PAGES[:5]]
        _deliver()
        assert stored_state.listings().keys() == {"demo"}
        for comment in more:
            sample_threads.retract(comment)
        _deliver()
        counter_oracle.assert_all_counted()


def test_a_recount_finds_and_corrects_wrong_counts(
    store: connection.Store, site: records.Site, small: None
) -> None:
    for page in PAGES[:5]:
        sample_threads.post(site, "text", thread=page)
    _deliver()
    digest = counting.thread_digest("demo/page 3")
    wrong = {counting.listings_scope("demo"): {digest: 4}}
    transactions.transaction(lambda: transactions.apply(from_events.sum_writes(wrong)))
    found: list[recount.Difference] = []
    assert recount.site("demo", tell=found.append, fixes=False) == 1
    assert recount.site("demo", tell=found.append, fixes=True) == 1
    assert found == [recount.Difference(counting.listings_scope("demo"), digest, 5, 1)] * 2
    assert recount.site("demo", tell=print, fixes=True) == 0
    counter_oracle.assert_all_counted()


@pytest.mark.slow
def test_changes_while_rows_are_completed_are_not_lost(
    datastore: datastores.Datastore, store: connection.Store, site: records.Site, small: None
) -> None:
    for page in PAGES[:5]:
        sample_threads.post(site, "text", thread=page)
    store.deadline = 1.0
    events = counter_oracle.events()
    locked: list[int] = []

    def post(place: int) -> None:
        row = sample_threads.post(site, f"{place}", thread=PAGES[place % 5])
        events.append(f"{row.id}.1")
        try:
            # Shorter than the two seconds after which Google's Firestore emulator gives up a lock.
            with connection.within(1.5):
                dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)
        except errors.Overloaded:  # The completion holds a lock on the row of group 0
            locked.append(place)

    for place in itertools.count(1):
        if row := _first():
            row.listings = ""
            _put(row)
        overtaken = Overtaken(place, lambda place=place: _in(store, lambda: post(place)))  # type: ignore[misc]
        _in(datastore.connect(overtaken), lambda: thread_count_rows.complete("demo"))
        stored_state.assert_listings()
        assert stored_state.listings().keys() == {"demo"}
        if locked or overtaken.calls < place:
            break
    assert place > 5
    _deliver()
    counter_oracle.assert_all_counted()


class Overtaken:
    """An interceptor that does something before the call at one place."""

    def __init__(self, place: int, act: Callable[[], None]) -> None:
        self.calls = 0
        self._place = place
        self._act = act

    def __call__(self, _method: str, _request: object, proceed: Callable[[], bytes]) -> bytes:
        self.calls += 1
        if self.calls == self._place:
            self._act()
        return proceed()


def _put(row: counter_rows.CounterRow) -> None:
    writes = ownership.Writes(counter_rows.OWNER, put=(row,))
    transactions.transaction(lambda: transactions.apply(writes))
