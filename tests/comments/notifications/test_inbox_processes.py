"""An inbox loses no reply and lists none twice with 50 writers, two compactors and kills."""

import itertools
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from comments.domain import records
from comments.events import dispatcher
from comments.notifications import inbox
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.large_sets import membership, set_compaction
from comments.store.models import conversion
from comments.upkeep import wiring
from datastore_emulator import inprocess
from tests.support import dying_programs, forked_programs, programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

THREADS, REPLIES = 25, 2  # Threads per process, replies per thread.
NAME = inbox.set_of("demo", "g:ann")
LATER = sample_threads.START + timedelta(days=9)


class Writers:
    """The threads of one process, which reply, deliver events, compact, and mark as read."""

    def __init__(self, store: connection.Store, process: str) -> None:
        self.store, self.process = store, process
        self.read: set[str] = set()
        self.is_over = threading.Event()
        with store.context():
            self.questions = _questions()

    def run(self) -> None:
        steps = [self.compact, self.deliver, *([self.mark] if self.process == "b" else [])]
        others = [threading.Thread(target=self.repeat, args=(step,)) for step in steps]
        writers = [threading.Thread(target=self.reply, args=(n,)) for n in range(THREADS)]
        for thread in (*others, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        self.is_over.set()
        for thread in others:
            thread.join()
        if self.process == "b":  # Mark some at the end, in case that the thread found none.
            with self.store.context():
                self.deliver()
                self.mark()

    def reply(self, number: int) -> None:
        with self.store.context():
            site = site_settings.get("demo")
            for turn in range(REPLIES):
                thread, text = f"t{(number + turn) % 5}", f"{self.process} {number} {turn}"
                sample_threads.post(site, text, self.questions[thread], thread=thread)
                print(text, flush=True)  # noqa: T201 - the test reads it

    def repeat(self, step: Callable[[], object]) -> None:
        with self.store.context():
            while not self.is_over.is_set():
                step()

    def compact(self) -> None:
        set_compaction.compact(NAME, most=inbox.MOST)

    def deliver(self) -> None:
        assert _delivered() == 0

    def mark(self) -> None:
        for each in inbox.comments_in("demo", "g:ann")[::7]:
            inbox.mark_some("demo", "g:ann", {each})
            self.read.add(each)


def write(path: Path, process: str) -> None:
    """Reply from many threads after a line of input, and end with the input.

    The program prints each reply and, at the end, those marked as read.
    """
    set_compaction.SEGMENT_BYTES = 500
    with inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test", deadline=120.0)
        writers = Writers(store, process)
        sys.stdin.readline()
        writers.run()
    print(json.dumps(sorted(writers.read)))  # noqa: T201 - same
    sys.stdin.read()  # A process that has done all its work can still be killed.


def _delivered() -> int:
    """Deliver all events; return the number of failures."""
    events = counter_oracle.events()
    return dispatcher.deliver(events, now=LATER, handlers=wiring.HANDLERS).failed


def _questions() -> dict[str, str]:
    """Return Ann's comment in each thread."""
    return {each.thread: each.id for each in _stored() if each.author.id == "g:ann"}


def _stored() -> list[records.Comment]:
    return list(map(conversion.comment_from_message, reads.fetch(reads.Query("Comment"))))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[connection.Store]:
    """Open a store that other processes share, with five threads that Ann began."""
    with inprocess.open_engine(path, indexes=dying_programs.INDEXES, history=0) as engine:
        opened = connection.Store(inprocess.Channel(engine), project="test", deadline=120.0)
        with opened.context():
            site_settings.add(
                "demo", ["https://a.example"], scheme=sample_threads.SETTINGS.scheme,
                now=sample_threads.START,
            )  # fmt: skip
            site = site_settings.change("demo", options={"inbox": True})
            for number in range(5):
                ann = sample_threads.author("ann")
                sample_threads.post(site, "question", author=ann, thread=f"t{number}")
            yield opened


def _settle() -> None:
    """Deliver all events, and compact twice, so that a killed process's work is finished."""
    assert _delivered() == 0
    for _ in range(2):
        assert set_compaction.compact(NAME, most=inbox.MOST)


def test_fifty_writers_two_compactors_and_a_kill_lose_no_reply(
    path: Path, store: connection.Store
) -> None:
    """The process "a" is killed when it has stored some of its replies."""
    with (
        forked_programs.start(write, path, "a") as killed,
        forked_programs.start(write, path, "b") as other,
    ):
        for each in (killed, other):
            each.stdin.write("go\n")
            each.stdin.flush()
        for _ in range(THREADS):
            assert killed.stdout.readline()
        killed.kill()
        *_, said = other.output(5 * programs.PATIENCE).splitlines()
    assert (killed.returncode, other.returncode) == (-signal.SIGKILL, 0)
    read = set(json.loads(said))
    assert read
    _settle()
    replies = {each.id for each in _stored() if each.reply_to}
    assert len(replies) >= THREADS * REPLIES + THREADS
    found = inbox.comments_in("demo", "g:ann")
    assert len(found) == len(set(found)) == membership.pointer(NAME).directory.count
    assert set(found) == replies - read
    assert [*reads.fetch(reads.Query("FollowerMark", keys_only=True))] == []


def _turn(older: str) -> None:
    """Deliver the events of two replies, mark the older one as read, and compact."""
    _delivered()
    inbox.mark_some("demo", "g:ann", {older})
    set_compaction.compact(NAME, most=inbox.MOST)


def _two_replies(turn: int) -> list[str]:
    site, question = site_settings.get("demo"), _questions()["t0"]
    times = (sample_threads.START + timedelta(minutes=2 * turn + each) for each in range(2))
    rows = [sample_threads.post(site, f"{now}", question, thread="t0", now=now) for now in times]
    return [row.id for row in rows]


def test_a_process_killed_at_any_commit_loses_no_reply_and_returns_none(
    path: Path, store: connection.Store
) -> None:
    for call in itertools.count(1):
        older, newer = _two_replies(call)
        rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
        status, _ = dying_programs.run(path, [rule], _turn, older)
        _settle()
        # The process delivers before it marks as read, and compacts afterwards.
        found = inbox.comments_in("demo", "g:ann")
        assert found in ([newer, older], [newer])
        assert inbox.mark_all("demo", "g:ann") == len(found)
        _settle()
        assert inbox.comments_in("demo", "g:ann") == []
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert found == [newer]
    assert call > 5


def test_an_erasure_killed_at_any_commit_is_finished_by_the_next(
    path: Path, store: connection.Store
) -> None:
    for call in itertools.count(1):
        older, newer = _two_replies(call)
        _turn(older)
        rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
        status, _ = dying_programs.run(path, [rule], inbox.erase, "demo", "g:ann")
        assert inbox.comments_in("demo", "g:ann") == ([newer] if call == 1 else [])
        inbox.erase("demo", "g:ann")
        for kind in ("FollowerList", "FollowerMark", "FollowerSegment"):
            assert [*reads.fetch(reads.Query(kind, keys_only=True))] == []
        if status == 0:
            break
    assert call > 3
