"""Compare an export with the comments that were imported from it: `verify [FORMAT] FILE`."""

from datetime import datetime

import click
import msgspec

from comments.cli import console, difference_report, import_files
from comments.transfer.verification import verification_report


@console.command("verify")
@click.argument("source", nargs=-1, required=True, metavar="[FORMAT] FILE")
@click.option("--site", "site_id", required=True, help="The site into which the file was imported.")
@import_files.mapping_option
@difference_report.as_json
@import_files.rare_collections()
def verify(
    source: tuple[str, ...], site_id: str, *, mapping: tuple[str, ...], is_json: bool
) -> None:
    """Compare an export with the comments that were imported from it.

    The command changes nothing. The report lists the differences and their reasons, such as edits,
    votes and decisions since the import. Exit with 1 if a difference has no known reason.
    """
    found_format, file = import_files.format_and_file(source)
    site = console.site(site_id)
    reader = import_files.last_reader(found_format, file, site.id)
    with import_files.open_plan(found_format, file, site, mapping, reader) as plan:
        verification = import_files.compare(plan)
    if is_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_document(verification))).decode())
    else:
        for line in verification_report.lines(verification):
            click.echo(line)
    if verification.unexplained_count:
        raise click.exceptions.Exit(1)


def _document(found: "verification_report.Verification") -> dict[str, object]:
    counts = {"explained": found.explained_count, "unexplained": found.unexplained_count}
    return {**msgspec.to_builtins(found, builtin_types=(datetime,)), **counts}
