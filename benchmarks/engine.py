"""The cost of the engine, compared with the lowest possible cost of its work.

Each bar is a ratio of two variants that take turns in one run:

    scale   read a 100-comment thread among many entities / the same thread alone
    order   read 10,000 entities in order / SELECT and parse the same rows
    thread  the ordered query over a thread of 10,000 comments / the same
    lookup  look one entity up in process / through gRPC
    change  an NDB transaction that reads and writes 3 entities, in process / through gRPC; once
            with waiting for the disk, once without (`durability="fast"`), which leaves the cost of
            the channel itself
    load    bulk-load entities / insert the same rows and index rows
    start   `python -m emulator` until its first answer / an interpreter that imports grpc and the
            protobuf classes
    import  import the in-process engine / import grpc and the protobuf classes that it needs

A million entities take a few minutes and 4 GB in the temporary folder.
"""

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc

from benchmarks import measuring, plain_sqlite
from benchmarks.bars import Bar
from benchmarks.threads import conversations, loading, shapes
from comments.store import connection, reads
from comments.store.models import comment_rows
from datastore_emulator import inprocess, protobufs, testing

THREAD = 100  # The number of comments in the thread that is read.
_LIBRARIES = "import grpc; from google.cloud.datastore_v1.types import datastore"
_INDEXES = """
indexes:
- {kind: Comment, properties: [{name: thread}, {name: listed}, {name: sort_hash}]}
"""
_BODY = "a comment is read far more often than it is changed and the reader wants it whole "


def comment(number: int) -> Any:
    """Return the entity of one comment; consecutive numbers give the comments of one thread."""
    thread, place = divmod(number, THREAD)
    entity = protobufs.Entity()
    entity.key.partition_id.project_id = loading.PROJECT
    entity.key.path.add(kind="Comment", name=f"c{number:012d}")
    properties = entity.properties
    properties["thread"].string_value = f"blog.example/page-{thread}"
    properties["listed"].boolean_value = True
    properties["sort_hash"].string_value = f"{place:06d}"
    properties["created"].timestamp_value.seconds = 1_700_000_000 + number
    properties["author"].string_value = f"g:{number % 5000}"
    for name in ("body", "html"):
        properties[name].string_value = _BODY * (1 + number % 3)
        properties[name].exclude_from_indexes = True
    return entity


def thread_query(thread: str) -> reads.Query:
    """Return the ordered query of a thread."""
    return reads.Query("Comment", (("thread", "=", thread), ("listed", "=", True)), ("sort_hash",))


def count(store: connection.Store, query: reads.Query) -> int:
    """Read all entities of a query, and return their number."""
    with store.context():
        return sum(1 for _ in reads.fetch(query))


def repeated(way: Callable[[], object], times: int) -> Callable[[], None]:
    """Return a variant that runs long enough to time."""

    def again() -> None:
        for _ in range(times):
            way()

    return again


def opened(folder: Path, name: str, **options: str) -> inprocess.Engine:
    """Open an engine on a new file."""
    indexes = folder / "index.yaml"
    indexes.write_text(_INDEXES)
    return measuring.engine(folder / name, indexes, concurrency="optimistic", **options)


@contextlib.contextmanager
def served(folder: Path, name: str, *flags: str) -> Iterator[grpc.Channel]:
    """Run `python -m emulator` on a new file; yield a channel to it."""
    command = [sys.executable, "-m", "emulator", "--port", "0", "--data", str(folder / name)]
    command += ["--concurrency", "optimistic"]  # As in the in-process engine.
    with subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True) as server:
        try:
            printed = server.stdout.readline() if server.stdout else ""
            with grpc.insecure_channel(printed.split()[1].partition("=")[2]) as channel:
                yield channel
        finally:
            server.terminate()


