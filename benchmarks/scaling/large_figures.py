"""Measure one huge thread, or a site with many threads, through the product's own server.

    python -m benchmarks.scaling large FOLDER [FOLDER] [--rounds 9] [--write]

A folder comes from `benchmarks.scaling.large_data`. The product runs on it as in scripts/serve.
Each row of the table is the median of the rounds, in milliseconds as a client on the same machine
sees them. Reads that were requested before come from the caches of the process; all other rows use
a different URL in each round. The meter counts the billed reads of the same calls in this process.
"""

import contextlib
import http.client
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from benchmarks.scaling import large_data
from benchmarks.serving import gunicorn_process, page_bills, page_figures
from benchmarks.threads import conversations, loading
from comments.domain import records
from comments.reading.compaction import compactor, rebuilding
from comments.reading.materialized import deltas
from comments.store import connection
from emulator import inprocess

SITE = large_data.SITE
_COUNTED = 50
_PAGE = 50  # The default length of a page.
_MIB = 1 << 20
_STARTS = 3
# The levels are those of the stored site.
_RULES = {**gunicorn_process.OPEN, "SORT_HASH_LEVELS": str(loading.SCHEME.levels)}
FIRST = "first page, requested before"
JUMP = "jump to a comment (`around=`)"
NUMBERED = "jump to a page near the middle (`page=`)"


class Times(msgspec.Struct):
    """The seconds of one call in each round, and the billed reads in a new and a warm process."""

    name: str
    seconds: list[float]
    cold: int | None = None
    warm: int | None = None


class Compaction(msgspec.Struct):
    """A compaction: the changed comments, and its processor time and duration in seconds."""

    changes: int
    cpu: float
    seconds: float


class Data(msgspec.Struct):
    """The figures of one folder; sizes and memory are in bytes, times in seconds."""

    comments: int
    threads: int
    loading: float
    file: int
    starts: list[float]
    started: int
    served: int
    calls: list[Times]
    compaction: Compaction
    rebuild: Compaction


class Run(msgspec.Struct):
    """All results of one run."""

    rounds: int
    found: list[Data]


class Answer(NamedTuple):
    """The seconds of a call, and its JSON."""

    seconds: float
    json: dict[str, Any]


class Client:
    """A client that times its calls, on one connection, so that one process answers them all."""

    def __init__(self, server: gunicorn_process.Server) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def get(self, path: str) -> Answer:
        """Return the seconds and the answer of a GET."""
        return self.ask("GET", path)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Return the seconds and the answer of a call with a JSON body."""
        headers = {"Content-Type": "application/json"} if body else {}
        sent = json.dumps(body) if body else None
        start = time.perf_counter()
        self._connection.request(method, path, body=sent, headers=headers)
        response = self._connection.getresponse()
        answer = response.read()
        seconds = time.perf_counter() - start
        if response.status not in {200, 201}:
            raise SystemExit(f"{method} {path} answered {response.status}: {answer[:200]!r}")
        return Answer(seconds, json.loads(answer))


def comments_path(thread: str) -> str:
    """Return the path of a thread's comments."""
    return f"/api/v1/sites/{SITE}/comments?thread={quote(thread)}"


