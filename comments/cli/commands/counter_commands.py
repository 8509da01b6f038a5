"""Declare counters of comments, and show their numbers: `counter`."""

from collections.abc import Callable
from datetime import datetime, timedelta

import click
import msgspec

from comments import errors
from comments.cli import console
from comments.cli.commands import audience_commands
from comments.domain.counters import declared_counters
from comments.domain.text import tables
from comments.domain.text.shown_values import quantity
from comments.tree.counters import statistics
from comments.tree.counters.declared import declarations, declared_backfill, declared_reports

counter = console.Group("counter")
_form = audience_commands.FORM
_day = click.DateTime(["%Y-%m-%d"])


class _CounterLine(msgspec.Struct, frozen=True):
    """A declared counter in a list."""

    name: str
    counts: str
    complete: bool


def _with_declaration(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a declaration to a command."""
    for option in (
        click.option("--sum", "value", default="comments", help="comments, up, down or score."),
        click.option("--by", "by", multiple=True, help="thread, category, day or author."),
        click.option("--where", multiple=True, help='A condition, such as "down >= 5".'),
        click.argument("name", metavar="NAME"),
        click.argument("site_id", metavar="SITE"),
    ):
        command = option(command)
    return command


@counter.command("add")
@_with_declaration
def _add(site_id: str, name: str, where: tuple[str, ...], by: tuple[str, ...], value: str) -> None:
    """Declare a counter, and count the comments that exist.

    A comment counts if all conditions hold. The service can keep running.
    """
    declared = declared_counters.declare(name, where, by, value)
    site = console.site(site_id).id
    _say_cost(site, declared)
    declarations.add(site, declared, now=console.now())
    click.echo(f"Added the counter {name} to {site}: {declared}.")
    _run_job(site)


@counter.command("change")
@_with_declaration
def _change(
    site_id: str, name: str, where: tuple[str, ...], by: tuple[str, ...], value: str
) -> None:
    """Replace a counter's declaration, and count all comments again."""
    declared = declared_counters.declare(name, where, by, value)
    site = console.site(site_id).id
    declarations.change(site, declared, now=console.now())
    click.echo(f"Changed the counter {name} of {site}: {declared}.")
    _run_job(site)


@counter.command("cost")
@_with_declaration
def _cost(site_id: str, name: str, where: tuple[str, ...], by: tuple[str, ...], value: str) -> None:
    """Show what a counter would cost, without adding it."""
    _say_cost(console.site(site_id).id, declared_counters.declare(name, where, by, value))


@counter.command("list", console.SITE, _form)
def _list(site_id: str, form: tables.TableFormat) -> None:
    """List a site's counters, with what they count."""
    lines = [
        _CounterLine(entry.declaration.name, f"{entry.declaration}", entry.is_complete)
        for entry in declarations.of_site(console.site(site_id).id).counters
    ]
    click.echo(tables.format_table(_CounterLine, lines, tables.TableFormat(form)))


@counter.command("show", console.SITE)
@click.argument("name", metavar="NAME")
@click.option("--under", default="", help="Only this category and its subcategories.")
@click.option("--since", type=_day, help="First day in UTC, e.g. 2026-01-31.")
@click.option("--until", type=_day, help="Last day in UTC.")
@_form
def _show(
    site_id: str,
    name: str,
    under: str,
    since: datetime | None,
    until: datetime | None,
    form: tables.TableFormat,
) -> None:
    """Show a counter's numbers.

    A note on standard error says if existing comments are still to be counted.
    """
    site = console.site(site_id).id
    entry = declarations.counter(site, name)
    first, last = (None if moment is None else moment.date() for moment in (since, until))
    wanted = declared_reports.CountFilter(under, first, last)
    lines = list(
        statistics.whole(lambda after: declared_reports.lines(site, entry, wanted, after=after))
    )
    if not entry.is_complete:
        click.echo("Existing comments are still being counted.", err=True)
    click.echo(tables.format_table(declared_reports.CountLine, lines, tables.TableFormat(form)))


@counter.command("remove", console.SITE)
@click.argument("name", metavar="NAME")
def _remove(site_id: str, name: str) -> None:
    """Remove a counter and its numbers."""
    site = console.site(site_id).id
    declarations.remove(site, name, now=console.now())
    click.echo(f"Removed the counter {name} from {site}.")
    _run_job(site)


def _run_job(site: str) -> None:
    """Run the job for a site's counters. If the job is interrupted, the service continues it."""
    try:
        declared_backfill.complete(site)
    except errors.Overloaded:
        minutes = declared_backfill.PATIENCE // timedelta(minutes=1)
        click.echo(
            "The store is busy, so the numbers are not complete yet. A running server completes "
            f"them within {minutes} minutes; `counter list {site}` shows when they are complete."
        )


def _say_cost(site: str, declared: "declared_counters.Declaration") -> None:

    cost = declared_reports.cost(site, declared)
    rows = quantity(cost.writes, "row")
    click.echo(f"Each counted change of a comment reads and writes at most {rows} more.")
    click.echo("A change of the comment's categories reads and writes up to twice as many.")
    click.echo(f"The numbers of the existing comments take at most {quantity(cost.rows, 'row')}.")
    click.echo(f"Counting the existing comments takes {quantity(cost.backfill, 'read')}, and")
    click.echo("a read and a write for each of these rows.")