def look_up(channel: grpc.Channel) -> Callable[[], object]:
    """Return a lookup of one entity through a channel."""
    request = protobufs.LookupRequest(project_id=loading.PROJECT)
    request.keys.add().CopyFrom(comment(1).key)
    call = channel.unary_unary(
        f"{inprocess.SERVICE}Lookup",
        request_serializer=protobufs.LookupRequest.SerializeToString,
        response_deserializer=protobufs.LookupResponse.FromString,
    )
    return lambda: call(request)


def measure_scale(folder: Path, entities: int, rounds: int) -> Iterator[Bar]:
    """Load the file, then read a thread in this file and the same thread in a file of its own."""
    half = entities // THREAD // 2
    with opened(folder, "many") as many, opened(folder, "alone") as alone:
        made = time.perf_counter()
        for number in range(entities):
            comment(number)
        start = time.perf_counter()
        many.load(map(comment, range(entities)), loading.PROJECT)
        seconds = time.perf_counter() - start - (start - made)
        alone.load(map(comment, range(half * THREAD, half * THREAD + THREAD)), loading.PROJECT)
        query = thread_query(f"blog.example/page-{half}")
        stores = {name: measuring.store(each) for name, each in (("many", many), ("alone", alone))}
        if [count(store, query) for store in stores.values()] != [THREAD, THREAD]:
            raise SystemExit("the thread is incomplete")
        ways = {
            name: repeated(lambda store=store: count(store, query), 20)
            for name, store in stores.items()
        }
        medians = measuring.alternate(ways, rounds)
    detail = (
        f"a thread of {THREAD} among {entities:,}: {medians['many'] * 50:.2f} ms, "
        f"alone {medians['alone'] * 50:.2f} ms"
    )
    yield Bar("engine scale", medians["many"] / medians["alone"], 1.5, detail)
    plain = plain_sqlite.insert_seconds(folder / "many", folder / "plain", 2_000)
    detail = (
        f"{entities:,} entities: {entities / seconds:,.0f}/s, bare inserts of the same rows "
        f"{entities / plain:,.0f}/s"
    )
    yield Bar("engine load", seconds / plain, 3.0, detail)


def measure_order(folder: Path, rounds: int) -> Bar:
    """Read 10,000 entities in order of time."""
    size, query = 10_000, reads.Query("Comment", order=("created",))
    with opened(folder, "order") as engine:
        engine.load(map(comment, range(size)), loading.PROJECT)
        medians = _with_bare(measuring.store(engine), folder / "order", query, size, rounds)
    return Bar("engine order", *_ratio(medians, size))


def thread_bars(*, quick: bool) -> Iterator[Bar]:
    """Read a whole thread with the ordered query."""
    size, rounds = (1_000, 3) if quick else (10_000, 9)
    thread = conversations.thread(shapes.repeated(shapes.grown(2_251), size))
    query = thread_query(comment_rows.thread_key_name(loading.NAME))
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "thread"
        with measuring.engine(file) as engine:
            loading.fill(engine, thread, is_folded=False)
            medians = _with_bare(measuring.store(engine), file, query, size, rounds)
    yield Bar("thread query", *_ratio(medians, size))


def _with_bare(
    store: connection.Store, file: Path, query: reads.Query, size: int, rounds: int
) -> dict[str, float]:
    """Return the seconds of a query, and of reading the same rows from plain SQLite."""
    with store.context():
        rows = list(reads.fetch(query))
    with contextlib.closing(plain_sqlite.table(file.with_suffix(".rows"), rows)) as table:
        ways: dict[str, Callable[[], int]] = {
            "bare": lambda: plain_sqlite.read(table),
            "engine": lambda: count(store, query),
        }
        if [way() for way in ways.values()] != [size, size]:
            raise SystemExit("the two ways read different entities")
        return measuring.alternate(ways, rounds)


def _ratio(medians: dict[str, float], size: int) -> tuple[float, float, str]:
    engine, bare = medians["engine"], medians["bare"]
    detail = f"{size:,} entities: {engine * 1000:.0f} ms, bare {bare * 1000:.0f} ms"
    return engine / bare, 3.0, detail


