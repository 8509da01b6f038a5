"""The busiest pages, people and hours of a period equal a count of its comments."""

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import pytest

from comments.domain import records
from comments.events import dispatcher
from comments.store import reads
from comments.store.models import counter_rows
from comments.tree.counters import periods
from comments.tree.counters.periods import Period
from comments.upkeep import wiring
from comments.upkeep.migrations import period_rows, upgrades
from datastore_emulator import inprocess, testing
from tests.support.histories import counter_drift, counter_oracle
from tests.support.threads import sample_threads, sample_votes

FIRST = datetime(2026, 1, 29, tzinfo=UTC)
LONG_ID = "x" * 600  # The key name contains a digest of this id.
THREADS = ("page", "other", "a/b 1", LONG_ID)
PEOPLE = ("ann", "bob", "cid")


class Said(NamedTuple):
    """An approved comment: its page, author and time."""

    thread: str
    author: str
    at: datetime


def deliver() -> None:
    now = FIRST + timedelta(days=99)
    dispatcher.deliver(counter_oracle.events(), now=now, handlers=wiring.HANDLERS)


@pytest.fixture
def said(site: records.Site) -> list[Said]:
    """Comments on six days of two months, some of them retracted."""
    dice, made = random.Random(7), []
    for number in range(60):
        what = Said(
            dice.choice(THREADS), dice.choice(PEOPLE), FIRST + timedelta(hours=dice.randrange(144))
        )
        comment = sample_threads.post(
            site,
            f"comment {number}",
            thread=what.thread,
            author=sample_threads.author(what.author),
            now=what.at,
        )
        if number % 7:
            made.append(what)
        else:
            sample_threads.retract(comment)
    deliver()
    return made


def top(names: list[str]) -> list[tuple[str, int]]:
    return sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))


PERIODS = [
    Period(date(2026, 1, 1), date(2026, 12, 31)),
    Period(date(2026, 1, 30), date(2026, 2, 1)),
    Period(date(2026, 1, 31), date(2026, 1, 31)),
    Period(date(2025, 1, 1), date(2026, 1, 28)),
]


@pytest.mark.usefixtures("store")
def test_each_period_has_the_numbers_of_its_comments(said: list[Said]) -> None:
    counter_oracle.assert_all_counted()
    for period in PERIODS:
        here = [each for each in said if period.since <= each.at.date() <= period.until]
        found = periods.busiest("demo", period, limit=9)
        pages = [(page.thread, page.comments) for page in found.pages]
        # Equal numbers are in the order of the stored names, in which a digest precedes an id.
        assert sorted(pages) == sorted(top([each.thread for each in here]))
        assert [number for _, number in pages] == sorted((n for _, n in pages), reverse=True)
        people = [(person.author, person.comments) for person in found.people]
        assert people == top([f"g:{each.author}" for each in here])
        assert all(person.author == f"g:{person.name}" for person in found.people)
        assert (found.page_count, found.person_count) == (len(pages), len(people))
        hours = found.hours
        assert [line.hour for line in hours] == list(range(24))
        for line in hours:
            days = Counter(each.at.weekday() for each in here if each.at.hour == line.hour)
            assert line == periods.BusyHour(
                line.hour, days.total(), *(days[day] for day in range(7))
            )


@pytest.mark.usefixtures("store")
def test_a_shorter_list_has_the_first_lines(said: list[Said]) -> None:
    whole = periods.busiest("demo", PERIODS[0], limit=9)
    short = periods.busiest("demo", PERIODS[0], limit=2)
    assert (short.pages, short.people) == (whole.pages[:2], whole.people[:2])
    assert (short.page_count, short.person_count) == (whole.page_count, whole.person_count)


@pytest.mark.embedded
@pytest.mark.usefixtures("store", "said")
def test_a_period_costs_the_rows_of_its_months_and_the_names_of_its_lines(
    engine: inprocess.Engine,
) -> None:
    with testing.meter(engine) as cost:
        periods.busiest("demo", PERIODS[1], limit=2)
    months = 2 * len(THREADS)
    # Two pages; for each person a row, a comment and, if that is retracted, another comment.
    assert months + 2 + 2 * 2 <= cost.reads <= months + 2 + 2 * 3


@pytest.mark.usefixtures("store")
def test_comments_of_an_earlier_release_are_counted_once(
    said: list[Said], site: records.Site
) -> None:
    voted = sample_threads.post(site, "voted", now=FIRST, author=sample_threads.author("cid"))
    for voter in ("ann", "bob"):
        sample_votes.vote(voted, voter)
    sample_votes.count_all()
    _forget_periods()
    sample_votes.vote(voted, "eve", -1)
    sample_votes.vote(voted, "ann", 0)
    sample_votes.count_all()
    sample_threads.post(site, "meanwhile", now=FIRST, author=sample_threads.author("ann"))
    deliver()
    sample_threads.post(site, "not delivered yet", now=FIRST, author=sample_threads.author("bob"))
    upgrades.begin()
    assert upgrades.go_on(steps=None) > 0
    deliver()
    counter_oracle.assert_all_counted()
    # A process that was killed before it stored its position repeats the last step.
    period_rows.complete_days(list(reads.fetch(reads.Query("Day"))))
    counter_oracle.assert_all_counted()


@pytest.mark.usefixtures("store", "said")
def test_a_month_that_is_full_stops_counting_and_nothing_else(
    site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = periods.busiest("demo", PERIODS[0], limit=9)
    monkeypatch.setattr(counter_rows, "MOST_BYTES", 10)
    sample_threads.post(site, "one more", now=FIRST, author=sample_threads.author("ann"))
    deliver()
    assert counter_oracle.events() == []
    assert periods.busiest("demo", PERIODS[0], limit=9) == before
    monkeypatch.undo()
    assert counter_drift.recount_all() != []
    counter_oracle.assert_all_counted()


def _forget_periods() -> None:
    """Remove the numbers that earlier releases did not count."""
    for message in list(reads.fetch(reads.Query("Month"))):
        counter_drift.delete(counter_rows.month_key(*message.key.path[-1].name.split("/")))
    for message in list(reads.fetch(reads.Query("Day"))):
        scope = counter_rows.statistics_scope("Day", message.key.path[-1].name)
        row = reads.get(counter_rows.statistics_key(scope))
        votes = counter_rows.numbers_of(row)
        counter_drift.plant(row, up=-votes.get("up", 0), down=-votes.get("down", 0))
