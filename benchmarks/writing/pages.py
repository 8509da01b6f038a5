"""First pages and counts through gunicorn, and first pages right after a post.

The product takes turns with floors that return the same bytes (`floors`), and `lean_client` reads.
"""

import contextlib
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.serving import (
    gunicorn_process,
    lean_client,
    page_bills,
    page_figures,
    page_writer,
    posters,
    served_pages,
)
from benchmarks.writing import checkouts, results

AFTER = "page right after a post, p50 ms"
COUNTS = "counts of 50 pages"
READS = f"{COUNTS}, billed reads"
_EACH = 20  # Requests of each kind in a round.
_WRITES = 5  # Posts in a round.


def name(size: int) -> str:
    """Return the name of the page of a thread of this size."""
    return f"first page of {size:,}"


def measure(
    found: results.Results, trees: Sequence[checkouts.Checkout], folder: Path, *,
    rounds: int, seconds: float, large: int,
) -> None:  # fmt: skip
    """Measure every page on every server in turn."""
    sizes = (checkouts.SMALL, large)
    calls = {size: page_figures.Call(name(size), size, _thread(size).path) for size in sizes}
    counts = next(each for each in _thread(large).calls() if each.body)
    with contextlib.ExitStack() as stack:
        products = {
            each.variant: stack.enter_context(
                gunicorn_process.product(each.data, calls[large].path, root=each.root)
            )
            for each in trees
        }
        bodies = {str(size): products[results.THIS].ask(calls[size].path)[1] for size in sizes}
        floors = dict(_floors(stack, folder, bodies))
        ways = [
            call.way(f"{variant}|{call.name}", server.port, "")
            for variant, server in products.items()
            for call in calls.values()
        ] + [
            page_figures.Call("", size, f"/{size}").way(f"{variant}|{name(size)}", server.port, "")
            for variant, server in floors.items()
            for size in sizes
        ]
        _read(found, ways, rounds, seconds)
        asked = [
            counts.way(f"{variant}|{COUNTS}", server.port, "")
            for variant, server in products.items()
        ]
        _read(found, asked, rounds, 0.0)
        _write(found, products, floors, large, rounds)
    for each in page_bills.bills(trees[0].data, [counts]):
        found.add(READS, results.THIS, each.warm)


def _thread(size: int) -> served_pages.Stocked:
    return served_pages.Stocked(size, "", 0)


def _floors(
    stack: contextlib.ExitStack, folder: Path, bodies: dict[str, bytes]
) -> Iterator[tuple[str, gunicorn_process.Server]]:
    for variant, app in ((results.FLASK, "flask()"), (results.WSGI, "wsgi")):
        served = folder / f"pages of the {variant}"
        served.mkdir()
        for each, body in bodies.items():
            (served / each).write_bytes(body)
        running = gunicorn_process.floor(served, f"/{next(iter(bodies))}", app)
        yield variant, stack.enter_context(running)


def _read(
    found: results.Results, ways: Sequence[lean_client.Way], rounds: int, seconds: float
) -> None:
    # Without seconds, `lean_client` reads only one page at a time.
    times = served_pages.ask(lean_client.Order(list(ways), rounds, _EACH, seconds))
    for way in ways:
        variant, what = way.name.split("|")
        alone = [each * 1000 for each in results.chunks(times.alone[way.name], rounds)]
        found.add(f"{what}, p50 ms", variant, *alone)
        if seconds:
            found.add(f"{what}, eight readers, 1/s", variant, *times.crowd[way.name])


def _write(
    found: results.Results, products: dict[str, gunicorn_process.Server],
    floors: dict[str, gunicorn_process.Server], size: int, rounds: int,
) -> None:  # fmt: skip
    """Post, and read the page right afterwards on a new connection."""
    steps: dict[str, Callable[[], float]] = {}
    for variant, server in products.items():
        path = _thread(size).path
        first = json.loads(server.ask(path)[1])["comments"][0]["id"]
        steps[variant] = _after_post(page_writer.Writer(server.port, path, first))
    for variant, server in floors.items():
        steps[variant] = _after_insert(server.port, str(size))
    for _ in range(rounds):
        for variant, step in steps.items():
            found.add(AFTER, variant, statistics.median(step() for _ in range(_WRITES)) * 1000)


def _after_post(writer: page_writer.Writer) -> Callable[[], float]:
    def step() -> float:
        writer.round()
        return writer.times["page after post"][-1]

    return step


def _after_insert(port: int, page: str) -> Callable[[], float]:
    sent = posters.request("/", {"name": "writer", "body": posters.TEXT})
    way = lean_client.Way(page, port, page_figures.request(f"/{page}"))

    def step() -> float:
        with lean_client.connected(port) as reading:
            reading.fetch(way)
            posters.run(port, [iter([sent])], 0.0)
            return reading.fetch(way)[1]

    return step
