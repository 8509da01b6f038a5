"""The commands of `flask --app main ...`: sites, imports, repair, folding, counters.

Owns what an operator types and reads. Every command enters the store, reports what it did, and
exits with 0 only if all of it was done: 1 for input that was refused, 2 for wrong usage.

The serving process imports this module and runs none of it, so what only a command needs is
imported by that command.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click
import flask
from flask.cli import AppGroup

from comments import errors
from comments.cli import (
    account_commands,
    author_commands,
    budget_commands,
    classifier_commands,
    console,
    moderation_commands,
    post_limit_commands,
    provider_commands,
    secret_commands,
    site_key_commands,
    statistics_commands,
    webhook_commands,
)
from comments.domain import records, sorthash
from comments.sites import site_settings
from comments.store import reads

if TYPE_CHECKING:
    from comments.jobs import recount

_SYSTEMS = ("disqus", "wordpress")


def register(app: flask.Flask) -> None:
    """Add the commands to an application made by `app.create_app`."""
    app.cli.add_command(_site)
    app.cli.add_command(_threads)
    app.cli.add_command(_import)
    app.cli.add_command(_repair)
    app.cli.add_command(_fold)
    app.cli.add_command(_forget)
    app.cli.add_command(_recount)
    app.cli.add_command(account_commands.account)
    app.cli.add_command(classifier_commands.adviser)
    app.cli.add_command(site_key_commands.key)
    app.cli.add_command(secret_commands.secret)
    app.cli.add_command(provider_commands.provider)
    app.cli.add_command(author_commands.author)
    app.cli.add_command(budget_commands.budget)
    app.cli.add_command(post_limit_commands.guard)
    app.cli.add_command(webhook_commands.hook)
    app.cli.add_command(webhook_commands.delivery)
    app.cli.add_command(statistics_commands.stats_commands)
    app.cli.add_command(moderation_commands.rule)
    app.cli.add_command(moderation_commands.moderate)


_site = AppGroup("site", help="Add, list and change websites.")


def _checked_id(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
    with console.refusing():
        return site_settings.check_id(given)


def _checked_origins(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    with console.refusing():
        return tuple(map(site_settings.checked_origin, given))


# Arguments are checked as they are parsed: a command that is refused must not make a store.
@_site.command("add")
@click.argument("site_id", metavar="ID", callback=_checked_id)
@click.option(
    "--origin", "origins", multiple=True, required=True, callback=_checked_origins,
    help="https://example.com",
)  # fmt: skip
@console.creating
def _add_site(site_id: str, origins: tuple[str, ...]) -> None:
    """Register a website and the origins its pages come from. Makes the store if there is none."""
    site = site_settings.add(
        site_id, origins, scheme=console.settings().scheme, now=datetime.now(UTC)
    )
    click.echo(f"Added {site.id} ({', '.join(site.origins)}).")


@_site.command("list")
@console.reported
def _list_sites() -> None:
    """Show every website, one a line: its id and origins."""
    for site in site_settings.every():
        click.echo(f"{site.id}\t{' '.join(site.origins)}")


@_site.command("set")
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
    site = site_settings.change(
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
    named = f"{site.id} ({', '.join(site.origins)})" if origins else site.id
    click.echo(f"Changed {named}. Running processes notice within a minute.")


def _given(values: tuple[str, ...]) -> list[str] | None:
    """The values of an option that replace all there were; None where it was not given."""
    return [each for each in values if each] if values else None


_threads = AppGroup("thread", help="Change threads.")


@_threads.command("set")
@click.argument("site_id", metavar="SITE")
@click.argument("thread", metavar="THREAD")
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
    thread: str,
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
    from comments.jobs import thread_details

    if names and no_category:
        raise click.ClickException("give --category, once for each, or --no-category, not both")
    listed = names if names or no_category else None
    if title is None and url is None and listed is None and not inherits:
        raise click.ClickException(
            "give --title, --url, --category, --no-category or --inherit: nothing was changed"
        )
    name = console.thread(site_id, thread)
    found = thread_details.name(
        site_settings.get(site_id), name.id, thread_details.Wanted(title, url, listed, inherits),
        moderation_commands.ACTOR, now=datetime.now(UTC), reason=reason,
    )  # fmt: skip
    click.echo(f"{found.moved} comments moved.")
    for field in thread_details.FIELDS:
        value = getattr(found.thread, field)
        by = "a moderator" if field in found.thread.own else "the oldest approved comment"
        click.echo(f"{field}\t{value if isinstance(value, str) else ', '.join(value)}\t{by}")


@click.command("import")
@click.argument("system", type=click.Choice(_SYSTEMS))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--site", "site_id", required=True, help="The site the comments go to.")
@click.option("--dry-run", is_flag=True, help="Check the file and report; store nothing.")
@flask.cli.with_appcontext
@console.reported
def _import(system: str, file: Path, site_id: str, *, dry_run: bool) -> None:
    """Take over the comments of another system's export.

    The whole file is checked before anything is stored. Running it again adds nothing; an
    interrupted import is finished by running it again.
    """
    from comments.events import dispatcher
    from comments.jobs import wiring
    from comments.jobs.importers import disqus, import_progress, import_writer, wordpress

    reader = {"disqus": disqus.read, "wordpress": wordpress.read}[system]
    site, scheme = site_settings.get(site_id), console.settings().scheme
    secret = console.settings().secret
    with import_writer.plan(reader, file, site=site, scheme=scheme, secret=secret) as plan:
        for line in plan.report.lines():
            click.echo(line)
        import_writer.check(plan)
        if dry_run:
            click.echo("Dry run: nothing was stored.")
            return
        events: list[str] = []
        journal = import_progress.Journal(
            site.id, system, file.name, plan.report.comments, lambda: datetime.now(UTC)
        )
        with _progress(plan.report.comments) as advance, journal:
            now = datetime.now(UTC)

            def progress(more: int) -> None:
                advance(more)
                journal.advance(more)

            summary = import_writer.write(
                plan, scheme=scheme, now=now, progress=progress, told=events.extend
            )
            journal.end(summary.added)
    # Where no server runs nobody else would count them, and who imports looks at the numbers next.
    dispatcher.deliver(events, now=datetime.now(UTC), handlers=wiring.of(console.settings()))
    click.echo(
        f"{summary.added} comments added, {summary.present} were there already, "
        f"in {summary.threads} threads."
    )
    if summary.added:
        click.echo(
            "Readers see them now. A running server makes their pages fast within "
            f"{_minutes()} minutes; `fold {site.id} --wait` does it here."
        )
    if plan.threads:
        longest = max(plan.threads, key=lambda thread: len(thread.nodes)).name
        query = urlencode({"site": longest.site, "thread": longest.id})
        click.echo(f"To look at the longest one, open /?{query} on the server.")


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; nothing in a log."""
    import rich.console
    import rich.progress

    console = rich.console.Console(stderr=True)
    with rich.progress.Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("Importing", total=total)
        yield lambda done: bar.advance(task, done)


