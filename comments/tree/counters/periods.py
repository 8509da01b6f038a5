"""Sum a website's statistics over a period, and rank its pages, people and hours.

Sums come from the rows of days, so a period of any length costs one read for each of its days that
has comments (UTC); days without comments cost nothing. Months are sums of days. Distinct commenters
are no sum, because authors return on other days, so sums do not contain them.

The busiest pages, people and hours come from the rows of months, at most `counting.GROUPS` for each
month; the number of comments does not matter. Names are then read for the listed pages and people
only.
"""

import heapq
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

import msgspec

from comments import errors
from comments.domain.counters import counting
from comments.store import reads
from comments.store.models import comment_rows, conversion, counter_rows
from comments.tree.counters import leaderboard, statistics
from comments.tree.counters.statistics import StatisticsEntry

MOST = 1_000  # Maximum number of listed pages or people
HOURS = 24


class Period(NamedTuple):
    """A period from its first to its last day (UTC)."""

    since: date
    until: date

    @property
    def length(self) -> int:
        """Return the number of days."""
        return self.until.toordinal() - self.since.toordinal() + 1

    def before(self) -> "Period | None":
        """Return the equally long period before this one; None if it begins before the year 1."""
        first = self.since.toordinal() - self.length
        return (
            Period(date.fromordinal(first), self.since - timedelta(days=1)) if first > 0 else None
        )


class PeriodNumbers(msgspec.Struct, frozen=True):
    """The sums of a period's days, or of those of its days that are in a month (such as "2026-01").

    `comments` is the number of approved comments. `up` and `down` are the votes on them, and None
    in a category.
    """

    month: str
    comments: int
    pending: int
    spam: int
    rejected: int
    retracted: int
    up: int | None
    down: int | None


class BusyPage(msgspec.Struct, frozen=True):
    """A page with its approved comments in a period. `title` and `url` may be empty."""

    thread: str
    title: str
    url: str
    comments: int


class BusyPerson(msgspec.Struct, frozen=True):
    """A person with their approved comments in a period.

    `name` is the name in one of the person's comments.
    """

    author: str
    name: str
    comments: int


class BusyHour(msgspec.Struct, frozen=True):
    """An hour of the day (UTC), from 0 to 23, with a period's approved comments by weekday."""

    hour: int
    comments: int
    monday: int
    tuesday: int
    wednesday: int
    thursday: int
    friday: int
    saturday: int
    sunday: int


class Busiest(NamedTuple):
    """The pages and people with the most comments in a period, how many there are, and the hours.

    `hours` contains all hours of the day, in order.
    """

    pages: tuple[BusyPage, ...]
    page_count: int
    people: tuple[BusyPerson, ...]
    person_count: int
    hours: tuple[BusyHour, ...]


def days(site: str, period: Period, category: str = "") -> list[StatisticsEntry]:
    """List a period's days that have comments, with one scan for each 1,000 days."""
    since, until = period
    return list(
        statistics.whole(
            lambda after: statistics.by_day(site, category, since=since, until=until, after=after)
        )
    )


def first_day(site: str, category: str = "") -> date | None:
    """Return the first day that has comments, or None."""
    lines = statistics.by_day(site, category, limit=1).lines
    return lines[0].day if lines else None


def total(lines: Sequence[StatisticsEntry]) -> PeriodNumbers:
    """Add up days."""
    return PeriodNumbers("", **_sums(lines))


def by_month(lines: Iterable[StatisticsEntry]) -> list[PeriodNumbers]:
    """Add up days by month. Months without comments are left out."""
    months: dict[str, list[StatisticsEntry]] = {}
    for line in lines:
        months.setdefault(f"{line.day}"[:7], []).append(line)
    return [PeriodNumbers(month, **_sums(some)) for month, some in months.items()]


def busiest(site: str, period: Period, *, limit: int) -> Busiest:
    """Rank pages, people and hours; equal pages or people are listed by id.

    Raises:
        errors.BadInput: the period ends before it begins.
    """
    if period.since > period.until:
        raise errors.BadInput("since", "since-after-until")
    pages: Counter[str] = Counter()
    people: Counter[str] = Counter()
    hours = [[0] * 7 for _ in range(HOURS)]
    for day, name, number in _of_months(site, period):
        subject = name[3:]
        if name[0] == counting.PAGE:
            pages[subject] += number
        elif name[0] == counting.PERSON:
            people[subject] += number
        else:
            hours[int(subject)][day.weekday()] += number
    return Busiest(
        tuple(_pages(site, _top(pages, limit))),
        len(pages),
        tuple(_people(site, _top(people, limit))),
        len(people),
        tuple(BusyHour(hour, sum(days), *days) for hour, days in enumerate(hours)),
    )


def top_pages(site: str, among: Container[str] | None = None, *, limit: int) -> list[str]:
    """Return the key names of the threads with the most approved comments of all time, in order.

    With `among`, rank only threads with these key names.
    """
    pages: Counter[str] = Counter()
    for _, name, number in _of_months(site, Period(date.min, date.max)):
        page = f"{site}{name[3:]}"
        if name[0] == counting.PAGE and (among is None or page in among):
            pages[page] += number
    return [page for page, _ in _top(pages, limit)]


def _sums(lines: Sequence[StatisticsEntry]) -> dict[str, Any]:
    sums: dict[str, Any] = {}
    for name in PeriodNumbers.__struct_fields__[1:]:
        numbers: list[Any] = [getattr(line, name, None) for line in lines]
        sums[name] = None if None in numbers else sum(numbers)
    return sums


def _of_months(site: str, period: Period) -> Iterator[tuple[date, str, int]]:
    """Yield the numbers in the rows of months on the days of a period."""
    first, last = (day.isoformat()[:7] for day in period)
    low = counter_rows.month_key(site, first, "")
    high = counter_rows.month_key(site, last, "~")
    where = (("__key__", ">=", low), ("__key__", "<", high))
    for message in reads.fetch(reads.Query("Month", where=where, order=("__key__",))):
        month = counter_rows.statistics_scope("Month", message.key.path[-1].name).day
        numbers = counter_rows.decode(message.properties["numbers"].string_value)
        days = {name[1:3]: date.fromisoformat(f"{month}-{name[1:3]}") for name in numbers}
        for name, number in numbers.items():
            day = days[name[1:3]]
            if period.since <= day <= period.until:
                yield day, name, number


def _top(numbers: Counter[str], limit: int) -> list[tuple[str, int]]:
    return heapq.nsmallest(limit, numbers.items(), key=lambda item: (-item[1], item[0]))


def _pages(site: str, top: list[tuple[str, int]]) -> Iterator[BusyPage]:
    rows = reads.get_multi([comment_rows.thread_key_of(f"{site}{rest}") for rest, _ in top])
    for (rest, number), row in zip(top, rows, strict=True):
        if row is None:  # The thread was removed in the meantime.
            yield BusyPage(rest[1:], "", "", number)
        else:
            thread = conversion.thread_record(row)
            yield BusyPage(thread.shown_id, thread.title, thread.url, number)


def _people(site: str, top: list[tuple[str, int]]) -> Iterator[BusyPerson]:
    standings = reads.get_multi([counter_rows.standing_key(site, author) for author, _ in top])
    known = [
        (author, "" if row is None else row.comment)
        for (author, _), row in zip(top, standings, strict=True)
    ]
    names = leaderboard.author_names(site, known)
    for (author, number), named in zip(top, names, strict=True):
        yield BusyPerson(author, named.name, number)
