"""The figures of the ways to keep a list, as Markdown and as plots.

This module defines the format of the figures: billed operations as numbers, and times as ratios
within one run. All ways are compared with `BASE`, for which milliseconds are also given, as
orientation.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from benchmarks import plots
from benchmarks.layouts import layout_tables

BASE = "rows"
TITLES = {
    "contains": "check one id",
    "every": "list all ids",
    "count": "count the ids",
    "join": "add one id",
    "leave": "remove one id",
}
PLOTTED = ("billed.svg", "bytes.svg", "time.svg", "crowd.svg")


class Folding(msgspec.Struct):
    """The cost of compacting a number of marks in Flatthread's list."""

    size: int
    marks: int
    segments: int
    reads: int
    writes: int
    deletes: int
    bytes: int
    cpu: float


class Crowded(msgspec.Struct):
    """The work of many writers: means per change, and the duration in seconds."""

    way: str
    writers: int
    changes: int
    seconds: float
    repeats: float
    reads: float
    writes: float
    bytes: float
    median: float
    high: float


class Run(msgspec.Struct):
    """All results of one run."""

    rounds: int
    seconds: float
    round_trip: float
    crowded: int
    ends: dict[str, int]
    stored: dict[int, dict[str, int]]
    figures: list[layout_tables.Figures]
    foldings: list[Folding]
    crowds: list[Crowded]


def markdown(run: Run) -> str:
    """Return all tables."""
    parts = [_about(run)]
    for call, title in TITLES.items():
        parts.append(f"### {title[0].upper()}{title[1:]}\n\n{_calls(run, call)}")
    parts.append(f"### Many concurrent writers\n\n{_crowds(run)}")
    parts.append(f"### Compaction in Flatthread\n\n{_foldings(run)}")
    parts.append(f"### Storage\n\n{_stored(run)}")
    return "\n\n".join(parts)


def _about(run: Run) -> str:
    sizes = ", ".join(f"{size:,}" for size in run.stored)
    return (
        f"One run over lists of {sizes} ids of 26 characters. "
        f"Times are medians of up to {run.rounds} rounds."
    )


def _calls(run: Run, call: str) -> str:
    lines = [
        (
            "| ids | way | reads | writes | calls | bytes in | bytes out "
            f"| CPU, x {BASE} | wall, x {BASE} | CPU ms |"
        ),
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for size in run.stored:
        found = {
            each.layout: each for each in run.figures if (each.size, each.call) == (size, call)
        }
        lines += [layout_tables.line(each, found[BASE]) for each in found.values()]
        lines += [
            f"| {size:,} | {way} | too large to store | | | | | | | |"
            for way in run.ends
            if way not in found
        ]
    return "\n".join(lines)


def _crowds(run: Run) -> str:
    said = (
        f"Writers in one process repeatedly add an id to a list of {run.crowded:,} ids and remove "
        f"it again, for {run.seconds:g} seconds. Each call to the store is delayed by "
        f"{run.round_trip * 1000:g} ms. Flatthread's list is compacted during the run. The table "
        "shows, per change, the aborted and retried transactions, billed operations, and bytes."
    )
    lines = [
        said,
        "",
        (
            f"| writers | way | changes, x {BASE} | retries | reads | writes and deletes | bytes "
            "| median ms | 99th percentile ms |"
        ),
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    base = {each.writers: _rate(each) for each in run.crowds if each.way == BASE}
    lines += [
        f"| {each.writers} | {each.way} | {layout_tables.ratio(_rate(each), base[each.writers])} "
        f"| {each.repeats:.2f} | {each.reads:.2f} | {each.writes:.2f} | {each.bytes:,.0f} "
        f"| {each.median * 1000:.1f} | {each.high * 1000:.0f} |"
        for each in run.crowds
    ]
    return "\n".join(lines)


def _rate(crowded: Crowded) -> float:
    return crowded.changes / crowded.seconds


def _foldings(run: Run) -> str:
    lines = [
        (
            "| ids | marks | segments | reads | writes | deletes | reads per mark "
            "| writes and deletes per mark | bytes | CPU ms |"
        ),
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.size:,} | {each.marks} | {each.segments} | {each.reads} | {each.writes} "
        f"| {each.deletes} | {each.reads / each.marks:.2f} "
        f"| {(each.writes + each.deletes) / each.marks:.2f} | {each.bytes:,} "
        f"| {each.cpu * 1000:.0f} |"
        for each in run.foldings
    ]
    return "\n".join(lines)


def _stored(run: Run) -> str:
    ways = list(dict.fromkeys(way for stored in run.stored.values() for way in stored))
    lines = [
        f"| ids | {' | '.join(f'{way}, KiB' for way in ways)} |",
        "|---:|" + "---:|" * len(ways),
    ]
    for size, stored in run.stored.items():
        cells = [f"{stored[way] / 1024:,.0f}" if way in stored else "-" for way in ways]
        lines.append(f"| {size:,} | {' | '.join(cells)} |")
    ends = ", ".join(f"{way}: {most:,}" for way, most in run.ends.items())
    return "\n".join([*lines, "", f"Ids in one entity of 1 MiB: {ends}."])


def drawn(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the plots by file name."""
    said = "one run; both axes logarithmic; a line ends where the way cannot hold the list"
    ways: Sequence[tuple[str, str, Callable[[layout_tables.Figures], float]]] = (
        ("billed.svg", "Billed reads, writes and deletes of one call", _billed),
        ("bytes.svg", "Bytes to and from the store", lambda f: f.bytes_in + f.bytes_out),
        ("time.svg", "Processor time in ms (orientation only)", lambda f: f.cpu * 1000),
    )
    for file, title, value in ways:
        panels = [
            plots.Panel(TITLES[call], layout_tables.curves(run.figures, call, value), "ids")
            for call in TITLES
        ]
        yield file, plots.draw(title, said, panels)
    measures: Sequence[tuple[str, Callable[[Crowded], float]]] = (
        ("changes per second", _rate),
        ("aborted transactions per change", lambda each: each.repeats),
        ("billed per change", lambda each: each.reads + each.writes),
    )
    crowd = [plots.Panel(title, _over_writers(run, value), "writers") for title, value in measures]
    yield "crowd.svg", plots.draw("Many writers of one list", _where(run), crowd)


def _where(run: Run) -> str:
    return f"one run, one process, {run.round_trip * 1000:g} ms from the store"


def _billed(figures: layout_tables.Figures) -> float:
    return figures.reads + figures.writes + figures.deletes


def _over_writers(run: Run, value: Callable[[Crowded], float]) -> plots.Lines:
    lines: dict[str, list[tuple[float, float]]] = {}
    for each in run.crowds:
        lines.setdefault(each.way, []).append((each.writers, value(each)))
    return lines
