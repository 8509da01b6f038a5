"""A recount during writes, votes and recounts compares one consistent state and repairs once."""

import itertools
import threading
from typing import Any

import pytest

from comments.domain import records
from comments.posting import own_comment
from comments.store import connection, reads
from comments.store.models import counter_rows
from comments.tree.bulk import recategorize
from tests.support import prepared_stores
from tests.support.histories import counter_drift, counter_oracle
from tests.support.store_interceptors import InterceptorSlot
from tests.support.threads import sample_threads, sample_votes


class Between:
    """A hook that runs a different actor's action once, before a method's n-th call from now."""

    def __init__(self) -> None:
        self._plan: tuple[str, int, Any] | None = None

    def plan(self, method: str, number: int, act: Any) -> None:
        self._plan = (method, number, act)

    @property
    def is_over(self) -> bool:
        return self._plan is None

    def __call__(self, method: str, _: Any, proceed: Any) -> Any:
        if self._plan is not None and self._plan[0] == method:
            _, number, act = self._plan
            self._plan = (method, number - 1, act)
            if number == 0:
                self._plan = None
                helper = threading.Thread(target=act)
                helper.start()
                helper.join()
        return proceed()


@pytest.fixture
def between(interceptor: InterceptorSlot) -> Between:
    return interceptor.use(Between())


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    return prepared_stores.grown(tmp_path_factory, counter_drift.grown)


# A recount of two threads with an error in the second commits two comparisons, a repair, the site's
# comparison and the site's repair. The other actor acts after a comparison's reads.
COMPARED = [1, 3]


@pytest.mark.parametrize("commit", COMPARED)
def test_writes_between_comparison_and_repair_are_kept(
    counted_rows: dict[str, records.Comment],
    site: records.Site,
    open_store: connection.Store,
    between: Between,
    commit: int,
) -> None:
    author = counted_rows["2"].author
    counter_drift.delete(
        counter_rows.participation_key(counter_drift.NAME, author.id)
    )  # Makes the author appear new in the thread
    counter_drift.plant(reads.get(counter_rows.standing_key("demo", author.id)), approved=-2)
    counter_drift.plant(counter_drift.thread_row(), approved=5)

    def write() -> None:
        with open_store.context():
            sample_threads.post(site, "meanwhile", author=author)
            counter_drift.deliver()

    between.plan("Commit", commit, write)
    counter_drift.recount_all()
    assert between.is_over
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


@pytest.mark.parametrize("commit", COMPARED)
def test_two_concurrent_recounts_repair_once(
    counted_rows: dict[str, records.Comment],
    open_store: connection.Store,
    between: Between,
    commit: int,
) -> None:
    counter_drift.plant(counter_drift.thread_row(), approved=5)
    counter_drift.plant(reads.get(counter_rows.site_counter_key("demo")), approved=3)

    def other() -> None:
        with open_store.context():
            counter_drift.recount_all()

    between.plan("Commit", commit, other)
    counter_drift.recount_all()
    assert between.is_over
    assert counter_drift.recount_all() == []
    counter_oracle.assert_all_counted()


@pytest.mark.parametrize("query", range(13))
def test_a_comparison_is_from_one_moment(
    counted_rows: dict[str, records.Comment],
    site: records.Site,
    open_store: connection.Store,
    between: Between,
    query: int,
) -> None:
    def write() -> None:
        with open_store.context():
            sample_threads.post(site, "meanwhile")
            counter_drift.deliver()
            sample_threads.post(site, "later", counted_rows["2"].id)

    between.plan("RunQuery", query, write)
    assert counter_drift.recount_all() == []
    assert between.is_over
    counter_drift.deliver()
    counter_oracle.assert_all_counted()


def test_a_recount_finds_nothing_during_writes(
    open_store: connection.Store, site: records.Site
) -> None:
    site = sample_threads.filing(site, "news", "sport")
    stop = threading.Event()
    writers = [
        *(threading.Thread(target=_write, args=(open_store, site, n, stop)) for n in range(2)),
        threading.Thread(target=_file, args=(open_store, stop)),
    ]
    with open_store.context():
        sample_threads.post(site, "first", categories=("news",))
        for writer in writers:
            writer.start()
        try:
            found = [counter_drift.recount_all() for _ in range(6)]
        finally:
            stop.set()
            for writer in writers:
                writer.join(60)
        assert found == [[]] * 6
        recategorize.finish(now=counter_drift.NOW, steps=100)
        counter_drift.deliver()
        counter_oracle.assert_all_counted()


def _write(store: connection.Store, site: records.Site, label: int, stop: threading.Event) -> None:
    with store.context():
        number = 0
        while not stop.is_set():
            row = sample_threads.post(site, f"{label}.{number}", author=_author(number % 3))
            if number % 2:
                own_comment.retract(
                    row.id, author_id=row.author.id, revision=None, now=sample_threads.START
                )
            if number % 5 == 0:
                counter_drift.deliver()
            number += 1


def _file(store: connection.Store, stop: threading.Event) -> None:
    with store.context():
        for names in itertools.cycle([["sport"], ["news", "sport"]]):
            if stop.is_set():
                return
            recategorize.change(counter_drift.NAME, names, now=counter_drift.NOW)


def _author(number: int) -> records.Author:
    return records.Author("somebody", id=f"g:{number}")


@pytest.mark.embedded  # Emulators get no aggregation query
def test_a_vote_during_a_recount_of_votes_is_counted_once(
    counted_rows: dict[str, records.Comment], open_store: connection.Store, between: Between
) -> None:
    row = counted_rows["2"]
    sample_votes.vote(row, "ann")
    sample_votes.count_all()
    counter_drift.lose_vote(row.id, "ann")

    def vote() -> None:
        with open_store.context():
            sample_votes.vote(row, "bob")

    between.plan("RunAggregationQuery", 0, vote)
    assert len(counter_drift.recount_all()) == 2
    assert between.is_over
    sample_votes.count_all()
    assert sample_votes.stored(row.id) == (1, 0, 1)
    sample_votes.assert_counted()
