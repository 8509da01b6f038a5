"""Commands for statistics: `stats`, whose tables of authors show the authors' ids."""

import functools
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, TypeVar

import click
import msgspec

from comments.cli import console
from comments.cli.commands import audience_commands
from comments.domain.text import tables
from comments.tree.counters import periods, statistics

S = TypeVar("S", bound=msgspec.Struct)

stats = console.Group("stats")
stats.add_command(audience_commands.audience)
FORM = audience_commands.FORM
_day = click.DateTime(["%Y-%m-%d"])


def _print(
    kind: type[S], read: "Callable[[str], statistics.ReportPage[S]]", form: tables.TableFormat
) -> None:
    lines = list(statistics.whole(read))
    click.echo(tables.format_table(kind, lines, tables.TableFormat(form)))


def _periodical(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the first and the last day; the command gets a `period`."""

    @click.option("--since", type=_day, help="First day in UTC, e.g. 2026-01-31.")
    @click.option("--until", type=_day, help="Last day in UTC.")
    @functools.wraps(command)
    def run(*, since: datetime | None, until: datetime | None, **options: Any) -> None:
        first, last = since.date() if since else date.min, until.date() if until else date.max
        command(period=periods.Period(first, last), **options)

    return run


@stats.command("site", console.SITE, FORM)
def _site(site_id: str, form: tables.TableFormat) -> None:
    """Show the numbers of a whole site."""
    line = statistics.site(console.site(site_id).id)
    kind: type[statistics.StatisticsEntry] = statistics.SiteEntry
    _print(kind, lambda _: statistics.ReportPage((line,), None), form)


@stats.command("categories", console.SITE)
@click.option("--under", default="", metavar="CATEGORY", help="Only this and its subcategories.")
@click.option("--author", default="", metavar="ID", help="Where this author has commented.")
@FORM
def _by_category(site_id: str, under: str, author: str, form: tables.TableFormat) -> None:
    """Show the numbers of each category of a site.

    The numbers of a category include those of its subcategories. With --author, show the categories
    in which an author has commented, and the number of the author's approved comments in each.
    """
    if under and author:
        raise click.ClickException("--under and --author cannot be combined.")
    site = console.site(site_id).id
    if author:
        read_author = functools.partial(statistics.categories_of, site, author)
        _print(statistics.CategoryCount, lambda after: read_author(after=after), form)
        return
    read = functools.partial(statistics.by_category, site, under=under)
    _print(statistics.StatisticsEntry, lambda after: read(after=after), form)


@stats.command("days", console.SITE)
@click.option("--category", default="", help="Only this category.")
@click.option("--all", "is_whole", is_flag=True, help="The site and each category.")
@click.option("--since", type=_day, help="First day in UTC, e.g. 2026-01-31.")
@click.option("--until", type=_day, help="Last day in UTC.")
@FORM
def _by_day(
    site_id: str,
    category: str,
    since: datetime | None,
    until: datetime | None,
    form: tables.TableFormat,
    *,
    is_whole: bool,
) -> None:
    """Show the numbers of each day (UTC) that has comments."""
    if is_whole and category:
        raise click.ClickException("--category and --all cannot be combined.")
    first, last = (None if moment is None else moment.date() for moment in (since, until))
    site = console.site(site_id).id
    read = (
        functools.partial(statistics.by_day_and_category, site, since=first, until=last)
        if is_whole
        else functools.partial(statistics.by_day, site, category, since=first, until=last)
    )
    kind = statistics.StatisticsEntry if is_whole or category else statistics.SiteEntry
    _print(kind, lambda after: read(after=after), form)


@stats.command("months", console.SITE)
@click.option("--category", default="", help="Only this category.")
@_periodical
@FORM
def _by_month(
    site_id: str, category: str, period: "periods.Period", form: tables.TableFormat
) -> None:
    """Show the numbers of each month (UTC) that has comments."""
    months = periods.by_month(periods.days(console.site(site_id).id, period, category))
    _print(periods.PeriodNumbers, lambda _: statistics.ReportPage(tuple(months), None), form)


def _add_ranking(subject: str) -> None:
    """Add the command that lists the busiest "pages" or "people"."""
    summary = f"Show the {subject} with the most comments, of all time or in a period."

    @stats.command(subject, console.SITE, summary=summary)
    @_periodical
    @FORM
    @click.option("--limit", type=click.IntRange(1, 1_000), default=20, help="Lines to show.")
    def _busiest(
        site_id: str, period: "periods.Period", form: tables.TableFormat, limit: int
    ) -> None:
        busiest = periods.busiest(console.site(site_id).id, period, limit=limit)
        kind, lines = (
            (periods.BusyPage, busiest.pages)
            if subject == "pages"
            else (periods.BusyPerson, busiest.people)
        )
        _print(kind, lambda _: statistics.ReportPage(lines, None), form)


_add_ranking("pages")
_add_ranking("people")


@stats.command("hours", console.SITE)
@_periodical
@FORM
def _by_hour(site_id: str, period: "periods.Period", form: tables.TableFormat) -> None:
    """Show the number of comments in each hour of the day (UTC), by weekday."""
    lines = periods.busiest(console.site(site_id).id, period, limit=0).hours
    _print(periods.BusyHour, lambda _: statistics.ReportPage(lines, None), form)


@stats.command("commenters", console.SITE)
@click.argument("thread", metavar="[THREAD]", required=False)
@click.option("--category", default="", help="The authors in this category, not in a thread.")
@FORM
def _commenters(site_id: str, thread: str | None, category: str, form: tables.TableFormat) -> None:
    """Show the ids of the authors in a thread, or in a category and its subcategories."""
    if (thread is None) == (not category):
        raise click.ClickException("Enter either a thread or --category.")
    read = (
        functools.partial(statistics.commenters_of_category, console.site(site_id).id, category)
        if thread is None
        else functools.partial(statistics.commenters, console.thread(site_id, thread))
    )
    _print(statistics.AuthorCount, lambda after: read(after=after), form)


@stats.command("threads", console.SITE)
@click.argument("author", metavar="AUTHOR")
@FORM
def _threads(site_id: str, author: str, form: tables.TableFormat) -> None:
    """Show the threads in which an author has commented."""
    site = console.site(site_id).id
    _print(
        statistics.ThreadCount, lambda after: statistics.threads_of(site, author, after=after), form
    )
