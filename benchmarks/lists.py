"""Change a set of 200,000 ids a million times, and fill, read and empty an inbox.

Four threads change the set in transactions of 100 marks each, and a fifth thread compacts the set
whenever a mark requests it. Afterwards, the set must equal the changes, with no id missing, left
over or listed twice. Then one author gets many replies, with inboxes off and on; the inbox must
show the newest ones, and reading it must cost what docs/costs.md says.
"""

import random
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks import measuring
from benchmarks.bars import Bar
from comments import config
from comments.domain import records
from comments.events import dispatcher, outbox
from comments.limits.site_request import SiteRequest
from comments.notifications import inbox
from comments.posting import admission, new_comment
from comments.sites import site_settings
from comments.store import connection, transactions
from comments.store.large_sets import many_marks, membership, set_compaction
from comments.upkeep import wiring
from datastore_emulator import inprocess, testing

NAME = records.SetName("a set")
SETTINGS = config.Settings(secret="a secret of the benchmarks")  # noqa: S106 - signs nothing kept
STARTED = datetime(2026, 1, 2, tzinfo=UTC)
WRITERS = 4
AT_ONCE = 100  # Marks in one transaction
MEMORY_MB = 64.0  # More than when the marks began; includes the expected ids
_PAGE = 5_000
_PAUSE = 0.05  # Seconds


class Changes:
    """Writers and a compactor that change a set of `ids` ids, half of the marks joining."""

    def __init__(self, ids: int, marks: int) -> None:
        self._store, self._ids, self._marks = connection.current(), ids, marks
        self._asked, self._is_over = threading.Event(), threading.Event()
        self._belong = dict.fromkeys(range(ids), True)
        set_compaction.load(NAME, (f"{number:026d}" for number in range(ids)))

    def run(self) -> None:
        """Make all changes."""
        compactor = threading.Thread(target=self._compact)
        writers = [threading.Thread(target=self._write, args=(each,)) for each in range(WRITERS)]
        for thread in (compactor, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        self._is_over.set()
        compactor.join()

    def _write(self, writer: int) -> None:
        """Change this writer's own ids. Half of them are new."""
        seed = random.Random(writer)
        with self._store.context():
            for _ in range(self._marks // WRITERS // AT_ONCE):
                numbers = (seed.randrange(self._ids // 2) for _ in range(AT_ONCE))
                chosen = {WRITERS * each + writer: seed.random() < 0.5 for each in numbers}
                if _mark({f"{number:026d}": each for number, each in chosen.items()}):
                    self._asked.set()
                self._belong.update(chosen)

    def _compact(self) -> None:
        with self._store.context():
            while not self._is_over.is_set():
                if self._asked.wait(_PAUSE):
                    self._asked.clear()
                    set_compaction.compact(NAME)

    def wrong(self) -> int:
        """Return how many ids are missing, left over or listed twice."""
        set_compaction.compact(NAME)
        stored = list(membership.every(NAME, limit=_PAGE))
        wanted = {f"{number:026d}" for number, belongs in self._belong.items() if belongs}
        twice = len(stored) - len(set(stored))
        return len(wanted ^ set(stored)) + twice + abs(membership.count(NAME) - len(wanted))


def _mark(members: dict[str, bool]) -> bool:
    def body() -> bool:
        marked = many_marks.mark_many({NAME: members})
        transactions.apply(marked.writes)
        return bool(marked.asking)

    return transactions.transaction(body)


class Inbox(NamedTuple):
    """What a full inbox costs. `off` and `on` are the seconds that delivered all replies."""

    off: float
    on: float
    reads: int
    wrong: int


def fill_inbox(engine: inprocess.Engine, replies: int) -> Inbox:
    """Reply to one author, with inboxes off and then on; read the inbox, and empty it."""
    site_settings.add("demo", ["https://a.example"], scheme=SETTINGS.scheme, now=STARTED)
    first = _post("ann", 0, None)
    _delivered()
    _replied(first.id, replies, 0)
    off = _delivered()
    site_settings.change("demo", options={"inbox": True})
    newest = _replied(first.id, replies, replies)[::-1][: inbox.MOST]
    on = _delivered()
    wrong = len(set(newest) ^ set(_listed()))  # Now the process's cache has the thread.
    with testing.meter(engine) as listing:
        wrong += _listed() != newest
    set_compaction.compact(inbox.set_of("demo", "g:ann"), most=inbox.MOST)
    wrong += _listed() != newest
    wrong += inbox.mark_all("demo", "g:ann") != len(newest)
    return Inbox(off, on, listing.reads, wrong + len(_listed()))


def _post(who: str, minute: int, parent: str | None) -> records.Comment:
    author = records.Author(who, id=f"g:{who}")
    draft = admission.Submission("page", parent, author, f"{who} {minute}")
    now = STARTED + timedelta(minutes=minute)
    site = site_settings.get("demo")
    return new_comment.post(draft, SiteRequest(site, SETTINGS, now)).comment


def _replied(parent: str, replies: int, before: int) -> list[str]:
    """Post replies, and return their ids."""
    return [_post("bob", before + number + 1, parent).id for number in range(replies)]


def _delivered() -> float:
    """Deliver all events; return the seconds of processor time."""
    now, since = STARTED + timedelta(days=99), time.process_time()
    while dispatcher.deliver(
        outbox.overdue_ids(now, dispatcher.SWEPT), now=now, handlers=wiring.HANDLERS
    ).delivered:
        pass
    return time.process_time() - since


def _listed() -> list[str]:
    found = inbox.unread("demo", "g:ann", limit=inbox.MOST, cursor=None, secret="s")  # noqa: S106
    return [each.comment.id for each in found.replies]


def bars(*, quick: bool) -> Iterator[Bar]:
    """Change a large set and fill an inbox, or a small set if `quick`."""
    ids, marks, replies = (2_000, 4_000, 60) if quick else (200_000, 1_000_000, 1_000)
    with tempfile.TemporaryDirectory(prefix="marks-") as name:
        folder = Path(name)
        with measuring.stored(folder / "set.db", concurrency="optimistic"):
            changes = Changes(ids, marks)
            memory, began = measuring.peak_memory(), time.perf_counter()
            changes.run()
            rate = marks / (time.perf_counter() - began)
            grown, wrong = measuring.peak_memory() - memory, changes.wrong()
        with measuring.stored(folder / "inbox.db", concurrency="optimistic") as engine:
            full = fill_inbox(engine, replies)
    shown = min(replies, inbox.MOST)
    detail = f"of {ids:,} ids after {marks:,} marks, {rate:,.0f}/s"
    yield Bar("marks, wrong ids", wrong, 0, detail, unit="ids")
    yield Bar("marks, memory", grown, MEMORY_MB, detail, unit="MB")
    yield Bar("inbox, wrong replies", full.wrong, 0, f"of {shown}", unit="replies")
    yield Bar("inbox, reads of a list", full.reads, shown + 4, f"of {shown}", unit="reads")
    yield Bar("inbox, delivery with / without", full.on / full.off, 3.0, f"{replies} replies")
