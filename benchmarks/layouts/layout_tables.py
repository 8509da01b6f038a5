"""The figures of the layouts as Markdown and as plots.

This module defines the format of the figures: billed operations as numbers, and times as ratios
within one run. All layouts are compared with `BASE`, for which milliseconds are also given, as
orientation.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks import plots

BASE = "path"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
PLOTTED = ("reads.svg", "calls.svg", "time.svg", "bytes.svg")


class Figures(msgspec.Struct):
    """The cost of one call with one layout at one size; times are medians in seconds."""

    layout: str
    size: int
    call: str
    reads: int
    writes: int
    deletes: int
    small: int
    calls: int
    bytes_in: int
    bytes_out: int
    wall: float = 0.0
    cpu: float = 0.0
    rounds: int = 0


class Thread(msgspec.Struct):
    """Facts about a thread of one size, in addition to the calls."""

    size: int
    below: int
    depth: int
    stored: dict[str, int]
    missing: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]  # Each call and layout that one commit cannot hold.
    changes: int
    folding_writes: int
    folding_deletes: int
    folding_reads: int


class Run(msgspec.Struct):
    """All results of one run."""

    shape: str
    rounds: int
    most_embedded: dict[str, int]
    sought: int
    threads: list[Thread]
    figures: list[Figures]


def encoded(run: msgspec.Struct) -> bytes:
    """Encode a run as JSON, one record per line."""
    return msgspec.json.encode(run).replace(b"},{", b"},\n{") + b"\n"


def markdown(run: Run, titles: Mapping[str, str]) -> str:
    """Return all tables."""
    parts = [_about(run)]
    for call, title in titles.items():
        parts.append(f"### {title[0].upper()}{title[1:]}\n\n{_table(run, call)}")
    parts.append(f"### Storage and compaction\n\n{_stored(run)}")
    return "\n\n".join(parts)


def _about(run: Run) -> str:
    sizes = ", ".join(f"{thread.size:,}" for thread in run.threads)
    below = ", ".join(f"{thread.below}" for thread in run.threads)
    return (
        f"One run over {run.shape}; threads of {sizes} comments, "
        f"up to {max(thread.depth for thread in run.threads)} levels deep. "
        f"The comment used for replies, edits and subtrees has {below} comments below it. "
        f"Times are medians of up to {run.rounds} rounds."
    )


def _table(run: Run, call: str) -> str:
    lines = [
        (
            "| comments | layout | reads | writes | calls | bytes in | bytes out "
            f"| CPU, x {BASE} | wall, x {BASE} | CPU ms |"
        ),
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for thread in run.threads:
        found = {f.layout: f for f in run.figures if (f.size, f.call) == (thread.size, call)}
        base = found[BASE]
        lines += [line(figures, base) for figures in found.values()]
        lines += [
            f"| {thread.size:,} | {layout} | too large to store | | | | | | | |"
            for layout in thread.missing
        ]
        lines += [
            f"| {thread.size:,} | {layout} | too large for one commit | | | | | | | |"
            for refused, layout in thread.refused
            if refused == call
        ]
    return "\n".join(lines)


def line(figures: Figures, base: Figures) -> str:
    """Format one row: the billed operations, and times as ratios to the base."""
    small = f" + {figures.small:,} small" if figures.small else ""
    deletes = f" + {figures.deletes:,} deletes" if figures.deletes else ""
    return (
        f"| {figures.size:,} | {figures.layout} | {figures.reads:,}{small} "
        f"| {figures.writes:,}{deletes} | {figures.calls:,} "
        f"| {figures.bytes_in:,} | {figures.bytes_out:,} "
        f"| {ratio(figures.cpu, base.cpu)} | {ratio(figures.wall, base.wall)} "
        f"| {ratio(figures.cpu * 1000, 1.0)} |"
    )


def ratio(value: float, base: float) -> str:
    """Format a ratio with as many digits as are meaningful."""
    ratio = value / base if base else 0.0
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _stored(run: Run) -> str:
    names = list(dict.fromkeys(name for thread in run.threads for name in thread.stored))
    lines = [
        (
            f"| comments | {' | '.join(f'{name}, KiB' for name in names)} | compacted changes "
            "| writes and deletes of the compaction | reads of the compaction |"
        ),
        "|---:|" + "---:|" * (len(names) + 3),
    ]
    for thread in run.threads:
        cells = [
            f"{thread.stored[name] / 1024:,.0f}" if name in thread.stored else "-" for name in names
        ]
        lines.append(
            f"| {thread.size:,} | {' | '.join(cells)} | {thread.changes} "
            f"| {thread.folding_writes} and {thread.folding_deletes} | {thread.folding_reads} |"
        )
    ends = ", ".join(f"{layout}: {most:,}" for layout, most in run.most_embedded.items())
    return "\n".join(
        [
            *lines,
            "",
            f"Comments in one entity of 1 MiB, of {run.sought:,} comments: {ends}.",
        ]
    )


def drawn(run: Run, titles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the plots by file name."""
    said = "one run; both axes logarithmic; a line ends where the layout cannot hold the thread"
    ways: Sequence[tuple[str, str, Callable[[Figures], float]]] = (
        ("reads.svg", "Billed reads and writes of one call", lambda f: f.reads + f.writes),
        (
            "calls.svg",
            "Calls to the store, each a round trip to Google's service",
            lambda f: f.calls,
        ),
        ("time.svg", "Processor time in ms, no network (orientation only)", lambda f: f.cpu * 1000),
        ("bytes.svg", "Bytes to and from the store", lambda f: f.bytes_in + f.bytes_out),
    )
    for file, title, value in ways:
        panels = [plots.Panel(titles[call], curves(run.figures, call, value)) for call in titles]
        yield file, plots.draw(title, said, panels)


def curves(found: Sequence[Figures], call: str, value: Callable[[Figures], float]) -> plots.Lines:
    """Return the points of each layout for all sizes."""
    drawn: dict[str, list[tuple[float, float]]] = {}
    for figures in found:
        if figures.call == call:
            drawn.setdefault(figures.layout, []).append((figures.size, value(figures)))
    return drawn


def insert(made: str, document: Path, first: str = BEGIN, last: str = END) -> None:
    """Replace the tables between two markers of a document."""
    text = document.read_text(encoding="utf-8")
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"{document} lacks the markers {first} and {last}")
    document.write_text(f"{before}{begin}\n\n{made}\n\n{end}{after}", encoding="utf-8")
