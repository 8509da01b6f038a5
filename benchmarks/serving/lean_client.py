"""A client with almost no overhead, in a separate process.

The module sends the requests of `served_pages`: raw sockets that stay open, prepared bytes, and
responses that are counted and discarded. The client reads an `Order` as JSON from standard input
and prints `Times` as JSON. The variants take turns, so other load on the machine affects all of
them alike.

    alone    one client: each round opens a connection for every way, sends `each` requests on it
             and records their times, except the first ones, which warm up the process behind it
    crowd    eight clients, each on a connection that asks again as soon as it is answered:
             responses per second
"""

import contextlib
import random
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from http import HTTPStatus

import msgspec

CLIENTS = 8
_WARMING = 3  # Uncounted requests at the start of each connection.
_BUFFER = bytearray(1 << 20)
_TIMEOUT = 60.0


class Way(msgspec.Struct, frozen=True):
    """A request, its destination and its expected status."""

    name: str
    port: int
    request: str
    status: int = 200


class Order(msgspec.Struct, frozen=True):
    """What to measure. `seconds` is the duration of each variant in a round of the crowd."""

    ways: list[Way]
    rounds: int
    each: int
    seconds: float


class Times(msgspec.Struct, frozen=True):
    """The results: seconds of each single request, and responses per second of each crowd round."""

    alone: dict[str, list[float]]
    crowd: dict[str, list[float]]


class Connection:
    """A connection that repeats one request until it switches to a different one.

    A measured time ends with the last byte of the response, which the client recognizes by the
    length. Parsing headers would take longer than some responses, especially if it happened rarely.
    """

    def __init__(self, port: int, source: str = "127.0.0.1", patience: float = _TIMEOUT) -> None:
        self.port = port
        place = ("127.0.0.1", port)
        self.socket = socket.create_connection(place, patience, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = b""
        self._size = (
            0  # Size of a response with headers; all responses to one request have the same size.
        )
        self._left = 0

    def learn(self, way: Way) -> int:
        """Switch to a request and send it once; return the size of the response."""
        self.fetch(way)
        return self._size

    def fetch(self, way: Way) -> tuple[bytes, float]:
        """Switch to a request and send it once; return the body of the response and the seconds."""
        self._request = way.request.encode("latin-1")
        start = time.perf_counter()
        self.socket.sendall(self._request)
        head, _, body = self._until_body(way.name)
        length = _body_length(way, head)
        while len(body) < length:
            body += self._more(way.name)
        took = time.perf_counter() - start
        self._size = len(head) + 4 + length
        return body, took

    def turn(self, way: Way, size: int) -> float:
        """Switch to a request with responses of this `size`; return the seconds of the first."""
        self._request = way.request.encode("latin-1")
        self._size = size
        return self.ask()

    def _until_body(self, name: str) -> tuple[bytes, bytes, bytes]:
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._more(name)
        return head.partition(b"\r\n\r\n")

    def _more(self, name: str) -> bytes:
        more = self.socket.recv(65_536)
        if not more:
            raise SystemExit(f"{name}: the server closed the connection")
        return more

    def send(self) -> None:
        self._left = self._size
        self.socket.sendall(self._request)

    def receive(self) -> bool:
        """Receive some bytes; return whether the response is complete."""
        taken = self.socket.recv_into(_BUFFER)
        if not taken:
            raise SystemExit("the server closed the connection")
        self._left -= taken
        if self._left < 0:
            raise SystemExit("a response is longer than the previous one")
        return not self._left

    def ask(self) -> float:
        """Send the request and wait for the response; return the seconds."""
        start = time.perf_counter()
        self.send()
        while not self.receive():
            pass
        return time.perf_counter() - start


def _body_length(way: Way, head: bytes) -> int:
    lines = head.split(b"\r\n")
    if int(lines[0].split()[1]) != way.status:
        raise SystemExit(f"{way.name}: {head[:400]!r}")
    fields = dict(line.lower().split(b": ", 1) for line in lines[1:])
    return 0 if way.status == HTTPStatus.NOT_MODIFIED else int(fields[b"content-length"])


@contextlib.contextmanager
def connected(port: int) -> Iterator[Connection]:
    """Open a connection."""
    connection = Connection(port)
    try:
        yield connection
    finally:
        connection.socket.close()


def warmed(stack: contextlib.ExitStack, way: Way) -> Connection:
    """Open a connection and warm up the process that serves it."""
    connection = stack.enter_context(connected(way.port))
    connection.learn(way)
    for _ in range(_WARMING):
        connection.ask()
    return connection


def alone(way: Way, each: int) -> list[float]:
    """Return the seconds of some requests on one new connection."""
    with contextlib.ExitStack() as stack:
        connection = warmed(stack, way)
        return [connection.ask() for _ in range(each)]


def crowd(way: Way, seconds: float) -> float:
    """Return the number of responses per second that eight clients get."""
    with contextlib.ExitStack() as stack:
        connections = [warmed(stack, way) for _ in range(CLIENTS)]
        chosen = stack.enter_context(selectors.DefaultSelector())
        for connection in connections:
            chosen.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send()
        answered, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for key, _ in chosen.select():
                if key.data.receive():
                    answered += 1
                    key.data.send()
        return answered / (time.perf_counter() - start)


def measure(order: Order) -> Times:
    found = Times({way.name: [] for way in order.ways}, {way.name: [] for way in order.ways})
    ways = list(order.ways)
    chance = random.Random(1)
    for _ in range(order.rounds):
        chance.shuffle(ways)
        for way in ways:
            found.alone[way.name] += alone(way, order.each)
        for way in ways if order.seconds else ():
            found.crowd[way.name].append(crowd(way, order.seconds))
    return found


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    sys.stdout.buffer.write(msgspec.json.encode(measure(asked)))