class _Sampler:
    """The threads and comments that the calls ask for."""

    def __init__(self, loaded: large_data.Loaded) -> None:
        self._loaded = loaded
        self._chance = random.Random(1)
        self._ids = conversations.ids(loaded.comments) if loaded.threads == 1 else []
        self.last = large_data.MILLION

    @property
    def is_one(self) -> bool:
        """True if the data is one thread."""
        return bool(self._ids)

    def thread(self) -> str:
        """Return a thread that was probably not requested before."""
        if self.is_one:
            return large_data.MILLION
        self.last = large_data.thread_name(self._chance.randrange(self._loaded.threads)).id
        return self.last

    def number(self) -> int:
        """Return the number of a page near the middle of the one thread."""
        pages = self._loaded.comments // _PAGE
        return self._chance.randint(pages // 3 + 1, 2 * pages // 3 + 1)

    def comment(self) -> str:
        """Return a comment anywhere in the one thread."""
        return self._chance.choice(self._ids)


def measure(folders: list[Path], rounds: int) -> Run:
    """Measure each folder."""
    return Run(rounds, [_measured(folder, rounds) for folder in folders])


def _measured(folder: Path, rounds: int) -> Data:
    loaded = msgspec.json.decode((folder / large_data.LOADED).read_bytes(), type=large_data.Loaded)
    sampler = _Sampler(loaded)
    first = comments_path(sampler.thread())
    data = Data(
        comments=loaded.comments,
        threads=loaded.threads,
        loading=loaded.seconds,
        file=(folder / "flatthread.db").stat().st_size,
        starts=[],
        started=0,
        served=0,
        calls=[Times("first page, in a new process", [])],
        compaction=Compaction(0, 0.0, 0.0),
        rebuild=Compaction(0, 0.0, 0.0),
    )
    for _ in range(_STARTS):
        with gunicorn_process.product(folder, "/healthz", rules=_RULES) as server:
            data.starts.append(server.started)
            data.started = server.memory()
            server.settle()
            with contextlib.closing(Client(server)) as client:
                data.calls[0].seconds.append(client.get(first).seconds)
    with gunicorn_process.product(folder, "/healthz", rules=_RULES) as server:
        server.settle()
        with contextlib.closing(Client(server)) as client:
            data.calls += _read(client, sampler, rounds)
            data.calls += _written(client, sampler, rounds)
        data.served = server.memory()
    changed = records.ThreadName(SITE, sampler.last)
    data.compaction, data.rebuild = _compacted(folder, changed)
    _price(folder, data, sampler)
    return data


def _read(client: Client, sampler: _Sampler, rounds: int) -> Iterator[Times]:
    page = comments_path(sampler.thread())
    cursor = client.get(page).json.get("cursor")
    yield _repeated(FIRST, rounds, lambda: client.get(page))
    if not sampler.is_one:
        yield _repeated(
            "first page of a thread that the process has not read",
            rounds,
            lambda: client.get(comments_path(sampler.thread())),
        )
        yield _repeated(f"counts of {_COUNTED} threads", rounds, lambda: _counts(client, sampler))
        return
    following = Times("page after a cursor", [])
    for _ in range(rounds):
        answer = client.get(f"{page}&cursor={quote(str(cursor))}")
        following.seconds.append(answer.seconds)
        cursor = answer.json["cursor"]
    yield following
    yield _repeated(JUMP, rounds, lambda: client.get(f"{page}&around={sampler.comment()}"))
    yield _repeated(NUMBERED, rounds, lambda: client.get(f"{page}&page={sampler.number()}"))


def _counts(client: Client, sampler: _Sampler) -> Answer:
    threads = [sampler.thread() for _ in range(_COUNTED)]
    return client.ask("POST", f"/api/v1/sites/{SITE}/counts", {"threads": threads})


def _repeated(name: str, rounds: int, call: Callable[[], Answer]) -> Times:
    return Times(name, [call().seconds for _ in range(rounds)])


def _written(client: Client, sampler: _Sampler, rounds: int) -> Iterator[Times]:
    root, reply = Times("post, a new discussion", []), Times("post, a reply", [])
    vote, after = Times("vote", []), Times("first page right after a post", [])
    for number in range(rounds):
        page = comments_path(sampler.thread())
        body = {"name": "a writer", "body": f"A comment, number {number}."}
        made = client.ask("POST", page, body)
        root.seconds.append(made.seconds)
        after.seconds.append(client.get(page).seconds)
        parent = sampler.comment() if sampler.is_one else made.json["comment"]["id"]
        reply.seconds.append(client.ask("POST", page, {**body, "parent": parent}).seconds)
        voted = client.ask("PUT", f"/api/v1/comments/{parent}/vote", {"value": 1})
        vote.seconds.append(voted.seconds)
    yield from (root, reply, vote, after)


def _price(folder: Path, data: Data, sampler: _Sampler) -> None:
    """Count the billed reads of the first page and of a jump, in a new and in a warm process."""
    page = comments_path(sampler.thread())
    calls = [page_figures.Call(FIRST, data.comments, page)]
    if sampler.is_one:
        around, numbered = (f"{page}&around={sampler.comment()}", f"{page}&page={sampler.number()}")
        calls.append(page_figures.Call(JUMP, data.comments, around))
        calls.append(page_figures.Call(NUMBERED, data.comments, numbered))
    bills = {bill.name: bill for bill in page_bills.bills(folder, calls)}
    for times in data.calls:
        if times.name in bills:
            times.cold, times.warm = bills[times.name].cold, bills[times.name].warm


def _compacted(folder: Path, name: records.ThreadName) -> tuple[Compaction, Compaction]:
    """Compact a thread that the writers changed, and rebuild it, in this process."""
    with inprocess.open_engine(
        folder / "flatthread.db", concurrency="pessimistic", history=0
    ) as engine:
        store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT, deadline=600.0)
        with store.context():
            changed = len(list(deltas.flagged(name)))
            compaction = _timed(name, changed)
            rebuilding.request(name)
            return compaction, _timed(name, 0)


def _timed(name: records.ThreadName, changes: int) -> Compaction:
    cpu, start = time.process_time(), time.perf_counter()
    folded = compactor.compact(loading.SCHEME, name)
    if folded is not None:
        compactor.clear(folded)
    return Compaction(changes, time.process_time() - cpu, time.perf_counter() - start)


def markdown(run: Run) -> str:
    """Return the tables."""
    names = [f"{data.comments:,} comments in {data.threads:,} threads" for data in run.found]
    names = [name.replace(" in 1 threads", " in one thread") for name in names]
    lines = [
        f"| | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
        _row("file", [f"{data.file / _MIB:,.0f} MiB" for data in run.found]),
        _row(
            "storing it with the bulk load, processor time",
            [f"{data.loading:,.0f} s" for data in run.found],
        ),
        _row(
            "start until the first answer",
            [f"{statistics.median(data.starts):.2f} s" for data in run.found],
        ),
        _row(
            "memory after the start, and after all calls",
            [
                f"{data.started / _MIB:,.0f} MiB, {data.served / _MIB:,.0f} MiB"
                for data in run.found
            ],
        ),
    ]
    calls = list(dict.fromkeys(times.name for data in run.found for times in data.calls))
    lines += [_row(name, [_cell(data, name) for data in run.found]) for name in calls]
    compactions = [data.compaction for data in run.found]
    lines += [
        _row(
            "compaction of changes in one thread, processor time",
            [f"{each.changes} changes: {each.cpu:.2f} s" for each in compactions],
        ),
        _row(
            "rebuild of the whole thread, processor time",
            [f"{data.rebuild.cpu:,.2f} s" for data in run.found],
        ),
    ]
    return "\n".join(
        [f"Medians of {run.rounds} rounds ({_STARTS} starts); the machine was shared.", "", *lines]
    )


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _cell(data: Data, name: str) -> str:
    for times in data.calls:
        if times.name == name:
            cell = f"{statistics.median(times.seconds) * 1000:.1f} ms"
            if times.cold is None:
                return cell
            return f"{cell}; {times.cold} reads cold, {times.warm} warm"
    return ""
