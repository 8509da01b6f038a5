"""Count and list audiences: `stats audience`, which `statistics_commands` adds to `stats`."""

import functools
from typing import BinaryIO

import click

from comments import errors
from comments.cli import console
from comments.domain.counters import audiences
from comments.domain.text import tables
from comments.threads import thread_aliases
from comments.tree.counters import audience_scan, statistics

_NAME = "audience"  # The name of the audience that the options describe.
_forms = click.Choice([form.value for form in tables.TableFormat])
FORM = click.option("--format", "form", type=_forms, default=tables.TableFormat.TABLE.value)


class _Source(click.ParamType[dict[str, object]]):
    """A source given as text, which is converted to its JSON form."""

    name = "source"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, object]:
        try:
            return audiences.source_form(value)
        except errors.BadInput:
            self.fail(f"{value!r} is not category:NAME, thread:ID or site.", param, ctx)


@console.command("audience", console.SITE)
@click.option("--every", type=_Source(), multiple=True, help="In each of these sources.")
@click.option("--any", "some", type=_Source(), multiple=True, help="In at least one of these.")
@click.option("--but", type=_Source(), multiple=True, help="In none of these.")
@click.option("--file", type=click.File("rb"), help="Named audiences as JSON; - reads the input.")
@click.option("--authors", "lists", is_flag=True, help="List the ids of the audience's authors.")
@click.option("--cost", "only_says", is_flag=True, help="Only show what the scan would cost.")
@FORM
def audience(
    site_id: str,
    every: tuple[dict[str, object], ...],
    some: tuple[dict[str, object], ...],
    but: tuple[dict[str, object], ...],
    file: BinaryIO | None,
    form: tables.TableFormat,
    *,
    lists: bool,
    only_says: bool,
) -> None:
    """Count the distinct commenters in a combination of sources.

    A SOURCE is one of "category:NAME" (including subcategories), "thread:ID" (where ID can be the
    address of the page) and "site". A category and the site can have a period of days (UTC):
    "category:sport@2026-01-01..2026-01-31", or "site@2026-01-31" for one day.

    One scan counts all audiences of a file, such as {"fans": {"any": [{"category": "sport"}]}}.
    """
    given = {"all": every, "any": some, "but": but}
    if (file is None) != any(given.values()):
        raise click.ClickException("Enter either sources or --file.")
    if file is None and not (every or some):
        raise click.ClickException("--but needs --every or --any.")
    if lists and only_says:
        raise click.ClickException("--authors and --cost cannot be combined.")
    website = console.site(site_id)
    site = website.id
    threads = [source for part in given.values() for source in part if "thread" in source]
    for source in threads:
        source["thread"] = console.thread(site, str(source["thread"])).id
    asked = audiences.question(
        {_NAME: given} if file is None else audiences.decode_named(file.read())
    )
    asked.translate_threads(functools.partial(thread_aliases.stored_id, website))
    table = tables.TableFormat(form)
    if only_says:
        cost = audience_scan.cost(site, asked)
        click.echo(tables.format_table(audience_scan.ScanCost, [cost], table))
    elif lists:
        authors = list(
            statistics.whole(lambda after: audience_scan.members(site, asked, after=after))
        )
        click.echo(tables.format_table(audience_scan.AudienceMember, authors, table))
    else:
        counts = audience_scan.count(site, asked)
        click.echo(tables.format_table(audience_scan.AudienceCount, counts, table))
