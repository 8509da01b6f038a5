"""Compact threads immediately: `compact [SITE [THREAD]]`."""

import math
import time
from datetime import datetime, timedelta

import click

from comments import errors
from comments.cli import console
from comments.domain import records
from comments.domain.text.shown_values import quantity
from comments.events import backlog
from comments.reading.compaction import compactor
from comments.upkeep import background_worker, scheduler


@console.command("compact")
@click.argument("site_id", metavar="[SITE]", required=False)
@click.argument("thread", metavar="[THREAD]", required=False)
@click.option("--wait/--no-wait", default=False, help="Wait and clean up in this command.")
def compact(site_id: str | None, thread: str | None, *, wait: bool) -> None:
    """Compact changed comments into the buckets that readers get.

    Old buckets can be deleted about a minute later, when no process uses them any more. A running
    server deletes the old buckets; if no server is running, use --wait.
    """
    names = threads(site_id, thread)
    done = scheduler.compact_whole(names, wait=sleep if wait else None)
    report("Compacted", done)


def threads(site_id: str | None, thread: str | None) -> list[records.ThreadName]:
    """Return the names of all threads, of a site's threads, or of one thread.

    Raises:
        errors.NotFound: there is no such site or thread.
    """
    names = [name for site in console.sites(site_id) for name in scheduler.threads(site.id)]
    if site_id is not None and thread is not None:
        wanted = console.thread(site_id, thread)
        names = [name for name in names if name == wanted]
        if not names:
            raise errors.NotFound("thread", thread)
    return names


def report(verb: str, done: "scheduler.RoundSummary") -> None:
    """Print the number of threads that were compacted, and what is left to do."""
    threads = quantity(done.compacted, "thread")
    click.echo(f"{verb} {threads}; {done.waiting} still to be cleaned up.")
    if done.waiting:
        click.echo(
            f"A running server does that within {minutes_until_cleared(backlog.FOLD_AFTER)} "
            "minutes, or run `compact --wait`."
        )


def minutes_until_cleared(due: float = 0.0) -> int:
    """Return the minutes until a server has cleared threads that are due in `due` seconds."""
    return math.ceil((due + background_worker.LOOK_EVERY + compactor.GRACE) / 60)


def sleep(seconds: float) -> None:
    """Print the expected waiting time, then wait."""
    end = (datetime.now().astimezone() + timedelta(seconds=seconds)).strftime("%H:%M:%S")
    click.echo(
        f"Compacted. The clean-up starts at {end}, in {seconds:.0f} s. "
        "If you interrupt this command, a running server cleans up later.",
        err=True,
    )
    time.sleep(seconds)
