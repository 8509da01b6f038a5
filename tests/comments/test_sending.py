"""Claims about sending: real receivers, each at its own pace, told at least once under one id."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from comments import (
    datastore,
    delivery,
    hooks,
    messages,
    outbound,
    outbox,
    posting,
    postroom,
    records,
    sending,
    sites,
    webhooks,
    workers,
)
from emulator import inprocess
from tests import programs, recounts, trees
from tests.comments import receivers

START = trees.START
SECRET = webhooks.secret(bytes(32))
LIMITS = outbound.Limits(connect=0.5, total=0.5)


class Time:
    """The time of day, as a test moves it."""

    now = START + timedelta(hours=1)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def at() -> Time:
    return Time()


@pytest.fixture
def told() -> Iterator[list[receivers.Receiver]]:
    """Three receivers."""
    with ExitStack() as stack:
        yield [stack.enter_context(receivers.receiver()) for _ in range(3)]


@pytest.fixture
def hooked(
    open_store: datastore.Store, site: records.Site, told: list[receivers.Receiver]
) -> Iterator[list[receivers.Receiver]]:
    """The receivers, being hooks "0", "1" and "2" of the site; the store's context is entered."""
    client = receivers.client(*(each.port for each in told), limits=LIMITS)
    open_store.kept(sending.OUTBOUND, lambda: client)
    with open_store.context():
        for number, each in enumerate(told):
            register(f"{number}", each.url, client)
        yield told


def register(name: str, url: str, client: outbound.Client) -> None:
    made = hooks.Registered(name, url, (SECRET,), tuple(webhooks.Type), START)
    hooks.add("demo", made, client)


def post(site: records.Site, text: str = "text") -> str:
    """Post, and have the messages written; the id that receivers are told."""
    row = trees.post(site, text)
    delivery.deliver(recounts.events(), now=START)
    return f"msg_{row.id}_1"


def left() -> list[str]:
    query = datastore.Query("Message", keys_only=True)
    return [message.key.path[-1].name for message in datastore.fetch(query)]


def test_every_hook_is_told_once_and_nothing_is_left(
    hooked: list[receivers.Receiver], site: records.Site, at: Time
) -> None:
    expected = [post(site, f"{n}") for n in range(5)]
    assert sending.serve(at) == sending.Done(15, 0)
    for each in hooked:
        assert sorted(each.ids) == sorted(expected)
        heard = json.loads(each.heard[0].body)
        assert (heard["type"], heard["data"]["site"]) == ("comment.posted", "demo")
        assert heard["timestamp"] == START.isoformat().replace("+00:00", "Z")
    assert left() == []
    assert sending.serve(at) == sending.Done(0, 0)
    assert postroom.waiting(at()) == postroom.Waiting(0, 0, 0, 0)


def test_one_that_fails_neither_holds_up_nor_repeats_another(
    hooked: list[receivers.Receiver], site: records.Site, at: Time
) -> None:
    hooked[1].status = 500
    expected = [post(site, f"{n}") for n in range(3)]
    assert sending.serve(at) == sending.Done(6, 1)
    assert sending.serve(at) == sending.Done(0, 0)  # it is left alone
    assert len(hooked[1].ids) == 1
    hooked[1].status = 200
    at.now += outbox.FIRST_PAUSE
    assert sending.serve(at) == sending.Done(3, 0)
    assert [len(each.ids) for each in hooked] == [3, 4, 3]
    assert sorted(set(hooked[1].ids)) == sorted(expected)
    assert hooks.get("demo", "1").failures == 0


def test_a_pause_that_a_receiver_asks_for_is_kept(
    hooked: list[receivers.Receiver], site: records.Site, at: Time
) -> None:
    hooked[0].status, hooked[0].headers = 503, {"Retry-After": "900"}
    post(site)
    sending.serve(at)
    hooked[0].status = 200
    at.now += timedelta(seconds=899)
    assert sending.serve(at) == sending.Done(0, 0)
    at.now += timedelta(seconds=1)
    assert sending.serve(at) == sending.Done(1, 0)
    assert hooked[0].ids == hooked[0].ids[:1] * 2


def test_a_receiver_that_is_gone_is_switched_off_and_what_waits_is_kept(
    hooked: list[receivers.Receiver], site: records.Site, at: Time
) -> None:
    hooked[2].status = 410
    ids = [post(site, f"{n}") for n in range(3)]
    sending.serve(at)
    sending.serve(at)
    assert len(hooked[2].ids) == 1
    assert hooks.get("demo", "2").off == "answered 410"
    page = postroom.dead()
    assert sorted(letter.reason for letter in page.letters) == [
        "answered 410", "the hook is off: answered 410", "the hook is off: answered 410",
    ]  # fmt: skip
    assert postroom.waiting(at()).messages == 0
    # The owner mends it: what was given up is told after all.
    hooked[2].status = 200
    hooks.switch_on("demo", "2")
    for letter in page.letters:
        postroom.revive(letter.id, now=at())
    assert sending.serve(at) == sending.Done(3, 0)
    assert sorted(set(hooked[2].ids)) == sorted(ids)


