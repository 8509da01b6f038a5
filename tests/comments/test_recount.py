"""Claims about the recount: it sees exactly what drifted, mends it once, and disturbs nobody."""

import itertools
import threading
from datetime import timedelta
from typing import Any

import pytest
from google.cloud import ndb

from comments import (
    compaction,
    counters,
    counts,
    datastore,
    delivery,
    filing,
    models,
    posting,
    records,
    recount,
    subscriptions,
    tallies,
)
from comments.counters import Scope
from comments.recount import Difference
from tests import ballots, recounts, trees

NAME = records.ThreadName("demo", "page")
HERE = counters.thread_scope("demo/page")
SITE = counters.site_scope("demo")
NOW = trees.START + timedelta(days=1)
DAY = "2026-01-02"


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


@pytest.fixture
def grown(store: datastore.Store, site: records.Site) -> dict[str, records.Comment]:
    """A site with two threads in two categories, everything delivered."""
    site = trees.filing(site, "news", "sport")
    grown = trees.grow(site, trees.TREE, categories=("sport", "news"))
    trees.grow(site, trees.TREE, thread="other", categories=("news",))
    posting.retract(
        grown["1.1"].id, author_id=grown["1.1"].author.id, revision=None, now=trees.START
    )
    _deliver()
    recounts.check_all()
    return grown


def _deliver() -> None:
    delivery.deliver(recounts.events(), now=NOW)


def _recount(*, fixes: bool = True) -> list[Difference]:
    found: list[Difference] = []
    assert recount.site("demo", tell=found.append, fixes=fixes) == len(found)
    return found


def _plant(row: Any, **numbers: int) -> None:
    """Add to a row of counters around everybody."""
    row.numbers = counts.encoded(counters.added(counts.numbers_of(row), numbers))
    datastore.transaction(lambda: datastore.apply(datastore.Writes("tallies", put=(row,))))


def _delete(key: Any) -> None:
    datastore.transaction(lambda: datastore.apply(datastore.Writes("tallies", delete=(key,))))


def _one_more(scope: counters.Scope, comments: int, people: int) -> list[Difference]:
    return [
        Difference(scope, "approved", comments, comments + 1),
        Difference(scope, "participants", people, people + 1),
    ]


def _places_of(author: str) -> list[counters.Scope]:
    """Where somebody who wrote in "page" is counted from events."""
    return [
        counters.author_scope("demo", author),
        *(counters.category_scope("demo", each, author) for each in ("news", "sport")),
        *(counters.day_scope("demo", DAY, each, author) for each in ("", "news", "sport")),
    ]


def _thread_row() -> Any:
    return datastore.get(models.thread_counter_key(NAME, 0))


def test_nothing_is_found_where_nothing_is_wrong(grown: dict[str, records.Comment]) -> None:
    assert _recount() == []


@pytest.mark.parametrize("more", [1, -1, 7])
def test_a_number_that_drifted_is_shown_mended_and_found_no_more(
    grown: dict[str, records.Comment], more: int
) -> None:
    _plant(_thread_row(), approved=more, listed=-more)
    found = [
        Difference(HERE, "approved", 7 + more, 7),
        Difference(HERE, "listed", 8 - more, 8),
    ]
    assert _recount(fixes=False) == [*found, Difference(SITE, "approved", 15, 15 + more)]
    assert _recount() == found
    assert _recount() == []
    recounts.check_all()


@pytest.mark.parametrize("folded", [False, True])
def test_a_page_that_is_followed_before_anybody_wrote_there_is_recounted(
    grown: dict[str, records.Comment], *, folded: bool
) -> None:
    silent = records.ThreadName("demo", "silent")
    subscriptions.follow(silent, "s:ann", now=NOW)
    subscriptions.follow(records.ThreadName("demo2", "silent"), "s:ann", now=NOW)
    if folded:
        compaction.compact(subscriptions.list_of(silent))
    _deliver()
    assert _recount() == []
    _delete(models.thread_counter_key(silent, 0))
    here = counters.thread_scope("demo/silent")
    assert _recount() == [Difference(here, "followers", 0, 1)]
    assert _recount() == []
    assert counts.of_threads([silent]) == [{"followers": 1}]


