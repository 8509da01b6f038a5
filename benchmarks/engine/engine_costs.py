"""The cost of the engine, compared with the lowest possible cost of its work.

Each bar is a ratio of two variants that take turns in one run:

    scale   read a 100-comment thread among many entities / the same thread alone
    order   read 10,000 entities in order / SELECT and parse the same rows
    lookup  look one entity up in process / through gRPC
    change  an NDB transaction that reads and writes 3 entities, in process / through gRPC; once
            with waiting for the disk, once without (`durability="fast"`), which leaves the cost of
            the channel itself
    load    bulk-load entities / insert the same rows and index rows
    start   `python -m emulator` until its first answer / an interpreter that imports grpc and the
            protobuf classes
    import  import `datastore_emulator.inprocess` / import grpc and the protobuf classes that it
            needs

A million entities take a few minutes and 4 GB in the temporary folder.
"""

import contextlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc

from benchmarks.bars import Bar
from benchmarks.engine import plain_sqlite
from datastore_emulator import inprocess, protobufs, testing
from datastore_emulator.import_export import bulk_load

PROJECT = "bench"
_LIBRARIES = "import grpc; from google.cloud.datastore_v1.types import datastore"
THREAD = 100  # The number of comments in the thread that is read.
RPC = "/google.datastore.v1.Datastore/"
INDEXES = """
indexes:
- kind: Comment
  properties:
  - name: thread
  - name: listed
  - name: sort_hash
"""
BODY = "a comment is read far more often than it is changed and the reader wants it whole "


def comment(number: int) -> Any:
    """Return the entity of one comment; consecutive numbers give the comments of one thread."""
    thread, place = divmod(number, THREAD)
    entity = protobufs.Entity()
    entity.key.partition_id.project_id = PROJECT
    entity.key.path.add(kind="Comment", name=f"c{number:012d}")
    properties = entity.properties
    properties["thread"].string_value = f"blog.example/page-{thread}"
    properties["listed"].boolean_value = True
    properties["sort_hash"].string_value = f"{place:06d}"
    properties["created"].timestamp_value.seconds = 1_700_000_000 + number
    properties["author"].string_value = f"g:{number % 5000}"
    for name in ("body", "html"):
        properties[name].string_value = BODY * (1 + number % 3)
        properties[name].exclude_from_indexes = True
    return entity


def thread_query(thread: int) -> Any:
    """Return the ordered query of a thread."""
    request = protobufs.RunQueryRequest(project_id=PROJECT)
    query = request.query
    query.kind.add(name="Comment")
    query.filter.composite_filter.op = 1
    for name in ("thread", "listed"):
        clause = query.filter.composite_filter.filters.add().property_filter
        clause.property.name = name
        clause.op = 5
        if name == "thread":
            clause.value.string_value = f"blog.example/page-{thread}"
        else:
            clause.value.boolean_value = True
    query.order.add().property.name = "sort_hash"
    return request


def created_query() -> Any:
    """Return a query for all comments in the order of creation."""
    request = protobufs.RunQueryRequest(project_id=PROJECT)
    request.query.kind.add(name="Comment")
    request.query.order.add().property.name = "created"
    return request


class Caller:
    """Calls the RPCs of a channel with raw messages."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    def call(self, method: str, request: Any) -> Any:
        response = getattr(protobufs, f"{method}Response")
        rpc = self.channel.unary_unary(
            RPC + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        return rpc(request)

    def fetch(self, request: Any) -> int:
        """Read all batches of a query and return the number of entities."""
        count = 0
        asked = type(request)()
        asked.CopyFrom(request)
        while True:
            batch = self.call("RunQuery", asked).batch
            count += len(batch.entity_results)
            if batch.more_results != 1:
                return count
            asked.query.start_cursor = batch.end_cursor


def alternate(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each variant; they take turns, so drift affects all alike."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for round_ in range(rounds + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if round_:  # The first round only warms up.
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def repeat(way: Callable[[], object], times: int) -> Callable[[], None]:
    """Return a variant that runs long enough to time."""

    def again() -> None:
        for _ in range(times):
            way()

    return again


@contextlib.contextmanager
def opened(folder: Path, name: str, durability: str = "durable") -> Iterator[inprocess.Engine]:
    """Open an engine on a new file."""
    yaml = folder / "index.yaml"
    yaml.write_text(INDEXES)
    with inprocess.open_engine(folder / name, indexes=yaml, durability=durability) as engine:
        yield engine


@contextlib.contextmanager
def served(folder: Path, name: str, *flags: str) -> Iterator[str]:
    """Run `python -m emulator` on a new file; yield its address."""
    command = [sys.executable, "-m", "emulator", "--port", "0", "--data", str(folder / name)]
    command += ["--concurrency", "optimistic"]  # As in the in-process engine.
    with subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True) as server:
        try:
            printed = server.stdout.readline() if server.stdout else ""
            yield printed.strip().partition("=")[2]
        finally:
            server.terminate()


def load(engine: inprocess.Engine, numbers: range) -> float:
    """Load comments and return the duration in seconds."""
    start = time.perf_counter()
    engine.load((comment(number) for number in numbers), project=PROJECT)
    return time.perf_counter() - start


def peak_mib() -> float:
    """Return the peak memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_scale(folder: Path, entities: int, rounds: int) -> list[Bar]:
    """Load the file, then read a thread in this file and the same thread in a file of its own."""
    half = entities // THREAD // 2
    with opened(folder, "many") as many, opened(folder, "alone") as alone:
        made = time.perf_counter()
        for number in range(entities):
            comment(number)
        made = time.perf_counter() - made
        seconds = load(many, range(entities)) - made
        load(alone, range(half * THREAD, half * THREAD + THREAD))
        before = peak_mib()
        request = thread_query(half)
        ways: dict[str, Callable[[], object]] = {}
        for name, engine in (("many", many), ("alone", alone)):
            caller = Caller(inprocess.Channel(engine))
            if caller.fetch(request) != THREAD:
                raise SystemExit(f"the thread is incomplete: {name}")
            ways[name] = repeat(lambda caller=caller: caller.fetch(request), 20)
        medians = alternate(ways, rounds)
        grown = peak_mib() - before
    per_second = entities / seconds
    plain = plain_sqlite.insert_seconds(folder / "many", folder / "plain", bulk_load.BATCH)
    return [
        Bar(
            "engine scale",
            medians["many"] / medians["alone"],
            1.5,
            f"a thread of {THREAD} among {entities:,}: {medians['many'] * 50:.2f} ms, alone "
            f"{medians['alone'] * 50:.2f} ms; {grown:.1f} MiB more memory",
        ),
        Bar(
            "engine load",
            seconds / plain,
            3.0,
            f"{entities:,} entities: {per_second:,.0f}/s, bare inserts of the same rows "
            f"{entities / plain:,.0f}/s",
        ),
    ]