@click.command("repair")
@click.option("--site", "site_id", help="Only this site.")
@click.option("--fix", is_flag=True, help="Mend what is found.")
@flask.cli.with_appcontext
@console.reported
def _repair(site_id: str | None, *, fix: bool) -> None:
    """Check every tree against its parent links and numbers; exit 1 if something is wrong."""
    from comments.jobs import repair, upgrades

    scheme = console.settings().scheme
    if fix:
        upgrades.go_on(steps=None)
    chosen = [site_settings.get(site_id)] if site_id else site_settings.every()
    found = 0
    for site in chosen:
        for name in repair.threads(site.id):
            found += _repair_thread(name, scheme, fix=fix)
    click.echo(f"{found} problems {'mended' if fix else 'found'}.")
    if found and not fix:
        raise click.exceptions.Exit(1)


def _repair_thread(name: records.ThreadName, scheme: sorthash.Scheme, *, fix: bool) -> int:
    from comments.jobs import repair

    problems = repair.find_problems(scheme, name)
    for problem in problems:
        where = problem.comment or "thread"
        click.echo(
            f"{name.site} {name.id} {where}: {problem.field} is {problem.stored!r}, "
            f"should be {problem.expected!r}"
        )
    if problems and fix:
        repair.fix(scheme, name)
    return len(problems)


