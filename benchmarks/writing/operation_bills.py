"""The operations that Google's service would bill for each writing call, before and after a change.

    python -m benchmarks.writing.operation_bills [--beside FOLDER]

The engine's meter counts, in a process that has served before and on a compacted thread, as in
docs/costs.md. `--beside` is the checkout from before; it runs this module with its own product. The
bills include those of delivering events and of an import, which docs/costs.md leaves out.
"""

import argparse
import contextlib
import dataclasses
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.mixed_load import operators
from benchmarks.serving import gunicorn_process
from benchmarks.threads import conversations, loading, shapes
from benchmarks.writing import challenges
from comments import app as apps
from comments import config
from comments.domain import records
from comments.events import dispatcher, outbox
from comments.jobs import wiring
from comments.store import connection
from emulator import inprocess, testing

_API = f"/api/v1/sites/{operators.SITE}"
_PAGE = f"{_API}/comments?thread=page"
_COMMENTS = 150
_DELIVERED = 50  # Replies whose events are delivered after each other, or together.
_ALL = 1_000
_IMPORTED, _IMPORTED_THREADS = 1_000, 20
_LIMITED = {
    "posts_per_network": 20,
    "posts_per_author": 10,
    "posts_per_thread": 300,
    "same_texts": 3,
    "proof_of_work": 10,
    "form_seconds": 0,
}
_OPEN = dict.fromkeys(_LIMITED, 0)


class Bill(msgspec.Struct, frozen=True):
    """The billed reads under the lenient and the strict interpretation, and the billed writes."""

    lenient: int
    strict: int
    writes: int


@dataclasses.dataclass(slots=True)
class Meter:
    """Two applications on one store, without and with post limits, and the bills of their calls."""

    engine: inprocess.Engine
    client: Any
    limited: Any
    bills: dict[str, Bill] = dataclasses.field(default_factory=dict)

    @contextlib.contextmanager
    def counting(self, name: str) -> Iterator[None]:
        """Count what the block bills."""
        with testing.meter(self.engine) as cost:
            yield
        reads = cost.reads
        self.bills[name] = Bill(reads, reads + cost.empty, cost.writes + cost.deletes)

    def call(
        self, name: str, method: str, path: str, sent: object = None, *,
        headers: Mapping[str, str] | None = None, limited: bool = False,
    ) -> Any:  # fmt: skip
        """Make a call, note its bill and return the answer."""
        client = self.limited if limited else self.client
        with self.counting(name):
            answer = client.open(path, method=method, json=sent, headers=headers)
        if answer.status_code >= 400:
            raise SystemExit(f"{name}: {answer.status} {answer.text}")
        return answer.json


def measured(folder: Path) -> dict[str, Bill]:
    """Return the bill of each operation."""
    moderator = operators.prepare(folder / "data")
    with inprocess.open_engine(
        folder / "data" / "flatthread.db",
        indexes=gunicorn_process.ROOT / "index.yaml",
        durability="fast",
        concurrency="pessimistic",
        history=0,
    ) as engine:
        store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
        thread = conversations.thread(shapes.grown(_COMMENTS))
        with store.context():
            name = records.ThreadName(operators.SITE, "page")
            loading.add_thread(engine, name, thread, is_folded=True)
        made = config.Settings(secret=gunicorn_process.SECRET, **_OPEN)
        limited = config.Settings(secret=gunicorn_process.SECRET, **_LIMITED)
        app = apps.create_app(made, store)
        client = app.test_client()
        meter = Meter(engine, client, apps.create_app(limited, store).test_client())
        for each in (meter.client, meter.limited):
            each.get(_PAGE)
        ids = [said.id for said in thread]
        _write(meter, ids)
        _moderate(meter, ids, moderator)
        _count(meter)
        with store.context():
            _deliver(meter, ids, made)
        _import(meter, app, folder)
        return meter.bills