def measure_order(folder: Path, rounds: int) -> Bar:
    """Read 10,000 entities in order of time."""
    size = 10_000
    with opened(folder, "order") as engine:
        load(engine, range(size))
        caller = Caller(inprocess.Channel(engine))
        with contextlib.closing(
            plain_sqlite.ordered_table(folder / "order", folder / "rows")
        ) as table:
            ways: dict[str, Callable[[], object]] = {
                "bare": lambda: plain_sqlite.read_ordered(table),
                "engine": lambda: caller.fetch(created_query()),
            }
            if [way() for way in ways.values()] != [size, size]:
                raise SystemExit("the two ways read different entities")
            medians = alternate(ways, rounds)
    return Bar(
        "engine order",
        medians["engine"] / medians["bare"],
        3.0,
        f"{size:,} entities: {medians['engine'] * 1000:.0f} ms, bare "
        f"{medians['bare'] * 1000:.0f} ms",
    )


def measure_lookup(folder: Path, rounds: int) -> Bar:
    """Look up one entity in process and through gRPC."""
    request = protobufs.LookupRequest(project_id=PROJECT)
    request.keys.add().CopyFrom(comment(1).key)
    with opened(folder, "lookup") as engine, served(folder, "lookup") as address:
        load(engine, range(THREAD))
        with grpc.insecure_channel(address) as channel:
            ways: dict[str, Callable[[], object]] = {}
            for name, each in (("in process", inprocess.Channel(engine)), ("gRPC", channel)):
                caller = Caller(each)
                if not caller.call("Lookup", request).found:
                    raise SystemExit(f"the entity was not found: {name}")
                ways[name] = repeat(lambda caller=caller: caller.call("Lookup", request), 200)
            medians = alternate(ways, rounds)
    return Bar(
        "engine lookup",
        medians["in process"] / medians["gRPC"],
        1 / 3,
        f"{medians['in process'] * 5:.3f} ms, through gRPC {medians['gRPC'] * 5:.3f} ms",
    )


def change_three(client: Any) -> Callable[[], None]:
    """Return a transaction that reads and writes three entities."""
    from google.cloud import ndb  # noqa: PLC0415 - only this benchmark needs NDB

    class Counter(ndb.Model):
        value = ndb.IntegerProperty(default=0)

    def change() -> None:
        def body() -> None:
            keys = [ndb.Key(Counter, name) for name in ("a", "b", "c")]
            found = ndb.get_multi(keys)
            for key, stored in zip(keys, found, strict=True):
                counter = stored or Counter(key=key)
                counter.value += 1
                counter.put()

        with client.context(cache_policy=False):
            ndb.transaction(body)

    return change


def measure_change(folder: Path, rounds: int, durability: str, flags: tuple[str, ...]) -> Bar:
    """Change three entities with NDB, in process and through gRPC."""
    name = f"change-{durability}"
    with (
        opened(folder, name, durability) as engine,
        served(folder, f"{name}-served", *flags) as address,
        grpc.insecure_channel(address) as channel,
    ):
        ways: dict[str, Callable[[], object]] = {
            "in process": repeat(change_three(testing.ndb_client(inprocess.Channel(engine))), 20),
            "gRPC": repeat(change_three(testing.ndb_client(channel)), 20),
        }
        medians = alternate(ways, rounds)
    return Bar(
        f"engine change, {durability}",
        medians["in process"] / medians["gRPC"],
        1 / 2,
        f"{medians['in process'] * 50:.2f} ms, through gRPC {medians['gRPC'] * 50:.2f} ms",
    )


def measure_start(folder: Path, rounds: int) -> Bar:
    """Time a start of the server, and an interpreter that imports the same libraries."""
    request = protobufs.LookupRequest(project_id=PROJECT)
    request.keys.add().CopyFrom(comment(1).key)

    def first_answer() -> None:
        with served(folder, "start") as address, grpc.insecure_channel(address) as channel:
            Caller(channel).call("Lookup", request)

    def libraries() -> None:
        subprocess.run([sys.executable, "-c", _LIBRARIES], check=True)

    medians = alternate({"server": first_answer, "libraries": libraries}, rounds)
    return Bar(
        "engine start",
        medians["server"] / medians["libraries"],
        1.5,
        f"first answer after {medians['server']:.2f} s, libraries {medians['libraries']:.2f} s",
    )


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
    """Measure everything."""
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
