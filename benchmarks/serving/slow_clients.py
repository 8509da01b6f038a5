"""Measure how long a reader waits during an attack with slow connections.

The product runs as scripts/serve runs it. Many connections simultaneously send the beginning of a
request or half of a body, request a whole long thread and read nothing, or do one of these at one
byte per second. If the server closes a connection, the attack reopens it immediately. The
connections first come from 127.0.1.1 to 127.0.1.250 in turn, then all from one address. A reader at
a different address requests a first page continuously, with five requests per connection; the times
of these requests are recorded before and during each attack. The reader's p99 may rise to three
times its value before the attack, or to 250 ms if that is more. The memory is the total for all of
the server's processes.

    python -m benchmarks.serving.slow_clients [--seconds 120] [--clients 200] [--from many,one]
                                      [--kinds head,body,reader,drip]

Prints Markdown. With the defaults, the benchmark takes 20 minutes; `--seconds 5` only shows that it
works.
"""

import argparse
import contextlib
import dataclasses
import itertools
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.bars import Bar
from benchmarks.serving import gunicorn_process, lean_client, page_figures, served_pages
from benchmarks.threads import shapes

KINDS = ("head", "body", "reader", "drip")
SIZE = 10_000  # Comments in the thread that the attack requests as a whole (5 MB).
_READER = "127.0.2.1"
_BETWEEN = 0.01  # The seconds between two requests by the reader.
_TOGETHER = 5  # The number of requests on one connection.
_DRIP = 1.0  # The seconds between two bytes.
_LEAST = 0.25  # A reader may always wait this many seconds.
_MOST = 3.0  # A reader may wait this many times the p99 without the attack.
_SAMPLE = 1.0  # The seconds between two measurements of the memory.
_ADDRESSES = 250
_PAUSE = 0.1
_POST = "/api/v1/sites/bench/comments?thread=slow"


class Order(msgspec.Struct, frozen=True):
    """An attack. `places` is the number of addresses from which the attack comes."""

    port: int
    kind: str
    clients: int
    places: int
    seconds: float
    path: str


class Ended(msgspec.Struct):
    """The outcome for each connection of an attack.

    `after` contains the seconds until each connection ended.
    """

    opened: int = 0
    refused: int = 0
    after: list[float] = msgspec.field(default_factory=list)
    answers: dict[str, int] = msgspec.field(default_factory=dict)


