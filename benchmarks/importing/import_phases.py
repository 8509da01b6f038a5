"""Run the phases of an import in this process, and print their costs as JSON.

    python -m benchmarks.importing.import_phases SYSTEM FILE DATABASE

The phases are: parse the file with a plain parser and drop everything; read and check it (the first
pass); store the comments in an empty database; verify them. The times are processor seconds. The
memory is the peak of the process, in MB, after each phase.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree as ET

from benchmarks.importing import export_files
from benchmarks.threads import loading
from comments.cli import import_files
from comments.jobs.importers import import_writer
from comments.jobs.importers.checking import checked_import
from comments.jobs.importers.formats import format_registry
from comments.jobs.importers.verification import import_verification
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")
SECRET = "a secret of the benchmarks, long enough"  # noqa: S105 - nothing signed with it is kept


def parse(system: str, path: Path) -> None:
    """Read every value in the file with the parser of the standard library."""
    if system == "disqus":
        for _, element in ET.iterparse(path):  # noqa: S314 - our own file
            if element.tag.endswith("post"):
                element.clear()
    else:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                json.loads(line)


def run(system: str, path: Path, database: Path) -> dict[str, float]:
    """Return the processor seconds and the peak memory of each phase."""
    found: dict[str, float] = {"start_mb": _memory()}

    def measured(name: str, phase: Callable[[], T]) -> T:
        since = time.process_time()
        result = phase()
        found[name], found[f"{name}_mb"] = time.process_time() - since, _memory()
        return result

    chosen = format_registry.get(system)
    now = datetime.now(UTC)
    with (
        inprocess.open_engine(database, indexes=ROOT / "index.yaml") as engine,
        connection.Store(inprocess.Channel(engine), project=loading.PROJECT).context(),
        import_files.rare_collections(),
    ):
        scheme = loading.SCHEME
        site = site_settings.add("bench", [export_files.ORIGIN], scheme=scheme, now=now)
        plan = measured(
            "read",
            lambda: checked_import.plan(
                chosen.read, path, site=site, scheme=scheme, secret=SECRET, unit=chosen.unit
            ),
        )
        with plan:
            stored = measured("write", lambda: import_writer.write(plan, scheme=scheme, now=now))
            same = measured("verify", lambda: import_verification.verify(plan, scheme=scheme))
    if stored.added != plan.report.comments or same.differences:
        raise SystemExit(f"{stored} {same.differences}")
    measured("parse", lambda: parse(system, path))
    return found | {"comments": float(stored.added)}


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