def test_sites_authors_and_their_rows_in_threads_are_mended_too(
    grown: dict[str, records.Comment],
) -> None:
    author = grown["2"].author.id
    _plant(datastore.get(models.site_counter_key("demo")), pending=2)
    _plant(datastore.get(models.participation_key(NAME, author)), approved=2)
    _plant(datastore.get(models.standing_key("demo", author)), approved=-2)
    here = counters.participation_scope("demo/page", author)
    assert _recount() == [
        Difference(here, "approved", 3, 1),
        Difference(SITE, "pending", 2, 0),
        Difference(counters.author_scope("demo", author), "approved", 0, 2),
    ]
    assert _recount() == []
    recounts.check_all()


STATISTICS = [
    counters.category_scope("demo", "news"),
    counters.category_scope("demo", "news", "g:2"),
    counters.day_scope("demo", DAY),
    counters.day_scope("demo", DAY, "sport"),
    counters.day_scope("demo", DAY, "", "g:2"),
    counters.day_scope("demo", DAY, "sport", "g:2"),
]


@pytest.mark.parametrize("scope", STATISTICS)
@pytest.mark.parametrize("more", [1, -1])
def test_statistics_that_drifted_are_shown_mended_and_found_no_more(
    grown: dict[str, records.Comment], scope: counters.Scope, more: int
) -> None:
    row = datastore.get(tallies.scope_key(scope))
    had = counts.numbers_of(row)
    _plant(row, approved=more, **({} if scope.author else {"participants": 3 * more}))
    now = counts.numbers_of(row)
    found = [
        Difference(scope, name, now.get(name, 0), had[name])
        for name in ("approved", *(() if scope.author else ("participants",)))
    ]
    assert _recount(fixes=False) == found
    assert _recount() == found
    assert _recount() == []
    recounts.check_all()


@pytest.mark.parametrize("scope", STATISTICS)
def test_rows_of_statistics_that_are_gone_come_back(
    grown: dict[str, records.Comment], scope: counters.Scope
) -> None:
    numbers = counts.numbers_of(datastore.get(tallies.scope_key(scope)))
    _delete(tallies.scope_key(scope))
    assert _recount() == [Difference(scope, name, 0, numbers[name]) for name in sorted(numbers)]
    assert _recount() == []
    recounts.check_all()


@pytest.mark.parametrize("day", ["", "2020-02-20"])
@pytest.mark.parametrize("category", ["news", "nothing"])
def test_rows_of_statistics_that_count_nothing_go(
    grown: dict[str, records.Comment], category: str, day: str
) -> None:
    place = counters.category_scope("demo", category)._replace(kind="day" if day else "category")
    place = place._replace(day=day)
    scope = place._replace(author="g:nobody/else")
    datastore.transaction(
        lambda: datastore.apply(
            datastore.Writes("tallies", put=(tallies._statistics(scope, {"approved": 2}),))
        )
    )
    assert _recount() == [Difference(scope, "approved", 2, 0)]
    assert _recount() == []
    recounts.check_all()


def test_rows_that_are_gone_come_back_and_rows_of_nobody_go(
    grown: dict[str, records.Comment],
) -> None:
    _delete(models.participation_key(NAME, grown["2"].author.id))
    _delete(models.standing_key("demo", grown["2"].author.id))
    _delete(models.thread_counter_key(records.ThreadName("demo", "other"), 0))
    key = models.participation_key(NAME, "g:nobody")
    datastore.transaction(
        lambda: datastore.apply(
            datastore.Writes(
                "tallies", put=(tallies.participation(key, "demo", "g:nobody", {"approved": 1}),)
            )
        )
    )
    assert len(_recount()) == 3 + 1 + 1 + 1
    assert _recount() == []
    recounts.check_all()


@pytest.mark.parametrize("lost", range(4))
def test_a_shard_that_is_gone_is_counted_again(
    grown: dict[str, records.Comment], site: records.Site, lost: int
) -> None:
    tallies.spread(NAME, 4)
    for n in range(4):
        row = datastore.get(models.thread_counter_key(NAME, n)) or tallies.thread_counter(NAME, n)
        _plant(row, approved=1)
    _plant(_thread_row(), approved=-4)
    recounts.check()
    _delete(models.thread_counter_key(NAME, lost))
    assert {each.scope for each in _recount()} == {HERE}
    assert _recount() == []
    trees.post(site, "more", grown["2"].id)
    _deliver()
    tallies.gather(NAME)
    recounts.check_all()


def test_threads_stored_before_there_were_counters_get_theirs(
    grown: dict[str, records.Comment], site: records.Site
) -> None:
    for kind in ("Counter", "Participation", "Standing", "Category", "Day", "Appearance"):
        for message in list(datastore.fetch(datastore.Query(kind))):
            path = [part for step in message.key.path for part in (step.kind, step.name)]
            _delete(ndb.Key(*path))
    trees.post(site, "meanwhile", grown["2"].id)  # counted from what is there: nothing
    _recount()
    assert _recount() == []
    _deliver()
    assert _recount() == []
    recounts.check_all()


