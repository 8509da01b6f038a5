"""Run benchmarks and print a line for each bar; the exit status is 1 if a bar is missed.

    python -m benchmarks [NAME ...] [--quick]

Without a name, all benchmarks with bars run in turn. `--quick` runs each benchmark in its shortest
form, which only shows that the benchmark works. Two more names draw the pictures of the documents:
`layouts` README's plot, and `pictures` those of docs/pictures.md. With `--quick`, they write to
`pictures/`, which git ignores.
"""

import argparse
import contextlib
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import (
    audiences,
    categories,
    engine,
    fanout,
    imports,
    layouts,
    lists,
    measuring,
    pages,
    slow_clients,
    starts,
)
from benchmarks.bars import Benchmark
from benchmarks.mixed_load import endurance, kills
from benchmarks.widget import pictures, widget_loading
from benchmarks.writing import bars as writing

BENCHMARKS: dict[str, Benchmark] = {
    "engine": engine.bars,
    "thread": engine.thread_bars,
    "pages": pages.bars,
    "writing": writing.bars,
    "slow_clients": slow_clients.bars,
    "starts": starts.bars,
    "mixed_load": kills.bars,
    "endurance": endurance.bars,
    "fanout": fanout.bars,
    "audiences": audiences.bars,
    "categories": categories.bars,
    "imports": imports.bars,
    "lists": lists.bars,
    "widget": widget_loading.bars,
}


SCRATCH = measuring.ROOT / "pictures"
# What draws each picture or folder of pictures.
PICTURES: dict[str, tuple[Path, Callable[..., None]]] = {
    "layouts": (measuring.ROOT / "docs" / "pictures" / "first-page.svg", layouts.draw),
    "pictures": (measuring.ROOT / "docs" / "pictures", pictures.draw),
}


def main() -> None:
    names = [*BENCHMARKS, *PICTURES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run the bars.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--quick", action="store_true", help="run the shortest form, which only shows that it works"
    )
    chosen = parser.parse_args()
    for name in set(chosen.names) - set(names):
        parser.error(f"unknown benchmark {name}; choose from {', '.join(names)}")
    for name in chosen.names:
        if name in PICTURES:
            draw(name, quick=chosen.quick)
    measured = [name for name in chosen.names if name in BENCHMARKS]
    missed = run(measured if chosen.names else list(BENCHMARKS), quick=chosen.quick)
    sys.exit(1 if missed else 0)


def draw(name: str, *, quick: bool) -> None:
    """Draw a picture of the documents, or only a draft if `quick`."""
    target, function = PICTURES[name]
    if quick:
        SCRATCH.mkdir(exist_ok=True)
        target = SCRATCH / target.name if target.suffix else SCRATCH
    function(target, quick=quick)
    print(f"drawn: {target}")


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
