"""Compare the classic ways to store large lists of ids with Flatthread's way, in one run.

The classic ways (`list_rivals`) and Flatthread's way store the same followers, each in its own data
file, and answer five calls: add one, remove one, check one, list all, count. For each call, the
program prints the operations that Google's service would bill (counted by the engine's meter), the
calls to the store, the bytes, and the processor and wall time; the ways take turns. The program
then prints the throughput of many concurrent writers and how often they retry. Usage:

    python -m benchmarks.lists.list_comparison [--sizes 100,1000,10000,200000] [--rounds 9]
                                               [--writers 1,8,50] [--seconds 3] [--write]

The program prints Markdown; `--write` writes the Markdown between the markers in docs/lists.md, and
writes plots and figures.json to docs/lists/.
"""

import argparse
import contextlib
import hashlib
import itertools
import random
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import raw_client
from benchmarks.layouts import layout_tables
from benchmarks.lists import list_rivals, list_tables
from comments.domain import records
from comments.store import connection
from comments.store.large_sets import membership, set_compaction
from emulator import errors, inprocess, testing

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "lists.md"
FOLDER = "lists"
LIST = records.SetName("a list")
PAGE = 5_000  # The number of ids that Flatthread's list delivers together.
CELL_SECONDS = 4.0  # Time budget of a way for one call; each way runs at least one round.
CROWDED = 1_000  # The number of ids in the list that many writers change.
ROUND_TRIP = 0.005  # Delay of each call in seconds; without it, no calls would conflict.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.5  # Seconds before a retry, as in `datastore`.


class Ours:
    """Flatthread's way to store a list: segments, marks and generations."""

    name = "ours"

    def __init__(self) -> None:
        self.asks = threading.Event()

    def fill(self, ids: Sequence[str]) -> None:
        set_compaction.load(LIST, ids)

    def change(self, follower: str, *, follows: bool) -> None:
        """Add or remove an id."""
        if membership.mark(LIST, follower, belongs=follows):
            self.asks.set()

    def contains(self, follower: str) -> bool:
        """Return whether the list contains an id."""
        return membership.contains(LIST, follower)

    def every(self) -> list[str]:
        """Return all ids."""
        return list(membership.every(LIST, limit=PAGE))

    def count(self) -> int:
        return membership.count(LIST)


WAYS: tuple[type[Any], ...] = (
    list_rivals.Rows,
    list_rivals.Text,
    list_rivals.Tombstones,
    list_rivals.TwoLists,
    list_rivals.Log,
    Ours,
)


class Opened:
    """A way to store a list, with its engine and the context that its calls require."""

    def __init__(self, engine: inprocess.Engine, kind: type[Any]) -> None:
        self.kind = kind
        self.engine = engine
        self.calls = 0
        self.round_trip = 0.0
        self.aborted: list[str] = []
        channel = inprocess.Channel(engine, self._count)
        self._store: connection.Store | None = None
        if kind is Ours:
            self.way = Ours()
            self._store = connection.Store(channel, project=raw_client.PROJECT, deadline=120.0)
        else:
            self.way = kind(raw_client.Client(channel))

    def _count(self, method: str, _: object, proceed: Callable[[], bytes]) -> bytes:
        self.calls += 1
        if self.round_trip:
            time.sleep(self.round_trip)
        try:
            return proceed()
        except errors.Aborted:
            self.aborted.append(method)
            raise

    @contextlib.contextmanager
    def entered(self) -> Iterator[Any]:
        """Enter the context that the way requires, in this thread; yield the way."""
        with contextlib.nullcontext() if self._store is None else self._store.context():
            yield self.way


@contextlib.contextmanager
def opened(kind: type[Any], path: Path, ids: Sequence[str]) -> Iterator[Opened]:
    """Open a way in a file that contains a list.

    Raises:
        raw_client.TooLarge: The way cannot store the list.
    """
    with inprocess.open_engine(
        path,
        indexes=ROOT / "index.yaml",
        durability="fast",
        history=0,
        concurrency="pessimistic",
        built_in_indexes="eager",  # The space of a list is that in Google's service.
    ) as engine:
        made = Opened(engine, kind)
        with made.entered() as way:
            way.fill(ids)
        yield made


def members(size: int) -> list[str]:
    """Return ids in the format of guest ids: 26 characters, in no order."""
    digests = (hashlib.sha256(str(number).encode()).hexdigest() for number in range(size))
    return [f"g:{digest[:24]}" for digest in digests]


