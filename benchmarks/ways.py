"""A first page in all the ways gunicorn sends it: what a client waits and the processors work.

A 304 rests on a probe of its own, so that it never hides what was just written; so does a page that
is kept. The least that any answer costs here is shown by a WSGI application of a few lines under
the same gunicorn, which holds its bytes and asks nobody (`bare`). The ways take turns, each on a
new connection, which stays with one process:

    kept    the page was sent before by this process, and is sent again
    304     the client names its tag
    made    the first answer to that question: every one asks for another number of comments
    whole   the whole thread, kept; and new to the process

Each start of the product gives a few more: the first answer of a process, once it is at rest, and
first pages of threads that are new to it, asked for by its next requests, and after some hundreds.
What a process reads at its start is other threads.

    python -m benchmarks.ways [--shape FILE] [--rounds 20] [--each 100] [--starts 8]

Prints Markdown.
"""

import argparse
import contextlib
import dataclasses
import functools
import os
import random
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import lean, processes, served, serving, shapes

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

THREADS = 9  # of 10,000 comments: one that is read all the time, the others to be new once
_EARLY = 5  # of them are asked for by the first requests of a process
_ASKED = 400  # requests that it then answers before the others are
SIZE = 10_000
KEPT = "first page, kept"
_LIMITS = range(101, 201)
_BYTES = b"x" * 22_650  # as long as a first page
_HEADERS = [
    ("Content-Type", "application/json"),
    ("Content-Length", str(len(_BYTES))),
    ("Cache-Control", "no-cache"),
    ("Vary", "Accept-Encoding, Origin"),
    ("ETag", '"x"'),
]


def bare(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """The least that a server's answer costs."""
    if environ.get("HTTP_IF_NONE_MATCH") == '"x"':
        start_response("304 NOT MODIFIED", _HEADERS[2:])
        return ()
    start_response("200 OK", list(_HEADERS))
    return (_BYTES,)


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """Something that is asked again and again, and of whom."""

    server: processes.Server
    way: lean.Way


@dataclasses.dataclass(slots=True)
class Found:
    """What was found of a way: seconds for the client, and of processors for each answer."""

    waited: list[float] = dataclasses.field(default_factory=list)
    worked: list[float] = dataclasses.field(default_factory=list)

    def add(self, server: processes.Server, asks: Sequence[Callable[[], float]]) -> None:
        """Ask, and take the times."""
        before = server.worked()
        self.waited += [ask() for ask in asks]
        self.worked.append((server.worked() - before) / len(asks))


def ways(product: processes.Server, floor: processes.Server) -> dict[str, Way]:
    """What is asked in turns."""
    first = path(0)
    asked = {"first page": first, "200 comments": f"{first}&limit=200", "whole": whole(0)}
    found: dict[str, Way] = {}
    for name, each in asked.items():
        _, _, tag = product.ask(each, {"Accept-Encoding": "identity"})
        found[f"{name}, kept"] = Way(product, way(product, each))
        found[f"{name}, 304"] = Way(product, way(product, each, tag))
    found["bare 200"] = Way(floor, way(floor, "/"))
    found["bare 304"] = Way(floor, way(floor, "/", '"x"'))
    return found


def path(number: int) -> str:
    """The first page of a thread."""
    return f"/api/v1/sites/{serving.SITE}/comments?thread=t{SIZE + number}"


def whole(number: int) -> str:
    """All of a thread."""
    return f"{path(number)}&limit=all"


_PAGES = [f"{path(0)}&limit={limit}" for limit in _LIMITS]


def way(server: processes.Server, asked: str, tag: str = "") -> lean.Way:
    """A request as it is sent."""
    known = {"If-None-Match": tag} if tag else {}
    return lean.Way(asked, server.port, served.request(asked, known), 304 if tag else 200)


def in_turns(asked: dict[str, Way], rounds: int, each: int) -> dict[str, Found]:
    """Ask everything that stays the same."""
    found = {name: Found() for name in asked}
    names, chance = list(asked), random.Random(1)
    for _ in range(rounds):
        chance.shuffle(names)
        for name in names:
            one = asked[name]
            with contextlib.ExitStack() as stack:
                connection = lean.warmed(stack, one.way)
                found[name].add(one.server, [connection.ask] * each)
    return found


def learn(data: Path) -> dict[str, int]:
    """How long the answers are, so that who times them reads no headers meanwhile."""
    asked = [*map(path, range(THREADS)), *map(whole, range(THREADS)), *_PAGES]
    with processes.product(data, "/healthz") as product, lean.connected(product.port) as connection:
        return {each: connection.learn(way(product, each)) for each in asked}


def made(product: processes.Server, sizes: dict[str, int]) -> dict[str, Found]:
    """Ask what this process was never asked."""
    found = {"101 to 200 comments, made": Found(), "whole, new to the process": Found()}
    for name, paths in zip(found, (_PAGES, map(whole, range(1, THREADS))), strict=True):
        with lean.connected(product.port) as connection:
            connection.learn(way(product, path(0)))
            asks = [
                functools.partial(connection.turn, way(product, each), sizes[each])
                for each in paths
            ]
            found[name].add(product, asks)
    return found


def new(data: Path, sizes: dict[str, int], starts: int) -> dict[str, Found]:
    """Ask processes that have answered nothing yet, and for threads that are new to them."""
    found = {
        "first page, first of a process": Found(),
        "first page, new thread, new process": Found(),
        "first page, new thread": Found(),
    }
    first, early, late = found.values()
    for _ in range(starts):
        with processes.product(data, "/healthz") as product:
            product.settle()
            with lean.connected(product.port) as connection:
                asks = [
                    functools.partial(connection.turn, way(product, each), sizes[each])
                    for each in map(path, range(THREADS))
                ]
                first.add(product, asks[:1])
                early.add(product, asks[1:_EARLY])
                for _ in range(_ASKED):
                    connection.ask()
                late.add(product, asks[_EARLY:])
    return found


def measure(data: Path, rounds: int, each: int, starts: int) -> dict[str, Found]:
    """Measure everything."""
    sizes = learn(data)
    with processes.product(data, "/healthz") as product:
        with processes.other("benchmarks.ways:bare", {}, "/") as floor:
            found = in_turns(ways(product, floor), rounds, each)
        found |= made(product, sizes)
    return found | new(data, sizes, starts)


def lines(found: dict[str, Found]) -> Iterator[str]:
    """The table, beside a first page that is kept."""
    yield "| answer | p50 ms | x kept | best quarter, ms | processors, us | x kept |"
    yield "|---|---:|---:|---:|---:|---:|"
    one, work = (statistics.median(each) for each in (found[KEPT].waited, found[KEPT].worked))
    for name, each in found.items():
        waited, worked = statistics.median(each.waited), statistics.median(each.worked)
        yield (
            f"| {name} | {waited * 1e3:.2f} | {waited / one:.2f} | {_soon(each.waited) * 1e3:.2f} "
            f"| {worked * 1e6:,.0f} | {worked / work:.2f} |"
        )


def _soon(seconds: Sequence[float]) -> float:
    return sorted(seconds)[len(seconds) // 4]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--starts", type=int, default=8)
    chosen = parser.parse_args(arguments)
    shape = shapes.read(chosen.shape) if chosen.shape else shapes.grown(2_251)
    with tempfile.TemporaryDirectory(prefix="unchanged-") as name:
        data = Path(name) / "data"
        serving.stock(data, shape, range(SIZE, SIZE + THREADS))
        found = measure(data, chosen.rounds, chosen.each, chosen.starts)
    print("\n".join(lines(found)))
    print(f"\nThe machine's load: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
