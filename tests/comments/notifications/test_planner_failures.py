"""Claims about mail of comments while mail servers fail and processes die: each gets it.

Against a real mail server; time is moved by hand, and each step of a delivery is a sweep.
"""

import dataclasses
import os
import subprocess
import sys
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from comments.domain import records
from comments.events import dead_letters, outbox
from comments.events.mail import smtp
from comments.jobs import wiring, worker_thread
from comments.notifications import planner
from comments.sites import site_settings
from comments.store import connection
from comments.tree.counters import totals
from emulator import inprocess
from tests.support import programs
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server
from tests.support.outside.mail_server import Box
from tests.support.outside.mail_service import INDEXES, SITE, START, World
from tests.support.threads import sample_threads

pytestmark = pytest.mark.slow


@pytest.fixture
def world(store: connection.Store, site: records.Site, box: Box) -> World:
    made = World(store, box.settings(), box)
    made.say("first", author="g:ann")
    made.deliver()
    return made


def test_a_server_that_is_away_is_asked_again_and_loses_nobody(world: World) -> None:
    emails = [f"a{number}@example.org" for number in range(3)]
    for email in emails:
        world.subscribe(email)
    world.say("news")
    at_home = world.settings
    with mail_server.away() as box:
        world.settings = box.settings(mails_per_day=1)
        world.deliver()
        (event,) = outbox.read(counter_oracle.events())
        assert (event.attempts, event.reason) == (1, "Unsent")
        assert event.due - world.now == outbox.FIRST_PAUSE
        # What was not sent counts for nobody's day.
        for _ in range(3):
            world.now += timedelta(hours=1)
            world.sweep()
    world.settings = dataclasses.replace(at_home, mails_per_day=1)
    world.now += timedelta(hours=1)
    world.deliver()
    assert world.told("news") == emails


def test_mail_that_can_never_be_sent_is_given_up_and_kept(world: World) -> None:
    world.subscribe("ann@example.org")
    world.say("news")
    at_home = world.settings
    with mail_server.away() as box:
        world.settings = box.settings()
        for _ in range(outbox.MOST_ATTEMPTS + 1):
            world.deliver()
            world.now += outbox.LONGEST_PAUSE
    assert list(dead_letters.dead_ids()) == counter_oracle.events() != []
    world.settings = at_home
    for letter in [*dead_letters.dead_ids()]:
        assert "example.org" not in str(dead_letters.show(letter))
        dead_letters.revive(letter, now=world.now)
    world.deliver()
    assert world.told("news") == ["ann@example.org"]


def test_one_recipient_who_cannot_be_reached_holds_up_nobody(world: World) -> None:
    busy, gone = "busy@example.org", "gone@example.org"
    answers = {busy: "450 mailbox busy", gone: "550 no such user"}
    world.box.refuse = answers.get
    emails = [f"a{number}@example.org" for number in range(3)]
    for email in [*emails, busy, gone]:
        world.subscribe(email)
    world.say("news")
    world.deliver()
    assert world.told("news") == emails
    (event,) = outbox.read(counter_oracle.events())
    assert event.attempts == 1
    for attempts in (2, 3):
        world.now += outbox.LONGEST_PAUSE
        world.sweep()
        (event,) = outbox.read(counter_oracle.events())
        assert event.attempts == attempts
    answers.clear()
    world.now += outbox.LONGEST_PAUSE
    world.deliver()
    assert world.told("news") == [*emails, busy]
    assert counter_oracle.events() == []


def test_a_server_that_goes_away_in_the_middle_is_sent_only_the_rest(world: World) -> None:
    emails = [f"a{number}@example.org" for number in range(6)]
    for email in emails:
        world.subscribe(email)
    world.box.refuse = lambda _: "421 going away" if len(world.box.taken) >= 4 else None
    world.say("news")
    world.deliver()
    assert len(world.box.taken) == 4
    (event,) = outbox.read(counter_oracle.events())
    assert event.due > world.now
    world.box.refuse = lambda _: None
    world.now += outbox.LONGEST_PAUSE
    world.deliver()
    assert world.told("news") == emails


