"""The commands of `datastore-emulator COMMAND`: one task on a data file.

Owns the output of the commands. The commands export, import, backup, compact and check also work
while a server has the file open. Each command imports only what it needs.
"""

# ruff: noqa: PLC0415 - a command imports only what it needs

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from datastore_emulator import errors, inprocess


def export(options: argparse.Namespace) -> int:
    from datastore_emulator.import_export import json_lines

    selection = json_lines.Selection(
        options.project, options.database, options.namespace, options.kind
    )
    with _open_existing(options.data) as engine, _output(options.target) as file:
        for part in json_lines.export(engine.storage, selection):
            file.write(part)
    return 0


def load(options: argparse.Namespace) -> int:
    """Import entities from lines of JSON; overwrite existing entities."""
    from datastore_emulator.import_export import json_lines

    with (
        _input(options.source) as file,
        inprocess.open_engine(options.data, built_in_indexes="eager") as engine,
    ):
        stored = json_lines.load(
            engine.storage,
            json_lines.read_lines(file),
            source=json_lines.source_name(options.source),
            batch=options.batch,
        )
    print(f"{options.data}: {stored} entities written")
    return 0


def backup(options: argparse.Namespace) -> int:
    """Copy a consistent snapshot of a data file."""
    from datastore_emulator.storage import maintenance

    print(maintenance.backup(options.data, options.target))
    return 0


def restore(options: argparse.Namespace) -> int:
    """Restore a data file from a backup."""
    from datastore_emulator.storage import maintenance

    print(maintenance.restore(options.source, options.data, now=_micros(), replace=options.replace))
    return 0


def compact(options: argparse.Namespace) -> int:
    """Release the disk space of deleted data."""
    from datastore_emulator.storage import maintenance

    print(maintenance.compact(options.data, now=_micros()))
    return 0


def check(options: argparse.Namespace) -> int:
    """Check a data file; return exit status 1 if it has problems."""
    from datastore_emulator.storage import inspection

    report = inspection.check(options.data)
    print(report)
    return int(report.wrong > 0)


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "export": export,
    "import": load,
    "backup": backup,
    "restore": restore,
    "compact": compact,
    "check": check,
}


def _micros() -> int:
    return int(time.time() * 1_000_000)


def _open_existing(path: Path) -> inprocess.Engine:
    """Open a data file, which must exist."""
    if not path.is_file():
        raise errors.FailedPrecondition(f"There is no data file {path}.")
    return inprocess.open_engine(path, built_in_indexes="eager")


@contextlib.contextmanager
def _output(path: str) -> Iterator[Any]:
    """Open standard output, or a new file that is renamed to its final name once it is complete."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from datastore_emulator.storage import maintenance

    maintenance.check_is_free(path)
    partial = Path(f"{path}.{os.getpid()}.partial")
    try:
        with partial.open("xb") as file:
            yield file
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _input(path: str) -> Iterator[Any]:
    if path == "-":
        from datastore_emulator.import_export import json_lines

        with json_lines.spooling(sys.stdin.buffer) as file:
            yield file
        return
    with Path(path).open("rb") as file:
        yield file