def test_what_events_have_still_to_add_is_counted_in(
    grown: dict[str, records.Comment], site: records.Site
) -> None:
    trees.post(site, "late")
    posting.retract(grown["2"].id, author_id=grown["2"].author.id, revision=None, now=trees.START)
    _plant(datastore.get(models.site_counter_key("demo")), approved=1)
    assert _recount() == [Difference(SITE, "approved", 16, 15)]
    assert _recount() == []
    _deliver()
    assert _recount() == []
    recounts.check_all()


def test_an_event_that_was_lost_is_found_as_drift(
    grown: dict[str, records.Comment], site: records.Site
) -> None:
    row = trees.post(site, "lost")
    key = models.event_key(f"{row.id}.1")
    datastore.transaction(lambda: datastore.apply(datastore.Writes("outbox", delete=(key,))))
    assert _recount() == [
        *_one_more(SITE, 15, 8),
        *_one_more(counters.category_scope("demo", "news"), 15, 8),
        *_one_more(counters.category_scope("demo", "sport"), 7, 7),
        *_one_more(counters.day_scope("demo", DAY), 15, 8),
        *_one_more(counters.day_scope("demo", DAY, "news"), 15, 8),
        *_one_more(counters.day_scope("demo", DAY, "sport"), 7, 7),
        *(Difference(each, "approved", 0, 1) for each in _places_of(row.author.id)),
    ]
    assert _recount() == []
    recounts.check_all()


# The commits of a recount of two threads, the second of which is wrong: two comparisons, a mending,
# the comparison of the site, its mending. What others do comes after a comparison was read.
COMPARED = [1, 3]


@pytest.mark.parametrize("commit", COMPARED)
def test_what_people_write_between_comparison_and_mending_stays(
    grown: dict[str, records.Comment],
    site: records.Site,
    open_store: datastore.Store,
    between: Between,
    commit: int,
) -> None:
    author = grown["2"].author
    _delete(models.participation_key(NAME, author.id))  # so that he seems new in the thread
    _plant(datastore.get(models.standing_key("demo", author.id)), approved=-2)
    _plant(_thread_row(), approved=5)

    def write() -> None:
        with open_store.context():
            trees.post(site, "meanwhile", author=author)
            _deliver()

    between.plan("Commit", commit, write)
    _recount()
    assert between.is_over
    assert _recount() == []
    recounts.check_all()


@pytest.mark.parametrize("commit", COMPARED)
def test_two_recounts_at_once_mend_once(
    grown: dict[str, records.Comment],
    open_store: datastore.Store,
    between: Between,
    commit: int,
) -> None:
    _plant(_thread_row(), approved=5)
    _plant(datastore.get(models.site_counter_key("demo")), approved=3)

    def other() -> None:
        with open_store.context():
            _recount()

    between.plan("Commit", commit, other)
    _recount()
    assert between.is_over
    assert _recount() == []
    recounts.check_all()


@pytest.mark.parametrize("query", range(13))
def test_a_comparison_is_of_one_moment(
    grown: dict[str, records.Comment],
    site: records.Site,
    open_store: datastore.Store,
    between: Between,
    query: int,
) -> None:
    def write() -> None:
        with open_store.context():
            trees.post(site, "meanwhile")
            _deliver()
            trees.post(site, "later", grown["2"].id)

    between.plan("RunQuery", query, write)
    assert _recount() == []
    assert between.is_over
    _deliver()
    recounts.check_all()


