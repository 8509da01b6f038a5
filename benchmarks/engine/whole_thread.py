"""Compare the ordered query over a whole thread of 10,000 comments with its lowest possible cost.

The benchmark compares two variants in one run, on the same stored rows:

    bare     SELECT the serialized rows in order from a plain SQLite table and parse them into the
             same protobuf messages: the least that any reader of these rows pays
    query    the ordered query through the embedded engine's channel, as raw protobuf messages
    records  the same, converted to the records that the backend uses (`floor.thread`)
    ndb      the same query by NDB's fetch()

The bar is query <= 3 x bare.
"""

import contextlib
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.threads import shapes
from comments import config
from comments.domain import records
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows
from comments.tree import bulk_append, ordered_query, values
from datastore_emulator import inprocess

ROOT = Path(__file__).resolve().parents[2]
BATCH = 200
NAME = records.ThreadName("bench", "page")
WORDS = "a comment is read far more often than it is changed and the reader wants it whole "


def fill(shape: shapes.Shape, scheme: config.sorthash.Scheme) -> None:
    """Store a thread of this shape, with texts of one or two sentences."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ids = [comment_rows.comment_id(f"{place:016d}".encode()) for place in range(len(shape))]
    nodes = [
        records.ImportedComment(
            id=ids[place],
            reply_to=None if parent is None else ids[parent],
            author=records.Author(f"reader {place % 400}", id=f"g:{place % 400}"),
            body=WORDS * (1 + place % 4),
            html=f"<p>{WORDS * (1 + place % 4)}</p>\n",
            renderer="benchmark",
            status=records.Status.APPROVED,
            created=start + timedelta(seconds=place),
            source=f"bench:{place}",
        )
        for place, parent in enumerate(shape)
    ]
    for first in range(0, len(nodes), BATCH):
        batch = nodes[first : first + BATCH]

        def body(batch: list[records.ImportedComment] = batch) -> None:
            imported = bulk_append.append_imported(
                scheme, [values.ImportedThread(NAME, batch)], now=start
            )
            transactions.apply(*imported.writes)

        transactions.transaction(body)


def query() -> reads.Query:
    """Return the ordered query."""
    thread = comment_rows.thread_key_name(NAME)
    where = (("thread", "=", thread), ("listed", "=", True))
    return reads.Query("Comment", where=where, order=("sort_hash",))


def bare_table(path: Path) -> sqlite3.Connection:
    """Create a plain table of the same rows: the key is the order, the value the serialized row."""
    table = sqlite3.connect(path)
    table.execute("CREATE TABLE rows (place BLOB PRIMARY KEY, row BLOB) WITHOUT ROWID")
    table.executemany(
        "INSERT INTO rows VALUES (?, ?)",
        (
            (entity.properties["sort_hash"].string_value.encode(), entity.SerializeToString())
            for entity in reads.fetch(query())
        ),
    )
    table.commit()
    return table


def read_bare(table: sqlite3.Connection) -> int:
    """SELECT and parse all rows."""
    parse = reads.Entity.FromString
    return len([parse(row) for (row,) in table.execute("SELECT row FROM rows ORDER BY place")])


def read_ndb() -> int:
    """Read all comments with NDB."""
    found = comment_rows.CommentRow.query(
        comment_rows.CommentRow.thread == comment_rows.thread_key_name(NAME),
        comment_rows.CommentRow.listed == True,  # noqa: E712 - an NDB filter
    ).order(comment_rows.CommentRow.sort_hash)
    return len(found.fetch())


def measure(ways: dict[str, Callable[[], int]], rounds: int, size: int) -> dict[str, float]:
    """Return the median seconds of each variant; they take turns, so drift affects all alike."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for round_ in range(rounds + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            count = way()
            if count != size:
                raise SystemExit(f"{name} read {count} of {size} comments")
            if round_:  # The first round only warms up.
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def bars(*, quick: bool) -> Iterator[Bar]:
    """Fill a new store and compare the ways to read it."""
    size, rounds = (1_000, 3) if quick else (10_000, 9)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engine = inprocess.open_engine(folder / "store.db", indexes=ROOT / "index.yaml")
        stack.enter_context(engine)
        store = connection.Store(inprocess.Channel(engine), project="bench", deadline=60.0)
        stack.enter_context(store.context())
        fill(shapes.repeated(shapes.grown(2_251), size), config.sorthash.Scheme())
        table = stack.enter_context(contextlib.closing(bare_table(folder / "bare.db")))
        ways: dict[str, Callable[[], int]] = {
            "bare": lambda: read_bare(table),
            "query": lambda: sum(1 for _ in reads.fetch(query())),
            "records": lambda: len(ordered_query.thread(NAME)),
            "ndb": read_ndb,
        }
        medians = measure(ways, rounds, size)
    bare = medians["bare"]
    detail = (
        f"{medians['query'] * 1000:.0f} ms, bare {bare * 1000:.0f} ms; as records "
        f"{medians['records'] / bare:.1f} x, by NDB {medians['ndb'] / bare:.0f} x"
    )
    yield Bar("thread query", medians["query"] / bare, 3.0, detail)
