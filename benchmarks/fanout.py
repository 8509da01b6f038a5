"""Mail to a thread with very many followers: subscribe, compact the list, mail every follower.

Most followers are loaded directly; `--called` followers subscribe through the product's own calls
when the list is already long. The data file is on disk, and the mail server is a separate process
that accepts every mail immediately. The sender is a separate process too: it is killed once,
without notice, after a third of the mail, and a new process continues. At the end, every follower
must have received the mail. Duplicate mails are counted; the kill may cause at most one page of
duplicates. Usage:

    python -m benchmarks.fanout [--followers 200000] [--called 5000] [--folder /tmp]

Prints Markdown.
"""

import argparse
import asyncio
import contextlib
import copy
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.bars import Bar
from comments import config, setting_values
from comments.domain import counting, records
from comments.domain.crypto import encryption
from comments.events import dispatcher, outbox
from comments.jobs import wiring
from comments.jobs.integrity import recount
from comments.notifications import (
    double_opt_in,
    planner,
    subscriptions,
    thread_followers,
)
from comments.posting import new_comment
from comments.sites import site_settings
from comments.sites.site_request import SiteRequest
from comments.store import connection, reads
from comments.store.large_sets import set_compaction, set_search
from comments.store.models import comment_rows
from comments.tree.counters import totals
from datastore_emulator import inprocess, testing

ROOT = Path(__file__).resolve().parent.parent
THREAD = records.ThreadName("demo", "page")
SITE = records.Site("demo", (), "", 2)
STARTED = datetime(2026, 1, 2, tzinfo=UTC)
DELIVERED_EVERY = 200  # Deliver events, and compact if due, after this many followers.
_TOLD_EVERY = 400  # One event is a page of mails, so this is 10,000 mails.
_PAUSE = 0.2
_PATIENCE = 60.0


def _settings(port: int) -> config.Settings:
    return config.Settings(
        secret="a secret of the benchmarks",  # noqa: S106 - nothing signed with it is kept
        smtp=setting_values.Smtp(setting_values.Security.NONE, "127.0.0.1", port),
        mail_from="comments@service.example",
        public_url="https://service.example",
    )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[inprocess.Engine]:
    indexes = ROOT / "index.yaml"
    with inprocess.open_engine(path, indexes=indexes, concurrency="pessimistic") as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            yield engine


