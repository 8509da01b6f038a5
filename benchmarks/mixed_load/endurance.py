"""Endurance: mixed load without kills, during which memory and files must not grow without end.

Eight writers post, edit, retract and vote, 50 readers read and check pages of every kind, a
moderator hides and restores comments, and an owner imports exports into the same threads. No
request may fail. Memory, the write-ahead log and the data file are sampled. The last third of the
time is compared with the middle third: memory and the log must not be larger, and a change must not
take more bytes of the data file. At the end, every acknowledged change must be visible, every page
must equal the ordered query, and `repair` and `recount` must find nothing.

    python -m benchmarks.mixed_load.endurance [--minutes 30] [--threads 8] [--writers 8]
        [--readers 50] [--import-size 200] [--seed 1]

The program prints the counts, the samples, and the first violation of each kind.
"""

import argparse
import dataclasses
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import measuring, servers
from benchmarks.bars import Bar
from benchmarks.mixed_load import kills, load_clients, load_options, operators
from benchmarks.mixed_load.load_clients import World
from benchmarks.threads import loading
from comments.domain import records
from comments.store import connection
from comments.tree import ordered_query
from datastore_emulator import inprocess

_SAMPLES = 60  # Samples in a run.
_PATIENCE = 300.0
_BETWEEN_PAGES, _BETWEEN_DECISIONS, _BETWEEN_IMPORTS = 1.0, 0.5, 10.0  # Mean seconds.
_CHANGES = ("posts", "edits", "retractions", "votes", "decisions", "imported comments")
_MEMORY, _LOG, _DATA = 1.1, 1.5, 1.25  # The highest ratios of the last third to the middle third.


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """A moment of the run: bytes of memory, of the write-ahead log, and of the data file."""

    seconds: float
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


def run(chosen: argparse.Namespace, folder: Path) -> tuple[World, list[Sample]]:
    """Load the service for the given time, then check all of the service's data."""
    chance, world, data = random.Random(chosen.seed), World(chosen.threads), folder / "data"
    token = operators.prepare(data)
    with servers.product(data, "/healthz") as server:
        world.port = server.port
        clients = _clients(chosen, world, chance, token, folder)
        try:
            for client in clients:
                client.start()
            samples = list(_sampled(chosen.minutes * 60, server, data, world))
        finally:
            world.over.set()
        for client in load_clients.finished(clients, _PATIENCE):
            world.blame(client.name, ["the client did not end"])
        kills.check_all(world)
        _compare_with_query(world, data)
    world.blame("at the end", servers.problems(data))
    for failure in ("unanswered", "refused"):
        world.blame(
            "requests", [f"{world.counts[failure]} {failure}"] * bool(world.counts[failure])
        )
    return world, samples


def _clients(
    chosen: argparse.Namespace, world: World, chance: random.Random, token: str, folder: Path
) -> list[threading.Thread]:
    def seed() -> int:
        return chance.randrange(2**32)

    return [
        *(load_clients.Writer(world, number, seed()) for number in range(chosen.writers)),
        *(load_clients.Reader(world, seed(), _BETWEEN_PAGES) for _ in range(chosen.readers)),
        operators.Moderator(world, seed(), token, _BETWEEN_DECISIONS),
        operators.Importer(world, seed(), folder, chosen.import_size, _BETWEEN_IMPORTS),
    ]


def _sampled(seconds: float, server: servers.Server, data: Path, world: World) -> Iterator[Sample]:
    start = time.monotonic()
    for number in range(1, _SAMPLES + 1):
        time.sleep(max(0.0, start + seconds * number / _SAMPLES - time.monotonic()))
        files = {path.name: path.stat().st_size for path in data.glob("flatthread.db*")}
        log = sum(size for name, size in files.items() if "wal" in name)
        changes = sum(world.counts[each] for each in _CHANGES)
        passed = time.monotonic() - start
        yield Sample(passed, server.memory(), log, files["flatthread.db"], changes)


def _compare_with_query(world: World, data: Path) -> None:
    """Compare pages of every order with the ordered query, which another process runs."""
    with inprocess.open_engine(
        data / "flatthread.db",
        indexes=measuring.ROOT / "index.yaml",
        concurrency="pessimistic",
        history=0,
    ) as engine:
        store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
        with store.context():
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


def report(world: World, samples: Sequence[Sample]) -> str:
    """Return the counts, some samples and the violations as Markdown."""
    counted = ("pages", *_CHANGES, "unanswered", "refused", "violations")
    lines = ["| counted | |", "|---|---:|"]
    lines += [f"| {what} | {world.counts[what]:,} |" for what in counted]
    lines += [
        "",
        "| minutes | memory, MB | log, MB | data, MB | changes |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.seconds / 60:.1f} | {each.memory / 1e6:.0f} | {each.log / 1e6:.1f} "
        f"| {each.data / 1e6:.1f} | {each.changes:,} |"
        for each in samples[:: max(1, len(samples) // 12)]
    ]
    lines += [f"VIOLATION {each}" for each in world.violations]
    return "\n".join(lines)


def judged(world: World, samples: Sequence[Sample]) -> Iterator[Bar]:
    """Yield the bars of a run."""
    counts, grown = world.counts, growth(samples)
    changes = sum(counts[each] for each in _CHANGES)
    detail = f"{counts['pages']:,} pages, {changes:,} changes"
    yield Bar("endurance", counts["violations"], 0, detail, unit="violations")
    last = samples[-1]
    yield Bar("endurance memory", grown.memory, _MEMORY, f"at the end {last.memory / 1e6:.0f} MB")
    yield Bar("endurance log", grown.log, _LOG, f"at the end {last.log / 1e6:.1f} MB")
    detail = (
        f"at the end {last.data / 1e6:.0f} MB, {last.data / max(1, changes):,.0f} bytes a change"
    )
    yield Bar("endurance data", grown.data, _DATA, detail)


def bars(*, quick: bool) -> Iterator[Bar]:
    """Put load on the service for half an hour, or for some seconds if `quick`."""
    short = ["--minutes", "0.3", "--readers", "10", "--import-size", "20"]
    yield from _measured(asked(short if quick else []))


def _measured(chosen: argparse.Namespace) -> list[Bar]:
    with tempfile.TemporaryDirectory(prefix="endurance-") as folder:
        world, samples = run(chosen, Path(folder))
    print(report(world, samples))
    return list(judged(world, samples))


def asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    description = __doc__.partition("\n")[0]
    parser = load_options.parser(description, threads=8, writers=8, readers=50)
    parser.add_argument("--import-size", type=int, default=200, help="comments in an export")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run with the options of the command line."""
    found = _measured(asked(arguments))
    print(*found, sep="\n")
    sys.exit(0 if all(bar.is_held for bar in found) else 1)


if __name__ == "__main__":
    main()