def beginning(kind: str, path: str) -> bytes:
    """Return the first bytes that a slow client sends, all together."""
    if kind == "head":
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ".encode()
    if kind == "body":
        length = "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        return f"POST {_POST} HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}{{".encode()
    return page_figures.request(path).encode()


class Slow:
    """A slow connection."""

    def __init__(self, order: Order, number: int, path: str) -> None:
        self.is_dripping = order.kind == "drip"
        self.kind = KINDS[number % 3] if self.is_dripping else order.kind
        self.start = time.monotonic()
        self.answer = b""
        self._left = beginning(self.kind, path)
        self.socket = socket.socket()
        if self.kind == "reader":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self.socket.bind((f"127.0.1.{1 + number % order.places}", 0))
        self.socket.settimeout(1.0)
        self.socket.connect(("127.0.0.1", order.port))
        self.socket.settimeout(0.0)
        if self.kind != "head" or not self.is_dripping:
            self.socket.sendall(self._left)
            self._left = b""

    @property
    def reads_nothing(self) -> bool:
        """True if the connection notices its end only when the connection is checked."""
        return self.kind == "reader"

    def is_open(self) -> bool:
        """Send or read a byte if one is due; return whether the connection is still open."""
        try:
            if not self.is_dripping:
                return self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
            if self.kind == "reader":
                return bool(self.socket.recv(1))
            self.socket.send(self._left[:1] or b"x")
            self._left = self._left[1:]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def receive(self) -> bool:
        """Receive data from the server; return whether the connection is still open."""
        try:
            data = self.socket.recv(65_536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.answer = self.answer or data
        return bool(data)


class Attack:
    """All slow connections of an order; closed connections are reopened."""

    def __init__(self, order: Order) -> None:
        self.found = Ended()
        self._order = order
        self._numbers = itertools.count()
        self._selector = selectors.DefaultSelector()
        self._all: set[Slow] = set()
        self._next = time.monotonic() + _DRIP

    def run(self) -> Ended:
        """Attack for the time that the order specifies."""
        end = time.monotonic() + self._order.seconds
        while time.monotonic() < end:
            for _ in range(self._order.clients - len(self._all)):
                self._open()
            for key, _ in self._selector.select(_PAUSE):
                if not key.data.receive():
                    self._end(key.data)
            if time.monotonic() >= self._next:
                self._next += _DRIP
                for each in [each for each in self._all if not each.is_open()]:
                    self._end(each)
        for each in self._all:
            each.socket.close()
        return self.found

    def _open(self) -> None:
        self.found.opened += 1
        try:
            one = Slow(self._order, next(self._numbers), self._order.path)
        except OSError:
            self.found.refused += 1
            return
        self._all.add(one)
        if not one.reads_nothing:
            self._selector.register(one.socket, selectors.EVENT_READ, one)

    def _end(self, one: Slow) -> None:
        is_answer = one.answer.startswith(b"HTTP/1.1 ")
        said = one.answer.split(b" ")[1].decode() if is_answer else "closed"
        self.found.answers[said] = self.found.answers.get(said, 0) + 1
        self.found.after.append(time.monotonic() - one.start)
        if not one.reads_nothing:
            self._selector.unregister(one.socket)
        self._all.discard(one)
        one.socket.close()


@contextlib.contextmanager
def attacking(order: Order) -> Iterator["subprocess.Popen[bytes]"]:
    """Attack from a separate process, so that the attack takes no time from this process."""
    command = [sys.executable, "-m", "benchmarks.serving.slow_clients", "--attack"]
    with subprocess.Popen(
        command, cwd=gunicorn_process.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None  # noqa: S101 - both are pipes
        process.stdin.write(msgspec.json.encode(order))
        process.stdin.close()
        yield process


class Reader:
    """A client that requests a page continuously and records the seconds of each request."""

    def __init__(self, server: gunicorn_process.Server, path: str) -> None:
        self._server = server
        self._way = lean_client.Way(path, server.port, page_figures.request(path))
        self.memory = 0  # The peak number of bytes.

    def read(self, seconds: float) -> list[float]:
        """Read for some seconds; return the seconds of each request."""
        times: list[float] = []
        end, look = time.monotonic() + seconds, 0.0
        while time.monotonic() < end:
            start = time.monotonic()
            connection = lean_client.Connection(self._server.port, _READER)
            with contextlib.closing(connection.socket):
                connection.learn(self._way)
                times.append(time.monotonic() - start)
                for _ in range(_TOGETHER - 1):
                    times.append(connection.ask())
                    time.sleep(_BETWEEN)
            if time.monotonic() > look:
                look = time.monotonic() + _SAMPLE
                self.memory = max(self.memory, self._server.memory())
        return times


def p99(times: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return sorted(times)[len(times) * 99 // 100]


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The effect of an attack on its connections, the reader and the server's memory."""

    order: Order
    ended: Ended
    before: list[float]
    meanwhile: list[float]
    memory: tuple[int, int]

    @property
    def ratio(self) -> float:
        """The reader's p99 / the p99 before the attack, counted as at least `_LEAST / _MOST`."""
        return p99(self.meanwhile) / max(_LEAST / _MOST, p99(self.before))

    @property
    def source(self) -> str:
        """The number of addresses of the attack, in words."""
        places = min(self.order.places, self.order.clients)
        return "one" if places == 1 else str(places)

    def line(self) -> str:
        """Return a row of the table."""
        ended, (rest, most) = self.ended, self.memory
        how = ", ".join(f"{count} x {said}" for said, count in sorted(ended.answers.items()))
        after = f"{statistics.median(ended.after):.0f} s" if ended.after else "-"
        cells = (
            self.order.kind,
            self.source,
            f"{ended.opened - ended.refused:,}",
            how or "none",
            after,
            f"{p99(self.before) * 1e3:.1f}",
            f"{p99(self.meanwhile) * 1e3:.1f}",
            f"{len(self.meanwhile):,}",
            f"{rest / 1e6:.0f}",
            f"{most / 1e6:.0f}",
            "yes" if self.ratio <= _MOST else "NO",
        )
        return f"| {' | '.join(cells)} |"


def attack(order: Order, server: gunicorn_process.Server, page: str) -> Outcome:
    """Attack a server while a reader reads."""
    reader = Reader(server, page)
    before, rest = reader.read(max(5.0, order.seconds / 4)), reader.memory
    with attacking(order) as process:
        time.sleep(_PAUSE)
        meanwhile = reader.read(order.seconds)
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        output = process.stdout.read()
    ended = msgspec.json.decode(output, type=Ended)
    return Outcome(order, ended, before, meanwhile, (rest, reader.memory))


_HEAD = (
    "kind",
    "addresses",
    "opened",
    "closed by the server",
    "after, median",
    "reader's p99 before, ms",
    "meanwhile, ms",
    "reads meanwhile",
    "MB before",
    "peak MB",
    "within the bar",
)


def measure(chosen: argparse.Namespace) -> Iterator[Outcome]:
    """Run every attack, each on a new server."""
    with tempfile.TemporaryDirectory(prefix="slow-") as name:
        data = Path(name) / "data"
        (thread,) = served_pages.stock(data, shapes.grown(2_251), [chosen.size])
        for places, kind in itertools.product(chosen.places.split(","), chosen.kinds.split(",")):
            with gunicorn_process.product(data, "/healthz") as server:
                many = 1 if places == "one" else _ADDRESSES
                whole = f"{thread.path}&limit=all"
                order = Order(server.port, kind, chosen.clients, many, chosen.seconds, whole)
                yield attack(order, server, thread.path)


def bars(*, quick: bool) -> Iterator[Bar]:
    """Run every attack, or a short one."""
    short = ["--seconds", "5", "--size", "500", "--kinds", "drip", "--from", "many"]
    for each in measure(asked(short if quick else [])):
        before, meanwhile = p99(each.before) * 1000, p99(each.meanwhile) * 1000
        detail = f"a reader's p99 {meanwhile:.0f} ms, before {before:.0f} ms"
        yield Bar(f"slow {each.order.kind} from {each.source}", each.ratio, _MOST, detail)


def asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--from", dest="places", default="many,one")
    parser.add_argument("--size", type=int, default=SIZE, help="comments of the long thread")
    parser.add_argument("--attack", action="store_true", help="run an order read from stdin")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack, measure and print."""
    chosen = asked(arguments)
    if chosen.attack:
        order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
        sys.stdout.buffer.write(msgspec.json.encode(Attack(order).run()))
        return
    print(f"| {' | '.join(_HEAD)} |\n|---|---|{'---:|' * (len(_HEAD) - 3)}---|")
    for each in measure(chosen):
        print(each.line(), flush=True)


if __name__ == "__main__":
    main()
