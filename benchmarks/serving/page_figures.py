"""What `served_pages` has found: its figures as Markdown.

Owns the calls by name and how figures are said: milliseconds beside those of the floor in the same
run, and as ratios to it, which say more on a machine that others use too.
"""

import statistics
from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.serving import lean_client

FIRST = "first page"
# The kinds of `Starts` that are cold, and what they are.
_COLD = {
    "process": "the first answer of a process",
    "thread": "new thread, new process",
    "new": "new thread, process that serves",
}
_MIB = 1 << 20


class Call(msgspec.Struct, frozen=True):
    """Something that is read. `is_known`: the client names the tag, and is answered 304.

    What is asked with a `body`, as JSON, is asked by POST.
    """

    name: str
    size: int
    path: str
    coding: str = "identity"
    is_known: bool = False
    body: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers that ask for the whole answer."""
        kind = {"Content-Type": "application/json"} if self.body else {}
        return {"Accept-Encoding": self.coding, **kind}

    def way(self, name: str, port: int, tag: str) -> lean_client.Way:
        """The call as it is sent."""
        known = {"If-None-Match": tag} if self.is_known else {}
        asked = request(self.path, self.headers | known, self.body)
        return lean_client.Way(name, port, asked, 304 if self.is_known else 200)


class Figures(msgspec.Struct):
    """One call, warm and at rest, and the floor that returns its body; seconds, and answers/s.

    `sent` are the bytes of the answer on the wire, with its headers.
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
    """Billed reads of one call."""

    name: str
    size: int
    cold: int
    warm: int


class Starts(msgspec.Struct):
    """Starts of the product: seconds to the first answer, bytes then, seconds of first pages.

    `process`: the first request that a process ever answers; `thread`: the first for this thread, a
    few requests later; `new`: the first for a thread like it, of a process that has served for a
    while; `made`: pages of it that nobody has asked for; `rested`: the page that the process keeps,
    asked for after it had nothing to do for as long as before `process`; `kept`: the same in turns
    with the others, by the same client on the same connection, the median of each start; `row`: the
    same in rows on connections of their own, as pages of the table are, of the process of `new`.
    """

    seconds: list[float]
    memory: list[int]
    process: dict[int, list[float]]
    thread: dict[int, list[float]]
    new: dict[int, list[float]]
    made: dict[int, list[float]]
    rested: dict[int, list[float]]
    kept: dict[int, list[float]]
    row: dict[int, list[float]]


class Written(msgspec.Struct):
    """Seconds of writes to a thread, and of the pages right after them."""

    size: int
    times: dict[str, list[float]]


class Run(msgspec.Struct):
    """All that one run has found."""

    shape: str
    figures: list[Figures] = []
    bills: list[Bill] = []
    starts: Starts | None = None
    written: list[Written] = []
    empty: float = 0.0  # seconds of the floor's 304


def request(path: str, headers: dict[str, str] | None = None, body: str = "") -> str:
    """A request as it is sent; a `body`, of ASCII, makes it a POST."""
    fields = {"Host": "127.0.0.1", "Accept-Encoding": "identity"} | (headers or {})
    if body:
        fields["Content-Length"] = str(len(body))
    method = "POST" if body else "GET"
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", body])


def figures(call: Call, sent: int, times: lean_client.Times, ours: str, floor: str) -> Figures:
    """The figures of one call."""
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
    """All tables."""
    parts = [f"One run over {run.shape}.", _reads(run), _ratios(run)]
    if run.written:
        parts.append(_writes(run))
    if run.starts:
        parts.append(_starts(run.starts))
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


def _ratios(run: Run) -> str:
    lines = ["| ratio | value | bar |", "|---|---:|---:|"]
    return "\n".join(
        [*lines, *(f"| {says} | {value:.2f} | {bar} |" for says, value, bar in _all(run))]
    )


def _all(run: Run) -> Iterator[tuple[str, float, str]]:
    found = {(each.name, each.size): each for each in run.figures}
    sizes = sorted({size for _, size in found})
    low, high = found[FIRST, sizes[0]], found[FIRST, sizes[-1]]
    yield f"first page at {high.size:,} to one at {low.size:,}", high.p50 / low.p50, "1.5"
    for size in sizes:
        page = found[FIRST, size].p50
        if run.empty:
            yield f"the floor's empty 304 to a 200, first page at {size:,}", run.empty / page, ""
        for name in ("first page", "whole thread"):
            known = found.get((f"{name}, 304", size))
            if known:
                whole = found[name, size]
                yield f"304 to a 200, {name} at {size:,}", known.p50 / whole.p50, "0.5"
                says = f"304 to a 200 in bytes sent, {name} at {size:,}"
                yield says, known.sent / whole.sent, "0.5"
        every = found.get(("whole thread", size))
        if every:
            yield f"whole thread at {size:,} to the floor", every.p50 / every.floor_p50, "2"
        if run.starts and size in run.starts.process:
            yield from _first(run.starts, size, page, found["first page, 304", size].p50)


def _first(
    starts: Starts, size: int, page: float, known: float
) -> Iterator[tuple[str, float, str]]:
    """What is asked for the first time, to seconds of a warm page and of a 304."""
    for kind, says in _COLD.items():
        times = getattr(starts, kind).get(size)
        if times:
            yield f"first page at {size:,}, {says}, to warm", statistics.median(times) / page, "3"
    for kind in ("thread", "new"):
        times = getattr(starts, kind).get(size)
        if times:
            says = f"first page at {size:,}, {_COLD[kind]}, to warm in turns"
            yield says, statistics.median(times) / statistics.median(starts.kept[size]), "3"
            says = f"first page at {size:,}, {_COLD[kind]}, to warm in a row of the same process"
            yield says, statistics.median(times) / statistics.median(starts.row[size]), "3"
    process, rested = starts.process[size], starts.rested[size]
    says = f"first page at {size:,}, {_COLD['process']}, to warm after a rest as long"
    yield says, statistics.median(process) / statistics.median(rested), "3"
    made = statistics.median(starts.made[size])
    yield f"304 to a 200 that is made, at {size:,}", known / made, "0.5"


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
        (
            f"| comments | {' | '.join(_COLD.values())} | page that is made | warm, after a rest "
            "| warm, in turns | warm, in a row |"
        ),
        "|---:|" + "---:|" * (len(_COLD) + 4),
    ]
    for size in starts.process:
        kinds = [
            getattr(starts, kind).get(size) for kind in (*_COLD, "made", "rested", "kept", "row")
        ]
        cells = [_ms(statistics.median(times)) if times else "" for times in kinds]
        lines.append(f"| {size:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"
