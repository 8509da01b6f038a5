"""Check and repair stored data: `repair` and `recount`."""

import contextlib
from datetime import UTC, datetime

import click

from comments import errors
from comments.cli import console, difference_report
from comments.cli.commands import compaction_commands
from comments.domain import records
from comments.domain.counters import counting
from comments.sites import site_settings
from comments.store import reads
from comments.store.models import comment_rows
from comments.upkeep import scheduler
from comments.upkeep.integrity import recount as recounts
from comments.upkeep.integrity import repair as repairs
from comments.upkeep.integrity import thread_audit
from comments.upkeep.migrations import upgrades


@console.command("repair")
@click.option("--site", "site_id", help="Check only this site.")
@click.option("--thread", "thread_id", help="Check only this thread of the site.")
@click.option("--fix", is_flag=True, help="Repair the problems found.")
@difference_report.verbose
@difference_report.as_json
def repair(
    site_id: str | None, thread_id: str | None, *, fix: bool, verbose: bool, is_json: bool
) -> None:
    """Check every comment, its place, its pages and its thread's counters.

    Exit with 1 if there are problems. With --fix, the service can keep running.
    """
    if thread_id is not None and site_id is None:
        raise click.UsageError("--thread needs --site.")
    report = difference_report.DifferenceReport(noun="problem", verbose=verbose, is_json=is_json)
    names = compaction_commands.threads(site_id, thread_id)
    # A repair can correct several values, so all problems are found before the first repair.
    broken = {name for name in names if not _is_whole(name, report)}
    if fix:
        _fix(names, broken)
    if fix and report.total:
        click.echo("Run `recount` to compare the counters of sites and authors too.", err=True)
    report.end("repaired" if fix else "found")
    if report.left or (report.total and not fix):
        raise click.exceptions.Exit(1)


def _is_whole(name: records.ThreadName, report: difference_report.DifferenceReport) -> bool:
    """Return whether a thread has no problems, and report all problems found."""
    before = report.total
    for problem in repairs.find_problems(site_settings.scheme_of(name.site), name):
        report.add(_problem(problem), is_left=not problem.mendable)

    def tell(difference: "recounts.Difference") -> None:
        # The audit above has already compared the score with the comment's votes.
        if difference.name != "score":
            report.add(_difference(difference))

    return recounts.thread(name, tell=tell, fixes=False) == 0 and report.total == before


def _fix(names: list[records.ThreadName], broken: set[records.ThreadName]) -> None:

    upgrades.go_on(steps=None)
    for name in names:
        scheme = site_settings.scheme_of(name.site)
        problems = repairs.fix(scheme, name) if name in broken else []
        left = [problem.field for problem in problems if not problem.mendable]
        thread_audit.note(name, left, now=datetime.now(UTC))
        if any(problem.of_pages for problem in problems):
            # If another process is compacting the thread, it also compacts the repaired comments.
            with contextlib.suppress(errors.Overloaded):
                scheduler.compact_whole([name], wait=None)
        if name in broken:
            recounts.thread(name, tell=lambda _: None, fixes=True)


def _problem(problem: "repairs.ThreadProblem") -> difference_report.FoundDifference:
    name = problem.thread
    place = {"site": name.site, "thread": name.id, "comment": problem.comment}
    return difference_report.FoundDifference(problem.field, place, problem.stored, problem.expected)


@console.command("recount")
@click.argument("site_id", metavar="[SITE]", required=False)
@click.argument("thread", metavar="[THREAD]", required=False)
@click.option("--fix/--no-fix", default=True, help="Correct the differences, or only show them.")
@difference_report.verbose
@difference_report.as_json
def recount(
    site_id: str | None, thread: str | None, *, fix: bool, verbose: bool, is_json: bool
) -> None:
    """Recount what each counter counts, and correct the differences.

    The service can keep running. If the command is interrupted, run it again to continue.
    """
    report = difference_report.DifferenceReport(noun="difference", verbose=verbose, is_json=is_json)

    def tell(difference: "recounts.Difference") -> None:
        report.add(_difference(difference))

    if site_id is not None and thread is not None:
        name = console.thread(site_id, thread)
        if reads.get(comment_rows.thread_key(name)) is None:
            raise errors.NotFound("thread", thread)
        recounts.thread(name, tell=tell, fixes=fix)
    else:
        for site in console.sites(site_id):
            recounts.site(site.id, tell=tell, fixes=fix)
    report.end("corrected" if fix else "found")
    if report.total and not fix:
        raise click.exceptions.Exit(1)


def _difference(difference: "recounts.Difference") -> difference_report.FoundDifference:
    scope = difference.scope
    place = {field: part for field, part in scope._asdict().items() if field != "kind" and part}
    kind = f"{scope.kind} {difference.name}"
    if scope.kind == counting.LISTINGS:  # Each name is the digest of a thread
        kind, place = scope.kind, {**place, "thread": difference.name}
    return difference_report.FoundDifference(kind, place, difference.stored, difference.expected)
