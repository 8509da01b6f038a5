"""Import comments from a different system: `import SYSTEM FILE`."""

import contextlib
import gc
import importlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import click
import flask

from comments.cli import compaction_commands, console

# New objects until a garbage collection. An import makes millions of objects, but few cycles.
# Collections after every 700 objects took a tenth of its processor time.
_OBJECTS = 50_000
# The systems that `import` supports, and the module that reads each system's exports.
_READERS = {
    "disqus": "comments.jobs.importers.disqus",
    "wordpress": "comments.jobs.importers.wordpress",
}


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@click.command("import")
@click.argument("system", type=click.Choice(tuple(_READERS)))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--site", "site_id", required=True, help="The site to import into.")
@click.option("--dry-run", is_flag=True, help="Check the file and report, but store nothing.")
@flask.cli.with_appcontext
@console.reported
@_rare_collections()
def import_(system: str, file: Path, site_id: str, *, dry_run: bool) -> None:
    """Import the comments in an export from a different system.

    The whole file is checked before anything is stored. Running the import again adds nothing. If
    the import is interrupted, run it again to finish it.
    """
    from comments.events import dispatcher
    from comments.jobs import wiring
    from comments.jobs.importers import import_progress, import_writer

    reader = importlib.import_module(_READERS[system]).read
    site = console.site(site_id)
    secret = console.settings().secret
    with import_writer.plan(reader, file, site=site, scheme=site.scheme, secret=secret) as plan:
        for line in plan.report.lines():
            click.echo(line)
        import_writer.check(plan)
        if dry_run:
            click.echo("Dry run: nothing was stored.")
            return
        events: list[str] = []
        journal = import_progress.ImportJournal(
            site.id, system, file.name, plan.report.comments, lambda: datetime.now(UTC)
        )
        with _progress(plan.report.comments) as advance, journal:
            now = datetime.now(UTC)

            def progress(more: int) -> None:
                advance(more)
                journal.advance(more)

            summary = import_writer.write(
                plan, scheme=site.scheme, now=now, progress=progress, told=events.extend
            )
            journal.end(summary.added)
    # Deliver the events here: without a running server, no other process would update the counters,
    # which the operator will probably check next.
    dispatcher.deliver(events, now=datetime.now(UTC), handlers=wiring.handlers(console.settings()))
    added, threads = (
        console.counted(summary.added, "comment"),
        console.counted(summary.threads, "thread"),
    )
    click.echo(f"Added {added} in {threads}; {summary.present} existed already.")
    if summary.added:
        click.echo(
            "Readers see them now. A running server makes the pages fast within "
            f"{compaction_commands.minutes()} minutes, or run `compact {site.id} --wait`."
        )
    if plan.threads:
        longest = max(plan.threads, key=lambda thread: len(thread.nodes)).name
        query = urlencode({"site": longest.site, "thread": longest.id})
        click.echo(f"To view the longest thread, open /?{query} on the server.")


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, and nothing otherwise."""
    import rich.console
    import rich.progress

    console = rich.console.Console(stderr=True)
    with rich.progress.Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("Importing", total=total)
        yield lambda done: bar.advance(task, done)