def measure_lookup(folder: Path, rounds: int) -> Bar:
    """Look up one entity in process and through gRPC."""
    with opened(folder, "lookup") as engine, served(folder, "lookup") as channel:
        engine.load(map(comment, range(THREAD)), loading.PROJECT)
        calls = {"in process": look_up(inprocess.Channel(engine)), "gRPC": look_up(channel)}
        if not all(call().found for call in calls.values()):
            raise SystemExit("the entity was not found")
        ways = {name: repeated(call, 200) for name, call in calls.items()}
        medians = measuring.alternate(ways, rounds)
    return _in_process("engine lookup", 1 / 3, medians, 200)


def _in_process(name: str, most: float, medians: dict[str, float], times: int) -> Bar:
    own, grpc_ = (medians[each] * 1000 / times for each in ("in process", "gRPC"))
    return Bar(name, own / grpc_, most, f"{own:.3f} ms, through gRPC {grpc_:.3f} ms")


def change_three(client: Any) -> Callable[[], None]:
    """Return a transaction that reads and writes three entities."""
    from google.cloud import ndb  # noqa: PLC0415 - only this benchmark needs NDB

    class Counter(ndb.Model):
        value = ndb.IntegerProperty(default=0)

    def body() -> None:
        keys = [ndb.Key(Counter, name) for name in ("a", "b", "c")]
        for key, stored in zip(keys, ndb.get_multi(keys), strict=True):
            counter = stored or Counter(key=key)
            counter.value += 1
            counter.put()

    def change() -> None:
        with client.context(cache_policy=False):
            ndb.transaction(body)

    return change


def measure_change(folder: Path, rounds: int, durability: str, flags: tuple[str, ...]) -> Bar:
    """Change three entities with NDB, in process and through gRPC."""
    name = f"change-{durability}"
    with (
        opened(folder, name, durability=durability) as engine,
        served(folder, f"{name}-served", *flags) as channel,
    ):
        channels = {"in process": inprocess.Channel(engine), "gRPC": channel}
        ways = {
            each: repeated(change_three(testing.ndb_client(own)), 20)
            for each, own in channels.items()
        }
        medians = measuring.alternate(ways, rounds)
    return _in_process(f"engine change, {durability}", 1 / 2, medians, 20)


def measure_start(folder: Path, rounds: int) -> Bar:
    """Time a start of the server, and an interpreter that imports the same libraries."""

    def first_answer() -> None:
        with served(folder, "start") as channel:
            look_up(channel)()

    def libraries() -> None:
        subprocess.run([sys.executable, "-c", _LIBRARIES], check=True)

    medians = measuring.alternate({"server": first_answer, "libraries": libraries}, rounds)
    detail = f"first answer after {medians['server']:.2f} s, libraries {medians['libraries']:.2f} s"
    return Bar("engine start", medians["server"] / medians["libraries"], 1.5, detail)


def measure_import(rounds: int) -> Bar:
    """Import the in-process channel, and import the two libraries that the channel needs."""
    program = (
        f"import time; start = time.perf_counter(); {_LIBRARIES}; half = time.perf_counter();"
        "import datastore_emulator.inprocess; print(half - start, time.perf_counter() - half)"
    )
    found = []
    for _ in range(rounds):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        found.append(tuple(map(float, done.stdout.split())))
    libraries, own = (statistics.median(each) for each in zip(*found, strict=True))
    detail = f"{own * 1000:.0f} ms beside {libraries * 1000:.0f} ms for its libraries"
    return Bar("engine import", own / libraries, 0.2, detail)


def bars(*, quick: bool) -> Iterator[Bar]:
    """Measure everything but the thread."""
    rounds, entities = (3, 20_000) if quick else (9, 1_000_000)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        yield measure_start(folder, rounds)
        yield measure_import(rounds)
        yield measure_lookup(folder, rounds)
        yield measure_change(folder, rounds, "durable", ())
        yield measure_change(folder, rounds, "fast", ("--fast",))
        yield measure_order(folder, rounds)
        yield from measure_scale(folder, entities, rounds)
