"""Clients that post: raw sockets that stay open, and the next post as soon as one is answered.

Answers are kept as bytes and parsed after the clock has stopped, because parsing would take the
processor from the server.
"""

import contextlib
import dataclasses
import json
import selectors
import socket
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus

CLIENTS = 8
TEXT = "I have been thinking about *this* for a while. There is more to it than meets the eye."
_TIMEOUT = 60.0


def request(path: str, body: Mapping[str, str], token: str = "") -> bytes:
    """Return a request that posts a comment. Each sending posts a new comment."""
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


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
        return statistics.median(self._sorted())

    @property
    def late(self) -> float:
        """The 99th percentile of the seconds of a post."""
        return self._sorted()[self.posts * 99 // 100]

    @property
    def shares(self) -> list[int]:
        """The number of posts of each client, in ascending order."""
        return sorted(map(len, self.times))

    def _sorted(self) -> list[float]:
        return sorted(each for times in self.times for each in times)


class Poster:
    """A client with its own connection. `requests` are its posts, in order."""

    def __init__(self, port: int, requests: Iterator[bytes]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise SystemExit(f"an answer has no length: {head!r}")


def run(port: int, requests: Sequence[Iterator[bytes]], seconds: float) -> Turn:
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
