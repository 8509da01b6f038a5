"""Show and set a website's limits and checks for posts (`sites.post_limits`)."""

import click

from comments.cli import console
from comments.limits import post_limits as limits
from comments.sites import site_settings, turnstile_settings

post_limits = console.Group("post-limits")
_NAMES = tuple(limits.RANGES)


@post_limits.command("show", console.SITE)
def _show(site_id: str) -> None:
    """Show the limits for posts on a website, and which of them are set for this website."""
    site = console.site(site_id)
    holds = limits.of(site, console.settings())
    for name in _NAMES:
        whose = "service default" if getattr(site.guard, name) is None else "set for this site"
        click.echo(f"{name}\t{getattr(holds, name)}\t{whose}")
    if site.turnstile is not None:
        then = "refuse" if site.turnstile.refuses else "hold"
        click.echo(f"turnstile\t{site.turnstile.key}\tif it does not answer: {then}")


@post_limits.command("set", console.SITE)
@click.argument("name", type=click.Choice(_NAMES))
@click.argument("value")
def _set(site_id: str, name: str, value: str) -> None:
    """Set a limit to a whole number; 0 means no limit, and `service` the service's default."""
    number = None if value == "service" else _number(value)
    site_settings.change(site_id, guard={name: number})
    click.echo(f"Changed {site_id}. {console.applies()}")


@post_limits.command("turnstile", console.SITE)
@click.argument("key", metavar="KEY", required=False)
@click.option(
    "--secret",
    default="",
    show_default=False,
    hide_input=True,
    prompt="Secret key (leave empty to keep the stored key)",
    help="The secret key. It is safer to type it at the prompt.",
)
@click.option(
    "--then",
    type=click.Choice(("hold", "refuse")),
    default="hold",
    show_default=True,
    help="What to do with a post if Turnstile does not answer.",
)
@click.option("--url", default="", help="Address of a different service with Turnstile's protocol.")
def _turnstile(site_id: str, key: str | None, *, secret: str, then: str, url: str) -> None:
    """Require a Turnstile token for posts.

    KEY is the site key; if it is omitted, the stored key is kept.
    """
    given = turnstile_settings.TurnstileInput(key or "", secret, refuses=then == "refuse", url=url)
    turnstile_settings.set_up(site_id, given, settings=console.settings(), now=console.now())
    click.echo(f"{site_id} now uses Turnstile. {console.applies()}")


@post_limits.command("no-turnstile", console.SITE)
def _no_turnstile(site_id: str) -> None:
    """Stop requiring a Turnstile token for posts."""
    turnstile_settings.remove(site_id)
    click.echo(f"{site_id} no longer uses Turnstile. {console.applies()}")


def _number(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) <= 9):  # noqa: PLR2004
        raise click.ClickException("VALUE must be a whole number of up to 9 digits, or `service`.")
    return int(value)
