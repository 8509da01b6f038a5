"""HTTP servers beside each other: the product's, and others that could run it.

Each runs two applications in turn: a bare one that returns 22 kB and asks nobody (`ways.bare`), and
the product. ASGI servers get them through `adapter`, which reads bodies on the event loop and runs
the application in eight threads. Two processes of eight threads, where a server can have two.

    start       seconds until the product's first answer
    memory      of all processes that serve the product, pages that they share counted once
    bare, kept  a client alone: p50 of the bare answer and of a first page that is kept, in ms; the
                servers take turns, each turn on a new connection; and beside gthread, the ratio
    crowd       answers a second for eight clients, of the kept page
    slow        of so many connections that send a part of a head, a half of a body, or read nothing
                of a long answer, each kind in turn: how many of ten readers are answered meanwhile
    ended       of those slow connections, how many the server ends within `--patience` seconds

The other servers are no dependencies of this project. Install them beside its own in an environment
that may be thrown away, and run this with that one:

    python3 -m venv /tmp/servers
    /tmp/servers/bin/pip install -r requirements.txt
    /tmp/servers/bin/pip install granian hypercorn uvicorn uvicorn-worker httptools uvloop waitress
    /tmp/servers/bin/python -m benchmarks.servers [--rounds 10] [--slow 40] [--patience 45]
                                                  [--only NAME,NAME]

Prints Markdown. A server that is not installed is left out.
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import lean, ours, processes, serving, shapes, slow_clients, ways

SIZE = 10_000  # comments of the thread
_BARE, _PRODUCT = "benchmarks.ways:bare", "main:app"
_ADAPTED = {_BARE: "benchmarks.adapter:bare", _PRODUCT: "benchmarks.adapter:product"}
_READERS = 10
_READER_WAITS = 2.0  # seconds, after which a reader counts as not answered
_SETTLING = 8.0  # seconds, in which slow clients are given to all threads that there are
_KINDS = ("head", "body", "reader")
_GUNICORN = "-m gunicorn --bind 127.0.0.1:{port} --workers 2 --preload --no-control-socket"
COMMANDS = {
    "gunicorn, gthread": _GUNICORN + " --threads 8 {wsgi}",
    "gunicorn, this project's worker": (
        _GUNICORN + " --worker-class server.worker.Worker --threads 8 {wsgi}"
    ),
    "gunicorn, asgi": _GUNICORN + " --worker-class asgi {asgi}",
    "gunicorn, uvicorn": (
        _GUNICORN + " --worker-class uvicorn_worker.UvicornWorker {asgi}"
    ),
    "granian": (
        "-m granian --interface wsgi --host 127.0.0.1 --port {port} --workers 2"
        " --blocking-threads 8 --no-ws --log-level error {wsgi}"
    ),
    "waitress": "-m waitress --listen 127.0.0.1:{port} --threads 8 {wsgi}",
    "hypercorn": (
        "-m hypercorn --bind 127.0.0.1:{port} --workers 2 --log-level error {wsgi}"
    ),
}  # fmt: skip
_NEEDS = {"gunicorn, uvicorn": "uvicorn_worker"}


@dataclasses.dataclass(slots=True)
class Found:
    """What was found of a server."""

    start: float = 0.0
    memory: int = 0
    bare: list[float] = dataclasses.field(default_factory=list)
    kept: list[float] = dataclasses.field(default_factory=list)
    crowd: float = 0.0
    slow: list[str] = dataclasses.field(default_factory=list)


@contextlib.contextmanager
def running(name: str, app: str, data: Path, first: str) -> Iterator[processes.Server]:
    """Run an application under a server until the block ends."""
    port = processes.free_port()
    command = COMMANDS[name].format(port=port, wsgi=app, asgi=_ADAPTED[app]).split()
    environ = {
        "PATH": os.environ["PATH"],
        "DATASTORE_PROJECT_ID": ours.PROJECT,
        "DATA_DIR": str(data),
        "SECRET": processes.SECRET,
        **processes.OPEN,
    }
    start = time.perf_counter()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, *command], cwd=processes.ROOT, env=environ, stdout=quiet, stderr=quiet
    )
    server = processes.Server(process, port)
    try:
        server.wait(first, start)
        yield server
    finally:
        server.stop()


def speed(names: Sequence[str], data: Path, page: str, rounds: int) -> dict[str, Found]:
    """Start all servers, and ask them in turns."""
    found = {name: Found() for name in names}
    with contextlib.ExitStack() as stack:
        asked: list[tuple[Found, str, processes.Server, lean.Way]] = []
        for name in names:
            bare = stack.enter_context(running(name, _BARE, data, "/"))
            product = stack.enter_context(running(name, _PRODUCT, data, "/healthz"))
            found[name].start = product.started
            asked.append((found[name], "bare", bare, ways.way(bare, "/")))
            asked.append((found[name], "kept", product, ways.way(product, page)))
        chance = random.Random(1)
        for _ in range(rounds):
            chance.shuffle(asked)
            for one, which, _, way in asked:
                getattr(one, which).extend(lean.alone(way, 200))
        for one, which, server, way in asked:
            if which == "kept":
                one.crowd = statistics.median(lean.crowd(way, 1.0) for _ in range(3))
                one.memory = server.memory()
    return found


def endure(name: str, data: Path, page: str, count: int, patience: float) -> list[str]:
    """Meet slow clients of each kind; how many readers were answered, and slow ones ended."""
    cells = []
    for kind in _KINDS:
        with running(name, _PRODUCT, data, "/healthz") as server, contextlib.ExitStack() as stack:
            whole = f"{page}&limit=all"
            order = slow_clients.Order(server.port, kind, count, count, 0.0, whole)
            slow = [slow_clients.Slow(order, number, whole) for number in range(count)]
            for each in slow:
                stack.callback(each.socket.close)
            time.sleep(_SETTLING)
            answered = sum(_is_answered(server, page) for _ in range(_READERS))
            ended = _ended(slow, patience) if patience else "?"
            cells.append(f"{answered}/{_READERS}, {ended}/{count}")
    return cells


def _is_answered(server: processes.Server, page: str) -> bool:
    try:
        connection = lean.Connection(server.port, patience=_READER_WAITS)
        with contextlib.closing(connection.socket):
            connection.learn(ways.way(server, page))
    except (OSError, SystemExit):
        return False
    return True


def _ended(slow: Sequence[slow_clients.Slow], patience: float) -> int:
    """How many the server ends meanwhile."""
    left, end = list(slow), time.monotonic() + patience
    while left and time.monotonic() < end:
        time.sleep(0.5)
        left = [each for each in left if each.stands() and (each.reads_nothing or each.receive())]
    return len(slow) - len(left)


def lines(found: dict[str, Found]) -> Iterator[str]:
    """The table."""
    head = ("server", "start, s", "MB", "bare, ms", "x", "kept, ms", "x", "kept, 8 clients, /s")
    slow = tuple(f"slow {kind}: readers answered, ended" for kind in _KINDS)
    yield f"| {' | '.join(head + slow)} |"
    yield f"|---|{'---:|' * (len(head) + len(slow) - 1)}"
    first = next(iter(found.values()))
    for name, one in found.items():
        bare, kept = statistics.median(one.bare), statistics.median(one.kept)
        cells = (
            f"{one.start:.1f}",
            f"{one.memory / 1e6:.0f}",
            f"{bare * 1e3:.2f}",
            f"{bare / statistics.median(first.bare):.2f}",
            f"{kept * 1e3:.2f}",
            f"{kept / statistics.median(first.kept):.2f}",
            f"{one.crowd:,.0f}",
            *one.slow,
        )
        yield f"| {name} | {' | '.join(cells)} |"


def _installed(name: str) -> bool:
    module = _NEEDS.get(name) or COMMANDS[name].split()[1]
    return importlib.util.find_spec(module) is not None


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--slow", type=int, default=40)
    parser.add_argument("--patience", type=float, default=45.0)
    parser.add_argument("--only", default=",".join(name.replace(",", ";") for name in COMMANDS))
    parser.add_argument("--size", type=int, default=SIZE, help="comments of the thread")
    chosen = parser.parse_args(arguments)
    names = [name for name in COMMANDS if name.replace(",", ";") in chosen.only.split(",")]
    names = [name for name in names if _installed(name)]
    with tempfile.TemporaryDirectory(prefix="servers-") as folder:
        data = Path(folder) / "data"
        (thread,) = serving.stock(data, shapes.grown(2_251), [chosen.size])
        found = speed(names, data, thread.path, chosen.rounds)
        for name in names:
            found[name].slow = endure(name, data, thread.path, chosen.slow, chosen.patience)
    print("\n".join(lines(found)))
    print(f"\nThe machine's load: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
