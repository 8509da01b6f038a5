"""Replies through gunicorn: by one client, by eight in one thread, and by eight in eight threads.

Every reply is durable, counted and recorded in the outbox. After each turn, the server has a pause
in which it delivers events; its processor time includes them. The servers take turns: the product
without post limits, the product with post limits that are never reached and with proofs of work
that were solved before the clock, and the floors. In one thread, each client answers a comment of
its own. Each round writes to a thread of its own, so that all rounds write to threads of one size.

Afterwards, every acknowledged reply must be stored once and in order (`stored_posts`), and `repair`
and `recount` must find nothing.
"""

import contextlib
import dataclasses
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.serving import gunicorn_process, posters
from benchmarks.writing import challenges, checkouts, results, stored_posts

ALONE, ONE, EIGHT = "a reply alone", "eight in one thread", "eight in eight threads"
LIMITS = dict.fromkeys(("POSTS_PER_NETWORK", "POSTS_PER_AUTHOR", "POSTS_PER_THREAD"), "10000") | {
    "SAME_TEXTS": "10000",
    "PROOF_OF_WORK": "100",  # The work is done before the clock; its amount changes nothing else.
    "FORM_SECONDS": "1",
}
REST = 1.5  # Seconds after each long turn, during which events are delivered.
_FORM_SECONDS = 1.1
_PROOFS = 600  # Proofs for each second of a turn. Without any left, the turn ends earlier.


