"""Shared parts of commands for import files: the arguments, the first pass, the verification."""

import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path

import click

from comments.cli import console, import_progress
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.transfer import import_source
from comments.transfer.checking import checked_import
from comments.transfer.formats import format_registry
from comments.transfer.importing import import_journal
from comments.transfer.parsing import imported_file
from comments.transfer.verification import import_verification, verification_report

# The number of new objects that triggers a garbage collection. An import makes millions of objects,
# but few cycles. Collecting after every 700 objects took a tenth of the import's processor time.
_OBJECTS = 50_000


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely during an import, which makes millions of objects but few cycles."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


mapping_option = click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="OLD=NEW",
    help="Move pages: old.example=blog.example, /blog=/posts, /blog/*.html=/posts/*/, or the "
    "address of one page. "
    "Repeat for several.",
)


@contextlib.contextmanager
def open_plan(
    found: "format_registry.Format",
    file: Path,
    site: "records.Site",
    mapping: tuple[str, ...],
    reader: "import_source.Reader",
) -> "Iterator[checked_import.CheckedImport]":
    """Read and check a file, and show the progress. `reader` is one of the format's readers.

    Raises:
        errors.BadImport: the file is invalid; the error names the line.
        errors.ImportRefused: a mapping is invalid.
    """
    lines = import_progress.lines_in(file) if found.unit == "line" else None
    with import_progress.showing("Reading", lines, found.unit) as advance:
        plan = checked_import.plan(
            reader,
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


def last_reader(
    found: "format_registry.Format", file: Path, site_id: str
) -> "import_source.Reader":
    """Return the reader that a file's latest import used. Owners' uploads are not trusted."""
    if found.name == imported_ids.OWN:
        readers = {
            imported_file.digest(file): found.read,
            imported_file.untrusted_digest(file): found.read_untrusted,
        }
        for earlier in import_journal.recent_imports(site_id):
            if earlier.digest in readers:
                return readers[earlier.digest]
    return found.read


def format_and_file(source: tuple[str, ...]) -> "tuple[format_registry.Format, Path]":
    """Return the format and the file that a command's arguments name: `[FORMAT] FILE`.

    Raises:
        click.UsageError: the arguments are neither a file nor a known format and a file.
        errors.BadImport: no format is given, and the file's format is not recognized.
    """
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


def compare(plan: "checked_import.CheckedImport") -> "verification_report.Verification":
    """Compare a checked file with the store, and show the progress."""
    with import_progress.showing("Verifying", plan.report.comments, "comment") as advance:
        return import_verification.verify(plan, secret=console.settings().secret, progress=advance)
