"""Posts through gunicorn: the product as scripts/serve runs it, and clients on one thread.

What is posted is durable, counted and told to the outbox, and delivered meanwhile. Lean clients
(raw sockets that stay open, requests prepared beforehand) post as soon as they are answered:

    roots     all start discussions on one page
    one       all answer one comment
    apart     each answers a comment of its own

each alone (p50 of a post in ms) and as eight (posts in a second, p50 and p99 of each). With
`--beside FOLDER`, another checkout of this project with an environment of its own, both run at
once on data of their own and are asked in turns, so that what else the machine does meets both.
A round's rest is the pause in which each delivers its events. With `--guarded` this checkout runs
once more, with limits on posts that nobody reaches and authors that are known: each post goes
through admission, two reads and two writes more, and all of them meet at one network's row. Usage:

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
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.serving import gunicorn_process

CASES = ("roots", "one", "apart")
CLIENTS = 8
PATH = "/api/v1/sites/demo/comments?thread=page"
GUARDED = "guarded"
RULES = gunicorn_process.OPEN | dict.fromkeys(
    ("POSTS_PER_NETWORK", "POSTS_PER_AUTHOR", "POSTS_PER_THREAD"), "10000"
)
REST = 1.5  # seconds after each run, in which events are delivered
_TEXT = "I have been thinking about *this* for a while. There is more to it than meets the eye."


def request(parent: str | None, name: str, token: str = "") -> bytes:
    """A post as it is sent. Without a key each is another comment."""
    body = {"name": name, "body": _TEXT} | ({} if parent is None else {"parent": parent})
    sent = json.dumps(body).encode()
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


class Poster:
    """A client on a connection of its own."""

    def __init__(self, port: int, sent: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.times: list[float] = []
        self._sent = sent
        self._answer = b""
        self._start = 0.0

    def send(self) -> None:
        """Post."""
        self._start = time.perf_counter()
        self.socket.sendall(self._sent)

    def receive(self) -> bool:
        """Take some bytes; whether the answer is complete."""
        more = self.socket.recv(65_536)
        if not more:
            raise SystemExit("the server hung up")
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
    """Post from one client for each request; posts in a second, and the seconds of each."""
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
    """What each client answers."""
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


@contextlib.contextmanager
def served(root: Path, data: Path, rules: Mapping[str, str]) -> Iterator[int]:
    """Run a checkout's product; its port. Another checkout's has no rules for posts."""
    if root == gunicorn_process.ROOT:
        with gunicorn_process.product(data, "/healthz", rules=rules) as server:
            yield server.port
        return
    code = (
        "import sys, pathlib, benchmarks.serving.gunicorn_process as p\n"
        "with p.product(pathlib.Path(sys.argv[1]), '/healthz') as s:\n"
        "    print(s.port, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [root / ".venv" / "bin" / "python", "-c", code, data],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield int(process.stdout.readline()) if process.stdout else 0
        process.communicate("")


def measure(chosen: argparse.Namespace) -> dict[tuple[str, str], dict[str, list[Any]]]:
    """Measure every case of every tree, in turns."""
    roots = {"this": gunicorn_process.ROOT}
    if chosen.guarded:
        roots[GUARDED] = gunicorn_process.ROOT
    if chosen.beside:
        roots["beside"] = chosen.beside.resolve()
    found: dict[tuple[str, str], dict[str, list[Any]]] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="httpposts-")))
        ports = {}
        for name, root in roots.items():
            (folder / name).mkdir()
            ports[name] = stack.enter_context(
                served(root, folder / name, RULES if name == GUARDED else gunicorn_process.OPEN)
            )
        for number in range(chosen.rounds):
            for case in chosen.cases.split(","):
                turns = list(ports.items())
                for name, port in turns if number % 2 else reversed(turns):
                    known = name == GUARDED
                    sent = [
                        request(parent, f"writer {place}", _posted(port)["token"] if known else "")
                        for place, parent in enumerate(parents(port, case))
                    ]
                    kept = found.setdefault(
                        (case, name), {"alone": [], "crowd": [], "rates": [], "each": []}
                    )
                    kept["alone"] += run(port, sent[:1], chosen.seconds / 2)[1]
                    rate, times = run(port, sent, chosen.seconds)
                    kept["rates"].append(rate)
                    kept["crowd"] += times
                    time.sleep(REST)
    return found


def row(case: str, name: str, times: dict[str, list[float]]) -> str:
    """A line of the table."""
    crowd = sorted(times["crowd"])
    return (
        f"| {case} | {name} | {statistics.median(times['alone']) * 1000:.2f} "
        f"| {statistics.median(times['rates']):.0f} | {statistics.median(crowd) * 1000:.1f} "
        f"| {crowd[int(len(crowd) * 0.99)] * 1000:.0f} |"
    )


def main() -> None:
    """Measure, and print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--cases", default=",".join(CASES))
    options.add_argument("--beside", type=Path)
    options.add_argument("--guarded", action="store_true")
    found = measure(options.parse_args())
    print("| case | tree | alone, p50 ms | 8 clients, posts/s | p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|")
    for (case, name), times in found.items():
        print(row(case, name, times))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