def test_a_receiver_that_always_fails_is_switched_off_in_the_end(
    hooked: list[receivers.Receiver], site: records.Site, at: Time
) -> None:
    hooked[0].status = 500
    end = at() + hooks.FAILING_FOR + timedelta(hours=3)
    while at() < end:
        post(site, f"{at().isoformat()}")
        sending.serve(at)
        at.now += timedelta(hours=2)
    assert hooks.get("demo", "0").off == "nothing reached it for 3 days: answered 500"
    assert postroom.waiting(at()).messages == 0
    assert len(hooked[1].ids) == len(hooked[2].ids) == 38
    heard = len(hooked[0].heard)
    post(site, "nothing more is sent to it")
    sending.serve(at)
    assert len(hooked[0].heard) == heard


def test_what_waits_for_a_hook_that_was_removed_is_forgotten(
    hooked: list[receivers.Receiver], site: records.Site, at: Time
) -> None:
    post(site)
    hooks.remove("demo", "0")
    assert sending.serve(at) == sending.Done(2, 0)
    assert (hooked[0].heard, left()) == ([], [])


def test_a_comment_taken_back_meanwhile_says_nothing(
    hooked: list[receivers.Receiver], site: records.Site, at: Time
) -> None:
    row = trees.post(site, "a canary")
    delivery.deliver(recounts.events(), now=START)
    posting.retract(row.id, author_id=row.author.id, revision=None, now=START)
    sending.serve(at)
    assert all(b"canary" not in heard.body for each in hooked for heard in each.heard)
    assert json.loads(hooked[0].heard[0].body)["data"]["comment"]["status"] == "removed"


def test_slow_receivers_are_served_side_by_side(
    open_store: datastore.Store, site: records.Site, at: Time
) -> None:
    """None of them answers before all of them were asked."""
    gate = threading.Barrier(4)
    with ExitStack() as stack:
        slow = [stack.enter_context(receivers.receiver()) for _ in range(4)]
        client = receivers.client(*(each.port for each in slow), limits=outbound.Limits(60, 60))
        open_store.kept(sending.OUTBOUND, lambda: client)
        with open_store.context():
            for number, each in enumerate(slow):
                each.then = lambda _: gate.wait(30) and None
                register(f"{number}", each.url, client)
            post(site)
            assert sending.serve(at) == sending.Done(4, 0)


def test_whoever_has_nothing_to_tell_loads_no_certificates(
    store: datastore.Store, site: records.Site, at: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "Client", lambda: pytest.fail("a client was made"))
    post(site)
    assert sending.serve(at) == sending.Done(0, 0)


def test_a_round_begins_nothing_when_its_time_is_over(
    hooked: list[receivers.Receiver], site: records.Site, at: Time
) -> None:
    post(site)
    assert sending.serve(at, within=0.0) == sending.Done(0, 0)
    assert len(left()) == 3


def test_a_recipient_that_is_served_long_has_its_turn_again(
    hooked: list[receivers.Receiver],
    site: records.Site,
    at: Time,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "_TURN", 0.0)
    post(site)
    assert sending.serve(at) == sending.Done(0, 0)
    monkeypatch.setattr(sending, "_TURN", 5.0)
    monkeypatch.setattr(sending, "_QUEUES", 1)
    assert sending.serve(at) == sending.Done(3, 0)


def test_what_goes_wrong_here_ends_neither_the_round_nor_the_message(
    hooked: list[receivers.Receiver],
    site: records.Site,
    at: Time,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number in range(2):
        post(site, f"{number}")

    def fail(_recipient: str, _now: datetime) -> sending.Recipient:
        def tell(_: messages.Message) -> None:
            raise ValueError("a canary")

        return sending.Recipient(sending.Way.OPEN, tell=tell)  # type: ignore[arg-type]

    with caplog.at_level(logging.ERROR, "flatthread"):
        assert sending.serve(at, among={"hook": fail}) == sending.Done(0, 3)
    rows = messages.read(left())
    assert sorted((row.reason, row.attempts) for row in rows) == [
        *[("", 0)] * 3,  # a queue is left after an attempt that failed
        *[("ValueError", 1)] * 3,
    ]
    assert SECRET not in caplog.text
    at.now += outbox.FIRST_PAUSE
    assert sending.serve(at, among={}) == sending.Done(0, 0)  # nobody knows this channel
    assert sending.serve(at) == sending.Done(6, 0)


def test_two_that_send_at_once_tell_each_hook_once(
    hooked: list[receivers.Receiver], open_store: datastore.Store, site: records.Site, at: Time
) -> None:
    expected = [post(site, f"{n}") for n in range(6)]
    gate = threading.Barrier(4)

    def send(_: int) -> int:
        with open_store.context():
            gate.wait(60)
            return sending.serve(at).told

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(send, range(4))) == 18
    for each in hooked:
        assert sorted(each.ids) == sorted(expected)
    assert left() == []


