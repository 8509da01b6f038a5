"""The commands about websites: `site add|list|set`."""

from datetime import UTC, datetime

import click
from flask.cli import AppGroup

from comments.cli import console
from comments.sites import site_settings

site = AppGroup("site", help="Add, list and change websites.")


def _checked_id(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
    with console.refusing():
        return site_settings.check_id(given)


def _checked_origins(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    with console.refusing():
        return tuple(map(site_settings.checked_origin, given))


# Arguments are checked as they are parsed: a command that is refused must not make a store.
@site.command("add")
@click.argument("site_id", metavar="ID", callback=_checked_id)
@click.option(
    "--origin", "origins", multiple=True, required=True, callback=_checked_origins,
    help="https://example.com",
)  # fmt: skip
@console.creating
def _add_site(site_id: str, origins: tuple[str, ...]) -> None:
    """Register a website and the origins its pages come from. Makes the store if there is none."""
    added = site_settings.add(
        site_id, origins, scheme=console.settings().scheme, now=datetime.now(UTC)
    )
    click.echo(f"Added {added.id} ({', '.join(added.origins)}).")


@site.command("list")
@console.reported
def _list_sites() -> None:
    """Show every website, one a line: its id and origins."""
    for each in site_settings.every():
        click.echo(f"{each.id}\t{' '.join(each.origins)}")


@site.command("set")
@click.argument("site_id", metavar="ID")
@click.option("--origin", "origins", multiple=True, help="Where its pages come from; replaces all.")
@click.option(
    "--query-key",
    "query_keys",
    multiple=True,
    help="Keys that tell pages apart; replaces all; '' for none.",
)
@click.option("--keep-trailing-slash/--drop-trailing-slash", default=None)
@click.option("--cdn-seconds", type=int, help="How long a CDN may answer readers; 0 for never.")
@click.option(
    "--freshness", type=int, help="Seconds for which pages are shown unchecked; 0: never."
)
@click.option(
    "--category",
    "filed",
    multiple=True,
    help="What pages may file under; replaces all; '' for none.",
)
@click.option(
    "--moderator",
    "moderators",
    multiple=True,
    help="Who is mailed what waits; replaces all; '' for none.",
)
@console.reported
def _set_site(  # noqa: PLR0917 - click passes each option by name
    site_id: str,
    origins: tuple[str, ...],
    query_keys: tuple[str, ...],
    keep_trailing_slash: bool | None,  # noqa: FBT001 - same
    cdn_seconds: int | None,
    freshness: int | None,
    filed: tuple[str, ...],
    moderators: tuple[str, ...],
) -> None:
    """Change what is given; leave the rest."""
    given = (*origins, *query_keys, *filed, *moderators)
    if not given and keep_trailing_slash is None and cdn_seconds is None and freshness is None:
        raise click.ClickException(f"nothing to change of {site_id}: give an option of --help")
    changed = site_settings.change(
        site_id,
        origins=origins or None,
        query_keys=_given(query_keys),
        keep_trailing_slash=keep_trailing_slash,
        cdn_seconds=cdn_seconds,
        freshness=freshness,
        filed=_given(filed),
        moderators=_given(moderators),
    )
    # Origins that are given stand instead of those there were: whoever did not mean that sees it.
    named = f"{changed.id} ({', '.join(changed.origins)})" if origins else changed.id
    click.echo(f"Changed {named}. Running processes notice within a minute.")


def _given(values: tuple[str, ...]) -> list[str] | None:
    """The values of an option that replace all there were; None where it was not given."""
    return [each for each in values if each] if values else None
