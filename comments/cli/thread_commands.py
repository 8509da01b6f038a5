"""Set a thread's title, address and categories: `thread set`."""

from datetime import UTC, datetime

import click
from flask.cli import AppGroup

from comments.cli import console, moderation_commands
from comments.sites import site_settings

thread = AppGroup("thread", help="Change threads.")


@thread.command("set")
@click.argument("site_id", metavar="SITE")
@click.argument("thread_id", metavar="THREAD")
@click.option("--title", help='Title of the thread; "" for none.')
@click.option("--url", help='Address of its page; "" for none.')
@click.option("--category", "names", multiple=True, help="Categories; replaces all.")
@click.option("--no-category", is_flag=True, help="Remove all categories.")
@click.option(
    "--inherit", "inherits", multiple=True, type=click.Choice(["title", "url", "categories"]),
    help="Inherit the values from the oldest approved comment again.",
)  # fmt: skip
@click.option("--reason", default="", help="Reason, for the audit log.")
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
    """Set a thread's title, page address and categories.

    Values set here override those from comments, until you reset them with --inherit. All comments
    of the thread are counted under its categories. The service can keep running. An interrupted
    change continues by itself, or when you run the command again.
    """
    from comments.jobs import thread_overrides

    if names and no_category:
        raise click.ClickException("--category and --no-category cannot be combined.")
    listed = names if names or no_category else None
    if title is None and url is None and listed is None and not inherits:
        raise click.ClickException(
            "Nothing to change. Use --title, --url, --category, --no-category or --inherit."
        )
    name = console.thread(site_id, thread_id)
    found = thread_overrides.name(
        site_settings.get(site_id), name.id,
        thread_overrides.NewDetails(title, url, listed, inherits),
        moderation_commands.ACTOR, now=datetime.now(UTC), reason=reason,
    )  # fmt: skip
    click.echo(f"Moved {console.counted(found.moved, 'comment')}.")
    for field in thread_overrides.FIELDS:
        value = getattr(found.thread, field)
        by = "a moderator" if field in found.thread.own else "the oldest approved comment"
        click.echo(f"{field}\t{value if isinstance(value, str) else ', '.join(value)}\t{by}")
