"""Check and repair stored data: `repair` and `recount`."""

import functools

import click

from comments import errors
from comments.cli import console, difference_report
from comments.cli.commands import compaction_commands
from comments.domain import records
from comments.store import reads
from comments.store.models import comment_rows
from comments.upkeep import scheduler
from comments.upkeep.integrity import recount as recounts
from comments.upkeep.integrity import thread_audit, thread_repair
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
        upgrades.go_on(steps=None)
        now, compact = console.now(), functools.partial(scheduler.compact_whole, wait=None)
        for name in names:
            if name in broken:
                thread_repair.mend(name, compact, now=now)
            else:
                thread_audit.note(name, (), now=now)
    if fix and report.total:
        click.echo("Run `recount` to compare the counters of sites and authors too.", err=True)
    report.end("repaired" if fix else "found")
    if report.left or (report.total and not fix):
        raise click.exceptions.Exit(1)


def _is_whole(name: records.ThreadName, report: difference_report.DifferenceReport) -> bool:
    """Return whether a thread has no problems, and report all problems found."""
    faults = thread_repair.find_faults(name)
    for fault in faults:
        report.add(_to_report(fault), is_left=not fault.mendable)
    return not faults


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
        report.add(_to_report(thread_repair.counter_fault(difference)))

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


def _to_report(fault: "thread_repair.StoredFault") -> difference_report.FoundDifference:
    return difference_report.FoundDifference(fault.kind, fault.place, fault.stored, fault.expected)
