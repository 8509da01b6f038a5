"""Audiences over 1,000,000 appearances: the time and the memory of a scan.

A site has ten categories, each with about 60 % of all authors, and one more with 40 days, on each
of which a tenth of the authors write. In a new process, whose memory is not used yet, three
variants take turns:

    keys  iterate over the keys of the same rows in the same order, with one query for each range
    one   count one union of all sources
    many  count ten audiences over the same sources: unions, intersections and differences
"""

import tempfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from google.cloud.datastore_v1.types import entity as entity_types

from benchmarks import measuring
from benchmarks.bars import Bar
from benchmarks.threads import loading
from comments.domain.counters import audiences, counting
from comments.store import connection, ownership, reads, transactions
from comments.store.models import counter_rows
from comments.store.wire import codec
from comments.tree.counters import audience_scan
from datastore_emulator import testing

SITE = "bench"
CATEGORIES = [f"subject {number}" for number in range(10)]
DAILY = "daily"
DAYS = 40
FIRST = date(2026, 1, 1)
RATIO, MEMORY = 2.0, 32.0
SOURCES = [
    *({"category": name} for name in CATEGORIES),
    {"category": DAILY, "since": f"{FIRST}", "until": f"{FIRST + timedelta(days=DAYS - 1)}"},
]


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
    with measuring.stored(path, durability="fast") as engine:
        every = dict(scopes(authors))
        sums = {scope: {counting.PARTICIPANTS: len(there)} for scope, there in every.items()}
        put = tuple(counter_rows.statistics(scope, numbers) for scope, numbers in sums.items())
        transactions.transaction(
            lambda: transactions.apply(ownership.Writes(counter_rows.OWNER, put=put))
        )
        return engine.load(_appearances(every), loading.PROJECT)


def _appearances(every: dict[counting.Scope, list[int]]) -> Iterator[reads.Entity]:
    store = connection.current()
    for scope, there in every.items():
        for number in there:
            # The order of the ids differs from that of the authors' numbers.
            author = f"g:{number * 7919 % 1_000_003:026d}"
            row = counter_rows.statistics(scope._replace(author=author), {"approved": 1})
            made = entity_types.Entity.pb()()
            codec.fill(made, row, store.key(*row.key))
            yield made


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


def measure(path: str, rows: int, rounds: int) -> dict[str, float]:
    """Return the memory of the first scan in MB, and the median seconds of each variant."""
    one, many = questions()
    with measuring.stored(Path(path)) as engine:
        cost = audience_scan.cost(SITE, one)
        if cost.rows != rows:
            raise SystemExit(f"{cost.rows} of {rows} rows are counted")
        before = measuring.peak_memory()
        audience_scan.count(SITE, many)
        grown = measuring.peak_memory() - before
        medians = measuring.alternate(
            {
                "keys": iterate,
                "one": lambda: audience_scan.count(SITE, one),
                "many": lambda: audience_scan.count(SITE, many),
            },
            rounds,
        )
        with testing.meter(engine) as billed:  # Last, because the meter keeps all keys.
            audience_scan.count(SITE, one)
        if billed.reads != cost.reads:
            raise SystemExit(f"{billed.reads} reads are billed, not {cost.reads}")
    return {"memory": grown, "reads": cost.reads, **medians}


def bars(*, quick: bool) -> Iterator[Bar]:
    """Fill a store, and measure it."""
    authors, rounds = (2_000, 1) if quick else (100_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        rows = fill(path, authors)
        found = measuring.result(measuring.started(measure, path, rows, rounds))
    detail = f"{rows:,} rows, {found['reads']:,.0f} reads, {found['keys']:.1f} s for their keys"
    for name in ("one", "many"):
        yield Bar(f"audiences {name}", found[name] / found["keys"], RATIO, detail)
    yield Bar("audiences memory", found["memory"], MEMORY, unit="MB")
