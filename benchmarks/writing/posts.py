"""Replies through gunicorn: by one client, by eight in one thread, and by eight in eight threads.

Every reply is durable, counted and recorded in the outbox. After each turn, the server has a pause
in which it delivers events. The servers take turns: the product without post limits, the product
with post limits that are never reached and with proofs of work that were solved before the clock,
and the WSGI floor. In one thread, each client answers a comment of its own. Each round writes to a
thread of its own, so that all rounds write to threads of one size.

Afterwards, every acknowledged reply must be stored once and in order (`stored_posts`), and `repair`
and `recount` must find nothing.
"""

import contextlib
import dataclasses
import itertools
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import clients, servers, stock
from benchmarks.bars import Bar
from benchmarks.writing import challenges, stored_posts
from benchmarks.writing.results import LIMITED, THIS, WSGI, Results

ALONE, ONE, EIGHT = "alone", "eight in one thread", "eight in eight threads"
LIMITS = dict.fromkeys(("POSTS_PER_NETWORK", "POSTS_PER_AUTHOR", "POSTS_PER_THREAD"), "10000") | {
    "SAME_TEXTS": "10000",
    "PROOF_OF_WORK": "100",  # The work is done before the clock; its amount changes nothing else.
    "FORM_SECONDS": "1",
}
_REST = 1.5  # Seconds after each long turn, during which events are delivered.
_FORM_SECONDS = 1.1
_PROOFS = 600  # Proofs for each second of a turn. Without any left, the turn ends earlier.
_LATE_MS = 100.0  # A p99 below this is good enough, regardless of the floor's.
_LATE_RATIO = 3.0


