"""Posts to one thread through gunicorn: the product as scripts/serve runs it, and its clients.

Every post is durable, counted and recorded in the outbox, which is delivered during the run. Lean
clients (raw sockets that stay open, prepared requests) send the next post as soon as the previous
one is answered:

    roots     all start discussions on one page
    one       all answer one comment
    apart     each answers a comment of its own

Each case runs with one client (p50 of a post in ms) and with eight clients (posts per second, p50
and p99 of a post). The product takes turns with the floor, a bare Flask handler that commits each
post to a SQLite file. With `--beside FOLDER`, a second checkout of this project runs too, with its
own environment and data. Each run is followed by a pause in which events are delivered. With
`--guarded`, this checkout runs once more, with known authors and with post limits that are never
reached. Each post then goes through admission, which costs two more reads and two more writes, and
all posts conflict at the row of one network.

    python -m benchmarks.serving.served_posts [--seconds 2] [--rounds 5] [--cases roots,one,apart]
                                              [--beside FOLDER] [--guarded]
"""

import argparse
import contextlib
import http.client
import json
import selectors
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar
from benchmarks.serving import gunicorn_process

CASES = ("roots", "one", "apart")
CLIENTS = 8
PATH = "/api/v1/sites/demo/comments?thread=page"
THIS, GUARDED, FLOOR = "this", "guarded", "floor"
ALONE, BY_EIGHT = 5.0, 1.0  # Highest ratios to the floor, those of the fastest durable competitor.
RULES = gunicorn_process.OPEN | dict.fromkeys(
    ("POSTS_PER_NETWORK", "POSTS_PER_AUTHOR", "POSTS_PER_THREAD"), "10000"
)
REST = 1.5  # Seconds after each run, during which events are delivered.
_TEXT = "I have been thinking about *this* for a while. There is more to it than meets the eye."


def request(parent: str | None, name: str, token: str = "", path: str = PATH) -> bytes:
    """Return a request that posts a comment.

    Without an idempotency key, each request posts a new comment.
    """
    body = {"name": name, "body": _TEXT} | ({} if parent is None else {"parent": parent})
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


