"""Mixed load with kills: check that every page is consistent for every reader.

The product runs as scripts/serve runs it, and is killed at random, either all of it or one worker.
At the same time, writers post, edit, retract and vote in a few threads, and readers read pages of
every kind. Each change stays in the delta for more than a minute, so each thread has hundreds of
uncompacted rows. Every page is checked (`page_checks`): parents come before children, no comment
appears twice or belongs to a different thread, counts match the rows, and every acknowledged change
is visible. Each writer also checks its own change immediately. At the end, every acknowledged post
must exist, and `repair` and `recount` must find nothing.
"""

import contextlib
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import servers
from benchmarks.bars import Bar
from benchmarks.mixed_load import load_clients, page_checks
from benchmarks.mixed_load.load_clients import World

THREADS, WRITERS, READERS = 4, 8, 2
SECONDS, QUICK_SECONDS = 1_800.0, 18.0
BETWEEN, QUICK_BETWEEN = 15.0, 6.0  # Mean seconds between two kills.
_LEAST_BETWEEN = 3.0
_PATIENCE = 120.0


class Service:
    """The product, which uses one data folder and gets a new port at each start."""

    def __init__(self, data: Path, world: World) -> None:
        self._data = data
        self._world = world
        self._stack = contextlib.ExitStack()
        self.start()

    def start(self) -> None:
        """Start the service and wait until it answers."""
        self._server = self._stack.enter_context(servers.product(self._data, "/healthz"))
        self._world.port = self._server.port

    def kill(self, chance: random.Random) -> None:
        """Kill one worker while the others serve, or kill all processes and start again."""
        self._world.count("kills")
        if chance.random() < 0.5 and self._server.kill_worker(chance):
            return
        self._server.kill()
        self._stack.close()
        self.start()

    def stop(self) -> None:
        """Stop the service as an operator does."""
        self._stack.close()


def run(data: Path, seconds: float, between: float) -> World:
    """Load and kill the service for the given time, then check all of the service's data."""
    chance, world = random.Random(1), World(THREADS)
    service = Service(data, world)
    clients = [
        *(load_clients.Writer(world, n, chance.randrange(2**32)) for n in range(WRITERS)),
        *(load_clients.Reader(world, chance.randrange(2**32)) for _ in range(READERS)),
    ]
    try:
        for client in clients:
            client.start()
        end = time.monotonic() + seconds
        while True:
            pause = _LEAST_BETWEEN + chance.expovariate(1 / (between - _LEAST_BETWEEN))
            if time.monotonic() + pause > end:
                break
            time.sleep(pause)
            service.kill(chance)
        time.sleep(max(0.0, end - time.monotonic()))
        world.over.set()
        for client in load_clients.finished(clients, _PATIENCE):
            world.blame(client.name, ["the client did not end"])
        check_all(world)
    finally:
        world.over.set()
        service.stop()
    world.blame("at the end", servers.problems(data))
    return world


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


def bars(*, quick: bool) -> Iterator[Bar]:
    """Put load on the service for half an hour, or for some seconds if `quick`."""
    seconds, between = (QUICK_SECONDS, QUICK_BETWEEN) if quick else (SECONDS, BETWEEN)
    with tempfile.TemporaryDirectory(prefix="mixed-") as folder:
        world = run(Path(folder), seconds, between)
    print(world.report(), flush=True)
    counts = world.counts
    detail = f"{counts['pages']:,} pages, {counts['posts']:,} posts, {counts['kills']} kills"
    yield Bar("mixed_load", counts["violations"], 0, detail, unit="violations")
