"""Pages of a category among 100,000 threads and 1,000,000 comments.

A hundred threads are in `rare/curling`; of the others, a quarter each is in `sport/football`,
`sport/tennis`, `school/football` and `news`. The first page, a page in the middle and the last one
take turns with the same pages of the whole site. The sizes of the categories must not matter: a
page of a category may bill no more reads, and examine no more index entries, than one of the site.
"""

import functools
import hashlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import measuring
from benchmarks.bars import Bar
from benchmarks.threads import conversations, loading
from comments.domain import categories, records
from comments.domain.crypto import cursors
from comments.moderation import review_queue, thread_list
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.store.wire import codec
from datastore_emulator import inprocess, protobufs, testing

NAMES = ("news", "sport/football", "sport/tennis", "school/football")
RARE, RARE_THREADS = "rare/curling", 100
TERMS = ("", "sport", "sport/football", "*/football", "rare")
SIZE = 10  # Comments of a thread
SITE, TEMPLATE = "bench", records.ThreadName("template", "page")
LIMIT, LAST = 25, 20  # Rows of a page, and of the last page
SECRET = "a secret of the benchmarks"  # noqa: S105 - signs nothing kept
RATIO = 2.0
Ask = Callable[[int, str | None], Any]


def filed(threads: int) -> list[list[str]]:
    """Return the categories of each thread."""
    rarely = threads // RARE_THREADS
    return [[NAMES[each % len(NAMES)] if each % rarely else RARE] for each in range(threads)]


def fill(engine: inprocess.Engine, threads: int) -> int:
    """Store the threads, begun a minute apart, and their comments; return the number of rows."""
    loading.store_imported(conversations.thread([None]), TEMPLATE)
    key = comment_rows.thread_key_name(TEMPLATE)
    (template,) = reads.fetch(reads.Query("Comment", where=(("thread", "=", key),)))
    return engine.load(_rows(template, threads), loading.PROJECT)


def _rows(template: protobufs.Entity, threads: int) -> Iterator[protobufs.Entity]:
    store = connection.current()
    for number, names in enumerate(filed(threads)):
        name = records.ThreadName(SITE, f"page {number}")
        began = _began(number)
        thread = comment_rows.ThreadRow(
            key=comment_rows.thread_key(name), site=name.site, thread=name.id, child_count=SIZE,
            title=f"About {name.id}", categories=names, created=began, active=began,
        )  # fmt: skip
        yield codec.message(thread, store.key(*thread.key))
        terms = [protobufs.Value(string_value=term) for term in categories.terms(names)]
        for place in range(SIZE):
            row = protobufs.Entity()
            row.CopyFrom(template)
            digest = hashlib.sha256(f"{number}/{place}".encode()).digest()
            row.key.path[-1].name = comment_rows.comment_id(digest)
            row.properties["site"].string_value = SITE
            row.properties["thread"].string_value = comment_rows.thread_key_name(name)
            row.properties["thread_id"].string_value = name.id
            row.properties["category_terms"].array_value.values.extend(terms)
            created = began + timedelta(seconds=place)
            row.properties["created"].timestamp_value.FromDatetime(created)
            yield row


def _began(number: int) -> datetime:
    return conversations.START + timedelta(minutes=number)


def lists(term: str) -> dict[str, tuple[str, Ask]]:
    """Return the label of the cursors and the call of each list, of a category or of the site."""
    comments = review_queue.QueueFilter(SITE, (records.Status.APPROVED,), category=term)
    return {
        "threads": (
            cursors.label("docket-threads", SITE, term),
            lambda limit, cursor: (
                thread_list.threads(SITE, term, limit=limit, cursor=cursor, secret=SECRET).threads
            ),
        ),
        "comments": (
            comments.label,
            lambda limit, cursor: (
                review_queue.page(comments, limit=limit, cursor=cursor, secret=SECRET).cases
            ),
        ),
    }


def pages(term: str, threads: int) -> dict[str, Callable[[int], Any]]:
    """Return a function for each list and page, which takes the number of rows."""
    numbers = [
        number
        for number, names in enumerate(filed(threads))
        if not term or term in categories.terms(names)
    ]
    found: dict[str, Callable[[int], Any]] = {}
    for name, (label, ask) in lists(term).items():
        rows = LAST if name == "threads" else LAST // SIZE
        after = {"first": None, "middle": numbers[len(numbers) // 2], "last": numbers[rows]}
        for place, number in after.items():
            cursor = None
            if number is not None:
                cursor = review_queue.seal((_began(number), 1, "~"), label, SECRET)
            found[f"{name} {place}"] = functools.partial(ask, cursor=cursor)
    return found


def costs(engine: inprocess.Engine, ask: Callable[[int], Any]) -> tuple[int, int, int]:
    """Return the rows, the reads and the index entries of a page."""
    with testing.meter(engine) as cost:
        rows = len(ask(LIMIT))
    return rows, cost.reads, cost.total().index_entries


def bars(*, quick: bool) -> Iterator[Bar]:
    """Fill a store, and measure its lists with and without a category."""
    threads, rounds = (4_000, 3) if quick else (100_000, 10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with measuring.stored(path, durability="fast") as engine:
            print(f"{fill(engine, threads):,} rows")
        with measuring.stored(path) as engine:
            every = {term: pages(term, threads) for term in TERMS}
            for name in every[""]:
                asked = {term: every[term][name] for term in TERMS}
                spent = {term: costs(engine, ask) for term, ask in asked.items()}
                yield from _cost_bars(name, spent)
                yield _time_bar(name, asked, rounds)


def _time_bar(name: str, asked: dict[str, Callable[[int], Any]], rounds: int) -> Bar:
    # Each call asks for one more row, so that no answer comes from the engine's memory.
    limits = itertools.count(LIMIT)
    ways = {term: functools.partial(_ask_more, ask, limits) for term, ask in asked.items()}
    times = measuring.alternate(ways, rounds)
    ratios = {term: each / times[""] for term, each in times.items() if term}
    detail = ", ".join(f"{term} {ratio:.2f}" for term, ratio in ratios.items())
    detail += f"; the site's page takes {1_000 * times['']:.1f} ms"
    return Bar(f"{name}, time", max(ratios.values()), RATIO, detail)


def _ask_more(ask: Callable[[int], Any], limits: Iterator[int]) -> None:
    ask(next(limits))


def _cost_bars(name: str, spent: dict[str, tuple[int, int, int]]) -> Iterator[Bar]:
    (rows, *whole), *others = spent.values()
    if any(each[0] != rows for each in others):
        raise SystemExit(f"{name}: the pages have different numbers of rows: {spent}")
    for place, unit in enumerate(("reads", "entries")):
        most = max(each[1 + place] for each in others)
        yield Bar(f"{name}, {unit}", most, whole[place], f"of {rows} rows", unit=unit)