@dataclasses.dataclass(slots=True)
class Thread:
    """A thread of a server: its comments before the run, and the acknowledged ones by client."""

    before: list[str]
    acknowledged: list[list[str]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Product:
    """A running product. `threads` are those that were written to."""

    server: gunicorn_process.Server
    data: Path
    root: Path
    is_limited: bool
    threads: dict[str, Thread] = dataclasses.field(default_factory=dict)

    def requests(self, names: Sequence[str], seconds: float) -> list[Iterator[bytes]]:
        """Prepare posts for some seconds, by one client for each of the named threads."""
        paths = [checkouts.path(name) for name in names]
        for path in paths:
            if path not in self.threads:
                self.threads[path] = Thread(stored_posts.stored(self.server.ask, path))
        # Clients that write to one thread answer comments in different parts of it.
        step = max(1, min(len(self.threads[path].before) for path in paths) // len(paths))
        bodies = [
            _bodies(self.threads[path].before[place * step], place)
            for place, path in enumerate(paths)
        ]
        tokens = [""] * len(paths)
        if self.is_limited:
            bodies, tokens = self._proven(bodies, int(_PROOFS * seconds) // len(paths))
        return list(map(_requests, paths, bodies, tokens))

    def note(self, names: Sequence[str], turn: posters.Turn) -> None:
        """Note which posts were acknowledged."""
        for name, answers in zip(names, turn.answers, strict=True):
            ids = [json.loads(each)["comment"]["id"] for each in answers]
            self.threads[checkouts.path(name)].acknowledged.append(ids)

    def _proven(
        self, bodies: Sequence[Iterator[dict[str, str]]], count: int
    ) -> tuple[list[Iterator[dict[str, str]]], list[str]]:
        """Add proofs to posts, and give each client a token of its own, as returning guests have.

        Authors can also post 500 times an hour, so each turn has new ones.
        """
        port = self.server.port
        count = min(count, challenges.MOST - 1)
        proofs = [challenges.solved(port, checkouts.SITE, count + 1) for _ in bodies]
        time.sleep(_FORM_SECONDS)
        tokens = []
        for place, own in enumerate(proofs):
            first = {"name": f"writer {place}", "body": f"Hello. {time.time_ns()}"}
            sent = posters.request(checkouts.path("newcomers"), first | {"proof": own.pop()})
            answer = posters.run(port, [iter([sent])], 0.0).answers[0][0]
            tokens.append(json.loads(answer)["token"])
        return list(map(_with_proofs, bodies, proofs)), tokens

    def problems(self) -> Iterator[str]:
        """Compare the threads with what was acknowledged, while the server runs."""
        for path, thread in self.threads.items():
            found = stored_posts.stored(self.server.ask, path)
            yield from stored_posts.problems(thread.before, thread.acknowledged, found)


def _bodies(parent: str, place: int) -> Iterator[dict[str, str]]:
    for number in itertools.count():
        body = f"{posters.TEXT} {time.time_ns()} {number}"
        yield {"name": f"writer {place}", "body": body, "parent": parent}


def _requests(path: str, bodies: Iterator[dict[str, str]], token: str) -> Iterator[bytes]:
    for body in bodies:
        yield posters.request(path, body, token)


def _with_proofs(
    bodies: Iterator[dict[str, str]], proofs: Sequence[str]
) -> Iterator[dict[str, str]]:
    for proof in proofs:
        yield {**next(bodies), "proof": proof}


@dataclasses.dataclass(slots=True)
class Floor:
    """A running floor."""

    server: gunicorn_process.Server

    def requests(self, names: Sequence[str], _seconds: float) -> list[Iterator[bytes]]:
        """Prepare posts of one client for each name."""
        body = {"name": "writer", "body": f"{posters.TEXT} {time.time_ns()}", "parent": "x" * 26}
        return [itertools.repeat(posters.request("/", body)) for _ in names]

    def note(self, names: Sequence[str], turn: posters.Turn) -> None:
        """Do nothing: a floor's rows are not checked."""


def measure(
    found: results.Results, trees: Sequence[checkouts.Checkout], folder: Path, *,
    rounds: int, seconds: float, size: int,
) -> list[str]:  # fmt: skip
    """Measure every case on every server in turn; return the problems of what is stored."""
    with contextlib.ExitStack() as stack:
        servers = dict(_servers(stack, trees, folder))
        for each in servers.values():
            each.server.settle()
        for number in range(rounds):
            for case, names in _cases(number, size).items():
                turns = list(servers.items())
                for variant, server in turns if number % 2 else reversed(turns):
                    _add(found, case, variant, server, names, seconds)
        products = [each for each in servers.values() if isinstance(each, Product)]
        problems = [problem for each in products for problem in each.problems()]
    for each in products:
        problems += gunicorn_process.problems(each.data, root=each.root)
    return problems


def _cases(number: int, size: int) -> dict[str, list[str]]:
    """Return the threads to which the clients of each case write in a round."""
    one = f"t{size + number}"
    many = [checkouts.other(number * posters.CLIENTS + place) for place in range(posters.CLIENTS)]
    return {ALONE: [one], ONE: [one] * posters.CLIENTS, EIGHT: many}


def _servers(
    stack: contextlib.ExitStack, trees: Sequence[checkouts.Checkout], folder: Path
) -> Iterator[tuple[str, Product | Floor]]:
    for variant, app in ((results.FLASK, "flask()"), (results.WSGI, "wsgi")):
        bodies = folder / f"posts of the {variant}"
        bodies.mkdir()
        (bodies / "0").write_text("{}")
        yield variant, Floor(stack.enter_context(gunicorn_process.floor(bodies, "/0", app)))
    for each in trees:
        for variant, data, rules in (
            (each.variant, each.data, gunicorn_process.OPEN),
            (each.limited, each.limited_data, LIMITS),
        ):
            running = gunicorn_process.product(data, "/healthz", rules=rules, root=each.root)
            server = stack.enter_context(running)
            yield variant, Product(server, data, each.root, rules is LIMITS)


def _add(
    found: results.Results, case: str, variant: str, server: Product | Floor,
    names: Sequence[str], seconds: float,
) -> None:  # fmt: skip
    rest = min(REST, seconds)
    if case == ALONE:
        seconds /= 2
    requests = server.requests(names, seconds)
    before = server.server.worked()
    turn = posters.run(server.server.port, requests, seconds)
    time.sleep(rest)
    used = server.server.worked() - before
    server.note(names, turn)
    if case == ALONE:
        found.add(f"{case}, p50 ms", variant, turn.median * 1000)
    else:
        found.add(f"{case}, posts/s", variant, turn.rate)
        found.add(f"{case}, p99 ms", variant, turn.late * 1000)
        found.add(f"{case}, {results.FEWEST}", variant, turn.shares[0])
        found.add(f"{case}, {results.MOST}", variant, turn.shares[-1])
    found.add(f"{case}, processor ms a post", variant, used * 1000 / turn.posts)
