"""Pages through gunicorn, compared with a bare Flask handler that returns the same bytes.

One run stores threads of each size in one data file. The run starts the product on that file as
scripts/serve does, and starts the floor (`floors.flask`) with the same number of workers and
threads. A lean client in a separate process sends requests to both in turn: one at a time (p50,
p99) and as a crowd of eight (responses per second). The client reads the first page, the whole
thread, a subtree, the counts of 50 threads, and the response for a client that has the page (304).
The client also writes to a thread and reads the thread immediately afterwards. The run also starts
the product several times and measures the seconds until the first answer, the memory, and the first
pages. The engine's meter counts the operations that Google's service would bill for each call, in
this process, on the same file.

    python -m benchmarks.serving.served_pages [--shape FILE] [--sizes 100,1000,10000,100000]
                                              [--rounds 20] [--quick]

Prints Markdown. `--quick` takes a minute and only shows that the benchmark works.
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.bars import Bar
from benchmarks.serving import gunicorn_process, lean_client, page_bills, page_figures, page_writer
from benchmarks.threads import conversations, loading, shapes
from comments.domain import records
from comments.jobs.integrity import recount
from comments.reading import full_thread
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess

SIZES = (100, 1_000, 10_000, 100_000)
SITE = "bench"
_QUICK_SIZES = (100, 1_000)
_QUICK_ROUNDS = 3
_SERVED = 200  # Requests after which a process counts as having served for a while.
_BETWEEN = 20  # The number of requests between two threads that are new to a process.
_COPIES = 4  # The number of copies of each short thread; each copy is new to a process once.
_COPIED = 10_000  # The number of comments in the longest thread that is copied.
_MADE = range(51, 71)  # Values of `limit` that were not requested before.
COUNTED = 50  # The number of threads in one request for counts.
_OTHERS = COUNTED - 1  # Small threads with the first keys; a process reads them at its start.
_COUNTS = f"/api/v1/sites/{SITE}/counts"


class Stocked(msgspec.Struct):
    """A stored thread: its size, and the comment that is answered and whose subtree is read."""

    size: int
    target: str
    below: int

    @property
    def path(self) -> str:
        """The path of the thread's comments."""
        return f"/api/v1/sites/{SITE}/comments?thread=t{self.size}"

    @property
    def copies(self) -> list[str]:
        """The paths of the comments of the thread's copies."""
        return [f"{self.path}-{number}" for number in _copies(self.size)]

    @property
    def made(self) -> list[str]:
        """Pages that were not requested before; the first reads all data that the others need."""
        return [f"{self.path}&limit={limit}" for limit in (max(_MADE) + 1, *_MADE)]

    @property
    def counted(self) -> str:
        """The body of a request for the counts of this thread and the small threads."""
        threads = [f"t{self.size}", *(_other(number) for number in range(COUNTED - 1))]
        return msgspec.json.encode({"threads": threads}).decode("ascii")

    def calls(self) -> Iterator[page_figures.Call]:
        """Yield the calls that read the thread."""
        yield page_figures.Call("first page", self.size, self.path)
        yield page_figures.Call("first page, gzip", self.size, self.path, coding="gzip")
        yield page_figures.Call("first page, 304", self.size, self.path, is_known=True)
        below = f"/api/v1/comments/{self.target}/replies?limit=all"
        yield page_figures.Call("subtree", self.size, below)
        yield page_figures.Call(
            f"counts of {COUNTED} threads", self.size, _COUNTS, body=self.counted
        )
        if self.size <= full_thread.MOST:
            every = f"{self.path}&limit=all"
            yield page_figures.Call("whole thread", self.size, every)
            yield page_figures.Call("whole thread, gzip", self.size, every, coding="gzip")
            yield page_figures.Call("whole thread, 304", self.size, every, is_known=True)


def _other(number: int) -> str:
    return f"other {number}"


def _copies(size: int) -> range:
    return range(_COPIES if size <= _COPIED else 0)


