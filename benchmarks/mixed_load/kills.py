"""Mixed load with kills: check that every page is consistent for every reader.

The program runs the product as scripts/serve does and kills it at random, either all of it or one
worker. At the same time, writers post, edit, retract and vote in a few threads, and readers read
pages of every kind. Each change stays in the delta for more than a minute, so each thread has
hundreds of uncompacted rows. Every page is checked (`page_checks`): parents come before children,
no comment appears twice or belongs to a different thread, counts match the rows, and every
acknowledged change is visible. Each writer also checks its own change immediately. At the end,
every acknowledged post must exist, and `repair` and `recount` must find nothing.

    python -m benchmarks.mixed_load.kills [--minutes 30] [--threads 4] [--writers 8] [--readers 2]
        [--kill-every 15] [--seed 1]

The program prints the counts, the kinds of violations, and the first violation of each kind. The
exit status is 1 if any violation was found.
"""

import argparse
import contextlib
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import measuring, servers
from benchmarks.bars import Bar
from benchmarks.mixed_load import load_clients, load_options, page_checks
from benchmarks.mixed_load.load_clients import World
from benchmarks.threads import loading
from comments.domain import records
from comments.store import connection, reads
from comments.store.models import comment_rows
from datastore_emulator import inprocess

_SAMPLE_EVERY = 10.0  # Seconds between two counts of the uncompacted rows.
_FIRST_KILL = 3.0  # Minimum seconds between two kills.
_PATIENCE = 120.0
_TICK = 0.05


class Service:
    """The product, which uses one data folder and gets a new port at each start."""

    def __init__(self, data: Path, world: World) -> None:
        self._data = data
        self._world = world
        self._stack = contextlib.ExitStack()
        self._server: servers.Server | None = None

    def start(self) -> None:
        """Start the service and wait until it answers."""
        self._server = self._stack.enter_context(servers.product(self._data, "/healthz"))
        self._world.port = self._server.port

    def kill(self, chance: random.Random) -> None:
        """Kill one worker while the others serve, or kill all processes and start again."""
        server = self._server
        if server is None:
            raise SystemExit("the service is not running")
        if chance.random() < 0.5 and server.kill_worker(chance):
            self._world.count("kills of a worker")
            return
        server.kill()
        self._world.count("kills of all")
        self._stack.close()
        self.start()

    def stop(self) -> None:
        """Stop the service as an operator does."""
        self._stack.close()


def _unfolded(data: Path, threads: int) -> list[int]:
    """Count the uncompacted rows of each thread in a separate process."""
    with inprocess.open_engine(
        data / "flatthread.db",
        indexes=measuring.ROOT / "index.yaml",
        concurrency="pessimistic",
        history=0,
    ) as engine:
        store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
        with store.context():
            names = [records.ThreadName("demo", load_clients.name_of(n)) for n in range(threads)]
            return [reads.count(_flagged(name)) for name in names]


def _flagged(name: records.ThreadName) -> reads.Query:
    where = (("thread", "=", comment_rows.thread_key_name(name)), ("unfolded", "=", True))
    return reads.Query("Comment", where=where, order=("revision",))


def run(chosen: argparse.Namespace, data: Path) -> World:
    """Load the service for the given time, then check all of the service's data."""
    chance, world = random.Random(chosen.seed), World(chosen.threads)
    service = Service(data, world)
    service.start()
    clients = [
        *(load_clients.Writer(world, n, chance.randrange(2**32)) for n in range(chosen.writers)),
        *(load_clients.Reader(world, chance.randrange(2**32)) for _ in range(chosen.readers)),
    ]
    try:
        for client in clients:
            client.start()
        samples = _strike(chosen, service, chance, data)
        world.over.set()
        for client in load_clients.finished(clients, _PATIENCE):
            world.blame(client.name, ["the client did not end"])
        check_all(world)
    finally:
        world.over.set()
        service.stop()
    world.blame("at the end", servers.problems(data))
    _report(world, chosen, samples)
    return world


