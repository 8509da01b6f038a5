"""Run benchmarks and print a line for each bar; the exit status is 1 if a bar is missed.

    python -m benchmarks [NAME ...] [--quick]

Without a name, all benchmarks run in turn. `--quick` runs each benchmark in its shortest form,
which only shows that the benchmark works.
"""

import argparse
import contextlib
import itertools
import sys
from collections.abc import Sequence

from benchmarks import audiences, fanout
from benchmarks.bars import Benchmark
from benchmarks.engine import engine_costs, whole_thread
from benchmarks.importing import import_bars
from benchmarks.lists import many_changes
from benchmarks.mixed_load import endurance, kills
from benchmarks.serving import served_pages, slow_clients, starts
from benchmarks.widget import widget_loading
from benchmarks.writing import __main__ as writing

BENCHMARKS: dict[str, Benchmark] = {
    "engine": engine_costs.bars,
    "thread": whole_thread.bars,
    "pages": served_pages.bars,
    "writing": writing.bars,
    "slow_clients": slow_clients.bars,
    "starts": starts.bars,
    "mixed_load": kills.bars,
    "endurance": endurance.bars,
    "fanout": fanout.bars,
    "audiences": audiences.bars,
    "imports": import_bars.bars,
    "lists": many_changes.bars,
    "widget": widget_loading.bars,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run the bars.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument(
        "--quick", action="store_true", help="run the shortest form, which only shows that it works"
    )
    chosen = parser.parse_args()
    for name in set(chosen.names) - set(BENCHMARKS):
        parser.error(f"unknown benchmark {name}; choose from {', '.join(BENCHMARKS)}")
    missed = run(chosen.names or list(BENCHMARKS), quick=chosen.quick)
    sys.exit(1 if missed else 0)


def run(names: Sequence[str], *, quick: bool) -> int:
    """Run benchmarks and return how many bars were missed. Other output goes to standard error."""
    missed, output = 0, sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        for bar in itertools.chain.from_iterable(BENCHMARKS[name](quick=quick) for name in names):
            print(bar, file=output, flush=True)
            missed += not bar.is_held
    return missed


if __name__ == "__main__":
    main()
