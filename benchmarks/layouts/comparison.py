"""Compare the layouts of a comment thread by measuring them in one run.

The classic layouts (`rivals`, `bucketed`, `nested`) and Flatthread's (`flatthread`) store the same
threads, each layout in its own data file, and answer five calls: the first page of 50, the whole
thread, the subtree of one comment, a reply, an edit. For each call, the program prints the
operations that Google's service would bill (counted by the engine's meter), the calls to the store,
the bytes, and the processor and wall time; the layouts take turns. Usage:

    python -m benchmarks.layouts.comparison [--shape FILE] [--sizes 100,1000,10000]
                                            [--rounds 9] [--write]

FILE contains `id;parent;time` rows, which are repeated to reach each size; without FILE, a
generated shape is used. The program prints Markdown; `--write` writes the Markdown between the
markers in docs/layouts.md, and writes plots and figures.json to docs/layouts/.
"""

import argparse
import contextlib
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from benchmarks import raw_client
from benchmarks.layouts import bucketed, flatthread, layout_tables, nested, rivals
from benchmarks.threads import conversations, loading, shapes
from comments.store import connection
from emulator import inprocess, testing
from emulator.execution import cost_meter

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "layouts.md"
FOLDER = ROOT / "docs" / "layouts"
PAGE = 50
CELL_SECONDS = 4.0  # Time budget of a layout for one call; each layout runs at least one round.
KINDS: tuple[type[Any], ...] = (
    rivals.Paths,
    rivals.Embedded,
    bucketed.Buckets,
    rivals.Adjacency,
    nested.Nested,
    flatthread.Floor,
    flatthread.Materialized,
    flatthread.Warm,
)
READS, WRITES = ("page", "whole", "subtree"), ("post", "edit")
AFTER = "page after changes"
CALLS = (*READS, *WRITES, AFTER)
TITLES = {
    "page": "first page of 50",
    "whole": "whole thread",
    "subtree": "the replies below one comment",
    "post": "one reply",
    "edit": "one edit",
    AFTER: "first page with uncompacted changes",
}


class Opened:
    """A layout with its engine and the context that its calls require."""

    def __init__(self, engine: inprocess.Engine, kind: type[Any]) -> None:
        self.kind = kind
        self.engine = engine
        self.calls = 0
        channel = inprocess.Channel(engine, self._count)
        self._store: connection.Store | None = None
        if issubclass(kind, rivals.Layout):
            self._layout = kind(raw_client.Client(channel))
        else:
            self._layout = kind()
            self._store = connection.Store(channel, project=loading.PROJECT, deadline=120.0)

    def _count(self, _method: str, _request: object, proceed: Callable[[], bytes]) -> bytes:
        self.calls += 1
        return proceed()

    @contextlib.contextmanager
    def entered(self) -> Iterator[Any]:
        """Enter the context that the layout requires; yield the layout."""
        with contextlib.nullcontext() if self._store is None else self._store.context():
            yield self._layout

    def fill(self, thread: Sequence[conversations.Said]) -> None:
        if self._store is None:
            self._layout.fill(thread)
            return
        is_folded = issubclass(self.kind, flatthread.Materialized)
        loading.fill(self.engine, thread, is_folded=is_folded)


