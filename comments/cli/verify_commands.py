"""Compare an export with the comments that were imported from it: `verify [FORMAT] FILE`."""

from collections.abc import Iterator
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

_DIGEST = 12  # characters of a digest that are shown
_TOTALS = ("comments", "threads", "authors", "depth", "texts")


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
    found_format, file = import_commands.format_and_file(source)
    site = console.site(site_id)
    with import_commands.planned(found_format, file, site, mapping) as plan:
        found = compared(plan, site)
    if is_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_document(found))).decode())
    else:
        for line in lines(found):
            click.echo(line)
    if found.unexplained:
        raise click.exceptions.Exit(1)


def compared(
    plan: "import_writer.CheckedImport", site: "records.Site"
) -> "verification_result.Verification":
    """Compare a checked file with the store, and show the progress."""
    from comments.jobs.importers.verification import import_verification

    with import_progress.shown("Verifying", plan.report.comments, "comment") as advance:
        return import_verification.verify(plan, scheme=site.scheme, progress=advance)


def lines(found: "verification_result.Verification") -> Iterator[str]:
    """Yield the report as text: totals, differences, and what they mean."""
    yield from _totals(found)
    for group in found.differences:
        yield f"{group.field}: {group.count}, {group.reason or 'for no known reason'}"
        for example in group.examples if not group.reason else group.examples[:1]:
            yield f"  {_place(example, found.unit)}: {_values(group.field, example)}"
        if not group.reason and group.count > len(group.examples):
            yield f"  and {group.count - len(group.examples)} more"
    for what, count in found.left_out.items():
        yield f"Left out by the import: {what} ({count})"
    if found.other_comments or found.other_threads:
        comments = console.counted(found.other_comments, "other comment")
        threads = console.counted(found.other_threads, "other thread")
        yield f"The site also has {comments} and {threads}, which are not in the file."
    yield conclusion(found)


def outcome(found: "verification_result.Verification") -> Iterator[str]:
    """Yield what an import reports: a line, or everything if something differs."""
    if found.differences:
        yield from lines(found)
    else:
        yield conclusion(found)


def conclusion(found: "verification_result.Verification") -> str:
    """Say in one line whether the store has what the file has."""
    count = console.counted(found.in_file.comments, "comment")
    if found.is_unfinished and found.unexplained:
        return "The import of this file is not finished. Run it again, then verify it again."
    if found.unexplained:
        differences = console.counted(found.unexplained, "difference")
        return f"{differences} between the file and the store for no known reason."
    if found.explained:
        differences = console.counted(found.explained, "difference")
        return f"Verified {count}: {differences}, all with a known reason."
    return f"Verified {count}: the store has them as the file has them."


def _totals(found: "verification_result.Verification") -> Iterator[str]:
    yield f"{'':10} {'file':>12} {'store':>12}"
    for name in _TOTALS:
        file, store = getattr(found.in_file, name), getattr(found.in_store, name)
        yield f"{name:10} {_total(file):>12} {_total(store):>12}"


def _total(value: int | str) -> str:
    return value[:_DIGEST] if isinstance(value, str) else f"{value:,}"


def _place(example: "verification_result.ImportDifference", unit: str) -> str:
    comment = f", comment {example.source} in {unit} {example.line}" if example.source else ""
    return f"{example.thread}{comment}"


def _values(field: str, example: "verification_result.ImportDifference") -> str:
    stored, expected = (_plain(value) for value in (example.stored, example.expected))
    if stored is None and field in {"comment", "thread"}:
        return "is not stored"
    return difference_report.FoundDifference(field, {}, stored, expected).values


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _document(found: "verification_result.Verification") -> dict[str, object]:
    counts = {"explained": found.explained, "unexplained": found.unexplained}
    return {**msgspec.to_builtins(found, builtin_types=(datetime,)), **counts}