def test_a_worker_tells_hooks_soon_after_the_commit_and_stops(
    hooked: list[receivers.Receiver], open_store: datastore.Store, site: records.Site
) -> None:
    heard = [threading.Event() for _ in hooked]
    for each, event in zip(hooked, heard, strict=True):
        each.then = lambda _, event=event: event.set()  # type: ignore[misc]
    worker = workers.Worker(open_store, trees.SETTINGS.scheme, first=sending.SWEEP_EVERY)
    worker.start()
    try:
        trees.post(site, "text")
        # Far less than a sweep or its first look would take, were it not told of the commit.
        assert all(event.wait(sending.SWEEP_EVERY / 2) for event in heard)
    finally:
        assert worker.stop(60)


def test_an_address_that_comes_to_lead_inside_is_never_asked(
    open_store: datastore.Store, site: records.Site, at: Time
) -> None:
    found = ["93.184.215.14"]
    client = outbound.Client(LIMITS, resolver=lambda _host: found)
    open_store.kept(sending.OUTBOUND, lambda: client)
    with open_store.context():
        register("0", "https://hooks.example/", client)
        post(site)
        found[:] = ["169.254.169.254"]
        assert sending.serve(at) == sending.Done(0, 1)
        assert "is not on the Internet" in hooks.get("demo", "0").off


# --- Processes that die --------------------

SENDING = """
import sys
from datetime import datetime, timedelta
from comments import datastore, sending
from emulator import inprocess
from tests import trees
from tests.comments import receivers, test_sending

path, *ports = sys.argv[1:]
engine = inprocess.open_engine(path, indexes=test_sending.INDEXES, concurrency="pessimistic")
store = datastore.Store(inprocess.Channel(engine), project="test")
client = receivers.client(*map(int, ports))
store.kept(sending.OUTBOUND, lambda: client)
with store.context():
    print("ready", flush=True)
    sys.stdin.readline()
    sending.serve(lambda: trees.START + timedelta(hours=1))
"""
INDEXES = programs.ROOT / "index.yaml"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[datastore.Store]:
    """A store in a file that other processes share, with its context entered."""
    path = tmp_path / "store.db"
    with inprocess.open_engine(path, indexes=INDEXES, concurrency="pessimistic") as engine:
        opened = datastore.Store(inprocess.Channel(engine), project="test", deadline=60.0)
        with opened.context():
            sites.add("demo", ["https://a.example"], scheme=trees.SETTINGS.scheme, now=START)
            yield opened


def _sender(path: Path, told: list[receivers.Receiver]) -> "subprocess.Popen[str]":
    ports = [f"{each.port}" for each in told]
    child = subprocess.Popen(
        [sys.executable, "-c", SENDING, str(path / "store.db"), *ports],
        cwd=programs.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def _go(child: "subprocess.Popen[str]") -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


@pytest.mark.slow
def test_a_process_killed_between_sending_and_noting_leaves_it_to_another(
    shared: datastore.Store, told: list[receivers.Receiver], tmp_path: Path, at: Time
) -> None:
    client = receivers.client(*(each.port for each in told))
    shared.kept(sending.OUTBOUND, lambda: client)
    for number, each in enumerate(told):
        register(f"{number}", each.url, client)
    site = sites.get("demo")
    expected = [post(site, f"{n}") for n in range(4)]
    child = _sender(tmp_path, told)

    def kill(_: receivers.Heard) -> None:
        if len(told[0].heard) == 2:
            os.kill(child.pid, signal.SIGKILL)
            child.wait(programs.PATIENCE)

    told[0].then = kill
    _go(child)
    child.communicate(timeout=programs.PATIENCE)
    assert child.returncode == -signal.SIGKILL
    told[0].then = lambda _: None
    # What the dead one had claimed is left alone, until its lease is over.
    sending.serve(at)
    assert left() != []
    at.now += messages.LEASE
    sending.serve(at)
    assert left() == []
    for each in told:
        assert sorted(set(each.ids)) == sorted(expected)
        assert len(each.ids) <= len(expected) + 1
    assert len(told[0].ids) == len(expected) + 1


@pytest.mark.slow
def test_two_processes_that_send_at_once_tell_each_hook_once(
    shared: datastore.Store, told: list[receivers.Receiver], tmp_path: Path
) -> None:
    client = receivers.client(*(each.port for each in told))
    for number, each in enumerate(told):
        register(f"{number}", each.url, client)
    site = sites.get("demo")
    expected = [post(site, f"{n}") for n in range(8)]
    children = [_sender(tmp_path, told) for _ in range(2)]
    for child in children:
        _go(child)
    for child in children:
        child.communicate(timeout=programs.PATIENCE)
        assert child.returncode == 0
    assert left() == []
    for each in told:
        assert sorted(each.ids) == sorted(expected)


def test_an_event_of_what_was_not_committed_is_told_to_nobody(
    hooked: list[receivers.Receiver],
    at: Time,
) -> None:
    change = outbox.tell(outbox.Kind.POSTED, "never.1", [], now=START)

    def body() -> None:
        datastore.apply(change)
        raise ValueError("planned")

    with pytest.raises(ValueError, match="planned"):
        datastore.transaction(body)
    delivery.deliver(["never.1"], now=at())
    assert sending.serve(at) == sending.Done(0, 0)
    assert [each.heard for each in hooked] == [[], [], []]
