"""Simulate key ranges under write streams: the load of each range, for our keys and naive ones.

    python -m benchmarks.scaling ranges [--shape FILE] [--quick] [--write]

Each stream arrives at `RATE` new comments per second, and one interval stands for the time in which
a store reacts to a hot range. The recorded stream comes from the product (`recorded_writes`); with
`--shape`, its comments answer each other as in a real discussion.
"""

import random
import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks import plots
from benchmarks.scaling import key_ranges, recorded_writes, write_streams
from benchmarks.threads import shapes

RATE = 5_000.0  # New comments per second.
INTERVALS = 16
SIZE = 1_000  # Synthetic comments in one interval.
RECORDED = 40, 30  # Comments in each recorded thread, and threads.
RECORDED_INTERVALS = 10
RAMP = 12, 4_000  # Intervals, and simulated writes in each, of a new key space.
_RAMP_START, _RAMP_GROWTH = 500.0, 1.5  # Google's 500/50/5 rule; an interval is 5 minutes.
_HOT = 1_000.0  # Keys per second in one range, from which the table names a key space.
_LAST = 3  # Intervals whose loads are averaged for the table.


class Curve(msgspec.Struct):
    """One line: the hottest range of each interval, and the last loads, busiest first."""

    scenario: str
    line: str
    hottest: list[float]
    loads: list[float]


class Space(msgspec.Struct):
    """One recorded key space: keys per post, and the share of its busiest range at the end."""

    name: str
    per_post: float
    ranges: int
    share: float


class Ramp(msgspec.Struct):
    """The writes per second above all limits in each interval, with a way to raise the traffic."""

    line: str
    over: list[float]


class Run(msgspec.Struct):
    """All results of one run."""

    rate: float
    shape: str
    curves: list[Curve]
    spaces: list[Space]
    ramps: list[Ramp]
    recording: recorded_writes.Recording


def measure(shape_file: Path | None, *, quick: bool) -> Run:
    """Make the streams and run the simulation."""
    intervals, size = (4, 50) if quick else (INTERVALS, SIZE)
    comments, threads = (4, 3) if quick else RECORDED
    shape = shapes.read(shape_file) if shape_file else shapes.grown(comments)
    recording = recorded_writes.recorded(
        shapes.repeated(shape, comments), threads, 2 if quick else RECORDED_INTERVALS
    )
    scenarios = {
        f"{10 * size:,} discussions": write_streams.synthetic(10 * size, intervals, size, RATE),
        "one discussion": write_streams.synthetic(1, intervals, size, RATE),
        "recorded": write_streams.recorded(recording, RATE),
    }
    curves = [
        curve(scenario, line, stream)
        for scenario, streams in scenarios.items()
        for line, stream in write_streams.lines(streams)
    ]
    run = Run(
        rate=RATE,
        shape="a real discussion" if shape_file else "a grown tree",
        curves=curves,
        spaces=spaces(recording),
        ramps=ramps(*((3, 50) if quick else RAMP)),
        recording=recording,
    )
    recording.intervals = []  # The keys themselves are not kept.
    return run


def curve(scenario: str, line: str, stream: Sequence[Sequence[bytes]]) -> Curve:
    """Run one stream through ranges of its own."""
    found = key_ranges.run(stream, RATE)
    loads = sorted((load for load in found[-1].loads if load), reverse=True)
    return Curve(scenario, line, [each.hottest for each in found], loads)


def spaces(recording: recorded_writes.Recording) -> list[Space]:
    """Return all recorded key spaces, each under its own share of the writes."""
    per_interval = recording.posts / len(recording.intervals)
    names = sorted({name for keys in recording.intervals for name in keys})
    found = []
    for name in names:
        stream = [keys.get(name, []) for keys in recording.intervals]
        total = sum(map(len, stream))
        ranges = key_ranges.KeyRanges()
        loads = [ranges.write(keys, RATE / per_interval).loads for keys in stream]
        shares = [max(each) / sum(each) for each in loads[-_LAST:] if sum(each)]
        if shares:
            share = statistics.mean(shares)
            found.append(Space(name, total / recording.posts, len(loads[-1]), share))
    return sorted(found, key=lambda each: (-each.share * each.per_post, each.name))


