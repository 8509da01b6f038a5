"""The commands about what is asked of those who post on a website, see `post_limits`."""

from datetime import UTC, datetime

import click
from flask.cli import AppGroup

from comments.cli import console
from comments.sites import post_limits as limits
from comments.sites import site_settings

post_limits = AppGroup("post-limits", help="What is asked of those who post on a website.")
_NAMES = tuple(limits.RANGES)


@post_limits.command("show")
@click.argument("site_id", metavar="SITE")
@console.reported
def _show(site_id: str) -> None:
    """Show what holds for posts on a website, and what is the website's own."""
    site = site_settings.get(site_id)
    holds = limits.of(site, console.settings())
    for name in _NAMES:
        whose = "the service's" if getattr(site.guard, name) is None else "its own"
        click.echo(f"{name}\t{getattr(holds, name)}\t{whose}")
    if site.turnstile is not None:
        then = "refuse" if site.turnstile.refuses else "hold"
        click.echo(f"turnstile\t{site.turnstile.key}\tif it cannot be asked: {then}")


@post_limits.command("set")
@click.argument("site_id", metavar="SITE")
@click.argument("name", type=click.Choice(_NAMES))
@click.argument("value")
@console.reported
def _set(site_id: str, name: str, value: str) -> None:
    """Set one of them, a whole number, 0 for none; `service` to do as the service does."""
    number = None if value == "service" else _number(value)
    site_settings.change(site_id, guard={name: number})
    click.echo(f"Changed {site_id}. Running processes notice within a minute.")


@post_limits.command("turnstile")
@click.argument("site_id", metavar="SITE")
@click.argument("key", metavar="KEY", required=False)
@click.option(
    "--secret",
    default="",
    show_default=False,
    hide_input=True,
    prompt="The secret key (empty: the one there is)",
    help="Better typed where it is asked for.",
)
@click.option(
    "--then",
    type=click.Choice(("hold", "refuse")),
    default="hold",
    show_default=True,
    help="What becomes of a post about which Turnstile cannot be asked.",
)
@click.option("--url", default="", help="A service that speaks as Turnstile does.")
@console.reported
def _turnstile(site_id: str, key: str | None, *, secret: str, then: str, url: str) -> None:
    """Take posts only with a token of Turnstile; KEY is the site key. Without one: as it was."""
    from comments.posting import turnstile_settings

    given = turnstile_settings.Given(key or "", secret, refuses=then == "refuse", url=url)
    turnstile_settings.set_up(site_id, given, settings=console.settings(), now=datetime.now(UTC))
    click.echo(f"{site_id} asks Turnstile. Running processes notice within a minute.")


@post_limits.command("no-turnstile")
@click.argument("site_id", metavar="SITE")
@console.reported
def _no_turnstile(site_id: str) -> None:
    """Take posts without a token of Turnstile."""
    from comments.posting import turnstile_settings

    turnstile_settings.remove(site_id)
    click.echo(f"{site_id} asks Turnstile no more. Running processes notice within a minute.")


def _number(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) <= 9):  # noqa: PLR2004
        raise click.ClickException("give a whole number of up to 9 digits, or: service")
    return int(value)