def _strike(
    chosen: argparse.Namespace, service: Service, chance: random.Random, data: Path
) -> list[int]:
    """Kill the service at random until the time is over; return samples of uncompacted rows."""
    samples: list[int] = []
    now = time.monotonic()
    end, next_sample, next_kill = now + chosen.minutes * 60, now + _SAMPLE_EVERY, now
    next_kill += _pause(chosen, chance)
    while (now := time.monotonic()) < end:
        if now >= next_kill:
            service.kill(chance)
            next_kill = time.monotonic() + _pause(chosen, chance)
        if now >= next_sample:
            samples += _unfolded(data, chosen.threads)
            next_sample = time.monotonic() + _SAMPLE_EVERY
        time.sleep(_TICK)
    return samples


def _pause(chosen: argparse.Namespace, chance: random.Random) -> float:
    return _FIRST_KILL + chance.expovariate(1 / max(0.1, chosen.kill_every - _FIRST_KILL))


def check_all(world: World) -> None:
    """Compare every thread with the acknowledged changes, after all writers have ended."""
    reader = load_clients.Reader(world, 0)
    for thread in range(world.threads):
        path = load_clients.path_of(thread, limit="all")
        data = reader.get(path)
        if data is None:
            world.blame(path, ["no answer at the end"])
            continue
        page = json.loads(data)
        shown = page_checks.rows(page)
        walk = page_checks.Walk(thread, "thread")
        wrong = list(walk.page(shown, is_whole=True, total=page["total"]))
        wrong += walk.end(world.known(thread))
        posts = world.posts[thread]
        wrong += [
            f"{each.id} is shown after its removal"
            for each in shown
            if each.version is not None
            and each.id in posts
            and (posts[each.id].is_retracted or posts[each.id].is_hidden)
        ]
        world.blame(f"at the end, {path}", wrong)


def _report(world: World, chosen: argparse.Namespace, samples: list[int]) -> None:
    counts = world.counts
    print(f"\n| in {chosen.minutes:g} minutes, seed {chosen.seed} | |\n|---|---|")
    for what in (
        "pages", "listings read to the end", "posts", "edits", "retractions", "votes",
        "kills of all", "kills of a worker", "unanswered", "refused", "violations",
    ):  # fmt: skip
        print(f"| {what} | {counts[what]:,} |")
    if samples:
        print(f"| uncompacted rows per thread, median | {statistics.median(samples):,.0f} |")
        print(f"| uncompacted rows per thread, maximum | {max(samples):,} |")
    for kind, number in world.kinds.most_common():
        print(f"| violations: {kind} | {number:,} |")
    for each in world.violations:
        print(f"VIOLATION {each}")


def bars(*, quick: bool) -> Iterator[Bar]:
    """Put load on the service for half an hour, or for some seconds if `quick`."""
    short = ["--minutes", "0.3", "--kill-every", "6"]
    with tempfile.TemporaryDirectory(prefix="mixed-") as folder:
        counts = run(asked(short if quick else []), Path(folder)).counts
    kills = counts["kills of all"] + counts["kills of a worker"]
    detail = f"{counts['pages']:,} pages, {counts['posts']:,} posts, {kills} kills"
    yield Bar("mixed_load", counts["violations"], 0, detail, unit="violations")


def asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    description = "Mixed load with kills, every page checked."
    parser = load_options.parser(description, threads=4, writers=8, readers=2)
    parser.add_argument("--kill-every", type=float, default=15.0, metavar="SECONDS", help="mean")
    return parser.parse_args(arguments)


def main() -> None:
    """Run with the options of the command line."""
    chosen = asked(None)
    with tempfile.TemporaryDirectory(prefix="mixed-") as folder:
        world = run(chosen, Path(folder))
    sys.exit(1 if world.counts["violations"] else 0)


if __name__ == "__main__":
    main()