class Bench:
    """A list of one size, stored in every way that can store it."""

    def __init__(self, folder: Path, size: int, rounds: int, stack: contextlib.ExitStack) -> None:
        self._size = size
        self._rounds = rounds
        self._ids = members(size)
        self._random = random.Random(size)
        self._next = 0
        self.opened: dict[str, Opened] = {}
        for kind in WAYS:
            with contextlib.suppress(raw_client.TooLarge):
                path = folder / f"{kind.__name__}.db"
                self.opened[kind.name] = stack.enter_context(opened(kind, path, self._ids))
            note(f"{size}: {kind.name} {'stored' if kind.name in self.opened else 'is too large'}")

    def run(self) -> Iterator[layout_tables.Figures]:
        """Measure all calls, beginning with the calls that only read."""
        for call in list_tables.TITLES:
            measured = {name: self._metered(each, call) for name, each in self.opened.items()}
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in measured}
            for _ in range(self._rounds):
                for name, taken in times.items():
                    if sum(wall for wall, _ in taken) < CELL_SECONDS:
                        taken.append(self._timed(self.opened[name], call))
            for name, figures in measured.items():
                figures.wall = statistics.median(wall for wall, _ in times[name])
                figures.cpu = statistics.median(cpu for _, cpu in times[name])
                figures.rounds = len(times[name])
                yield figures
            note(f"{self._size}: {call}")

    def folding(self) -> list_tables.Folding:
        """Make the changes that cause one compaction on average; return the compaction's cost."""
        ours = self.opened[Ours.name]
        with ours.entered():
            set_compaction.compact(LIST)
            marks = membership._between(membership.pointer(LIST))  # noqa: SLF001 - there is no public way
            for number in range(marks):
                follower = f"new {number}" if number % 2 else self._random.choice(self._ids)
                membership.mark(LIST, follower, belongs=bool(number % 2))
            segments = len(membership.pointer(LIST).directory.lines)
            with testing.meter(ours.engine) as cost:
                begin = time.process_time()
                set_compaction.compact(LIST)
                cpu = time.process_time() - begin
                return list_tables.Folding(
                    size=self._size,
                    marks=marks,
                    segments=segments,
                    reads=cost.reads,
                    writes=cost.writes,
                    deletes=cost.deletes,
                    bytes=cost.bytes_in + cost.bytes_out,
                    cpu=cpu,
                )

    def _metered(self, each: Opened, call: str) -> layout_tables.Figures:
        with contextlib.ExitStack() as stack:
            ready = self._ready(stack.enter_context(each.entered()), call)
            cost = stack.enter_context(testing.meter(each.engine))
            before = each.calls
            ready()
            return layout_tables.Figures(
                layout=each.kind.name,
                size=self._size,
                call=call,
                reads=cost.reads,
                writes=cost.writes,
                deletes=cost.deletes,
                small=cost.small,
                calls=each.calls - before,
                bytes_in=cost.bytes_in,
                bytes_out=cost.bytes_out,
            )

    def _timed(self, each: Opened, call: str) -> tuple[float, float]:
        with each.entered() as way:
            ready = self._ready(way, call)
            wall, cpu = time.perf_counter(), time.process_time()
            ready()
            return time.perf_counter() - wall, time.process_time() - cpu

    def _ready(self, way: Any, call: str) -> Callable[[], object]:
        """Return a prepared call."""
        self._next += 1
        somebody = self._random.choice(self._ids)
        calls: dict[str, Callable[[], object]] = {
            "contains": lambda: way.contains(somebody),
            "every": way.every,
            "count": way.count,
            "join": lambda: way.change(f"g:{self._next:024d}", follows=True),
            "leave": lambda: way.change(somebody, follows=False),
        }
        return calls[call]