def _memory() -> int:
    """Return the peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# --- Subscribe --------------------


def fill(path: Path, followers: int, called: int) -> dict[str, float]:
    """Store many followers; the last `called` ones subscribe through the sign-up page."""
    settings = _settings(1)
    compactions = compacting = 0.0
    with _opened(path) as engine:
        site_settings.add("demo", ["https://a.example"], scheme=settings.scheme, now=STARTED)
        _post("first", settings)
        _deliver(settings)
        _subscribe(0, settings)
        _deliver(settings)
        loading = time.perf_counter()
        _load(engine, range(1, followers - called), settings)
        _say(f"{followers - called} loaded", loading)
        before, began = _memory(), time.perf_counter()
        for number in range(followers - called, followers):
            _subscribe(number, settings)
            if number % DELIVERED_EVERY == 0:
                _deliver(settings)
                since = time.perf_counter()
                compactions += sum(map(set_compaction.compact, set_search.asking()))
                compacting += time.perf_counter() - since
        _deliver(settings)
        taken, since = time.perf_counter() - began, time.perf_counter()
        _say(f"{called} follow", began)
        with testing.meter(engine) as cost:
            set_compaction.compact(thread_followers.set_of(THREAD))
        last, since = time.perf_counter() - since, time.perf_counter()
        # Loaded followers have no events; the recount counts them.
        recount.thread(THREAD, tell=lambda _: None, fixes=True)
        counted = time.perf_counter() - since
        (numbers,) = totals.of_threads([THREAD])
        if not followers == thread_followers.count(THREAD).all == numbers[counting.FOLLOWERS]:
            raise SystemExit("some followers are missing")
    return {
        "seconds": taken, "compacting": compacting, "compactions": compactions, "last": last,
        "reads": cost.reads, "writes": cost.writes + cost.deletes, "counted": counted,
        "memory": _memory(), "grown": _memory() - before,
    }  # fmt: skip


def _load(engine: inprocess.Engine, numbers: range, settings: config.Settings) -> None:
    """Store followers in the fastest way, with the same rows as subscribing."""
    (one,) = reads.fetch(reads.Query("Subscriber"))
    (to,) = reads.fetch(reads.Query("Subscription"))

    def rows() -> Iterator[reads.Entity]:
        for number in numbers:
            who = double_opt_in.subscriber_of(_address(number), settings.secret)
            one.key.path[0].name = to.key.path[0].name = who
            one.properties["address"].string_value = _sealed(number, settings)
            yield from map(copy.deepcopy, (one, to))

    engine.load(rows(), "test")
    who = (double_opt_in.subscriber_of(_address(number), settings.secret) for number in numbers)
    set_compaction.load(thread_followers.set_of(THREAD), who)


def _say(what: str, since: float) -> None:
    spent, memory = time.perf_counter() - since, _memory() / 1e6
    print(f"{what} after {spent:.0f} s, {memory:.0f} MB at most", file=sys.stderr, flush=True)


def _address(number: int) -> str:
    return f"f{number}@example.org"


def _sealed(number: int, settings: config.Settings) -> str:
    return encryption.seal(_address(number), "address", settings.secret, now=STARTED)


def _subscribe(number: int, settings: config.Settings) -> None:
    wanted = subscriptions.SubscriptionTarget(
        "demo", comment_rows.thread_key_name(THREAD), "", replies=False
    )
    who = double_opt_in.subscriber_of(_address(number), settings.secret)
    subscriptions.subscribe(who, _sealed(number, settings), wanted, now=STARTED)


def _post(body: str, settings: config.Settings) -> None:
    author = records.Author("Ann", id="g:ann")
    draft = new_comment.Submission(THREAD.id, None, author, body)
    new_comment.post(draft, SiteRequest(SITE, settings, STARTED))


def _deliver(settings: config.Settings) -> None:
    now = STARTED + 2 * outbox.SWEPT_AFTER
    handlers = (*wiring.HANDLERS, *planner.handlers(settings, lambda: now))
    while dispatcher.sweep(now=now, handlers=handlers).delivered:
        pass


# --- Send mail --------------------


def send(path: Path, port: int, began: float) -> None:
    """Send until no mail is left, and print the cost as JSON. `began` is the day on the clock."""
    settings = _settings(port)

    def now() -> datetime:
        return STARTED + timedelta(days=began) + timedelta(seconds=time.monotonic())

    handlers = (*wiring.HANDLERS, *planner.handlers(settings, now))
    events = 0
    with _opened(path) as engine:
        before = _memory()
        since, used = time.perf_counter(), time.process_time()
        while done := dispatcher.sweep(now=now(), handlers=handlers).delivered:
            events += done
            if events // _TOLD_EVERY > (events - done) // _TOLD_EVERY:
                _say(f"{events} events", since)
        cost = engine.meter.total()  # A `Reading` would keep every key in memory.
        figures = {
            "seconds": time.perf_counter() - since, "processor": time.process_time() - used,
            "events": events, "reads": cost.reads, "writes": cost.writes, "deletes": cost.deletes,
            "memory": _memory(), "grown": _memory() - before,
            "left": len(outbox.due(datetime(9999, 12, 1, tzinfo=UTC), 10)),
        }  # fmt: skip
    sys.stdout.write(json.dumps(figures) + "\n")


def take(port: int, log: Path) -> None:
    """Run a mail server that accepts every mail immediately, until the process is ended."""
    with log.open("a", buffering=1) as lines:

        async def talk(said: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
            answer.write(b"220 ready\r\n")
            recipient = ""
            while line := await said.readline():
                word = line[:4].upper().strip()
                if word == b"RCPT":
                    recipient = line.decode().partition("<")[2].partition(">")[0]
                if word == b"DATA":
                    answer.write(b"354 go on\r\n")
                    await said.readuntil(b"\r\n.\r\n")
                    lines.write(f"{recipient}\n")
                answer.write(b"250 taken\r\n")
            answer.close()

        async def serve() -> None:
            server = await asyncio.start_server(talk, "127.0.0.1", port)
            await server.serve_forever()

        asyncio.run(serve())


# --- The whole run --------------------


def _started(*arguments: object) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "benchmarks.fanout", *map(str, arguments)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _figures(child: "subprocess.Popen[str]") -> dict[str, float]:
    said, _ = child.communicate()
    if child.returncode:
        raise SystemExit(f"a process ended with {child.returncode}")
    found: dict[str, float] = json.loads(said)
    return found


def _lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


@contextlib.contextmanager
def _sink(log: Path) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    child = _started("--take", port, log)
    try:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(_PAUSE)
        yield port
    finally:
        child.kill()
        child.wait()


def run(folder: Path, followers: int, called: int) -> tuple[int, int]:
    """Run everything, print the cost, and return the numbers of missing and duplicate mails."""
    path, log = folder / "fanout.db", folder / "sent"
    filled = _figures(_started("--fill", followers, called, path))
    print(f"filled: {json.dumps(filled)}", file=sys.stderr, flush=True)
    with _opened(path):
        _post("news", _settings(1))
    with _sink(log) as port:
        first = _started("--send", path, port, 1)
        since = time.perf_counter()
        while len(_lines(log)) < followers // 3 and first.poll() is None:
            time.sleep(_PAUSE)
        first.kill()
        first.communicate()
        killed = len(_lines(log))
        until = time.perf_counter() - since
        print(f"killed after {killed} mails, {until:.0f} s", file=sys.stderr, flush=True)
        # Set the clock a day ahead, when the killed process's claim has expired.
        rest = _figures(_started("--send", path, port, 2))
        time.sleep(_PAUSE)
    sent = Counter(_lines(log))
    missing = followers - len(sent)
    twice = sum(count - 1 for count in sent.values())
    after = followers - killed + twice
    size = sum(each.stat().st_size for each in folder.iterdir() if each.name.startswith(path.name))
    print(
        f"| what | {followers:,} followers |\n|---|---|\n"
        f"| {called:,} of them subscribe, one after the other | "
        f"{1000 * filled['seconds'] / called:.1f} ms each, including compactions |\n"
        f"| compactions | {filled['compactions']:.0f}, "
        f"{filled['compacting'] / (filled['compactions'] or 1):.2f} s each |\n"
        f"| one more at the end | {filled['last']:.2f} s, {filled['reads']:.0f} reads, "
        f"{filled['writes']:.0f} writes and deletes |\n"
        f"| a recount of the thread | {filled['counted']:.2f} s |\n"
        f"| memory of that process | {filled['memory'] / 1e6:.0f} MB at most, "
        f"{filled['grown'] / 1e6:.0f} MB of it since subscribing began |\n"
        f"| data file | {size / 1e6:,.0f} MB |\n"
        f"| mail until the kill | {killed:,} in {until:,.0f} s |\n"
        f"| mail of the next process | {after:,} in {rest['seconds']:,.0f} s, "
        f"{after / rest['seconds']:.0f}/s; "
        f"{1000 * rest['processor'] / after:.2f} ms of processor time each |\n"
        f"| billed for each of those | {rest['reads'] / after:.2f} reads, "
        f"{rest['writes'] / after:.2f} writes, {rest['deletes'] / after:.2f} deletes |\n"
        f"| memory of that process | {rest['memory'] / 1e6:.0f} MB at most, "
        f"{rest['grown'] / 1e6:.0f} MB of it since it began |\n"
        f"| followers without mail, duplicate mails | {missing}, {twice} |\n"
        f"| events left | {rest['left']:.0f} |"
    )
    if rest["left"]:
        raise SystemExit("some events were not delivered")
    return missing, twice


def bars(*, quick: bool) -> Iterator[Bar]:
    """Mail very many followers, or a few if `quick`."""
    followers, called = (600, 50) if quick else (200_000, 5_000)
    with tempfile.TemporaryDirectory(prefix="fanout-") as folder:
        missing, twice = run(Path(folder), followers, called)
    detail = f"of {followers:,} followers, the sender killed once"
    yield Bar("fanout, no mail", missing, 0, detail, unit="followers")
    yield Bar("fanout, mail twice", twice, planner.PAGE, detail, unit="mails")


def main() -> None:
    """Run the benchmark, or the process of the benchmark that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--followers", type=int, default=200_000)
    parser.add_argument("--called", type=int, default=5_000)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--fill", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--send", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--take", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        followers, called, path = options.fill
        print(json.dumps(fill(Path(path), int(followers), int(called))))
    elif options.send:
        path, port, began = options.send
        send(Path(path), int(port), float(began))
    elif options.take:
        take(int(options.take[0]), Path(options.take[1]))
    else:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            run(Path(folder), options.followers, min(options.called, options.followers - 1))


if __name__ == "__main__":
    main()