class Stores:
    """The data files in a folder; `close` closes them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._engines: dict[str, inprocess.Engine] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def open(self, kind: type[Any], thread: Sequence[conversations.Said]) -> Opened:
        """Open a layout that contains a thread.

        The layouts for a warm and a cold process share one file.

        Raises:
            raw_client.TooLarge: The layout cannot store the thread.
        """
        home = "Materialized" if issubclass(kind, flatthread.Materialized) else kind.__name__
        if home in self._engines:
            return Opened(self._engines[home], kind)
        engine = inprocess.open_engine(
            self._folder / f"{home}.db",
            indexes=self._indexes(kind),
            durability="fast",
            history=0,
            built_in_indexes="eager",  # The space of a layout is that in Google's service.
        )
        self._engines[home] = self._stack.enter_context(engine)
        opened = Opened(engine, kind)
        opened.fill(thread)
        return opened

    def _indexes(self, kind: type[Any]) -> Path:
        if not issubclass(kind, rivals.Layout):
            return ROOT / "index.yaml"
        path = self._folder / f"{kind.__name__}.yaml"
        indexes = [
            {"kind": name, "properties": [{"name": each} for each in properties]}
            for name, *properties in kind.indexes
        ]
        path.write_text(yaml.safe_dump({"indexes": indexes}))
        return path


class Bench:
    """One thread stored in every layout that can store it."""

    def __init__(self, stores: Stores, thread: Sequence[conversations.Said], rounds: int) -> None:
        self._rounds = rounds
        self._size = len(thread)
        self._next = len(thread)
        self._changes = 0
        self._target = conversations.busy_comment(thread)
        self._thread = thread
        self._refused: list[tuple[str, str]] = []
        self.opened: dict[str, Opened] = {}
        for kind in KINDS:
            with contextlib.suppress(raw_client.TooLarge):
                self.opened[kind.name] = stores.open(kind, thread)
            known = "stored" if kind.name in self.opened else "too large to store"
            note(f"{self._size}: {kind.name} {known}")

    def run(self) -> Iterator[layout_tables.Figures]:
        """Measure all calls, beginning with the calls that only read."""
        for call in CALLS:
            measured = self._all_metered(call)
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in measured}
            for _ in range(self._rounds):
                for name, taken in times.items():
                    if sum(wall for wall, _ in taken) < CELL_SECONDS:
                        taken.append(self._timed(self.opened[name], call))
            for name, figures in measured.items():
                figures.wall = statistics.median(wall for wall, _ in times[name])
                figures.cpu = statistics.median(cpu for _, cpu in times[name])
                figures.rounds = len(times[name])
                if name == flatthread.Materialized.name and call in WRITES:
                    self._changes += 1 + figures.rounds
                yield figures
            note(f"{self._size}: {call}")

    def about(self) -> layout_tables.Thread:
        """Return facts about the thread. This method compacts the changes, so call it last."""
        depth: dict[str | None, int] = {None: 0}
        for said in self._thread:
            depth[said.id] = depth[said.parent] + 1
        cost = fold_changes(self.opened[flatthread.Materialized.name])
        return layout_tables.Thread(
            size=self._size,
            below=conversations.sizes(self._thread)[self._target],
            depth=max(depth.values()),
            stored={},
            missing=tuple(kind.name for kind in KINDS if kind.name not in self.opened),
            refused=tuple(self._refused),
            changes=self._changes,
            folding_writes=cost.writes,
            folding_deletes=cost.deletes,
            folding_reads=cost.reads,
        )

    def _all_metered(self, call: str) -> dict[str, layout_tables.Figures]:
        """Return the bill of a call by layout, without the layouts that cannot make the call."""
        measured: dict[str, layout_tables.Figures] = {}
        for name, opened in self.opened.items():
            if call not in getattr(opened.kind, "calls", CALLS):
                continue
            try:
                measured[name] = self._metered(opened, call)
            except raw_client.TooLarge:
                self._refused.append((call, name))
        return measured

    def _metered(self, opened: Opened, call: str) -> layout_tables.Figures:
        with contextlib.ExitStack() as stack:
            layout = stack.enter_context(opened.entered())
            ready = self._ready(layout, call)
            if opened.kind is flatthread.Warm and call in READS:
                ready()
            cost = stack.enter_context(testing.meter(opened.engine))
            before = opened.calls
            ready()
            return layout_tables.Figures(
                layout=opened.kind.name,
                size=self._size,
                call=call,
                reads=cost.reads,
                writes=cost.writes,
                deletes=cost.deletes,
                small=cost.small,
                calls=opened.calls - before,
                bytes_in=cost.bytes_in,
                bytes_out=cost.bytes_out,
            )

    def _timed(self, opened: Opened, call: str) -> tuple[float, float]:
        with opened.entered() as layout:
            ready = self._ready(layout, call)
            wall, cpu = time.perf_counter(), time.process_time()
            ready()
            return time.perf_counter() - wall, time.process_time() - cpu

    def _ready(self, layout: Any, call: str) -> Callable[[], object]:
        """Return a prepared call."""
        if isinstance(layout, flatthread.Materialized):
            layout.before()
        self._next += 1
        said = conversations.reply(self._next, self._target)
        calls: dict[str, Callable[[], object]] = {
            "page": lambda: layout.page(PAGE),
            "whole": layout.whole,
            "subtree": lambda: layout.subtree(self._target),
            "post": lambda: layout.post(said),
            "edit": lambda: layout.edit(self._target, said.html),
            AFTER: lambda: layout.page(PAGE),
        }
        return calls[call]


def fold_changes(opened: Opened) -> cost_meter.Cost:
    """Compact the benchmark's changes and return the cost."""
    with opened.entered(), testing.meter(opened.engine) as cost:
        flatthread.fold()
        return cost.total()