class Crowd:
    """Writers in one process that change one list for some seconds, each with its own ids."""

    def __init__(self, each: Opened, writers: int, seconds: float) -> None:
        self._opened = each
        self._writers = writers
        self._seconds = seconds
        self._end = 0.0
        self._latencies: list[float] = []

    def run(self) -> list_tables.Crowded:
        """Run all writers and return the number of their changes and the cost."""
        threads = [
            threading.Thread(target=self._change, args=(number,)) for number in range(self._writers)
        ]
        self._opened.round_trip = ROUND_TRIP
        before = len(self._opened.aborted)
        with testing.meter(self._opened.engine) as cost:
            begin = time.perf_counter()
            self._end = begin + self._seconds
            folder = threading.Thread(target=self._fold)
            for thread in (*threads, folder):
                thread.start()
            for thread in threads:
                thread.join()
            taken = time.perf_counter() - begin
            folder.join()
            total = cost.total()
        changes, latencies = len(self._latencies), sorted(self._latencies)
        return list_tables.Crowded(
            way=self._opened.kind.name,
            writers=self._writers,
            changes=changes,
            seconds=taken,
            repeats=(len(self._opened.aborted) - before) / changes,
            reads=total.reads / changes,
            writes=(total.writes + total.deletes) / changes,
            bytes=(total.bytes_in + total.bytes_out) / changes,
            median=statistics.median(latencies),
            high=latencies[int(0.99 * changes)],
        )

    def _change(self, number: int) -> None:
        seed = random.Random(number)
        with self._opened.entered() as way:
            # Add each id and remove it again; make at least one change, however short the time is.
            for turn in itertools.count():
                begin = time.perf_counter()
                follower = f"w:{number:012d}{turn // 2:012d}"
                _patiently(way, follower, seed, follows=turn % 2 == 0)
                self._latencies.append(time.perf_counter() - begin)
                if time.perf_counter() >= self._end:
                    return

    def _fold(self) -> None:
        """Compact Flatthread's list during the run, as a worker does."""
        with self._opened.entered() as way:
            while isinstance(way, Ours) and time.perf_counter() < self._end:
                if way.asks.wait(0.05):
                    way.asks.clear()
                    set_compaction.compact(LIST)


def _patiently(way: Any, follower: str, seed: random.Random, *, follows: bool) -> None:
    for tries in itertools.count():
        try:
            way.change(follower, follows=follows)
        except raw_client.Aborted:
            time.sleep(seed.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tries)))
        else:
            return


def ends(folder: Path) -> dict[str, int]:
    """Return the maximum number of ids for each way that has a size limit."""
    found: dict[str, int] = {}
    for kind in WAYS:
        if kind in {Ours, list_rivals.Rows}:
            continue
        low, high = 1, 1_000_000
        with opened(kind, folder / f"{kind.__name__}.db", []) as each, each.entered() as way:
            ids = members(100_000)
            high = len(ids)
            while high - low > 1:
                middle = (low + high) // 2
                try:
                    way.fill(ids[:middle])
                    low = middle
                except raw_client.TooLarge:
                    high = middle
        found[kind.name] = low
        note(f"{kind.name} holds {low}")
    return found


def stored(folder: Path) -> dict[str, int]:
    """Return the size in bytes of each closed data file and its indexes, without unused space."""
    bytes_: dict[str, int] = {}
    for kind in WAYS:
        path = folder / f"{kind.__name__}.db"
        if path.exists():
            with contextlib.closing(sqlite3.connect(path)) as file:
                file.execute("VACUUM")
            bytes_[kind.name] = path.stat().st_size
    return bytes_


def note(text: str) -> None:
    """Print the progress of the run."""
    print(f"{time.process_time():7.1f} s  {text}", file=sys.stderr, flush=True)


def measure(
    sizes: Sequence[int], rounds: int, writers: Sequence[int], seconds: float
) -> list_tables.Run:
    run = list_tables.Run(rounds, seconds, ROUND_TRIP, CROWDED, {}, {}, [], [], [])
    with tempfile.TemporaryDirectory(prefix="lists-") as folder:
        scratch = Path(folder) / "ends"
        scratch.mkdir()
        run.ends = ends(scratch)
        for size in sizes:
            home = Path(folder) / str(size)
            home.mkdir()
            with contextlib.ExitStack() as stack:
                bench = Bench(home, size, rounds, stack)
                kept = set(bench.opened)
                run.figures += bench.run()
                run.foldings.append(bench.folding())
            run.stored[size] = {way: n for way, n in stored(home).items() if way in kept}
        for number in writers:
            for kind in WAYS:
                path = Path(folder) / f"{kind.__name__}-{number}.db"
                with opened(kind, path, members(CROWDED)) as each:
                    run.crowds.append(Crowd(each, number, seconds).run())
                note(f"{number} writers: {kind.name}")
    return run


def write(run: list_tables.Run, document: Path) -> None:
    """Write tables, plots and figures to the documents."""
    layout_tables.insert(list_tables.markdown(run), document)
    folder = document.parent / FOLDER
    folder.mkdir(exist_ok=True)
    (folder / "figures.json").write_bytes(layout_tables.encoded(run))
    for name, drawn in list_tables.drawn(run):
        (folder / name).write_text(drawn, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the results, and write them if requested."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default="100,1000,10000,200000")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--writers", default="1,8,50")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    chosen = parser.parse_args(arguments)
    sizes, writers = (
        [int(number) for number in text.split(",")] for text in (chosen.sizes, chosen.writers)
    )
    run = measure(sizes, chosen.rounds, writers, chosen.seconds)
    if chosen.write:
        write(run, chosen.document)
    print(list_tables.markdown(run))


if __name__ == "__main__":
    main()