def ramps(intervals: int, size: int) -> list[Ramp]:
    """Return the overload of a new key space, raised at once or gradually."""
    chance = random.Random(1)
    spread = [[chance.randbytes(16) for _ in range(size)] for _ in range(intervals)]
    steps = [_RAMP_START * _RAMP_GROWTH**n for n in range(intervals)]
    numbers = iter(range(intervals * size))
    ordered = [[next(numbers).to_bytes(8) for _ in range(size)] for _ in range(intervals)]
    ways = {
        "random ids, full traffic at once": (spread, [steps[-1]] * intervals),
        "random ids, 50% more every 5 minutes": (spread, steps),
        "auto-increment ids, 50% more every 5 minutes": (ordered, steps),
    }
    return [
        Ramp(line, [each.over() for each in key_ranges.ramp(stream, rates)])
        for line, (stream, rates) in ways.items()
    ]


def markdown(run: Run) -> str:
    """Return the table of the recorded key spaces with a hot range, and a summary of the others."""
    posts, threads = run.recording.posts, run.recording.threads
    found = _one_direction(run.spaces)
    hot = [each for each in found if _busiest(each, run.rate) > _HOT]
    rest = [_busiest(each, run.rate) for each in found if each not in hot]
    return "\n".join(
        [
            (
                f"The recording has {posts:,} comments in {threads} threads shaped like "
                f"{run.shape}, {run.recording.votes:,} votes, {run.recording.edits} edits, and "
                f"their background work. Rates are for {run.rate:,.0f} new comments per second."
            ),
            "",
            "| key space | keys per comment | ranges | share of the busiest range | keys/s there |",
            "|---|---:|---:|---:|---:|",
            *(
                f"| {each.name} | {each.per_post:.2f} | {each.ranges} | {each.share:.0%} "
                f"| {_busiest(each, run.rate):,.0f} |"
                for each in hot
            ),
            (f"| the other {len(rest)} key spaces | | | | at most {max(rest, default=0.0):,.0f} |"),
        ]
    )


def _busiest(space: Space, rate: float) -> float:
    """Return the keys per second of a key space's busiest range."""
    return space.share * space.per_post * rate


def _one_direction(found: Sequence[Space]) -> list[Space]:
    """Leave out the descending index of a property, which has the same load as the ascending."""
    names = {each.name for each in found}
    return [
        each
        for each in found
        if not (
            each.name.endswith(" desc")
            and "," not in each.name
            and each.name.removesuffix(" desc") in names
        )
    ]


def drawn(run: Run) -> list[tuple[str, str]]:
    """Return the plots by file name."""
    scenarios = list(dict.fromkeys(each.scenario for each in run.curves))
    note = f"simulation; {run.rate:,.0f} new comments per second; both axes logarithmic"
    by_range = [
        plots.Panel(
            scenario,
            {each.line: _numbered(each.loads) for each in run.curves if each.scenario == scenario},
            across="ranges, busiest first",
        )
        for scenario in scenarios
    ]
    by_time = [
        plots.Panel(
            scenario,
            {
                each.line: _numbered(each.hottest)
                for each in run.curves
                if each.scenario == scenario
            },
            across="intervals",
        )
        for scenario in scenarios
    ]
    top = _RAMP_START * _RAMP_GROWTH ** (len(run.ramps[0].over) - 1)
    over = plots.Panel(
        "a new key space",
        {each.line: _numbered(each.over) for each in run.ramps},
        across="intervals of 5 minutes",
    )
    return [
        ("ranges.svg", plots.draw("Writes per second of each range, at the end", note, by_range)),
        ("hottest.svg", plots.draw("Writes per second of the busiest range", note, by_time)),
        (
            "ramp.svg",
            plots.draw(
                "Writes per second above the limits",
                f"simulation; up to {top:,.0f} writes per second; both axes logarithmic",
                [over],
            ),
        ),
    ]


def _numbered(values: Sequence[float]) -> list[tuple[float, float]]:
    return [(place, value) for place, value in enumerate(values, start=1)]
