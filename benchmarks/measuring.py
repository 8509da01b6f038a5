"""What benchmarks share: stores on disk, variants that take turns, memory, and new processes."""

import contextlib
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.threads import loading
from comments.store import connection
from datastore_emulator import inprocess

ROOT = Path(__file__).resolve().parents[1]
_CALL = """
import contextlib, importlib, json, sys
module, name, arguments = json.loads(sys.argv[1])
with contextlib.redirect_stdout(sys.stderr):
    found = getattr(importlib.import_module(module), name)(*arguments)
print(json.dumps(found))
"""


def engine(
    path: Path | None, indexes: Path = ROOT / "index.yaml", **options: Any
) -> inprocess.Engine:
    """Open the engine on a data file, with the product's settings except for `options`."""
    usual = {"concurrency": "pessimistic", "history": 0}
    return inprocess.open_engine(path, indexes=indexes, **(usual | options))


def store(opened: inprocess.Engine) -> connection.Store:
    """Return a store on an engine."""
    channel = inprocess.Channel(opened)
    return connection.Store(channel, project=loading.PROJECT, deadline=3600.0)


@contextlib.contextmanager
def stored(path: Path | None, **options: Any) -> Iterator[inprocess.Engine]:
    """Open a data file as the store of a block; yield the engine."""
    with engine(path, **options) as opened, store(opened).context():
        yield opened


def alternate(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each variant; they take turns, so drift affects all alike."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for round_ in range(rounds + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if round_:  # The first round only warms up.
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def p99(seconds: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return sorted(seconds)[len(seconds) * 99 // 100]


def peak_memory() -> float:
    """Return the peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def started(function: Callable[..., object], *arguments: object) -> "subprocess.Popen[str]":
    """Call a function in a new process. Arguments are passed on as JSON, and paths as text."""
    asked = json.dumps([function.__module__, function.__name__, arguments], default=str)
    command = [sys.executable, "-c", _CALL, asked]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def result(process: "subprocess.Popen[str]") -> Any:
    """Wait for a process that `started` returned, and return what its function returned."""
    printed, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a process ended with {process.returncode}")
    return json.loads(printed)
