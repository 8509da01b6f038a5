"""The results of `served_pages` as Markdown.

The module defines the names of the calls and the format of the figures: milliseconds of the product
and of the floor in the same run, and their ratios, which are more reliable on a shared machine.
"""

import statistics
from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.bars import Bar
from benchmarks.serving import lean_client

FIRST = "first page"
WHOLE = "whole thread"
_MIB = 1 << 20


class Call(msgspec.Struct, frozen=True):
    """A request to measure. If `is_known`, the client sends the tag and gets 304.

    A call with a `body`, in JSON, is a POST.
    """

    name: str
    size: int
    path: str
    coding: str = "identity"
    is_known: bool = False
    body: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request for a complete response."""
        kind = {"Content-Type": "application/json"} if self.body else {}
        return {"Accept-Encoding": self.coding, **kind}

    def way(self, name: str, port: int, tag: str) -> lean_client.Way:
        """Return the variant that sends this call."""
        known = {"If-None-Match": tag} if self.is_known else {}
        asked = request(self.path, self.headers | known, self.body)
        return lean_client.Way(name, port, asked, 304 if self.is_known else 200)


class Figures(msgspec.Struct):
    """The figures of a warm call at rest and of the floor with the same body.

    `sent` is the number of bytes of the response, including its headers. `crowd` and `floor_crowd`
    are in responses per second; the other figures are in seconds.
    """

    name: str
    size: int
    sent: int
    p50: float
    p99: float
    crowd: float
    floor_p50: float
    floor_p99: float
    floor_crowd: float


class Bill(msgspec.Struct):
    """The billed reads of one call."""

    name: str
    size: int
    cold: int
    warm: int


class Starts(msgspec.Struct):
    """Starts of the product: seconds until the first answer, memory then, seconds of first pages.

    `new` contains the times of the first page of a thread that the process, which has served for a
    while, has not read yet. `kept` contains the times of a cached page that the same client
    requests in turn with the others, as the median of each start. `made` contains the times of a
    page of that thread with a limit that was not requested before.
    """

    seconds: list[float]
    memory: list[int]
    new: dict[int, list[float]]
    kept: dict[int, list[float]]
    made: dict[int, list[float]]


class Written(msgspec.Struct):
    """The seconds of writes to a thread and of the page reads right after them."""

    size: int
    times: dict[str, list[float]]


class Run(msgspec.Struct):
    """All results of one run."""

    shape: str
    figures: list[Figures]
    bills: list[Bill]
    starts: Starts
    written: list[Written]


def request(path: str, headers: dict[str, str] | None = None, body: str = "") -> str:
    """Return the bytes of a request as text; a `body` in ASCII makes it a POST."""
    fields = {"Host": "127.0.0.1", "Accept-Encoding": "identity"} | (headers or {})
    if body:
        fields["Content-Length"] = str(len(body))
    method = "POST" if body else "GET"
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", body])


def figures(call: Call, sent: int, times: lean_client.Times, ours: str, floor: str) -> Figures:
    """Return the figures of one call."""
    alone = {name: sorted(times.alone[name]) for name in (ours, floor)}
    return Figures(
        name=call.name,
        size=call.size,
        sent=sent,
        p50=statistics.median(alone[ours]),
        p99=_late(alone[ours]),
        crowd=statistics.median(times.crowd[ours] or [0.0]),
        floor_p50=statistics.median(alone[floor]),
        floor_p99=_late(alone[floor]),
        floor_crowd=statistics.median(times.crowd[floor] or [0.0]),
    )


def _late(seconds: Sequence[float]) -> float:
    return seconds[int(len(seconds) * 0.99)]


def markdown(run: Run) -> str:
    """Return all tables."""
    parts = [f"One run over {run.shape}.", _reads(run), _writes(run), _starts(run.starts)]
    return "\n\n".join(parts)


def _reads(run: Run) -> str:
    lines = [
        (
            "| comments | call | bytes sent | reads cold, warm | p50 ms | p99 ms | 8 clients, 1/s "
            "| floor p50 ms | floor p99 ms | floor 8 clients, 1/s | p50 x floor |"
        ),
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    bills = {(each.name, each.size): f"{each.cold}, {each.warm}" for each in run.bills}
    lines += [
        f"| {each.size:,} | {each.name} | {each.sent:,} | {bills[each.name, each.size]} "
        f"| {_ms(each.p50)} | {_ms(each.p99)} | {each.crowd:,.0f} "
        f"| {_ms(each.floor_p50)} | {_ms(each.floor_p99)} | {each.floor_crowd:,.0f} "
        f"| {each.p50 / each.floor_p50:.2f} |"
        for each in run.figures
    ]
    return "\n".join(lines)


def bars(run: Run) -> Iterator[Bar]:
    """Yield the bars of a run, each at the largest size that allows a comparison."""
    found = {(each.name, each.size): each for each in run.figures}
    sizes = sorted({size for _, size in found})
    low, high = found[FIRST, sizes[0]], found[FIRST, sizes[-1]]
    detail = f"first page of {high.size:,}, warm, to one of {low.size:,}"
    yield Bar("pages size", high.p50 / low.p50, 1.5, detail)
    whole = max((each for each in run.figures if each.name == WHOLE), key=lambda each: each.size)
    detail = f"whole thread of {whole.size:,} to the floor"
    yield Bar("pages whole", whole.p50 / whole.floor_p50, 2.0, detail)
    starts = run.starts
    size = max(size for size, times in starts.new.items() if times)
    median = statistics.median
    detail = f"first page of {size:,}, new to its process, to a kept one"
    yield Bar("pages cold", median(starts.new[size]) / median(starts.kept[size]), 3.0, detail)
    known = found[f"{FIRST}, 304", size].p50
    yield Bar("pages 304", known / median(starts.made[size]), 0.5, "304 to a rendered page")


def _writes(run: Run) -> str:
    names = list(run.written[0].times)
    lines = [
        f"| comments | {' | '.join(f'{name}, p50 ms' for name in names)} |",
        "|---:|" + "---:|" * len(names),
    ]
    lines += [
        f"| {each.size:,} | "
        + " | ".join(_ms(statistics.median(each.times[name])) for name in names)
        + " |"
        for each in run.written
    ]
    return "\n".join(lines)


def _starts(starts: Starts) -> str:
    lines = [
        (
            f"{len(starts.seconds)} starts: the first answer after "
            f"{statistics.median(starts.seconds):.2f} s (slowest {max(starts.seconds):.2f} s), "
            f"{statistics.median(starts.memory) / _MIB:.0f} MiB (PSS of all processes) then. "
            "First pages, ms:"
        ),
        "",
        "| comments | new to its process | rendered | cached, in turns with these |",
        "|---:|---:|---:|---:|",
    ]
    for size in starts.kept:
        kinds = [starts.new[size], starts.made[size], starts.kept[size]]
        cells = [_ms(statistics.median(times)) if times else "" for times in kinds]
        lines.append(f"| {size:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"
