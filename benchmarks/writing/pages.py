"""First pages beside floors that return the same bytes, first pages after a post, and counts."""

import contextlib
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from werkzeug.test import EnvironBuilder, run_wsgi_app

from benchmarks import clients, measuring, servers, stock
from benchmarks.bars import Bar
from benchmarks.writing.results import FLASK, THIS, WSGI, Results, chunks
from comments import app as apps
from comments import config
from datastore_emulator import testing

AFTER = "page right after a post"
_EACH = 20  # Requests of each kind in a round.
_WRITES = 5  # Posts in a round.


def bars(data: Path, folder: Path, threads: Sequence[stock.Thread], rounds: int) -> list[Bar]:
    """Measure every page on every server in turn."""
    found, large = Results(), threads[-1]
    with contextlib.ExitStack() as stack:
        product = stack.enter_context(servers.product(data, large.path))
        bodies = folder / "bodies"
        bodies.mkdir()
        for thread in threads:
            (bodies / thread.name).write_bytes(product.ask(thread.path)[1])
        ports = {
            FLASK: stack.enter_context(servers.floor(bodies)).port,
            WSGI: stack.enter_context(servers.floor(bodies, "wsgi")).port,
        }
        _read(found, product.port, ports, threads, rounds)
        _write(found, product, ports, large, rounds)
    return list(_judged(found, threads, billed_reads(data, large)))


def _read(
    found: Results, port: int, floors: dict[str, int], threads: Sequence[stock.Thread], rounds: int
) -> None:
    ways = []
    for thread in threads:
        ways.append(clients.Way(f"{THIS}|{thread.name}", port, clients.request(thread.path)))
        sent = clients.request(f"/{thread.name}")
        ways += [clients.Way(f"{name}|{thread.name}", at, sent) for name, at in floors.items()]
    for name, seconds in clients.read(ways, rounds, _EACH).items():
        variant, thread_name = name.split("|")
        found.add(thread_name, variant, *chunks(seconds, rounds))


def _write(
    found: Results, product: servers.Server, floors: dict[str, int], thread: stock.Thread,
    rounds: int,
) -> None:  # fmt: skip
    """Post, and read the page right afterwards on a new connection."""
    steps = {THIS: _after_post(product, thread)}
    steps |= {name: _after_insert(port, thread.name) for name, port in floors.items()}
    for _ in range(rounds):
        for variant, step in steps.items():
            found.add(AFTER, variant, statistics.median(step() for _ in range(_WRITES)))


def _after_post(product: servers.Server, thread: stock.Thread) -> Callable[[], float]:
    """Return a step whose page must count the reply that was just acknowledged."""
    way = clients.Way(thread.path, product.port, clients.request(thread.path))
    parent = json.loads(product.ask(thread.path)[1])["comments"][0]["id"]

    def step() -> float:
        with clients.connected(product.port) as reading:
            before = json.loads(reading.fetch(way)[0])["total"]
            sent = {"name": "a writer", "body": f"A reply, number {before}.", "parent": parent}
            clients.post(product.port, [iter([clients.post_request(thread.path, sent)])], 0.0)
            body, seconds = reading.fetch(way)
        total = json.loads(body)["total"]
        if total != before + 1:
            raise SystemExit(f"a page counts {total} comments, not {before + 1}")
        return seconds

    return step


def _after_insert(port: int, page: str) -> Callable[[], float]:
    sent = clients.post_request("/", {"name": "writer", "body": clients.TEXT})
    way = clients.Way(page, port, clients.request(f"/{page}"))

    def step() -> float:
        with clients.connected(port) as reading:
            reading.fetch(way)
            clients.post(port, [iter([sent])], 0.0)
            return reading.fetch(way)[1]

    return step


def billed_reads(data: Path, thread: stock.Thread) -> int:
    """Return the reads of a warm call for the counts of 50 threads, asked in this process."""
    path, body = stock.counts(thread)
    with measuring.engine(data / "flatthread.db") as engine:
        app = apps.create_app(config.Settings(secret=servers.SECRET), measuring.store(engine))
        for _ in range(2):
            asked = EnvironBuilder(
                path=path, method="POST", data=body, content_type="application/json"
            )
            with testing.meter(engine) as cost:
                answer, status, _ = run_wsgi_app(app.wsgi_app, asked.get_environ())
                b"".join(answer)
            if not status.startswith("200"):
                raise SystemExit(f"{path} answered {status}")
    return cost.reads


def _judged(found: Results, threads: Sequence[stock.Thread], reads: int) -> list[Bar]:
    judged = []
    for thread in threads:
        for floor, most in ((WSGI, 1.3), (FLASK, 1.0)):
            ms, floor_ms = (found.median(thread.name, each) * 1000 for each in (THIS, floor))
            name = f"writing page {thread.size:,} / {floor.split()[0]}"
            detail = f"{ms:.2f} ms, {floor} {floor_ms:.2f} ms"
            judged.append(Bar(name, found.ratio(thread.name, floor), most, detail))
    detail = f"{found.median(AFTER) * 1000:.1f} ms, a thread of {threads[-1].size:,}"
    judged.append(Bar("writing page after post", found.ratio(AFTER, FLASK), 5.0, detail))
    judged.append(Bar("writing counts", reads, 2, "for 50 pages", unit="reads"))
    return judged