def test_a_page_goes_over_one_session(world: World) -> None:
    for number in range(5):
        world.subscribe(f"a{number}@example.org")
    world.say("news")
    world.deliver()
    assert len(world.box.taken) == 5
    assert len(world.box.sessions) == 1


def test_while_a_mail_server_hangs_the_rest_of_a_process_goes_on(
    world: World, open_store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "TIMEOUT", 4 * programs.PATIENCE)
    world.subscribe("ann@example.org")
    hangs, goes_on = threading.Event(), threading.Event()

    def refuse(_: str) -> None:
        hangs.set()
        goes_on.wait(3 * programs.PATIENCE)

    world.box.refuse = refuse
    now = world.now
    handlers = (*wiring.HANDLERS, *planner.handlers(world.settings, lambda: now))
    worker = worker_thread.Worker(open_store, sample_threads.SETTINGS.scheme, handlers)
    worker.start()
    try:
        sample_threads.post(SITE, "live", author=records.Author("Bob", id="g:bob"))
        assert hangs.wait(programs.PATIENCE)
        sample_threads.post(
            SITE, "another", thread="other", author=records.Author("Bob", id="g:bob")
        )
        programs.wait_until(lambda: totals.of_site("demo").get("approved") == 3, "the counters")
        goes_on.set()
        programs.wait_until(lambda: world.told("live") == ["ann@example.org"], "the mail")
        programs.wait_until(lambda: counter_oracle.events() == [], "the events to be done")
    finally:
        goes_on.set()
        assert worker.stop(programs.PATIENCE)


# Sends what is due, and dies behind so many mails.
DYING = """
import os
import sys
from datetime import datetime
from comments.events.mail import smtp
from comments.store import connection
from comments.events import dispatcher
from comments.notifications import planner
from comments.jobs import wiring
from emulator import inprocess, testing
from tests.comments.notifications import test_planner_failures
from tests.support.outside.mail_server import Box

path, port, die_behind, now = sys.argv[1:]
sent = [0]
told = smtp.Courier.send

def send(self, made):
    outcome = told(self, made)
    sent[0] += 1
    if sent[0] == int(die_behind):
        os._exit(9)
    return outcome

smtp.Courier.send = send
planner.PAGE = test_planner_failures.PAGE
indexes = test_planner_failures.INDEXES
engine = inprocess.open_engine(path, indexes=indexes, concurrency="pessimistic", history=0)
store = connection.Store(inprocess.Channel(engine), project="test")
now = datetime.fromisoformat(now)
handlers = (*wiring.HANDLERS, *planner.handlers(Box(int(port)).settings(), lambda: now))
with store.context():
    while dispatcher.sweep(now=now, handlers=handlers).delivered:
        pass
"""

PAGE = 4


def test_a_process_killed_between_mails_loses_nobody_and_repeats_a_page_at_most(
    box: Box, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    emails = [f"a{number}@example.org" for number in range(10)]
    with inprocess.open_engine(
        path, indexes=INDEXES, concurrency="pessimistic", history=0
    ) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            site_settings.add(
                "demo", SITE.origins, scheme=sample_threads.SETTINGS.scheme, now=START
            )
            world = World(store, box.settings(), box)
            world.say("first")
            for email in emails:
                world.subscribe(email)
            world.say("news")
    now, deaths = START + timedelta(days=2), 0
    for die_behind in (2, 5, 0):
        command = [sys.executable, "-c", DYING, str(path), str(box.port), str(die_behind)]
        done = subprocess.run(
            [*command, now.isoformat()],
            cwd=programs.ROOT,
            env=os.environ,
            check=False,
            timeout=programs.PATIENCE,
        )
        assert done.returncode in {0, 9}
        deaths += done.returncode == 9
        now += planner.TERM + timedelta(minutes=1)
    assert deaths == 2
    ids = [(address, made["Message-ID"]) for address, made in box.taken if "news" in str(made)]
    assert {address for address, _ in ids} == set(emails)
    assert len(set(ids)) == len(emails)  # a repeat is the same message
    assert len(ids) - len(emails) <= deaths * PAGE
    assert max(Counter(ids).values()) <= 1 + deaths
    with inprocess.open_engine(path, indexes=INDEXES) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            assert counter_oracle.events() == []
