"""The commands about what is asked of those who post on a website, see `guards`."""

import click
from flask.cli import AppGroup

from comments import console, guards, sites

guard = AppGroup("guard", help="What is asked of those who post on a website.")
_NAMES = tuple(guards.RANGES)


@guard.command("show")
@click.argument("site_id", metavar="SITE")
@console.reported
def _show(site_id: str) -> None:
    """Show what holds for posts on a website, and what is the website's own."""
    site = sites.get(site_id)
    holds = guards.of(site, console.settings())
    for name in _NAMES:
        whose = "the service's" if getattr(site.guard, name) is None else "its own"
        click.echo(f"{name}\t{getattr(holds, name)}\t{whose}")


@guard.command("set")
@click.argument("site_id", metavar="SITE")
@click.argument("name", type=click.Choice(_NAMES))
@click.argument("value")
@console.reported
def _set(site_id: str, name: str, value: str) -> None:
    """Set one of them, a whole number, 0 for none; `service` to do as the service does."""
    number = None if value == "service" else _number(value)
    sites.change(site_id, guard={name: number})
    click.echo(f"Changed {site_id}. Running processes notice within a minute.")


def _number(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) <= 9):  # noqa: PLR2004
        raise click.ClickException("give a whole number, or: service")
    return int(value)