class Poster:
    """A client with its own connection."""

    def __init__(self, port: int, sent: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.times: list[float] = []
        self._sent = sent
        self._answer = b""
        self._start = 0.0

    def send(self) -> None:
        self._start = time.perf_counter()
        self.socket.sendall(self._sent)

    def receive(self) -> bool:
        """Receive some bytes; return whether the response is complete."""
        more = self.socket.recv(65_536)
        if not more:
            raise SystemExit("the server closed the connection")
        self._answer += more
        head, blank, body = self._answer.partition(b"\r\n\r\n")
        if not blank or len(body) < _length(head):
            return False
        if not head.startswith(b"HTTP/1.1 201"):
            raise SystemExit(f"a post was answered {self._answer[:400]!r}")
        self.times.append(time.perf_counter() - self._start)
        self._answer = b""
        return True


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise SystemExit(f"an answer has no length: {head!r}")


def run(port: int, requests: Sequence[bytes], seconds: float) -> tuple[float, list[float]]:
    """Post with one client per request; return posts per second and the seconds of each post."""
    with contextlib.ExitStack() as stack:
        posters = [Poster(port, sent) for sent in requests]
        chosen = stack.enter_context(selectors.DefaultSelector())
        for poster in posters:
            stack.enter_context(poster.socket)
            chosen.register(poster.socket, selectors.EVENT_READ, poster)
        start = time.perf_counter()
        for poster in posters:
            poster.send()
        waiting = len(posters)
        while waiting:
            for key, _ in chosen.select():
                if key.data.receive():
                    if time.perf_counter() - start < seconds:
                        key.data.send()
                    else:
                        waiting -= 1
        took = time.perf_counter() - start
    times = [each for poster in posters for each in poster.times]
    return len(times) / took, times


def parents(port: int, case: str) -> list[str | None]:
    """Return the comment that each client answers."""
    if case == "roots":
        return [None] * CLIENTS
    made = [_posted(port)["comment"]["id"] for _ in range(1 if case == "one" else CLIENTS)]
    return made * (CLIENTS // len(made))


def _posted(port: int) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        body = json.dumps({"name": "first", "body": _TEXT})
        connection.request("POST", PATH, body=body, headers={"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())


class Found:
    """The results of one server in one case: seconds of posts, and posts per second."""

    def __init__(self) -> None:
        self.alone: list[float] = []
        self.crowd: list[float] = []
        self.rates: list[float] = []

    def add(self, port: int, requests: Sequence[bytes], seconds: float) -> None:
        """Measure a round."""
        self.alone += run(port, requests[:1], seconds / 2)[1]
        rate, times = run(port, requests, seconds)
        self.rates.append(rate)
        self.crowd += times
        time.sleep(REST)


@contextlib.contextmanager
def servers(folder: Path, chosen: argparse.Namespace) -> Iterator[dict[str, int]]:
    """Run all requested servers, and yield their ports by name."""
    bodies = folder / FLOOR
    bodies.mkdir()
    (bodies / "0").write_text("{}")
    with contextlib.ExitStack() as stack:
        floor = stack.enter_context(gunicorn_process.floor(bodies, "/0"))
        ports = {FLOOR: floor.port}
        product = gunicorn_process.product
        for name, root, rules in trees(chosen):
            (folder / name).mkdir()
            running = product(folder / name, "/healthz", rules=rules, root=root)
            ports[name] = stack.enter_context(running).port
        yield ports


def trees(chosen: argparse.Namespace) -> Iterator[tuple[str, Path, Mapping[str, str]]]:
    """Return the products to run, each with a name, a checkout and post limits."""
    yield THIS, gunicorn_process.ROOT, gunicorn_process.OPEN
    if chosen.guarded:
        yield GUARDED, gunicorn_process.ROOT, RULES
    if chosen.beside:
        yield "beside", chosen.beside.resolve(), gunicorn_process.OPEN


def requests_of(name: str, port: int, case: str) -> list[bytes]:
    """Return the requests that the clients of a server send."""
    if name == FLOOR:
        return [request(None, f"writer {place}", path="/") for place in range(CLIENTS)]
    tokens = [_posted(port)["token"] if name == GUARDED else "" for _ in range(CLIENTS)]
    return [
        request(parent, f"writer {place}", tokens[place])
        for place, parent in enumerate(parents(port, case))
    ]


def measure(chosen: argparse.Namespace) -> dict[tuple[str, str], Found]:
    """Measure every case on every server, with the servers taking turns."""
    found: dict[tuple[str, str], Found] = {}
    with (
        tempfile.TemporaryDirectory(prefix="posts-") as folder,
        servers(Path(folder), chosen) as ports,
    ):
        for number in range(chosen.rounds):
            for case in chosen.cases.split(","):
                turns = list(ports.items())
                for name, port in turns if number % 2 else reversed(turns):
                    sent = requests_of(name, port, case)
                    found.setdefault((case, name), Found()).add(port, sent, chosen.seconds)
    return found


def bars(*, quick: bool) -> Iterator[Bar]:
    found = measure(asked(["--rounds", "1", "--seconds", "0.5"] if quick else []))
    median = statistics.median
    for case in CASES:
        ours, floor = found[case, THIS], found[case, FLOOR]
        alone, rate = median(ours.alone), median(ours.rates)
        detail = f"{case}: {alone * 1000:.1f} ms, floor {median(floor.alone) * 1000:.1f} ms"
        yield Bar(f"posts alone, {case}", alone / median(floor.alone), ALONE, detail)
        detail = f"{case}: {rate:.0f} posts/s, floor {median(floor.rates):.0f}/s"
        yield Bar(f"posts by eight, {case}", median(floor.rates) / rate, BY_EIGHT, detail)


def row(case: str, name: str, found: Found) -> str:
    """Return a line of the table."""
    crowd = sorted(found.crowd)
    return (
        f"| {case} | {name} | {statistics.median(found.alone) * 1000:.2f} "
        f"| {statistics.median(found.rates):.0f} | {statistics.median(crowd) * 1000:.1f} "
        f"| {crowd[int(len(crowd) * 0.99)] * 1000:.0f} |"
    )


def asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--cases", default=",".join(CASES))
    options.add_argument("--beside", type=Path)
    options.add_argument("--guarded", action="store_true")
    return options.parse_args(arguments)


def main() -> None:
    """Measure, then print the table."""
    print("| case | server | alone, p50 ms | 8 clients, posts/s | p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|")
    for (case, name), found in measure(asked(None)).items():
        print(row(case, name, found))


if __name__ == "__main__":
    main()
