"""Imports of 100,000 comments: time, memory, and what readers and posters notice.

    python -m benchmarks imports [--quick]
    python -m benchmarks.importing.import_bars [--shape FILE] [--comments N]

Exports of 10,000 and of 100,000 comments, as Disqus XML and as JSON lines, are each imported in a
new process with a new store (`import_phases`). All ratios are of processor seconds. With `--shape`,
the threads have the shape in a file with rows of `id;parent;time`. As a module, it prints a table
of the comments per processor second.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.importing import export_files, import_latency

ROOT = Path(__file__).resolve().parents[2]
# The first pass / a parser of the standard library that drops every value. Python's JSON parser is
# much faster than its XML parser.
READING = {"disqus": 12.0, "generic": 45.0}
LINEAR, VERIFYING, MEMORY, WAITING = 1.5, 0.5, 2.0, 8.0
PHASES = ("parse", "read", "write", "verify")
Costs = dict[str, float]


def measure(system: str, count: int, shape: Path | None = None) -> Costs:
    """Import an export of `count` comments in a new process; return the costs of its phases."""
    with tempfile.TemporaryDirectory(prefix="import-") as folder:
        file, database = Path(folder) / "export", Path(folder) / "store.db"
        export_files.write(file, system, count, shape)
        words = [sys.executable, "-m", "benchmarks.importing.import_phases", system, file, database]
        run = subprocess.run(map(str, words), cwd=ROOT, check=True, stdout=subprocess.PIPE)
    found: Costs = json.loads(run.stdout)
    return found


def bars(*, quick: bool) -> Iterator[Bar]:
    """Compare imports of two sizes, and the waits beside an import with those before it."""
    sizes = (100, 400) if quick else (10_000, 100_000)
    for system in export_files.WRITERS:
        small, large = (measure(system, size) for size in sizes)
        print(_row(system, large), flush=True)
        each = f"{large['read'] * 1e6 / sizes[1]:.0f} us of a comment"
        yield Bar(f"{system} first pass", large["read"] / large["parse"], READING[system], each)
        growth = _import(large) / _import(small) * sizes[0] / sizes[1]
        yield Bar(f"{system} linear", growth, LINEAR, f"{sizes[1]:,} / {sizes[0]:,} comments")
        share = large["verify"] / _import(large)
        yield Bar(f"{system} verify", share, VERIFYING, f"{large['verify']:.1f} s")
        grown = (large["verify_mb"] - small["verify_mb"]) * 1e3 / (sizes[1] - sizes[0])
        detail = f"{small['verify_mb']:.0f} and {large['verify_mb']:.0f} MB"
        yield Bar(f"{system} memory", grown, MEMORY, detail, unit="kB")
    with tempfile.TemporaryDirectory(prefix="import-") as folder:
        count, seconds = (300, 1.0) if quick else (20_000, 20.0)
        found = import_latency.measure(Path(folder), count, seconds)
    for name, during in found.during.items():
        before = found.before[name]
        p99 = during.part(0.99)
        detail = (
            f"p99 {p99 * 1e3:.0f} ms, longest {during.seconds[-1] * 1e3:.0f} ms "
            f"of an import of {found.seconds:.0f} s"
        )
        yield Bar(f"import beside {name}", p99 / before.part(0.99), WAITING, detail)


def _import(costs: Costs) -> float:
    return costs["read"] + costs["write"]


def _row(system: str, costs: Costs) -> str:
    rates = (f"{costs['comments'] / max(costs[phase], 1e-9):,.0f}" for phase in PHASES)
    cells = [system, f"{costs['comments']:,.0f}", *rates, f"{costs['verify_mb']:.0f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a table of comments per processor second, and the peak of memory."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--shape", type=Path)
    options.add_argument("--comments", type=int, default=100_000)
    chosen = options.parse_args()
    print("| format | comments | parser | first pass | write | verify | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for system in export_files.WRITERS:
        print(_row(system, measure(system, chosen.comments, chosen.shape)), flush=True)


if __name__ == "__main__":
    main()
