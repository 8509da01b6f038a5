"""Check and repair stored data: `repair` and `recount`."""

from typing import TYPE_CHECKING

import click
import flask

from comments import errors
from comments.cli import console
from comments.domain import records, sorthash
from comments.sites import site_settings
from comments.store import reads

if TYPE_CHECKING:
    from comments.jobs import recount as recounts


@click.command("repair")
@click.option("--site", "site_id", help="Check only this site.")
@click.option("--fix", is_flag=True, help="Repair the problems found.")
@flask.cli.with_appcontext
@console.reported
def repair(site_id: str | None, *, fix: bool) -> None:
    """Check every tree against its parent links and numbers; exit with 1 if there are problems."""
    from comments.jobs import repair as repairs
    from comments.jobs import upgrades

    if fix:
        upgrades.go_on(steps=None)
    chosen = [site_settings.get(site_id)] if site_id else site_settings.every()
    found = 0
    for site in chosen:
        for name in repairs.threads(site.id):
            found += _repair_thread(name, site.scheme, fix=fix)
    click.echo(f"{console.counted(found, 'problem')} {'repaired' if fix else 'found'}.")
    if found and not fix:
        raise click.exceptions.Exit(1)


def _repair_thread(name: records.ThreadName, scheme: sorthash.Scheme, *, fix: bool) -> int:
    from comments.jobs import repair as repairs

    problems = repairs.find_problems(scheme, name)
    for problem in problems:
        where = problem.comment or "thread"
        click.echo(
            f"{name.site} {name.id} {where}: {problem.field} is {problem.stored!r}, "
            f"should be {problem.expected!r}"
        )
    if problems and fix:
        repairs.fix(scheme, name)
    return len(problems)


@click.command("recount")
@click.argument("site_id", metavar="[SITE]", required=False)
@click.argument("thread", metavar="[THREAD]", required=False)
@click.option("--fix/--no-fix", default=True, help="Correct the differences, or only show them.")
@flask.cli.with_appcontext
@console.reported
def recount(site_id: str | None, thread: str | None, *, fix: bool) -> None:
    """Recount what each counter counts, and correct the differences.

    The service can keep running. If the command is interrupted, run it again to continue.
    """
    from comments.jobs import recount as recounts
    from comments.store.models import comment_rows

    found = 0
    if site_id is not None and thread is not None:
        name = console.thread(site_id, thread)
        if reads.get(comment_rows.thread_key(name)) is None:
            raise errors.NotFound("thread", thread)
        found = recounts.thread(name, tell=_show, fixes=fix)
    else:
        for site in [site_settings.get(site_id)] if site_id else site_settings.every():
            found += recounts.site(site.id, tell=_show, fixes=fix)
    click.echo(f"{console.counted(found, 'difference')} {'corrected' if fix else 'found'}.")
    if found and not fix:
        raise click.exceptions.Exit(1)


def _show(difference: "recounts.Difference") -> None:
    scope = difference.scope
    where = " ".join(part for part in scope if part)
    click.echo(
        f"{where}: {difference.name} is {difference.stored}, should be {difference.expected}"
    )