def stock(
    data: Path, shape: shapes.Shape, sizes: Sequence[int], *, copied: bool = False
) -> list[Stocked]:
    """Store a compacted thread of each size and, if `copied`, also copies of each thread."""
    data.mkdir()
    found: list[Stocked] = []
    with inprocess.open_engine(
        data / "flatthread.db",
        indexes=gunicorn_process.ROOT / "index.yaml",
        durability="fast",  # Only while filling the store.
        concurrency="pessimistic",
        history=0,
    ) as engine:
        store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT, deadline=120.0)
        with store.context():
            site_settings.add(
                SITE, ["http://localhost"], scheme=loading.SCHEME, now=conversations.START
            )
            for number in range(_OTHERS):
                thread = conversations.thread(
                    shapes.repeated(shape, 20), first=sum(sizes) + number * 20
                )
                _add(engine, _other(number), thread)
            for size in sizes:
                thread = conversations.thread(
                    shapes.repeated(shape, size), first=sum(sizes[: len(found)])
                )
                _add(engine, f"t{size}", thread)
                for number in _copies(size) if copied else ():
                    first = sum(sizes) + _OTHERS * 20 + len(found) * _COPIED * _COPIES
                    copy = conversations.thread(
                        shapes.repeated(shape, size), first=first + number * size
                    )
                    name = records.ThreadName(SITE, f"t{size}-{number}")
                    loading.add_thread(engine, name, copy, is_folded=True)
                target = conversations.busy_comment(thread)
                found.append(Stocked(size, target, conversations.sizes(thread)[target]))
    return found


def _add(engine: inprocess.Engine, name: str, thread: Sequence[conversations.Said]) -> None:
    """Store a compacted thread and count it."""
    whose = records.ThreadName(SITE, name)
    loading.add_thread(engine, whose, thread, is_folded=True)
    recount.thread(whose, tell=lambda _number: None, fixes=True)


def read(
    data: Path, folder: Path, calls: Sequence[page_figures.Call], chosen: argparse.Namespace
) -> list[page_figures.Figures]:
    """Measure the reads, warm and at rest, with the product and the floor in turn."""
    bodies = folder / "bodies"
    bodies.mkdir()
    with gunicorn_process.product(data, calls[0].path) as product:
        ways: dict[page_figures.Call, lean_client.Way] = {}
        for number, call in enumerate(calls):
            status, body, tag = product.ask(call.path, call.headers, call.body)
            if status != 200:
                raise SystemExit(f"{call.path} answered {status}: {body[:200]!r}")
            (bodies / str(number)).write_bytes(body)
            ways[call] = call.way(f"ours {number}", product.port, tag)
        with lean_client.connected(product.port) as connection:
            sizes = {call: connection.learn(way) for call, way in ways.items()}
        with gunicorn_process.floor(bodies, "/0") as plain:
            floors = {
                call: lean_client.Way(
                    f"plain {number}", plain.port, page_figures.request(f"/{number}")
                )
                for number, call in enumerate(calls)
            }
            every = [
                way for pair in zip(ways.values(), floors.values(), strict=True) for way in pair
            ]
            times = ask(lean_client.Order(every, chosen.rounds, chosen.each, chosen.seconds))
    return [
        page_figures.figures(call, sizes[call], times, ways[call].name, floors[call].name)
        for call in calls
    ]


