"""Pages through gunicorn, compared with a bare Flask handler that returns the same bytes.

size   a warm first page of the largest thread / of the smallest
whole  the whole thread in one response / the floor (`floors.flask`)
cold   a first page that is new to a process that has served for a while / a kept one, which
       the same client requests in turn
304    the answer to a reader who has the page / a page with a limit that is new
"""

import dataclasses
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import clients, servers, stock
from benchmarks.bars import Bar

SIZES, QUICK_SIZES = (100, 10_000, 100_000), (50, 300, 600)
_EACH = 20  # Requests of each kind in a round.
_SERVED = 200  # Requests after which a process counts as having served for a while.
_BETWEEN = 20  # The number of requests between two threads that are new to a process.
_COPIES = 4  # Threads that are new to a process once.
_MADE = range(51, 71)  # Values of `limit` that were not requested before.


@dataclasses.dataclass(slots=True)
class Starts:
    """Seconds of pages in new processes. `kept` has the median of each process."""

    new: list[float] = dataclasses.field(default_factory=list)
    kept: list[float] = dataclasses.field(default_factory=list)
    made: list[float] = dataclasses.field(default_factory=list)


def bars(*, quick: bool) -> Iterator[Bar]:
    """Store threads, and measure them."""
    sizes, rounds, starts = (QUICK_SIZES, 3, 1) if quick else (SIZES, 20, 9)
    with tempfile.TemporaryDirectory(prefix="pages-") as name:
        folder = Path(name)
        small, middle, large, *copies = stock.store(folder / "data", sizes, _COPIES)
        times = read(folder, {"small": small.path, "large": large.path}, middle, rounds)
        found, data = Starts(), folder / "data"
        lengths = learned(data, [each.path for each in (small, *copies)] + made(middle))
        for _ in range(starts):
            start(data, lengths, made(middle), found)
    median = {name: statistics.median(seconds) for name, seconds in times.items()}
    detail = f"first page of {large.size:,}, warm, to one of {small.size:,}"
    yield Bar("pages size", median["large"] / median["small"], 1.5, detail)
    detail = f"whole thread of {middle.size:,} to the floor, {median['whole'] * 1000:.2f} ms"
    yield Bar("pages whole", median["whole"] / median["floor"], 2.0, detail)
    detail = f"first page of {middle.size:,}, new to its process, to a kept one"
    cold = statistics.median(found.new) / statistics.median(found.kept)
    yield Bar("pages cold", cold, 3.0, detail)
    rendered = statistics.median(found.made)
    yield Bar("pages 304", median["304"] / rendered, 0.5, "304 to a rendered page")


def read(
    folder: Path, paths: dict[str, str], middle: stock.Thread, rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of pages at rest, by the product and the floor in turn."""
    bodies = folder / "bodies"
    bodies.mkdir()
    whole = f"{middle.path}&limit=all"
    with servers.product(folder / "data", middle.path) as product:
        (bodies / "whole").write_bytes(product.ask(whole)[1])
        tag = product.ask(middle.path)[2]
        known = clients.request(middle.path, {"If-None-Match": tag})
        with servers.floor(bodies) as floor:
            ways = [
                *(
                    clients.Way(name, product.port, clients.request(path))
                    for name, path in (paths | {"whole": whole}).items()
                ),
                clients.Way("304", product.port, known, 304),
                clients.Way("floor", floor.port, clients.request("/whole")),
            ]
            return clients.read(ways, rounds, _EACH)


def made(thread: stock.Thread) -> list[str]:
    """Return pages that were not requested before; the first reads all that the others need."""
    return [f"{thread.path}&limit={limit}" for limit in (max(_MADE) + 1, *_MADE)]


def start(data: Path, lengths: dict[str, int], made: list[str], found: Starts) -> None:
    """Start the product, and request threads and pages that its process has not read yet."""
    kept, *others = (path for path in lengths if path not in made)
    with servers.product(data, "/healthz") as product:
        product.settle()
        with clients.connected(product.port) as connection:
            connection.turn(_way(kept), lengths[kept])
            times = [connection.ask() for _ in range(_SERVED)]
            for path in others:
                found.new.append(connection.turn(_way(path), lengths[path]))
                connection.turn(_way(kept), lengths[kept])
                times += [connection.ask() for _ in range(_BETWEEN)]
            found.kept.append(statistics.median(times))
            longest, *rest = made
            connection.turn(_way(longest), lengths[longest])  # This loads their bucket.
            found.made += [connection.turn(_way(path), lengths[path]) for path in rest]


def _way(path: str) -> clients.Way:
    return clients.Way(path, 0, clients.request(path))


def learned(data: Path, paths: Sequence[str]) -> dict[str, int]:
    """Return the sizes of the responses, so that the timing client need not parse headers."""
    with (
        servers.product(data, "/healthz") as product,
        clients.connected(product.port) as connection,
    ):
        return {path: connection.learn(_way(path)) for path in paths}
