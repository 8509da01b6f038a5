"""Every follower gets notifications even if mail servers fail or processes die.

The mail server is real, tests advance the time, and each delivery step is one sweep.
"""

import dataclasses
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from comments.domain import records
from comments.events import dead_letters, outbox, retry_pauses
from comments.notifications import planner
from comments.notifications.mail import smtp
from comments.sites import site_settings
from comments.store import connection
from comments.tree.counters import totals
from comments.upkeep import background_worker, wiring
from datastore_emulator import inprocess
from tests.support import forked_programs, programs
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server
from tests.support.outside.mail_server import Box
from tests.support.outside.mail_service import INDEXES, SITE, START, MailService
from tests.support.threads import sample_threads

pytestmark = pytest.mark.slow


def test_an_unavailable_server_is_retried_without_losing_anybody(mailer: MailService) -> None:
    emails = [f"a{number}@example.org" for number in range(3)]
    for email in emails:
        mailer.subscribe(email)
    mailer.say("news")
    at_home = mailer.settings
    with mail_server.away() as box:
        mailer.settings = box.settings(mails_per_day=1)
        mailer.deliver()
        (event,) = outbox.read(counter_oracle.events())
        assert (event.attempts, event.reason) == (1, "Unsent")
        assert event.due - mailer.now == retry_pauses.FIRST_PAUSE
        # Unsent mail does not count towards the daily limit.
        for _ in range(3):
            mailer.now += timedelta(hours=1)
            mailer.sweep()
    mailer.settings = dataclasses.replace(at_home, mails_per_day=1)
    mailer.now += timedelta(hours=1)
    mailer.deliver()
    assert mailer.told("news") == emails


def test_mail_that_can_never_be_sent_becomes_a_dead_letter(mailer: MailService) -> None:
    mailer.subscribe("ann@example.org")
    mailer.say("news")
    at_home = mailer.settings
    with mail_server.away() as box:
        mailer.settings = box.settings()
        for _ in range(retry_pauses.MOST_ATTEMPTS + 1):
            mailer.deliver()
            mailer.now += retry_pauses.LONGEST_PAUSE
    assert list(dead_letters.dead_ids()) == counter_oracle.events() != []
    mailer.settings = at_home
    for letter in [*dead_letters.dead_ids()]:
        assert "example.org" not in str(dead_letters.show(letter))
        dead_letters.revive(letter, now=mailer.now)
    mailer.deliver()
    assert mailer.told("news") == ["ann@example.org"]


def test_an_unreachable_recipient_delays_no_others(mailer: MailService) -> None:
    busy, gone = "busy@example.org", "gone@example.org"
    answers = {busy: "450 mailbox busy", gone: "550 no such user"}
    mailer.box.refuse = answers.get
    emails = [f"a{number}@example.org" for number in range(3)]
    for email in [*emails, busy, gone]:
        mailer.subscribe(email)
    mailer.say("news")
    mailer.deliver()
    assert mailer.told("news") == emails
    (event,) = outbox.read(counter_oracle.events())
    assert event.attempts == 1
    for attempts in (2, 3):
        mailer.now += retry_pauses.LONGEST_PAUSE
        mailer.sweep()
        (event,) = outbox.read(counter_oracle.events())
        assert event.attempts == attempts
    answers.clear()
    mailer.now += retry_pauses.LONGEST_PAUSE
    mailer.deliver()
    assert mailer.told("news") == [*emails, busy]
    assert counter_oracle.events() == []


def test_after_an_interruption_only_the_remaining_mails_are_sent(
    mailer: MailService,
) -> None:
    emails = [f"a{number}@example.org" for number in range(6)]
    for email in emails:
        mailer.subscribe(email)
    mailer.box.refuse = lambda _: "421 going away" if len(mailer.box.taken) >= 4 else None
    mailer.say("news")
    mailer.deliver()
    assert len(mailer.box.taken) == 4
    (event,) = outbox.read(counter_oracle.events())
    assert event.due > mailer.now
    mailer.box.refuse = lambda _: None
    mailer.now += retry_pauses.LONGEST_PAUSE
    mailer.deliver()
    assert mailer.told("news") == emails


def test_a_page_of_mails_uses_one_smtp_session(mailer: MailService) -> None:
    for number in range(5):
        mailer.subscribe(f"a{number}@example.org")
    mailer.say("news")
    mailer.deliver()
    assert len(mailer.box.taken) == 5
    assert len(mailer.box.sessions) == 1


def test_a_hanging_mail_server_does_not_block_the_process(
    mailer: MailService, open_store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "TIMEOUT", 4 * programs.PATIENCE)
    mailer.subscribe("ann@example.org")
    hangs, goes_on = threading.Event(), threading.Event()

    def refuse(_: str) -> None:
        hangs.set()
        goes_on.wait(3 * programs.PATIENCE)

    mailer.box.refuse = refuse
    now = mailer.now
    handlers = (*wiring.HANDLERS, *planner.handlers(mailer.settings, lambda: now))
    worker = background_worker.BackgroundWorker(open_store, handlers)
    worker.start()
    try:
        sample_threads.post(SITE, "live", author=records.Author("Bob", id="g:bob"))
        assert hangs.wait(programs.PATIENCE)
        sample_threads.post(
            SITE, "another", thread="other", author=records.Author("Bob", id="g:bob")
        )
        programs.wait_until(lambda: totals.of_site("demo").get("approved") == 3, "the counters")
        goes_on.set()
        programs.wait_until(lambda: mailer.told("live") == ["ann@example.org"], "the mail")
        programs.wait_until(lambda: counter_oracle.events() == [], "the events to be done")
    finally:
        goes_on.set()
        assert worker.stop(programs.PATIENCE)


# This program sends due mail and dies after a given number of mails.
DYING = """
import os
import sys
from datetime import datetime
from comments.notifications.mail import smtp
from comments.store import connection
from comments.events import dispatcher
from comments.notifications import planner
from comments.upkeep import wiring
from datastore_emulator import inprocess, testing
from tests.comments.notifications import test_planner_failures
from tests.support.outside.mail_server import Box

path, port, die_behind, now = sys.argv[1:]
sent = [0]
told = smtp.SmtpClient.send

def send(self, made):
    outcome = told(self, made)
    sent[0] += 1
    if sent[0] == int(die_behind):
        os._exit(9)
    return outcome

smtp.SmtpClient.send = send
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


@pytest.mark.embedded
def test_a_process_killed_between_mails_loses_nobody_and_repeats_one_page_at_most(
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
            mailer = MailService(store, box.settings(), box)
            mailer.say("first")
            for email in emails:
                mailer.subscribe(email)
            mailer.say("news")
    now, deaths = START + timedelta(days=2), 0
    for die_behind in (2, 5, 0):
        status, _ = forked_programs.run(DYING, path, box.port, die_behind, now.isoformat())
        assert status in {0, 9}
        deaths += status == 9
        now += planner.TERM + timedelta(minutes=1)
    assert deaths == 2
    ids = [(address, made["Message-ID"]) for address, made in box.taken if "news" in str(made)]
    assert {address for address, _ in ids} == set(emails)
    assert len(set(ids)) == len(emails)  # Mail that is sent again keeps its message id
    assert len(ids) - len(emails) <= deaths * PAGE
    assert max(Counter(ids).values()) <= 1 + deaths
    with inprocess.open_engine(path, indexes=INDEXES) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            assert counter_oracle.events() == []
