"""The statistics of a site for a period and by category, with plots, and the site's usage today.

The tables show days for a period of up to a year, and months for a longer one.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

import flask
import msgspec
from msgspec.structs import astuple

from comments import errors
from comments.domain.text import tables
from comments.tree.counters import periods, statistics
from comments.tree.counters.periods import Period
from comments.web.admin import plots, site_visit
from comments.web.admin.form_types import site_forms
from comments.web.admin.pages import limit_page
from comments.web.rendering import labels

blueprint = site_visit.blueprint("statistics")

_MOST_CATEGORIES = 200
_MOST_DAYS = 366  # Longer periods are shown by month.
_DEFAULT = 30
_BUSIEST = 10  # Listed pages and people
_OFFERED = (30, 90, 365)  # Days up to today
_VOTES = ("up", "down")


class _Column(NamedTuple):
    """A number of a period, and the same number of the period before."""

    name: str
    here: int
    before: int


@blueprint.page("/statistics", site_forms.StatisticsQuery)
def show(visit: site_visit.Visit, query: site_forms.StatisticsQuery) -> flask.Response:
    """Show comment counts and distinct commenters for a period and for each category."""
    today = visit.now.date()
    until = query.until if isinstance(query.until, date) else today
    period = _period(query, until)
    is_moved = (
        query.since is query.until is msgspec.UNSET
        and not statistics.by_day(
            visit.site.id, query.category, since=period.since, until=until, limit=1
        ).lines
    )
    if is_moved:
        period = _last_day(visit.site.id, query.category, period.since) or period
    before = period.before()
    first = period.since if before is None else before.since
    days = periods.days(visit.site.id, Period(first, period.until), query.category)
    lines = [line for line in days if line.day and line.day >= period.since]
    busiest = periods.busiest(visit.site.id, period, limit=_BUSIEST)
    by_category = statistics.by_category(visit.site.id, limit=_MOST_CATEGORIES)
    oldest = periods.first_day(visit.site.id)
    offered = [Period(oldest, max(oldest, today))] if oldest else []
    is_monthly = period.length > _MOST_DAYS
    plotted = _months(lines) if is_monthly else _all_days(lines, period)
    return site_visit.page(
        "statistics.html",
        visit,
        query=query,
        query_of=functools.partial(_query_of, category=query.category),
        all=statistics.site(visit.site.id),
        today=limit_page.today(visit.site, visit.now),
        unit="month" if is_monthly else "day",
        lines=[(label, line) for label, line in plotted if line][::-1],
        before=before,
        comparison=list(
            _comparison(lines, days[: len(days) - len(lines)], has_votes=not query.category)
        ),
        last=None if lines else _last_day(visit.site.id, query.category, period.since),
        categories=by_category.lines,
        is_nested=any("/" in line.category for line in by_category.lines),
        is_cut=by_category.after is not None,
        plot=plots.bars([(label, line.comments if line else 0) for label, line in plotted]),
        plot_of_votes=plots.bars(
            [
                (label, sum(getattr(line, name, None) or 0 for name in _VOTES))
                for label, line in plotted
            ]
        ),
        plot_of_people=plots.bars(_commenters(plotted)),
        plot_of_categories=plots.bars(
            [(line.category, line.comments) for line in by_category.lines]
        ),
        plot_of_people_there=plots.bars(
            [(line.category, line.commenters) for line in by_category.lines]
        ),
        period=period,
        moved=_DEFAULT if is_moved and lines else 0,
        busiest=busiest,
        hours=plots.bars([(f"{line.hour:02}:00", line.comments) for line in busiest.hours]),
        by_weekday=[astuple(line)[1:] for line in busiest.hours],
        weekdays=labels.weekdays(),
        offered=[*(_days_until(today, length) for length in _OFFERED), *offered],
        size=(plots.WIDTH, plots.HEIGHT),
    )


@blueprint.page("/statistics/<table>.csv", site_forms.StatisticsQuery)
def download(
    visit: site_visit.Visit, query: site_forms.StatisticsQuery, table: str
) -> flask.Response:
    """Download a table of the page as CSV, with all its lines up to a limit.

    Raises:
        errors.NotFound: the page has no such table.
    """
    if table not in _TABLES:
        raise errors.NotFound("page", table)
    until = query.until if isinstance(query.until, date) else visit.now.date()
    kind, lines = _TABLES[table](visit.site.id, _period(query, until), query.category)
    text = tables.format_table(kind, lines, tables.TableFormat.CSV)
    response = flask.Response(f"{text}\n", content_type="text/csv; charset=utf-8")
    response.headers.set(
        "Content-Disposition", "attachment", filename=f"{visit.site.id}-{table}.csv"
    )
    return response


_Table = tuple[type[msgspec.Struct], Sequence[msgspec.Struct]]


def _days_table(site: str, period: Period, category: str) -> _Table:
    kind = statistics.StatisticsEntry if category else statistics.SiteEntry
    return kind, periods.days(site, period, category)


def _months_table(site: str, period: Period, category: str) -> _Table:
    days = periods.days(site, period, category)
    return periods.PeriodNumbers, periods.by_month(days)


def _pages_table(site: str, period: Period, _category: str) -> _Table:
    busiest = periods.busiest(site, period, limit=periods.MOST)
    return periods.BusyPage, busiest.pages


def _people_table(site: str, period: Period, _category: str) -> _Table:
    busiest = periods.busiest(site, period, limit=periods.MOST)
    return periods.BusyPerson, busiest.people


def _hours_table(site: str, period: Period, _category: str) -> _Table:
    return periods.BusyHour, periods.busiest(site, period, limit=0).hours


def _categories_table(site: str, _period: Period, _category: str) -> _Table:
    lines = statistics.whole(lambda after: statistics.by_category(site, after=after))
    return statistics.StatisticsEntry, list(lines)


_TABLES: Mapping[str, Callable[[str, Period, str], _Table]] = {
    "days": _days_table,
    "months": _months_table,
    "pages": _pages_table,
    "people": _people_table,
    "hours": _hours_table,
    "categories": _categories_table,
}


def _period(query: site_forms.StatisticsQuery, until: date) -> Period:
    since = query.since
    return Period(since, until) if isinstance(since, date) else _days_until(until, _DEFAULT)


_Line = statistics.StatisticsEntry | periods.PeriodNumbers
_Labeled = Sequence[tuple[str, _Line | None]]


def _query_of(period: Period, *, category: str) -> str:
    """Return the query that shows a period of a category."""
    dates = {"since": period.since.isoformat(), "until": period.until.isoformat()}
    return urlencode(dates | ({"category": category} if category else {}))


def _days_until(until: date, length: int) -> Period:
    return Period(date.fromordinal(max(until.toordinal() - length + 1, 1)), until)


def _last_day(site_id: str, category: str, since: date) -> Period | None:
    """Return the days up to the last comments before a period or, if there are none, of all."""
    before = date.fromordinal(max(since.toordinal() - 1, 1))
    last = statistics.last_day(site_id, category, until=before) or statistics.last_day(
        site_id, category, until=date.max
    )
    return _days_until(last, _DEFAULT) if last else None


def _comparison(
    lines: Sequence[statistics.StatisticsEntry],
    before: Sequence[statistics.StatisticsEntry],
    *,
    has_votes: bool,
) -> Iterator[_Column]:
    here, there = periods.total(lines), periods.total(before)
    for name in periods.PeriodNumbers.__struct_fields__[1:]:
        if has_votes or name not in _VOTES:
            yield _Column(name, getattr(here, name), getattr(there, name))


def _all_days(lines: Sequence[statistics.StatisticsEntry], period: Period) -> _Labeled:
    """Return all days of a period with their names, including days without comments."""
    known = {line.day: line for line in lines}
    days = [period.since + timedelta(days=number) for number in range(period.length)]
    return [(labels.day(day), known.get(day)) for day in days]


def _months(lines: Sequence[statistics.StatisticsEntry]) -> _Labeled:
    """Return all months with their names from the first to the last that has comments."""
    known = {line.month: line for line in periods.by_month(lines)}
    if not known:
        return []
    numbers = range(_number(min(known)), _number(max(known)) + 1)
    months = [f"{number // 12:04}-{number % 12 + 1:02}" for number in numbers]
    return [(labels.month(date.fromisoformat(f"{month}-01")), known.get(month)) for month in months]


def _number(month: str) -> int:
    """Return the number of a month since the year 0."""
    return 12 * int(month[:4]) + int(month[5:]) - 1


def _commenters(lines: _Labeled) -> list[tuple[str, int]]:
    return [
        (label, line.commenters if isinstance(line, statistics.StatisticsEntry) else 0)
        for label, line in lines
    ]
