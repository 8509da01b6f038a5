"""Mail to a thread with very many followers: subscribe, compact the list, mail every follower.

Most followers are loaded directly; the last ones subscribe through the product's own calls when the
list is already long. The mail server is a separate process that accepts every mail immediately. The
sender is a separate process too: it is killed once, without notice, after a third of the mail, and
a new process continues. At the end, every follower must have received the mail. The kill may cause
at most one page of duplicates.
"""

import asyncio
import contextlib
import copy
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import measuring, servers
from benchmarks.bars import Bar
from benchmarks.threads import loading
from comments import config, setting_values
from comments.domain import records
from comments.domain.counters import counting
from comments.domain.crypto import encryption
from comments.events import dispatcher, outbox
from comments.limits.site_request import SiteRequest
from comments.notifications import double_opt_in, planner, subscriptions, thread_followers
from comments.posting import admission, new_comment
from comments.sites import site_settings
from comments.store import reads
from comments.store.large_sets import set_compaction, set_search
from comments.store.models import comment_rows
from comments.tree.counters import totals
from comments.upkeep import wiring
from comments.upkeep.integrity import recount
from datastore_emulator import inprocess

THREAD = records.ThreadName("demo", "page")
STARTED = datetime(2026, 1, 2, tzinfo=UTC)
DELIVERED_EVERY = 200  # Deliver events, and compact if due, after this many followers.
_PAUSE = 0.2
_PATIENCE = 60.0


def _settings(port: int) -> config.Settings:
    return config.Settings(
        secret=servers.SECRET,
        smtp=setting_values.Smtp(setting_values.Security.NONE, "127.0.0.1", port),
        mail_from="comments@service.example",
        public_url="https://service.example",
    )


def fill(path: str, followers: int, called: int) -> None:
    """Store many followers; the last `called` ones subscribe as the sign-up page does."""
    settings = _settings(1)
    with measuring.stored(Path(path)) as engine:
        site_settings.add("demo", ["https://a.example"], scheme=settings.scheme, now=STARTED)
        _post("first", settings)
        _deliver(settings)
        _subscribe(0, settings)
        _deliver(settings)
        _load(engine, range(1, followers - called), settings)
        for number in range(followers - called, followers):
            _subscribe(number, settings)
            if number % DELIVERED_EVERY == 0:
                _deliver(settings)
                for each in set_search.sets_to_compact():
                    set_compaction.compact(each)
        _deliver(settings)
        set_compaction.compact(thread_followers.set_of(THREAD))
        # Loaded followers have no events; the recount counts them.
        recount.thread(THREAD, tell=lambda _: None, fixes=True)
        (numbers,) = totals.of_threads([THREAD])
        if not followers == thread_followers.count(THREAD).all == numbers[counting.FOLLOWERS]:
            raise SystemExit("some followers are missing")
        _post("news", settings)


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

    engine.load(rows(), loading.PROJECT)
    who = (double_opt_in.subscriber_of(_address(number), settings.secret) for number in numbers)
    set_compaction.load(thread_followers.set_of(THREAD), who)


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
    draft = admission.Submission(THREAD.id, None, author, body)
    new_comment.post(draft, SiteRequest(site_settings.get("demo"), settings, STARTED))


def _deliver(settings: config.Settings) -> None:
    now = STARTED + 2 * outbox.SWEPT_AFTER
    handlers = (*wiring.HANDLERS, *planner.handlers(settings, lambda: now))
    while dispatcher.sweep(now=now, handlers=handlers).delivered:
        pass


def send(path: str, port: int, day: int) -> dict[str, float]:
    """Send until no mail is left; return the cost. `day` is the day on the clock."""
    settings = _settings(port)

    def now() -> datetime:
        return STARTED + timedelta(days=day) + timedelta(seconds=time.monotonic())

    handlers = (*wiring.HANDLERS, *planner.handlers(settings, now))
    with measuring.stored(Path(path)) as engine:
        while dispatcher.sweep(now=now(), handlers=handlers).delivered:
            pass
        if outbox.overdue_ids(datetime(9999, 12, 1, tzinfo=UTC), 10):
            raise SystemExit("some events were not delivered")
        cost = engine.meter.total()  # A `Reading` would keep every key in memory.
    return {"reads": cost.reads, "writes": cost.writes + cost.deletes}


def take(port: int, log: str) -> None:
    """Run a mail server that accepts every mail immediately, until the process is ended."""
    with Path(log).open("a", buffering=1) as lines:

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


@contextlib.contextmanager
def _mail_server(log: Path) -> Iterator[int]:
    port = servers.free_port()
    child = measuring.started(take, port, log)
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


def _lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def mail(folder: Path, followers: int, called: int) -> tuple[list[str], dict[str, Any]]:
    """Mail all followers with two senders; return the recipients, and the second one's cost."""
    path, log = folder / "fanout.db", folder / "sent"
    measuring.result(measuring.started(fill, path, followers, called))
    with _mail_server(log) as port:
        first = measuring.started(send, path, port, 1)
        while len(_lines(log)) < followers // 3 and first.poll() is None:
            time.sleep(_PAUSE)
        first.kill()
        first.communicate()
        # Set the clock a day ahead, when the killed process's claim has expired.
        before = len(_lines(log))
        rest = measuring.result(measuring.started(send, path, port, 2))
        time.sleep(_PAUSE)
    sent = _lines(log)
    return sent, rest | {"mails": len(sent) - before}


def bars(*, quick: bool) -> Iterator[Bar]:
    """Mail very many followers, or a few if `quick`."""
    followers, called = (600, 50) if quick else (200_000, 5_000)
    with tempfile.TemporaryDirectory(prefix="fanout-") as folder:
        sent, cost = mail(Path(folder), followers, called)
    each = (cost[name] / cost["mails"] for name in ("reads", "writes"))
    detail = (
        f"of {followers:,} followers; {' and '.join(f'{n:.1f}' for n in each)} reads and writes"
    )
    missing = followers - len(set(sent))
    yield Bar("fanout, no mail", missing, 0, detail, unit="followers")
    twice = sum(count - 1 for count in Counter(sent).values())
    yield Bar("fanout, mail twice", twice, planner.PAGE, "after one kill", unit="mails")
