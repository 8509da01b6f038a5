"""Export a whole website to a file or a folder: `export SITE [FILE]`."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click

from comments.cli import console
from comments.domain.text.shown_values import quantity
from comments.transfer.exporting import export_file, export_folder, site_contents, site_export

_JSON_LINES, _WXR = "jsonl", "wxr"
_STANDARD_OUTPUT = Path("-")
_EXTENSIONS = {_JSON_LINES: ".jsonl.gz", _WXR: ".xml.gz"}


@console.command("export", console.SITE)
@click.argument("target", required=False, metavar="[FILE]", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice([_JSON_LINES, _WXR]),
    default=_JSON_LINES,
    show_default=True,
    help="jsonl (JSON lines) contains everything; wxr is for WordPress and other systems.",
)
@click.option("--addresses", is_flag=True, help="Include mail addresses and networks in rules.")
@click.option("--audit-log", is_flag=True, help="Include the audit log.")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    help="FILE is a folder: write a new file into it, and keep only this number of files.",
)
def export(
    site_id: str,
    target: Path | None,
    *,
    format_: str,
    addresses: bool,
    audit_log: bool,
    keep: int | None,
) -> None:
    """Export a website: settings, threads, comments and votes as of one moment.

    Without FILE, or if it is -, print the export. If the name of FILE ends in .gz, the export is
    compressed with gzip. An older FILE is replaced only when the export is complete. The service
    may run meanwhile.
    """
    if format_ == _WXR and audit_log:
        raise click.UsageError("WXR cannot contain the audit log. Omit --audit-log.")
    if keep is not None and (target is None or not target.is_dir()):
        raise click.UsageError("With --keep, name an existing folder instead of FILE.")
    console.site(site_id)
    run = site_export.SiteExport(
        site_id,
        site_export.FORMATS[format_],
        site_contents.Choices(addresses=addresses, audit_log=audit_log),
        console.settings().secret,
        console.now(),
    )
    if target is None or target == _STANDARD_OUTPUT:
        _print(run)
        return
    path, extension = target, _EXTENSIONS[format_]
    if target.is_dir():
        path = target / export_folder.file_name(site_id, extension, run.now)
    summary = run.write(lambda: export_file.create(path))
    comments = quantity(summary.comments, "comment")
    threads = quantity(summary.threads, "thread")
    click.echo(f"Exported {comments} in {threads} to {path}.")
    if keep is not None:
        for old_path in export_folder.remove_old(target, site_id, extension, keep):
            click.echo(f"Removed {old_path}.")


def _print(run: "site_export.SiteExport") -> None:
    """Print an export when it is complete, so that a failure does not print a part of it."""
    with tempfile.TemporaryFile() as file:

        @contextlib.contextmanager
        def open_file() -> Iterator[IO[bytes]]:
            file.seek(0)
            file.truncate()
            yield file

        run.write(open_file)
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)