@click.command("fold")
@click.argument("site_id", metavar="[SITE]", required=False)
@click.argument("thread", metavar="[THREAD]", required=False)
@click.option("--wait/--no-wait", default=False, help="Wait, and clean up here.")
@flask.cli.with_appcontext
@console.reported
def _fold(site_id: str | None, thread: str | None, *, wait: bool) -> None:
    """Take changed comments into the buckets that readers get, now.

    Old buckets may be deleted about a minute later, when no process reads them any more. A running
    server does that, or this command with --wait.
    """
    from comments.events import backlog
    from comments.jobs import scheduler

    chosen = [site_settings.get(site_id)] if site_id else site_settings.every()
    names = [name for site in chosen for name in scheduler.threads(site.id)]
    if site_id is not None and thread is not None:
        wanted = console.thread(site_id, thread)
        names = [name for name in names if name == wanted]
        if not names:
            raise errors.NotFound("thread", thread)
    done = scheduler.fold_whole(console.settings().scheme, names, wait=_sleep if wait else None)
    click.echo(f"{done.folded} threads folded, {done.waiting} left to be cleared.")
    if done.waiting:
        click.echo(
            f"A running server clears them within {_minutes(backlog.FOLD_AFTER)} minutes; "
            "`fold --wait` does it here."
        )


def _minutes(due: float = 0.0) -> int:
    """In how many minutes a server has seen, and cleared, what is due in so many seconds."""
    from comments.jobs import worker_thread
    from comments.reading.compaction import compactor

    return math.ceil((due + worker_thread.LOOK_EVERY + compactor.GRACE) / 60)


def _sleep(seconds: float) -> None:
    """Wait, and say until when."""
    end = (datetime.now().astimezone() + timedelta(seconds=seconds)).strftime("%H:%M:%S")
    click.echo(
        f"Folded. Clearing begins at {end}, in {seconds:.0f} s. "
        "If you interrupt this command, a running server clears the threads later.",
        err=True,
    )
    time.sleep(seconds)


@click.command("forget")
@click.argument("address")
@flask.cli.with_appcontext
@console.reported
def _forget(address: str) -> None:
    """Erase a mail address: what it is told of, and its id from every list of followers.

    What comments hold of their authors is not touched; it is erased when they are retracted.
    """
    from comments.accounts import accounts, identities
    from comments.notifications import double_opt_in

    ended = double_opt_in.forget(address, console.settings().secret, now=datetime.now(UTC))
    click.echo(f"{ended} subscriptions ended. Nothing is stored of what it was told of.")
    if accounts.find(identities.of_address(address), console.settings().secret) is not None:
        click.echo(f"An account signs in with it: `author erase {address}` erases that.")


@click.command("recount")
@click.argument("site_id", metavar="[SITE]", required=False)
@click.argument("thread", metavar="[THREAD]", required=False)
@click.option("--fix/--no-fix", default=True, help="Mend what is found, or only show it.")
@flask.cli.with_appcontext
@console.reported
def _recount(site_id: str | None, thread: str | None, *, fix: bool) -> None:
    """Compare every counter with what it counts, show what differs and mend it.

    People may go on writing. An interrupted recount goes on where it ended.
    """
    from comments.jobs import recount
    from comments.store.models import comment_rows

    found = 0
    if site_id is not None and thread is not None:
        name = console.thread(site_id, thread)
        if reads.get(comment_rows.thread_key(name)) is None:
            raise errors.NotFound("thread", thread)
        found = recount.thread(name, tell=_show, fixes=fix)
    else:
        for site in [site_settings.get(site_id)] if site_id else site_settings.every():
            found += recount.site(site.id, tell=_show, fixes=fix)
    click.echo(f"{found} differences {'mended' if fix else 'found'}.")
    if found and not fix:
        raise click.exceptions.Exit(1)


def _show(difference: "recount.Difference") -> None:
    scope = difference.scope
    where = " ".join(part for part in scope if part)
    click.echo(
        f"{where}: {difference.name} is {difference.stored}, should be {difference.expected}"
    )
