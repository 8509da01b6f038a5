"""The command about what a thread shows of itself: `thread set`."""

from datetime import UTC, datetime

import click
from flask.cli import AppGroup

from comments.cli import console, moderation_commands
from comments.sites import site_settings

thread = AppGroup("thread", help="Change threads.")


@thread.command("set")
@click.argument("site_id", metavar="SITE")
@click.argument("thread_id", metavar="THREAD")
@click.option("--title", help='Show this title; "" shows none.')
@click.option("--url", help='Link to this page; "" links to none.')
@click.option("--category", "names", multiple=True, help="Replace the categories by these.")
@click.option("--no-category", is_flag=True, help="Take the categories away.")
@click.option(
    "--inherit", "inherits", multiple=True, type=click.Choice(["title", "url", "categories"]),
    help="Show again what the oldest approved comment brought.",
)  # fmt: skip
@click.option("--reason", default="", help="For the audit log.")
@console.reported
def _set_thread(
    site_id: str,
    thread_id: str,
    *,
    title: str | None,
    url: str | None,
    names: tuple[str, ...],
    inherits: tuple[str, ...],
    reason: str,
    no_category: bool,
) -> None:
    """Set the title, the page and the categories of a thread.

    What is set here is shown whatever comments bring, until it is given back by --inherit.
    All comments of the thread are counted under its categories. People may go on writing; an
    interrupted change goes on by itself, or when the command is run again.
    """
    from comments.jobs import thread_overrides

    if names and no_category:
        raise click.ClickException("give --category, once for each, or --no-category, not both")
    listed = names if names or no_category else None
    if title is None and url is None and listed is None and not inherits:
        raise click.ClickException(
            "give --title, --url, --category, --no-category or --inherit: nothing was changed"
        )
    name = console.thread(site_id, thread_id)
    found = thread_overrides.name(
        site_settings.get(site_id), name.id, thread_overrides.Wanted(title, url, listed, inherits),
        moderation_commands.ACTOR, now=datetime.now(UTC), reason=reason,
    )  # fmt: skip
    click.echo(f"{found.moved} comments moved.")
    for field in thread_overrides.FIELDS:
        value = getattr(found.thread, field)
        by = "a moderator" if field in found.thread.own else "the oldest approved comment"
        click.echo(f"{field}\t{value if isinstance(value, str) else ', '.join(value)}\t{by}")
