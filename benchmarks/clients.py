"""Clients with almost no overhead: raw sockets that stay open, and prepared bytes.

Readers run in a new process. Each round opens a connection for every way in turn, so other load on
the machine affects all ways alike. Posters keep the answers as bytes, which are parsed after the
clock has stopped, because parsing would take the processor from the server.
"""

import contextlib
import dataclasses
import json
import random
import selectors
import socket
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

from benchmarks import measuring

CLIENTS = 8
TEXT = "I have been thinking about *this* for a while. There is more to it than meets the eye."
_WARMING = 3  # Uncounted requests at the start of each connection.
_TIMEOUT = 60.0
_BUFFER = bytearray(1 << 20)


def request(path: str, headers: Mapping[str, str] | None = None, body: str = "") -> str:
    """Return the bytes of a request as text; a `body` in ASCII makes it a POST."""
    fields = {"Host": "127.0.0.1", "Accept-Encoding": "identity"} | dict(headers or {})
    if body:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    method = "POST" if body else "GET"
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", body])


def post_request(path: str, body: Mapping[str, str], token: str = "") -> bytes:
    """Return a request that posts a comment. Each sending posts a new comment."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return request(path, headers, json.dumps(body)).encode()


class Way(NamedTuple):
    """A request, its destination and its expected status."""

    name: str
    port: int
    request: str
    status: int = 200


class Connection:
    """A connection that repeats one request until it switches to a different one.

    A measured time ends with the last byte of the response, which the client recognizes by the
    length. Parsing headers would take longer than some responses, especially if it happened rarely.
    """

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        place = ("127.0.0.1", port)
        self.socket = socket.create_connection(place, _TIMEOUT, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = b""
        self._size = 0  # Size with headers; all responses to one request have the same size.

    def learn(self, way: Way) -> int:
        """Switch to a request and send it once; return the size of the response."""
        self.fetch(way)
        return self._size

    def fetch(self, way: Way) -> tuple[bytes, float]:
        """Switch to a request and send it once; return the body of the response and the seconds."""
        self._request = way.request.encode("latin-1")
        start = time.perf_counter()
        self.socket.sendall(self._request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._more(way.name)
        head, _, body = received.partition(b"\r\n\r\n")
        if int(head.split(None, 2)[1]) != way.status:
            raise SystemExit(f"{way.name}: {received[:400]!r}")
        length = 0 if way.status == HTTPStatus.NOT_MODIFIED else _length(head)
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

    def ask(self) -> float:
        """Send the request and wait for the response; return the seconds."""
        start = time.perf_counter()
        self.socket.sendall(self._request)
        left = self._size
        while left > 0:
            taken = self.socket.recv_into(_BUFFER)
            if not taken:
                raise SystemExit("the server closed the connection")
            left -= taken
        if left < 0:
            raise SystemExit("a response is longer than the previous one")
        return time.perf_counter() - start

    def _more(self, name: str) -> bytes:
        more = self.socket.recv(65_536)
        if not more:
            raise SystemExit(f"{name}: the server closed the connection")
        return more


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise SystemExit(f"an answer has no length: {head!r}")


@contextlib.contextmanager
def connected(port: int, source: str = "127.0.0.1") -> Iterator[Connection]:
    """Open a connection."""
    connection = Connection(port, source)
    with contextlib.closing(connection.socket):
        yield connection


def read(ways: Sequence[Way], rounds: int, each: int) -> dict[str, list[float]]:
    """Return the seconds of `each` requests by round and way, measured in a new process."""
    found: dict[str, list[float]] = measuring.result(
        measuring.started(read_here, [list(way) for way in ways], rounds, each)
    )
    return found


def read_here(ways: list[list[str | int]], rounds: int, each: int) -> dict[str, list[float]]:
    """Read in this process."""
    chosen = [Way(*way) for way in ways]  # type: ignore[arg-type]
    found: dict[str, list[float]] = {way.name: [] for way in chosen}
    chance = random.Random(1)
    for _ in range(rounds):
        chance.shuffle(chosen)
        for way in chosen:
            with connected(way.port) as connection:
                connection.learn(way)
                for _ in range(_WARMING):
                    connection.ask()
                found[way.name] += [connection.ask() for _ in range(each)]
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """What some clients did at the same time: the seconds and the answer of each of their posts."""

    seconds: float
    times: list[list[float]]
    answers: list[list[bytes]]

    @property
    def posts(self) -> int:
        """The number of posts."""
        return sum(map(len, self.times))

    @property
    def rate(self) -> float:
        """Posts per second."""
        return self.posts / self.seconds

    @property
    def median(self) -> float:
        """The median of the seconds of a post."""
        return statistics.median(self._all())

    @property
    def late(self) -> float:
        """The 99th percentile of the seconds of a post."""
        return measuring.p99(self._all())

    def _all(self) -> list[float]:
        return [each for times in self.times for each in times]


class Poster:
    """A client with its own connection. `requests` are its posts, in order."""

    def __init__(self, port: int, requests: Iterator[bytes]) -> None:
        self.socket = Connection(port).socket
        self.times: list[float] = []
        self.answers: list[bytes] = []
        self._requests = requests
        self._answer = b""
        self._start = 0.0

    def send(self) -> None:
        """Send the next post.

        Raises:
            StopIteration: There is none.
        """
        sent = next(self._requests)
        self._start = time.perf_counter()
        self.socket.sendall(sent)

    def receive(self) -> bool:
        """Receive some bytes; return whether the answer is complete."""
        more = self.socket.recv(65_536)
        if not more:
            raise SystemExit(f"a connection was closed after {len(self.times)} posts")
        self._answer += more
        head, blank, body = self._answer.partition(b"\r\n\r\n")
        if not blank or len(body) < _length(head):
            return False
        if int(head.split(None, 2)[1]) != HTTPStatus.CREATED:
            raise SystemExit(f"a post was answered {self._answer[:600]!r}")
        self.times.append(time.perf_counter() - self._start)
        self.answers.append(body)
        self._answer = b""
        return True


def post(port: int, requests: Sequence[Iterator[bytes]], seconds: float) -> Turn:
    """Post with one client for each of `requests`, until the time or a client's posts are over."""
    with contextlib.ExitStack() as stack:
        posters = [Poster(port, each) for each in requests]
        chosen = stack.enter_context(selectors.DefaultSelector())
        for poster in posters:
            stack.enter_context(poster.socket)
            chosen.register(poster.socket, selectors.EVENT_READ, poster)
        start = time.perf_counter()
        end = start + seconds
        for poster in posters:
            poster.send()
        while chosen.get_map():
            ready = chosen.select(_TIMEOUT)
            if not ready:
                raise SystemExit(f"no post was answered within {_TIMEOUT:.0f} s")
            for key, _ in ready:
                if not key.data.receive():
                    continue
                if time.perf_counter() < end:
                    with contextlib.suppress(StopIteration):
                        key.data.send()
                        continue
                    end = 0.0  # The others stop too, so that no client waits less than they do.
                chosen.unregister(key.fileobj)
        took = time.perf_counter() - start
    return Turn(took, [each.times for each in posters], [each.answers for each in posters])
