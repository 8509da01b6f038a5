"""Import comments from a different system: `import [FORMAT] FILE`."""

import contextlib
import gc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click
import flask

from comments.cli import compaction_commands, console, import_progress, import_restoring

if TYPE_CHECKING:
    from comments.domain import records
    from comments.jobs.importers import import_writer
    from comments.jobs.importers.formats import format_registry

# New objects until a garbage collection. An import makes millions of objects, but few cycles.
# Collections after every 700 objects took a tenth of its processor time.
_OBJECTS = 50_000


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely, because an import makes millions of objects, but few cycles."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


mapped = click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="OLD=NEW",
    help="Move pages: old.example=blog.example, /blog=/posts, or the address of one page. "
    "Repeat for several.",
)


@click.command("import")
@click.argument("source", nargs=-1, required=True, metavar="[FORMAT] FILE")
@click.option("--site", "site_id", required=True, help="The site to import into.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check the file, report and propose mappings, but store nothing.",
)
@mapped
@click.option(
    "--settings",
    "with_settings",
    is_flag=True,
    help="Replace the site's settings by those in an export of Flatthread.",
)
@flask.cli.with_appcontext
@console.reported
@rare_collections()
def import_(
    source: tuple[str, ...],
    site_id: str,
    *,
    dry_run: bool,
    mapping: tuple[str, ...],
    with_settings: bool,
) -> None:
    """Import the comments in an export from a different system.

    The format is recognized from the file, or can be given before it.

    The whole file is checked before anything is stored. Running the import again adds nothing. If
    the import is interrupted, run it again to finish it.
    """
    from comments.cli import verify_commands
    from comments.events import dispatcher
    from comments.jobs import wiring
    from comments.jobs.importers import import_writer
    from comments.jobs.importers.verification import verification_report

    found, file = format_and_file(source)
    restore, site = import_restoring.of(
        found.name, file, console.site(site_id), with_settings=with_settings
    )
    with planned(found, file, site, mapping) as plan:
        for line in plan.report.lines():
            click.echo(line)
        import_writer.check(plan)
        if dry_run:
            _end_dry_run(plan, site)
            return
        restore.run(plan.id_of)
        events: list[str] = []
        with import_progress.shown("Importing", plan.report.comments, "comment") as advance:
            summary = import_writer.write(
                plan,
                scheme=site.scheme,
                now=datetime.now(UTC),
                progress=advance,
                told=events.extend,
            )
        # Deliver the events here: without a running server, no other process would update the
        # counters, which the operator will probably check next.
        handlers = wiring.handlers(console.settings())
        dispatcher.deliver(events, now=datetime.now(UTC), handlers=handlers)
        verified = verify_commands.compared(plan, site)
    click.echo(
        f"Added {console.counted(summary.added, 'comment')} in "
        f"{console.counted(summary.threads, 'thread')}; {summary.present} existed already."
    )
    for line in verification_report.outcome(verified):
        click.echo(line)
    if summary.added:
        click.echo(
            "Readers see them now. A running server makes the pages fast within "
            f"{compaction_commands.minutes()} minutes, or run `compact {site.id} --wait`."
        )
    if plan.threads:
        longest = max(plan.threads, key=lambda thread: len(thread.nodes)).name
        query = urlencode({"site": longest.site, "thread": longest.id})
        click.echo(f"To view the longest thread, open /?{query} on the server.")
    if verified.unexplained:
        raise click.exceptions.Exit(1)


def _end_dry_run(plan: "import_writer.CheckedImport", site: "records.Site") -> None:
    """Propose mappings."""
    from comments.jobs.importers.proposals import mapping_proposals

    found = mapping_proposals.propose(plan.threads, site, plan.report.empty_pages)
    for line in mapping_proposals.lines(found):
        click.echo(line)
    click.echo("Dry run: nothing was stored.")


@contextlib.contextmanager
def planned(
    found: "format_registry.Format", file: Path, site: "records.Site", mapping: tuple[str, ...]
) -> "Iterator[import_writer.CheckedImport]":
    """Read and check a file, and show the progress.

    Raises:
        errors.BadImport: the file is invalid; the error names the line.
        errors.ImportRefused: a mapping is invalid.
    """
    from comments.jobs.importers import import_writer

    lines = import_progress.lines_in(file) if found.unit == "line" else None
    with import_progress.shown("Reading", lines, found.unit) as advance:
        plan = import_writer.plan(
            found.read,
            file,
            site=site,
            scheme=site.scheme,
            secret=console.settings().secret,
            unit=found.unit,
            mapping=mapping,
            progress=advance,
        )
    with plan:
        yield plan


def format_and_file(source: tuple[str, ...]) -> "tuple[format_registry.Format, Path]":
    """Return the format and the file that a command's arguments name: `[FORMAT] FILE`.

    Raises:
        click.UsageError: the arguments are not a file, or a known format and a file.
        errors.BadImport: no format is given, and the file has none that is known.
    """
    from comments.jobs.importers.formats import format_registry

    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    match source:
        case [path]:
            if path in format_registry.NAMES:
                raise click.UsageError(f"Name the file to import after the format: {path} FILE")
            checked = file.convert(path, None, None)
            return format_registry.recognize(checked), checked
        case [name, path]:
            choice = click.Choice(format_registry.NAMES).convert(name, None, None)
            return format_registry.get(choice), file.convert(path, None, None)
    raise click.UsageError("Name one file, or a format and one file.")