def ask(order: lean_client.Order) -> lean_client.Times:
    """Run an order in a separate process of the client."""
    client = subprocess.run(
        [sys.executable, "-m", "benchmarks.serving.lean_client"],
        cwd=gunicorn_process.ROOT,
        input=msgspec.json.encode(order),
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(client.stdout, type=lean_client.Times)


def write_to(data: Path, threads: Sequence[Stocked], rounds: int) -> list[page_figures.Written]:
    """Measure posts, edits and the pages right after them."""
    found: list[page_figures.Written] = []
    with gunicorn_process.product(data, threads[0].path) as product:
        for thread in threads:
            writing = page_writer.Writer(product.port, thread.path, thread.target)
            for _ in range(rounds):
                writing.round()
            found.append(page_figures.Written(thread.size, writing.times))
    return found


def start(data: Path, threads: Sequence[Stocked], times: int) -> page_figures.Starts:
    """Start the product repeatedly: measure the first answer's time, memory, and first pages."""
    found = page_figures.Starts([], [], {}, {}, {})
    sizes = learn(data, threads)
    for _ in range(times):
        for thread in threads[1:]:
            with _started(data, found) as connection:
                connection.learn(cold(threads[0].path))
                serve(connection, thread, sizes, found)
    return found


def cold(path: str) -> lean_client.Way:
    """Return a request for a page that the process behind a connection has not cached."""
    return lean_client.Way(path, 0, page_figures.request(path))


def learn(data: Path, threads: Sequence[Stocked]) -> dict[str, int]:
    """Return the sizes of the responses, so that the timing client need not parse headers."""
    paths = [path for each in threads for path in (each.path, *each.copies, *each.made)]
    with (
        gunicorn_process.product(data, "/healthz") as product,
        lean_client.connected(product.port) as connection,
    ):
        return {path: connection.learn(cold(path)) for path in paths}


def serve(
    connection: lean_client.Connection,
    thread: Stocked,
    sizes: dict[str, int],
    found: page_figures.Starts,
) -> None:
    """Request threads that a serving process has not read yet."""
    kept = [connection.ask() for _ in range(_SERVED)]
    new = found.new.setdefault(thread.size, [])
    for path in thread.copies:
        kept += [connection.ask() for _ in range(_BETWEEN)]
        new.append(connection.turn(cold(path), sizes[path]))
    found.kept.setdefault(thread.size, []).append(statistics.median(kept))
    longest, *rest = thread.made
    connection.turn(cold(longest), sizes[longest])  # This loads their bucket.
    made = found.made.setdefault(thread.size, [])
    made += [connection.turn(cold(path), sizes[path]) for path in rest]


@contextlib.contextmanager
def _started(data: Path, found: page_figures.Starts) -> Iterator[lean_client.Connection]:
    with gunicorn_process.product(data, "/healthz") as product:
        found.seconds.append(product.started)
        found.memory.append(product.memory())
        product.settle()
        with lean_client.connected(product.port) as connection:
            yield connection


def measure(chosen: argparse.Namespace) -> page_figures.Run:
    shape = shapes.read(chosen.shape) if chosen.shape else shapes.grown(2_251)
    kind = "real" if chosen.shape else "grown"
    with tempfile.TemporaryDirectory(prefix="serving-") as name:
        folder = Path(name)
        data = folder / "data"
        threads = stock(data, shape, chosen.sizes, copied=True)
        calls = [call for thread in threads for call in thread.calls()]
        return page_figures.Run(
            shape=f"a {kind} discussion of {len(shape):,} comments, cut or repeated",
            bills=page_bills.bills(data, calls),
            figures=read(data, folder, calls, chosen),
            starts=start(data, threads, chosen.starts),
            written=write_to(data, threads, chosen.writes),
        )


def bars(*, quick: bool) -> Iterator[Bar]:
    """Measure reads and writes."""
    yield from page_figures.bars(measure(asked(["--quick"] if quick else [])))


def asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", type=Path)
    parser.add_argument("--sizes", type=_sizes, default=None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args(arguments)
    chosen.sizes = chosen.sizes or (_QUICK_SIZES if chosen.quick else SIZES)
    chosen.each, chosen.seconds, chosen.starts, chosen.writes = 20, 0.4, 9, 20
    if chosen.quick:
        chosen.rounds, chosen.seconds = _QUICK_ROUNDS, 0.1
        chosen.starts, chosen.writes = 1, 3
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, then print tables and bars."""
    run = measure(asked(arguments))
    print(page_figures.markdown(run), *page_figures.bars(run), sep="\n")


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(","))


if __name__ == "__main__":
    main()