def most_embedded(folder: Path, thread: Sequence[conversations.Said], *, is_packed: bool) -> int:
    """Return the number of comments that fit into one entity, found by trying."""
    with Stores(folder) as stores:
        opened = stores.open(rivals.Embedded if is_packed else rivals.Plain, thread[:1])

        def fits(size: int) -> bool:
            try:
                opened.fill(thread[:size])
            except raw_client.TooLarge:
                return False
            return True

        low, high = 1, 2
        while high < len(thread) and fits(high):
            low, high = high, high * 2
        high = min(high, len(thread) + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low


def note(text: str) -> None:
    """Print the progress of the run."""
    print(f"{time.process_time():7.1f} s  {text}", file=sys.stderr, flush=True)


def stored(folder: Path) -> dict[str, int]:
    """Return the size in bytes of each closed data file and its indexes, without unused space."""
    bytes_: dict[str, int] = {}
    for kind in KINDS:
        path = folder / f"{kind.__name__}.db"
        if path.exists():
            with contextlib.closing(sqlite3.connect(path)) as file:
                file.execute("VACUUM")
            bytes_[kind.name] = path.stat().st_size
    return bytes_


def measure(
    shape: shapes.Shape, called: str, sizes: Sequence[int], rounds: int
) -> Iterator[layout_tables.Run]:
    """Measure everything, and yield the results after each size."""
    longest = conversations.thread(shapes.repeated(shape, max(sizes)))
    run = layout_tables.Run(called, rounds, {}, len(longest), [], [])
    with tempfile.TemporaryDirectory(prefix="layouts-") as folder:
        for is_packed, kind in ((True, rivals.Embedded), (False, rivals.Plain)):
            scratch = Path(folder) / kind.name
            scratch.mkdir()
            run.most_embedded[kind.name] = most_embedded(scratch, longest, is_packed=is_packed)
        for size in sizes:
            home = Path(folder) / str(size)
            home.mkdir()
            with Stores(home) as stores:
                bench = Bench(stores, longest[:size], rounds)
                run.figures += bench.run()
                about = bench.about()
            about.stored = {
                name: size for name, size in stored(home).items() if name not in about.missing
            }
            run.threads.append(about)
            shutil.rmtree(home)
            yield run


def write(run: layout_tables.Run, document: Path, folder: Path) -> None:
    """Write tables, plots and figures to the documents."""
    layout_tables.insert(layout_tables.markdown(run, TITLES), document)
    folder.mkdir(exist_ok=True)
    (folder / "figures.json").write_bytes(layout_tables.encoded(run))
    for name, drawn in layout_tables.drawn(run, TITLES):
        (folder / name).write_text(drawn, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the results, and write them if requested."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", type=Path)
    parser.add_argument("--sizes", default="100,1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    chosen_ = parser.parse_args(arguments)
    shape = shapes.read(chosen_.shape) if chosen_.shape else shapes.grown(2_251)
    kind = "real" if chosen_.shape else "grown"
    called = f"a {kind} discussion of {len(shape):,} comments, cut or repeated"
    sizes = [int(size) for size in chosen_.sizes.split(",")]
    for run in measure(shape, called, sizes, chosen_.rounds):
        if chosen_.write:
            write(run, chosen_.document, chosen_.document.parent / FOLDER.name)
        if len(run.threads) == len(sizes):
            print(layout_tables.markdown(run, TITLES))


if __name__ == "__main__":
    main()