@dataclasses.dataclass(slots=True)
class Written:
    """A thread of a server: its comments before the run, and the acknowledged ones by client."""

    before: list[str]
    acknowledged: list[list[str]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Product:
    """A running product. `threads` are those that were written to, by path."""

    server: servers.Server
    is_limited: bool
    threads: dict[str, Written] = dataclasses.field(default_factory=dict)

    def requests(self, names: Sequence[str], seconds: float) -> list[Iterator[bytes]]:
        """Prepare posts for some seconds, by one client for each of the named threads."""
        paths = [stock.path(name) for name in names]
        for path in paths:
            if path not in self.threads:
                self.threads[path] = Written(stored_posts.stored(self.server.ask, path))
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

    def note(self, names: Sequence[str], turn: clients.Turn) -> None:
        """Note which posts were acknowledged."""
        for name, answers in zip(names, turn.answers, strict=True):
            ids = [json.loads(each)["comment"]["id"] for each in answers]
            self.threads[stock.path(name)].acknowledged.append(ids)

    def _proven(
        self, bodies: Sequence[Iterator[dict[str, str]]], count: int
    ) -> tuple[list[Iterator[dict[str, str]]], list[str]]:
        """Add proofs to posts, and give each client a token of its own, as returning guests have.

        Authors can also post 500 times an hour, so each turn has new ones.
        """
        port, count = self.server.port, min(count, challenges.MOST - 1)
        proofs = [challenges.solved(port, count + 1) for _ in bodies]
        time.sleep(_FORM_SECONDS)
        tokens = []
        for place, own in enumerate(proofs):
            first = {"name": f"writer {place}", "body": f"Hello. {time.time_ns()}"}
            sent = clients.post_request(stock.path("newcomers"), first | {"proof": own.pop()})
            answer = clients.post(port, [iter([sent])], 0.0).answers[0][0]
            tokens.append(json.loads(answer)["token"])
        return list(map(_with_proofs, bodies, proofs)), tokens

    def problems(self) -> Iterator[str]:
        """Compare the threads with what was acknowledged, while the server runs."""
        for path, thread in self.threads.items():
            found = stored_posts.stored(self.server.ask, path)
            yield from stored_posts.problems(thread.before, thread.acknowledged, found)


def _bodies(parent: str, place: int) -> Iterator[dict[str, str]]:
    for number in itertools.count():
        body = f"{clients.TEXT} {time.time_ns()} {number}"
        yield {"name": f"writer {place}", "body": body, "parent": parent}


def _requests(path: str, bodies: Iterator[dict[str, str]], token: str) -> Iterator[bytes]:
    for body in bodies:
        yield clients.post_request(path, body, token)


def _with_proofs(
    bodies: Iterator[dict[str, str]], proofs: Sequence[str]
) -> Iterator[dict[str, str]]:
    for proof in proofs:
        yield {**next(bodies), "proof": proof}


@dataclasses.dataclass(slots=True)
class Floor:
    """A running floor."""

    server: servers.Server

    def requests(self, names: Sequence[str], _seconds: float) -> list[Iterator[bytes]]:
        """Prepare posts of one client for each name."""
        body = {"name": "writer", "body": f"{clients.TEXT} {time.time_ns()}", "parent": "x" * 26}
        return [itertools.repeat(clients.post_request("/", body)) for _ in names]

    def note(self, names: Sequence[str], turn: clients.Turn) -> None:
        """Do nothing: a floor's rows are not checked."""


def bars(
    data: Path, folder: Path, threads: Sequence[stock.Thread], seconds: float
) -> Iterator[Bar]:
    """Measure every case on every server in turn, with a round for each of the threads."""
    found, limited = Results(), folder / "limited"
    bodies = folder / "posts"
    bodies.mkdir()
    (bodies / "0").write_text("{}")
    shutil.copytree(data, limited)
    with contextlib.ExitStack() as stack:
        floor = stack.enter_context(servers.floor(bodies, "wsgi"))
        this = stack.enter_context(servers.product(data, "/healthz"))
        with_limits = stack.enter_context(servers.product(limited, "/healthz", rules=LIMITS))
        products = {
            THIS: Product(this, is_limited=False),
            LIMITED: Product(with_limits, is_limited=True),
        }
        for server in (floor, this, with_limits):
            server.settle()
        for number, thread in enumerate(threads):
            turns: list[tuple[str, Product | Floor]] = [(WSGI, Floor(floor)), *products.items()]
            for case, names in _cases(number, thread).items():
                for variant, server in turns if number % 2 else reversed(turns):
                    _add(found, case, variant, server, names, seconds)
        problems = [problem for each in products.values() for problem in each.problems()]
    problems += [problem for each in (data, limited) for problem in servers.problems(each)]
    yield from _judged(found)
    yield Bar("writing kept", len(problems), 0, "; ".join(problems[:3]), unit="problems")


def _cases(number: int, thread: stock.Thread) -> dict[str, list[str]]:
    """Return the threads to which the clients of each case write in a round."""
    many = [stock.other(number * clients.CLIENTS + place) for place in range(clients.CLIENTS)]
    return {ALONE: [thread.name], ONE: [thread.name] * clients.CLIENTS, EIGHT: many}


def _add(
    found: Results, case: str, variant: str, server: Product | Floor, names: Sequence[str],
    seconds: float,
) -> None:  # fmt: skip
    rest = min(_REST, seconds)
    if case == ALONE:
        seconds /= 2
    turn = clients.post(server.server.port, server.requests(names, seconds), seconds)
    time.sleep(rest)
    server.note(names, turn)
    if case == ALONE:
        found.add(case, variant, turn.median * 1000)
        return
    shares = sorted(map(len, turn.times))
    found.add(f"{case}, posts/s", variant, turn.rate)
    found.add(f"{case}, p99", variant, turn.late * 1000)
    found.add(f"{case}, shares", variant, shares[-1] / shares[0])


def _judged(found: Results) -> Iterator[Bar]:
    detail = f"{found.median(ALONE):.1f} ms, floor {found.median(ALONE, WSGI):.1f} ms"
    yield Bar("writing alone", found.ratio(ALONE, WSGI), 6.5, f"{detail}; goal 4.5 x")
    limited = found.ratio(ALONE, THIS, LIMITED)
    yield Bar("writing alone, limits", limited, 1.25, "with limits / without")
    for case in (ONE, EIGHT):
        rate, late = f"{case}, posts/s", f"{case}, p99"
        detail = f"{found.median(rate):.0f}/s, floor {found.median(rate, WSGI):.0f}/s"
        yield Bar(f"writing {case}", found.ratio(rate, THIS, WSGI), 5.0, f"{detail}; goal 2.9 x")
        limited = found.ratio(rate, LIMITED, THIS)
        yield Bar("writing the same, limits", limited, 1.25, "without limits / with")
        floor = found.median(late, WSGI)
        most = max(_LATE_MS, _LATE_RATIO * floor)
        yield Bar("writing the same, p99", found.median(late), most, f"floor {floor:.0f} ms", "ms")
        detail = "the most posts of a client / the fewest"
        yield Bar("writing the same, shares", found.median(f"{case}, shares"), 2.0, detail)
