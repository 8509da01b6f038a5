"""Starts until the first answer, memory after a start, and the processor time of commands.

A start is compared with that of a server that only imports the product's libraries
(`floors.imports`).
"""

import resource
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import servers
from benchmarks.bars import Bar

COMMANDS = {
    "`--help`": ("--help",),
    "`site add --help`": ("site", "add", "--help"),
    "unknown command": ("nothing",),
    "missing argument": ("thread", "list"),
    "completion": (),
}
_TAB = {"_FLATTHREAD_COMPLETE": "bash_complete", "COMP_WORDS": "flatthread si", "COMP_CWORD": "1"}


def bars(data: Path, folder: Path, page: str, rounds: int) -> Iterator[Bar]:
    """Start everything in turn."""
    bare = folder / "imports"
    bare.mkdir()
    (bare / "0").write_text("{}")
    ratios, seconds, memory = [], [], []
    used: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        with servers.floor(bare, "imports()") as floor:
            floor.settle()
        with servers.product(data, page) as product:
            product.settle()
            memory.append(product.memory() / 1e6)
        seconds.append(product.started)
        ratios.append(product.started / floor.started)
        for name, words in COMMANDS.items():
            used[name].append(_used(data, words))
    detail = f"{statistics.median(seconds):.2f} s / a server that only imports the libraries"
    yield Bar("writing start", statistics.median(ratios), 1.3, detail)
    yield Bar("writing memory", statistics.median(memory), 100, "two workers, PSS", unit="MB")
    slowest = max(used, key=lambda name: statistics.median(used[name]))
    median = statistics.median(used[slowest])
    yield Bar("writing commands", median, 0.25, f"slowest: {slowest}", unit="s")


def _used(data: Path, words: Sequence[str]) -> float:
    """Return the processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    servers.command(data, *words, environ={} if words else _TAB)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
