"""Decide about all comments that match a filter: `moderate bulk` and `moderate bulk-...`.

`moderation_commands` adds these commands to `moderate`. A decision that is interrupted is continued
by a running service, and by the next `moderate bulk-list`.
"""

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import click

from comments.cli import console
from comments.domain import categories, records
from comments.domain.moderation import ruling_texts
from comments.domain.text.shown_values import quantity
from comments.moderation import bulk_decisions, review_queue

ACTOR = records.Actor("cli", "the command line")
# The modules below are loaded when a command runs, not for its help (`command_table`).
_STATUSES = [status.value for status in records.Status if status is not records.Status.RETRACTED]
_DECISIONS = ["approve", "reject", "spam", "hide", "hold"]
_DAY = click.DateTime(["%Y-%m-%d"])
CATEGORY = click.option(
    "--category", default="", help="Only in this category and below it; */PART: at any level."
)
_FILTERS = (
    click.option("--status", type=click.Choice(_STATUSES), default="pending", show_default=True),
    click.option("--text", default="", help="Only comments with this text, name or website."),
    click.option("--author", default="", help="Only comments of the author with this id."),
    click.option("--page", default="", help="Only comments of this page: its address or id."),
    click.option(
        "--why", default="",
        help=f"Only comments with this reason: rule:NAME, {', '.join(ruling_texts.FILTERS)}.",
    ),
    CATEGORY,
    click.option("--since", type=_DAY, help="First day (UTC)."),
    click.option("--until", type=_DAY, help="Last day (UTC)."),
)  # fmt: skip

bulk = console.Group("bulk")


def filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a filter to a command; `queue_filter` reads them."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def queue_filter(site_id: str, options: dict[str, Any]) -> "review_queue.QueueFilter":
    """Return the filter that options describe.

    Raises:
        errors.NotFound: there is no such site.
    """
    site, why, until = console.site(site_id).id, options["why"], options["until"]
    if why and why.partition(":")[0] not in ruling_texts.FILTERS:
        raise click.BadParameter(f"{why!r} is not a reason.", param_hint="--why")
    return review_queue.QueueFilter(
        site,
        (records.Status(options["status"]),),
        options["author"],
        options["text"],
        threads=(console.thread(site, options["page"]).id,) if options["page"] else (),
        rule=why,
        since=options["since"] and options["since"].replace(tzinfo=UTC),
        before=until and until.replace(tzinfo=UTC) + timedelta(days=1),
        category=categories.canonical_term(options["category"]),
    )


@bulk.command("bulk", console.SITE)
@click.argument("verb", metavar="DECISION", type=click.Choice(_DECISIONS))
@filters
@click.option("--reason", default="", help="Reason, for the audit log.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def _start(site_id: str, verb: str, *, reason: str, yes: bool, **options: Any) -> None:
    """Approve, reject, hide or hold all comments that match, or mark them as spam.

    Comments that are edited or decided about before their turn are left as they are.
    """
    now, wanted = console.now(), queue_filter(site_id, options)
    if not yes:
        most = bulk_decisions.MOST
        number = "all" if wanted.is_search else f"{review_queue.count(wanted, most + 1):,}"
        click.confirm(f"{verb.capitalize()} {number} matching comments of {site_id}?", abort=True)
    job = bulk_decisions.start(wanted, records.Verb(verb), ACTOR, now=now, reason=reason)
    _finish(wanted.site, job.id)


@bulk.command("bulk-list", console.SITE)
def _list(site_id: str) -> None:
    """Finish interrupted bulk decisions, and list those of 30 days: id, time, state, numbers."""
    site = console.site(site_id).id
    for job in bulk_decisions.jobs(site):
        if job.ended is None:
            bulk_decisions.go_on(site, job.id, now=console.now())
    for job in bulk_decisions.jobs(site):
        moment = job.began.isoformat(timespec="seconds")
        numbers = f"{job.done} of {job.seen}"
        click.echo(f"{job.id}\t{moment}\t{job.actor.name}\t{job.verb}\t{job.state}\t{numbers}")


@bulk.command("bulk-stop", console.SITE)
@click.argument("job_id", metavar="ID")
def _stop(site_id: str, job_id: str) -> None:
    """Stop a bulk decision. What was decided stays, and can be undone."""
    job = bulk_decisions.cancel(console.site(site_id).id, job_id, now=console.now())
    click.echo(f"Stopped {job.id}. {quantity(job.done, 'comment')} changed.")


@bulk.command("bulk-undo", console.SITE)
@click.argument("job_id", metavar="ID")
def _undo(site_id: str, job_id: str) -> None:
    """Undo a bulk decision, except for comments that were changed again since."""
    site = console.site(site_id).id
    bulk_decisions.undo(site, job_id, ACTOR, now=console.now())
    _finish(site, job_id)


def _finish(site: str, job_id: str) -> None:
    job = bulk_decisions.go_on(site, job_id, now=console.now(), progress=_show)
    left = job.seen - job.done
    kept = f" {quantity(left, 'comment')} left unchanged." if left else ""
    click.echo(f"{job.id}: {job.state}, {quantity(job.done, 'comment')} changed.{kept}")


def _show(job: "bulk_decisions.BulkJob") -> None:
    """Show the progress on standard error."""
    click.echo(f"{job.state}: {job.seen} of {job.total}", err=True)