def _write(meter: Meter, ids: list[str]) -> None:
    def text() -> dict[str, str]:
        return {"name": "Ann", "body": f"Some words that nobody wrote before, {time.time_ns()}"}

    meter.call("first comment of a thread", "POST", f"{_API}/comments?thread=new", text())
    mine = meter.call("comment", "POST", _PAGE, text())
    meter.call("reply", "POST", _PAGE, {**text(), "parent": ids[0]})
    first = {**text(), "parent": ids[0], "proof": _proof(meter)}
    newcomer = meter.call("reply with limits, newcomer", "POST", _PAGE, first, limited=True)
    known = {**text(), "parent": ids[0], "proof": _proof(meter)}
    bearer = _bearer(newcomer)
    meter.call("reply with limits", "POST", _PAGE, known, headers=bearer, limited=True)
    one, bearer = f"/api/v1/comments/{mine['comment']['id']}", _bearer(mine)
    meter.call("edit", "PATCH", one, {"body": "other words"}, headers=bearer)
    meter.call("retraction", "DELETE", one, headers=bearer)
    vote = f"/api/v1/comments/{ids[0]}/vote"
    voter = _bearer(meter.call("first vote of a reader", "PUT", vote, {"value": 1}))
    meter.call("other vote", "PUT", vote, {"value": -1}, headers=voter)
    meter.call("vote withdrawn", "DELETE", vote, headers=voter)


def _proof(meter: Meter) -> str:
    return challenges.solution(meter.limited.get(f"{_API}/challenge").json)


def _bearer(answer: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {answer['token']}"}


def _moderate(meter: Meter, ids: list[str], token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Origin": operators.ORIGIN}
    path = f"/api/v1/comments/{ids[1]}/decision"
    for name, verb in (("decision in the thread", "hide"), ("undo of this decision", "restore")):
        meter.call(name, "POST", path, {"verb": verb}, headers=headers)


def _count(meter: Meter) -> None:
    threads = [f"of {number}" for number in range(49)] + ["page"]
    meter.client.post(f"{_API}/counts", json={"threads": threads})
    meter.call("counts of 50 pages", "POST", f"{_API}/counts", {"threads": threads})


def _deliver(meter: Meter, ids: list[str], settings: config.Settings) -> None:
    handlers, now = wiring.handlers(settings), datetime.now(UTC)
    dispatcher.deliver(outbox.fresh(now, _ALL), now=now, handlers=handlers)
    for number in range(_DELIVERED):
        body = {"name": "Ann", "body": f"A reply, number {number}.", "parent": ids[number]}
        meter.client.post(_PAGE, json=body)
    with meter.counting(f"delivery of {_DELIVERED} replies' events"):
        now = datetime.now(UTC)
        dispatcher.deliver(outbox.fresh(now, _ALL), now=now, handlers=handlers)


def _import(meter: Meter, app: Any, folder: Path) -> None:
    file = folder / "export.xml"
    file.write_text(operators.export(1, _IMPORTED_THREADS, _IMPORTED, random.Random(1)))
    arguments = ["import", "disqus", str(file), "--site", operators.SITE]
    with meter.counting(f"import of {_IMPORTED:,} comments into {_IMPORTED_THREADS} threads"):
        done = app.test_cli_runner().invoke(args=arguments)
    if done.exit_code:
        raise SystemExit(done.output)


def table(before: Mapping[str, Bill], now: Mapping[str, Bill]) -> str:
    """Return the bills of two checkouts as Markdown."""
    lines = [
        "| call | reads before | reads now | writes before | writes now |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, bill in now.items():
        old = before.get(name)
        reads, writes = ("", "") if old is None else (_reads(old), f"{old.writes:,}")
        lines.append(f"| {name} | {reads} | {_reads(bill)} | {writes} | {bill.writes:,} |")
    return "\n".join(lines)


def _reads(bill: Bill) -> str:
    return f"{bill.lenient:,} / {bill.strict:,}"


def of_checkout(root: Path) -> dict[str, Bill]:
    """Return the bills of a checkout, which runs this module in a process of its own."""
    done = subprocess.run(
        [gunicorn_process.interpreter(root), "-m", "benchmarks.writing.operation_bills", "--json"],
        cwd=root,
        # The checkout's own modules come first; it may not have this one.
        env=gunicorn_process.without_settings() | {"PYTHONPATH": str(gunicorn_process.ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=dict[str, Bill])


def main() -> None:
    """Print the bills."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="the checkout from before")
    parser.add_argument("--json", action="store_true", help="print this checkout's bills as JSON")
    chosen = parser.parse_args()
    if chosen.json:
        with tempfile.TemporaryDirectory(prefix="bills-") as folder:
            os.write(1, msgspec.json.encode(measured(Path(folder))))
        return
    before = of_checkout(chosen.beside.resolve()) if chosen.beside else {}
    print(table(before, of_checkout(gunicorn_process.ROOT)))


if __name__ == "__main__":
    main()
