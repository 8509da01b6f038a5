"""Compare an export with the comments that were imported from it: `verify [FORMAT] FILE`."""

from datetime import datetime
from typing import TYPE_CHECKING

import click
import flask
import msgspec

from comments.cli import console, difference_report, import_commands, import_progress

if TYPE_CHECKING:
    from comments.domain import records
    from comments.jobs.importers import import_writer
    from comments.jobs.importers.verification import verification_result


@click.command("verify")
@click.argument("source", nargs=-1, required=True, metavar="[FORMAT] FILE")
@click.option("--site", "site_id", required=True, help="The site into which it was imported.")
@import_commands.mapped
@difference_report.as_json
@flask.cli.with_appcontext
@console.reported
@import_commands.rare_collections()
def verify(
    source: tuple[str, ...], site_id: str, *, mapping: tuple[str, ...], is_json: bool
) -> None:
    """Compare an export with the comments that the site has, without changing anything.

    The report says what differs, and why: edits, votes and decisions since the import have a
    reason. Exit with 1 if a difference has no known reason.
    """
    from comments.jobs.importers.verification import verification_report

    found_format, file = import_commands.format_and_file(source)
    site = console.site(site_id)
    with import_commands.planned(found_format, file, site, mapping) as plan:
        found = compared(plan, site)
    if is_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_document(found))).decode())
    else:
        for line in verification_report.lines(found):
            click.echo(line)
    if found.unexplained:
        raise click.exceptions.Exit(1)


def compared(
    plan: "import_writer.CheckedImport", site: "records.Site"
) -> "verification_result.Verification":
    """Compare a checked file with the store, and show the progress."""
    from comments.jobs.importers.verification import import_verification

    with import_progress.shown("Verifying", plan.report.comments, "comment") as advance:
        return import_verification.verify(
            plan, scheme=site.scheme, secret=console.settings().secret, progress=advance
        )


def _document(found: "verification_result.Verification") -> dict[str, object]:
    counts = {"explained": found.explained, "unexplained": found.unexplained}
    return {**msgspec.to_builtins(found, builtin_types=(datetime,)), **counts}
