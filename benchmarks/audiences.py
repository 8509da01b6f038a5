"""Audiences over 1,000,000 appearances: the time and the memory of a scan.

    python -m benchmarks audiences [--quick]

A site has ten categories, each with about 60 % of all authors, and one more with 40 days, on each
of which a tenth of the authors write. In one process, three variants take turns:

    keys  iterate over the keys of the same rows in the same order, with one query for each range
    one   count one union of all sources
    many  count ten audiences over the same sources: unions, intersections and differences

The bars are one <= 2 x keys, many <= 2 x keys, and 32 MB for the memory of the first scan.
"""

import contextlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

from google.cloud.datastore_v1.types import entity as entity_types

from benchmarks.bars import Bar
from comments.domain import audiences, counting
from comments.store import connection, ownership, reads, transactions
from comments.store.models import counter_rows
from comments.store.wire import codec
from comments.tree.counters import audience_scan
from datastore_emulator import inprocess, testing

ROOT = Path(__file__).resolve().parents[1]
SITE = "bench"
PROJECT = "bench"
CATEGORIES = [f"subject {number}" for number in range(10)]
DAILY = "daily"
DAYS = 40
FIRST = date(2026, 1, 1)
RATIO, MEMORY = 2.0, 32.0
SOURCES = [
    *({"category": name} for name in CATEGORIES),
    {"category": DAILY, "since": f"{FIRST}", "until": f"{FIRST + timedelta(days=DAYS - 1)}"},
]


@contextlib.contextmanager
def _opened(path: Path, **options: str) -> Iterator[tuple[inprocess.Engine, connection.Store]]:
    indexes = ROOT / "index.yaml"
    with inprocess.open_engine(path, indexes=indexes, history=0, **options) as engine:
        store = connection.Store(inprocess.Channel(engine), project=PROJECT, deadline=3600.0)
        with store.context():
            yield engine, store


def scopes(authors: int) -> Iterator[tuple[counting.Scope, list[int]]]:
    """Yield each scope with the numbers of its authors."""
    for place, name in enumerate(CATEGORIES):
        there = [each for each in range(authors) if each * (place + 3) % 10 < 6]
        yield counting.category_scope(SITE, name), there
    for day in range(DAYS):
        on = f"{FIRST + timedelta(days=day)}"
        yield counting.day_scope(SITE, on, DAILY), list(range(day % 10, authors, 10))


def fill(path: Path, authors: int) -> int:
    """Store the counters and the appearances, about ten of each author; return their number."""
    with _opened(path, durability="fast") as (engine, store):
        every = dict(scopes(authors))
        sums = {scope: {counting.PARTICIPANTS: len(there)} for scope, there in every.items()}
        put = tuple(counter_rows.statistics(scope, numbers) for scope, numbers in sums.items())
        transactions.transaction(
            lambda: transactions.apply(ownership.Writes(counter_rows.OWNER, put=put))
        )
        return engine.load(_appearances(store, every), PROJECT)


def _appearances(
    store: connection.Store, every: dict[counting.Scope, list[int]]
) -> Iterator[reads.Entity]:
    for scope, there in every.items():
        for number in there:
            row = counter_rows.statistics(scope._replace(author=_author(number)), {"approved": 1})
            made = entity_types.Entity.pb()()
            codec.fill(made, row, store.key(*row.key.pairs()))
            yield made


def _author(number: int) -> str:
    """Return ids in an order that differs from that of their numbers."""
    return f"g:{number * 7919 % 1_000_003:026d}"


def iterate() -> int:
    """Read the keys of all rows in one query for each range."""

    def body() -> int:
        found = 0
        for scope, _ in scopes(0):
            prefix = counter_rows.appearances_prefix(scope)
            query = reads.Query(
                "Appearance",
                where=(("__key__", ">", prefix), ("__key__", "<", f"{prefix}\U0010ffff")),
                order=("__key__",),
                keys_only=True,
            )
            found += sum(1 for each in reads.fetch(query) if each.key.path[-1].name)
        return found

    return transactions.snapshot(body)


def questions() -> tuple[audiences.Question, audiences.Question]:
    """Return one union of all sources, and ten audiences over them."""
    some, others = SOURCES[:5], SOURCES[5:]
    many = {
        "any": {"any": SOURCES},
        "every": {"all": SOURCES},
        "only daily": {"any": SOURCES[-1:], "but": SOURCES[:-1]},
        "both": {"all": [{"any": some}, {"any": others}]},
        "some": {"any": some, "but": others},
        "others": {"any": others, "but": some},
        "either": {"any": [{"any": some, "but": others}, {"any": others, "but": some}]},
        "first": {"all": SOURCES[:2]},
        "middle": {"all": SOURCES[2:8], "but": SOURCES[:1]},
        "last": {"all": SOURCES[-1:], "any": SOURCES[:2]},
    }
    return audiences.question({"any": {"any": SOURCES}}), audiences.question(many)


def measure(path: Path, rows: int, rounds: int) -> dict[str, float]:
    """Return the memory of the first scan in MB, and the median seconds of each variant."""
    one, many = questions()
    with _opened(path) as (engine, _store):
        cost = audience_scan.cost(SITE, one)
        if cost.rows != rows:
            raise SystemExit(f"{cost.rows} of {rows} rows are counted")
        before = _memory()
        audience_scan.count(SITE, many)
        grown = _memory() - before
        ways: dict[str, Callable[[], object]] = {
            "keys": iterate,
            "one": lambda: audience_scan.count(SITE, one),
            "many": lambda: audience_scan.count(SITE, many),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                since = time.perf_counter()
                way()
                times[name].append(time.perf_counter() - since)
        with testing.meter(engine) as billed:  # Last, because the meter keeps all keys.
            audience_scan.count(SITE, one)
        if billed.reads != cost.reads:
            raise SystemExit(f"{billed.reads} reads are billed, not {cost.reads}")
    medians = {name: statistics.median(each) for name, each in times.items()}
    return {"memory": grown, "reads": cost.reads, **medians}


def _memory() -> float:
    """Return the peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def bars(*, quick: bool) -> Iterator[Bar]:
    """Fill a store, and measure it in a new process, whose memory is not used yet."""
    authors, rounds = (2_000, 1) if quick else (100_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        since = time.perf_counter()
        rows = fill(path, authors)
        print(f"{rows} rows loaded in {time.perf_counter() - since:.0f} s", flush=True)
        words = [sys.executable, "-m", "benchmarks.audiences", path, rows, rounds]
        run = subprocess.run(map(str, words), cwd=ROOT, check=True, stdout=subprocess.PIPE)
        found = json.loads(run.stdout)
    detail = f"{rows:,} rows, {found['reads']:,.0f} reads, {found['keys']:.1f} s for their keys"
    for name in ("one", "many"):
        yield Bar(f"audiences {name}", found[name] / found["keys"], RATIO, detail)
    yield Bar("audiences memory", found["memory"], MEMORY, unit="MB")


if __name__ == "__main__":
    where, number, turns = sys.argv[1:]
    print(json.dumps(measure(Path(where), int(number), int(turns))))
