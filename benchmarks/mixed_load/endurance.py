"""Endurance: mixed load without kills, during which memory and files must not grow without end.

Eight writers post, edit, retract and vote, 50 readers read and check pages of every kind, a
moderator hides and restores comments, and an owner imports exports into the same threads. No
request may fail. Memory, the write-ahead log and the data file are sampled. The last third of the
time is compared with the middle third: memory and the log must not be larger, and a change must not
take more bytes of the data file. At the end, every acknowledged change must be visible, every page
must equal the ordered query, and `repair` and `recount` must find nothing.
"""

import dataclasses
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import measuring, servers
from benchmarks.bars import Bar
from benchmarks.mixed_load import kills, load_clients, operators
from benchmarks.mixed_load.load_clients import World
from comments.domain import records
from comments.tree.lists import ordered_query

_SAMPLES = 60  # Samples in a run.
_PATIENCE = 300.0
_BETWEEN_PAGES, _BETWEEN_DECISIONS, _BETWEEN_IMPORTS = 1.0, 0.5, 10.0  # Mean seconds.
_CHANGES = ("posts", "edits", "retractions", "votes", "decisions", "imported comments")
_MEMORY, _LOG, _DATA = 1.1, 1.5, 1.25  # The highest ratios of the last third to the middle third.


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """The size of a run. `imported` is the number of comments in each thread of an export."""

    seconds: float = 1_800.0
    threads: int = 8
    writers: int = 8
    readers: int = 50
    imported: int = 25


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """A moment of the run: bytes of memory, of the write-ahead log, and of the data file."""

    memory: int
    log: int
    data: int
    changes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Growth:
    """The last third of the samples compared with the middle third."""

    memory: float
    log: float
    data: float


def growth(samples: Sequence[Sample]) -> Growth:
    """Compare the peaks of memory and of the log, and the bytes of the data file for a change."""
    third = len(samples) // 3
    middle, last = samples[third : 2 * third + 1], samples[2 * third :]
    return Growth(
        max(each.memory for each in last) / max(each.memory for each in middle),
        max(each.log for each in last) / max(1, *(each.log for each in middle)),
        _bytes_per_change(last) / max(1.0, _bytes_per_change(middle)),
    )


def _bytes_per_change(samples: Sequence[Sample]) -> float:
    first, last = samples[0], samples[-1]
    return (last.data - first.data) / max(1, last.changes - first.changes)


def run(load: Load, folder: Path) -> tuple[World, list[Sample]]:
    """Load the service for the given time, then check all of the service's data."""
    world, data = World(load.threads), folder / "data"
    token = operators.prepare(data)
    with servers.product(data, "/healthz") as server:
        world.port = server.port
        clients = list(_clients(load, world, token, folder))
        try:
            for client in clients:
                client.start()
            samples = list(_sampled(load.seconds, server, data, world))
        finally:
            world.over.set()
        for client in load_clients.finished(clients, _PATIENCE):
            world.blame(client.name, ["the client did not end"])
        kills.check_all(world)
        _compare_with_query(world, data)
    world.blame("at the end", servers.problems(data))
    for failure in ("unanswered", "refused"):
        if world.counts[failure]:
            world.blame("requests", [f"{world.counts[failure]} {failure}"])
    return world, samples


def _clients(load: Load, world: World, token: str, folder: Path) -> Iterator[threading.Thread]:
    chance = random.Random(1)
    for number in range(load.writers):
        yield load_clients.Writer(world, number, chance.randrange(2**32))
    for _ in range(load.readers):
        yield load_clients.Reader(world, chance.randrange(2**32), _BETWEEN_PAGES)
    yield operators.Moderator(world, 1, token, _BETWEEN_DECISIONS)
    yield operators.Importer(world, 2, folder, load.imported, _BETWEEN_IMPORTS)


