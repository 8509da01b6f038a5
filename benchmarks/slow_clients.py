"""Measure how long a reader waits during an attack with slow connections.

The product runs as scripts/serve runs it. Many connections simultaneously send the beginning of a
request or half of a body, request a whole long thread and read nothing, or do one of these at one
byte per second. If the server closes a connection, the attack reopens it immediately. The
connections first come from 127.0.1.1 to 127.0.1.250 in turn, then all from one address. A reader at
a different address requests a first page continuously, with five requests per connection, before
and during each attack.
"""

import itertools
import selectors
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import clients, measuring, servers, stock
from benchmarks.bars import Bar

KINDS = ("head", "body", "reader", "drip")
ADDRESSES = (250, 1)
CLIENTS = 200
SECONDS, QUICK_SECONDS = 120.0, 5.0
SIZE, QUICK_SIZE = 10_000, 500  # Comments in the thread that the attack requests as a whole.
_READER = "127.0.2.1"
_BETWEEN = 0.01  # The seconds between two requests by the reader.
_TOGETHER = 5  # The number of requests on one connection.
_DRIP = 1.0  # The seconds between two bytes.
_LEAST = 0.25  # A reader may always wait this many seconds.
_MOST = 3.0  # A reader may wait this many times the p99 without the attack.
_PAUSE = 0.1
_POST = "/api/v1/sites/bench/comments?thread=slow"


class Order(NamedTuple):
    """An attack. `places` is the number of addresses from which the attack comes."""

    port: int
    kind: str
    places: int
    seconds: float
    path: str


def beginning(kind: str, path: str) -> bytes:
    """Return the first bytes that a slow client sends, all together."""
    if kind == "head":
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ".encode()
    if kind == "body":
        length = "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        return f"POST {_POST} HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}{{".encode()
    return clients.request(path).encode()


class Slow:
    """A slow connection."""

    def __init__(self, order: Order, number: int) -> None:
        self.is_dripping = order.kind == "drip"
        self.kind = KINDS[number % 3] if self.is_dripping else order.kind
        self._left = beginning(self.kind, order.path)
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
            return bool(self.socket.recv(65_536))
        except BlockingIOError:
            return True
        except OSError:
            return False


class Attack:
    """All slow connections of an order; closed connections are reopened."""

    def __init__(self, order: Order) -> None:
        self.opened = 0
        self._order = order
        self._numbers = itertools.count()
        self._selector = selectors.DefaultSelector()
        self._all: set[Slow] = set()
        self._next = time.monotonic() + _DRIP

    def run(self) -> None:
        """Attack for the time that the order specifies."""
        end = time.monotonic() + self._order.seconds
        while time.monotonic() < end:
            for _ in range(CLIENTS - len(self._all)):
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

    def _open(self) -> None:
        try:
            one = Slow(self._order, next(self._numbers))
        except OSError:
            return
        self.opened += 1
        self._all.add(one)
        if not one.reads_nothing:
            self._selector.register(one.socket, selectors.EVENT_READ, one)

    def _end(self, one: Slow) -> None:
        if not one.reads_nothing:
            self._selector.unregister(one.socket)
        self._all.discard(one)
        one.socket.close()


def attack(*order: object) -> int:
    """Attack from this process; return how many connections were opened."""
    made = Attack(Order(*order))  # type: ignore[arg-type]
    made.run()
    return made.opened


def read(page: clients.Way, seconds: float) -> list[float]:
    """Request a page continuously for some seconds; return the seconds of each request."""
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.monotonic()
        with clients.connected(page.port, _READER) as connection:
            connection.learn(page)
            times.append(time.monotonic() - start)
            for _ in range(_TOGETHER - 1):
                times.append(connection.ask())
                time.sleep(_BETWEEN)
    return times


def bars(*, quick: bool) -> Iterator[Bar]:
    """Run every attack, or a short one, each on a new server."""
    size, seconds = (QUICK_SIZE, QUICK_SECONDS) if quick else (SIZE, SECONDS)
    attacks = itertools.product(ADDRESSES, KINDS)
    with tempfile.TemporaryDirectory(prefix="slow-") as name:
        data = Path(name) / "data"
        (thread,) = stock.store(data, [size])
        for places, kind in [(ADDRESSES[0], "drip")] if quick else attacks:
            with servers.product(data, "/healthz") as server:
                order = Order(server.port, kind, places, seconds, f"{thread.path}&limit=all")
                page = clients.Way("page", server.port, clients.request(thread.path))
                yield _measured(order, page)


def _measured(order: Order, page: clients.Way) -> Bar:
    """Attack a server from a new process, so that the attack takes no time from the reader."""
    before = measuring.p99(read(page, max(5.0, order.seconds / 4)))
    process = measuring.started(attack, *order)
    time.sleep(_PAUSE)
    meanwhile = measuring.p99(read(page, order.seconds))
    opened = measuring.result(process)
    source = min(order.places, CLIENTS)
    detail = (
        f"a reader's p99 {meanwhile * 1000:.0f} ms, before {before * 1000:.0f} ms; {opened:,} "
        "connections"
    )
    ratio = meanwhile / max(_LEAST / _MOST, before)
    return Bar(f"slow {order.kind} from {source if source > 1 else 'one'}", ratio, _MOST, detail)
