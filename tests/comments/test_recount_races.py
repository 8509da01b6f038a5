"""Claims about a recount while others write, vote or recount: of one moment, and mends once."""

import itertools
import threading
from typing import Any

import pytest

from comments.domain import records
from comments.jobs import recategorize
from comments.posting import submission
from comments.store import connection, reads
from comments.store.models import counter_rows
from tests import ballots, beginnings, recounts, trees
from tests.comments import drift


class Between:
    """Lets somebody else do something once, before the n-th call of a method from now."""

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
def between() -> Between:
    return Between()


@pytest.fixture
def interceptor(between: Between) -> Between:
    return between


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> beginnings.Beginning:
    return beginnings.grown(tmp_path_factory, drift.grown)


@pytest.fixture
def grown(store: connection.Store, begun: beginnings.Beginning) -> dict[str, records.Comment]:
    return begun.found


# The commits of a recount of two threads, the second of which is wrong: two comparisons, a mending,
# the comparison of the site, its mending. What others do comes after a comparison was read.
COMPARED = [1, 3]


@pytest.mark.parametrize("commit", COMPARED)
def test_what_people_write_between_comparison_and_mending_stays(
    grown: dict[str, records.Comment],
    site: records.Site,
    open_store: connection.Store,
    between: Between,
    commit: int,
) -> None:
    author = grown["2"].author
    drift.delete(
        counter_rows.participation_key(drift.NAME, author.id)
    )  # so that he seems new in the thread
    drift.plant(reads.get(counter_rows.standing_key("demo", author.id)), approved=-2)
    drift.plant(drift.thread_row(), approved=5)

    def write() -> None:
        with open_store.context():
            trees.post(site, "meanwhile", author=author)
            drift.deliver()

    between.plan("Commit", commit, write)
    drift.recount_all()
    assert between.is_over
    assert drift.recount_all() == []
    recounts.check_all()


@pytest.mark.parametrize("commit", COMPARED)
def test_two_recounts_at_once_mend_once(
    grown: dict[str, records.Comment],
    open_store: connection.Store,
    between: Between,
    commit: int,
) -> None:
    drift.plant(drift.thread_row(), approved=5)
    drift.plant(reads.get(counter_rows.site_counter_key("demo")), approved=3)

    def other() -> None:
        with open_store.context():
            drift.recount_all()

    between.plan("Commit", commit, other)
    drift.recount_all()
    assert between.is_over
    assert drift.recount_all() == []
    recounts.check_all()


@pytest.mark.parametrize("query", range(13))
def test_a_comparison_is_of_one_moment(
    grown: dict[str, records.Comment],
    site: records.Site,
    open_store: connection.Store,
    between: Between,
    query: int,
) -> None:
    def write() -> None:
        with open_store.context():
            trees.post(site, "meanwhile")
            drift.deliver()
            trees.post(site, "later", grown["2"].id)

    between.plan("RunQuery", query, write)
    assert drift.recount_all() == []
    assert between.is_over
    drift.deliver()
    recounts.check_all()


def test_a_recount_finds_nothing_while_writers_go_on(
    open_store: connection.Store, site: records.Site
) -> None:
    site = trees.filing(site, "news", "sport")
    stop = threading.Event()
    writers = [
        *(threading.Thread(target=_write, args=(open_store, site, n, stop)) for n in range(2)),
        threading.Thread(target=_file, args=(open_store, stop)),
    ]
    with open_store.context():
        trees.post(site, "first", categories=("news",))
        for writer in writers:
            writer.start()
        try:
            found = [drift.recount_all() for _ in range(6)]
        finally:
            stop.set()
            for writer in writers:
                writer.join(60)
        assert found == [[]] * 6
        recategorize.finish(now=drift.NOW)
        drift.deliver()
        recounts.check_all()


def _write(store: connection.Store, site: records.Site, label: int, stop: threading.Event) -> None:
    with store.context():
        number = 0
        while not stop.is_set():
            row = trees.post(site, f"{label}.{number}", author=_author(number % 3))
            if number % 2:
                submission.retract(row.id, author_id=row.author.id, revision=None, now=trees.START)
            if number % 5 == 0:
                drift.deliver()
            number += 1


def _file(store: connection.Store, stop: threading.Event) -> None:
    with store.context():
        for names in itertools.cycle([["sport"], ["news", "sport"]]):
            if stop.is_set():
                return
            recategorize.change(drift.NAME, names, now=drift.NOW)


def _author(number: int) -> records.Author:
    return records.Author("somebody", id=f"g:{number}")


def test_a_vote_in_the_middle_of_a_recount_of_votes_is_counted_once(
    grown: dict[str, records.Comment], open_store: connection.Store, between: Between
) -> None:
    row = grown["2"]
    ballots.vote(row, "ann")
    ballots.count_all()
    drift.lose_vote(row.id, "ann")

    def vote() -> None:
        with open_store.context():
            ballots.vote(row, "bob")

    between.plan("RunAggregationQuery", 0, vote)
    assert len(drift.recount_all()) == 2
    assert between.is_over
    ballots.count_all()
    assert ballots.stored(row.id) == (1, 0, 1)
    ballots.check()