def test_an_interrupted_recount_goes_on_where_it_ended(
    grown: dict[str, records.Comment], site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees.post(site, "next", thread="other/2")  # whose key begins with the one that is noted
    monkeypatch.setattr(recount, "_NOTE_EVERY", 1)
    seen: list[str] = []
    real = recount.thread

    def thread(name: records.ThreadName, **options: Any) -> int:
        if len(seen) == 1:
            seen.append("interrupted")
            raise KeyboardInterrupt
        seen.append(name.id)
        return real(name, **options)

    monkeypatch.setattr(recount, "thread", thread)
    with pytest.raises(KeyboardInterrupt):
        _recount()
    _recount()
    assert seen == ["other", "interrupted", "other/2", "page"]
    _recount()
    assert seen[4:] == ["other", "other/2", "page"]  # a whole one begins anew


def test_many_authors_are_mended_in_transactions_of_bounded_size(
    store: datastore.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recount, "_AT_ONCE", 3)
    trees.grow(site, {f"{n}": {} for n in range(10)})
    _deliver()
    for n in range(10):
        _plant(datastore.get(models.participation_key(NAME, f"g:{n}")), approved=-1)
        _plant(datastore.get(models.standing_key("demo", f"g:{n}")), approved=1, spam=1)
    assert len(_recount()) == 10 + 20
    assert _recount() == []
    recounts.check_all()


def test_a_recount_finds_nothing_while_writers_go_on(
    open_store: datastore.Store, site: records.Site
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
            found = [_recount() for _ in range(6)]
        finally:
            stop.set()
            for writer in writers:
                writer.join(60)
        assert found == [[]] * 6
        filing.finish(now=NOW)
        _deliver()
        recounts.check_all()


def _write(store: datastore.Store, site: records.Site, label: int, stop: threading.Event) -> None:
    with store.context():
        number = 0
        while not stop.is_set():
            row = trees.post(site, f"{label}.{number}", author=_author(number % 3))
            if number % 2:
                posting.retract(row.id, author_id=row.author.id, revision=None, now=trees.START)
            if number % 5 == 0:
                _deliver()
            number += 1


def _file(store: datastore.Store, stop: threading.Event) -> None:
    with store.context():
        for names in itertools.cycle([["sport"], ["news", "sport"]]):
            if stop.is_set():
                return
            filing.change(NAME, names, now=NOW)


def _author(number: int) -> records.Author:
    return records.Author("somebody", id=f"g:{number}")


def _plant_votes(comment_id: str, **values: int) -> None:
    """Change a comment's row around everybody."""
    row = datastore.get(models.comment_key(comment_id))
    row.populate(**values)
    datastore.transaction(lambda: datastore.apply(datastore.Writes("tree", put=(row,))))


def _lose_vote(comment_id: str, voter: str) -> None:
    gone = datastore.Writes("votes", delete=(models.vote_key(comment_id, f"g:{voter}"),))
    datastore.transaction(lambda: datastore.apply(gone))


def test_a_row_that_drifted_from_its_votes_is_shown_mended_and_found_no_more(
    grown: dict[str, records.Comment],
) -> None:
    one, two, other = (grown[text] for text in ("1", "2", "3"))
    for comment in (one, two):
        for voter in ("ann", "bob", "cid"):
            ballots.vote(comment, voter, -1 if voter == "cid" else 1)
    ballots.count_all()
    assert _recount() == []
    _lose_vote(one.id, "bob")
    _plant_votes(two.id, score=7)
    ballots.vote(other, "ann")  # waits to be counted, which is nothing wrong
    found = [
        Difference(Scope("comment", one.id), "up", 2, 1),
        Difference(Scope("comment", one.id), "score", 1, 0),
        Difference(Scope("comment", two.id), "score", 7, 1),
    ]
    assert _recount(fixes=False) == found
    assert _recount() == found
    assert _recount() == []
    assert (ballots.stored(one.id), ballots.stored(two.id)) == ((1, 1, 0), (2, 1, 1))
    ballots.count_all()
    assert _recount() == []
    ballots.check()


def test_votes_that_a_retraction_left_behind_are_found_and_deleted(
    grown: dict[str, records.Comment],
) -> None:
    row = grown["2.1"]
    ballots.vote(row, "ann")
    ballots.vote(row, "bob")
    posting.retract(row.id, author_id=row.author.id, revision=None, now=NOW)
    lost = datastore.Writes("votes", delete=(models.votes_due_key(row.id),))
    datastore.transaction(lambda: datastore.apply(lost))
    assert _recount() == [Difference(Scope("comment", row.id), "votes", 2, 0)]
    assert _recount() == []
    ballots.count_all()
    ballots.check()


def test_a_vote_in_the_middle_of_a_recount_of_votes_is_counted_once(
    grown: dict[str, records.Comment], open_store: datastore.Store, between: Between
) -> None:
    row = grown["2"]
    ballots.vote(row, "ann")
    ballots.count_all()
    _lose_vote(row.id, "ann")

    def vote() -> None:
        with open_store.context():
            ballots.vote(row, "bob")

    between.plan("RunAggregationQuery", 0, vote)
    assert len(_recount()) == 2
    assert between.is_over
    ballots.count_all()
    assert ballots.stored(row.id) == (1, 0, 1)
    ballots.check()