def _sampled(seconds: float, server: servers.Server, data: Path, world: World) -> Iterator[Sample]:
    start = time.monotonic()
    for number in range(1, _SAMPLES + 1):
        time.sleep(max(0.0, start + seconds * number / _SAMPLES - time.monotonic()))
        files = {path.name: path.stat().st_size for path in data.glob("flatthread.db*")}
        log = sum(size for name, size in files.items() if "wal" in name)
        changes = sum(world.counts[each] for each in _CHANGES)
        yield Sample(server.memory(), log, files["flatthread.db"], changes)


def _compare_with_query(world: World, data: Path) -> None:
    """Compare pages of every order with the ordered query, which another process runs."""
    with measuring.stored(data / "flatthread.db"):
        for thread in range(world.threads):
            name = records.ThreadName(operators.SITE, load_clients.name_of(thread))
            rows = ordered_query.thread(name)
            world.blame(f"at the end, {name.id}", differences(rows, _listings(world, thread)))


def _listings(world: World, thread: int) -> dict[str, list[dict[str, Any]]]:
    """Read a thread in several orders to the end."""
    reader = load_clients.Reader(world, 0)
    ways: dict[str, Mapping[str, object]] = {
        "thread": {"order": "thread", "limit": 50},
        "oldest": {"order": "oldest", "limit": 200},
        "newest": {"order": "newest", "limit": 200},
        "recent": {"order": "recent", "limit": 200},
        "best": {"order": "best", "limit": 200},
        "whole": {"limit": "all"},
    }
    return {name: list(_pages(reader, thread, query)) for name, query in ways.items()}


def _pages(
    reader: load_clients.Reader, thread: int, query: Mapping[str, object]
) -> Iterator[dict[str, Any]]:
    cursor: str | None = ""
    while cursor is not None:
        path = load_clients.path_of(thread, **query, **({"cursor": cursor} if cursor else {}))
        found = reader.get(path)
        if found is None:
            reader.world.blame(path, ["no answer at the end"])
            return
        page = json.loads(found)
        yield from page["comments"]
        cursor = page.get("cursor")


def differences(
    rows: Sequence[records.Comment], listings: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[str]:
    """Compare the comments of complete listings with the rows of the ordered query."""
    ids = [row.id for row in rows]
    oldest = [row.id for row in sorted(rows, key=lambda row: (row.created, row.sort_hash))]
    orders = {"thread": ids, "whole": ids, "oldest": oldest, "newest": oldest[::-1]}
    for order, listed in listings.items():
        found = [each["id"] for each in listed]
        if found != orders.get(order, found):
            yield f"the order {order} differs from the ordered query"
        if sorted(found) != sorted(ids):
            yield f"the order {order} has {len(found)} comments, the ordered query {len(ids)}"
        shown = {each["id"]: each for each in listed}
        for row in rows:
            each = shown.get(row.id, {})
            if each and (each["parent"], each["level"]) != (row.parent, row.level):
                yield f"{row.id} has a different place in the order {order}"
            if each and not row.is_tombstone and each["html"] != row.html:
                yield f"{row.id} has a different text in the order {order}"


def judged(world: World, samples: Sequence[Sample]) -> Iterator[Bar]:
    """Yield the bars of a run."""
    counts, grown, last = world.counts, growth(samples), samples[-1]
    changes = sum(counts[each] for each in _CHANGES)
    detail = f"{counts['pages']:,} pages, {changes:,} changes"
    yield Bar("endurance", counts["violations"], 0, detail, unit="violations")
    yield Bar("endurance memory", grown.memory, _MEMORY, f"at the end {last.memory / 1e6:.0f} MB")
    yield Bar("endurance log", grown.log, _LOG, f"at the end {last.log / 1e6:.1f} MB")
    detail = (
        f"at the end {last.data / 1e6:.0f} MB, {last.data / max(1, changes):,.0f} bytes a change"
    )
    yield Bar("endurance data", grown.data, _DATA, detail)


def bars(*, quick: bool) -> Iterator[Bar]:
    """Put load on the service for half an hour, or for some seconds if `quick`."""
    load = Load(seconds=18.0, readers=10, imported=3) if quick else Load()
    with tempfile.TemporaryDirectory(prefix="endurance-") as folder:
        world, samples = run(load, Path(folder))
    print(world.report(), flush=True)
    yield from judged(world, samples)
