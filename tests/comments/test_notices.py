"""Claims about mail of comments: who gets it, who does not, and that each gets it.

Against a real mail server; time is moved by hand, and each step of a delivery is a sweep.
"""

import dataclasses
import itertools
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from comments import app as apps
from comments import (
    compaction,
    config,
    consent,
    counts,
    datastore,
    delivery,
    mail,
    models,
    notices,
    outbox,
    posting,
    postroom,
    records,
    sealed,
    sites,
    subscriptions,
    tree,
    upkeep,
)
from comments.records import Status
from emulator import inprocess, testing
from tests import programs, recounts, trees
from tests.comments import postboxes
from tests.comments.postboxes import Box

pytestmark = pytest.mark.slow

SITE = records.Site("demo", ("http://localhost:8080",), "", 2)
THREAD = records.ThreadName("demo", "page")
START = trees.START
INDEXES = programs.ROOT / "index.yaml"


@dataclasses.dataclass
class World:
    """A service that sends mail. Subscribing goes the short way: `consent` has its own tests."""

    store: datastore.Store
    settings: config.Settings
    box: Box
    now: datetime = START + timedelta(days=1)

    @property
    def handlers(self) -> Sequence[delivery.Handler]:
        return (*delivery.HANDLERS, *notices.handlers(self.settings, lambda: self.now))

    def id_of(self, email: str) -> str:
        return consent.subscriber_of(email, self.settings.secret)

    def subscribe(self, email: str, *, author: str = "", replies: bool = False) -> str:
        thread = "" if replies else models.thread_key_name(THREAD)
        wanted = subscriptions.Wanted("demo", thread, author, replies)
        address = sealed.seal(email, "address", self.settings.secret, now=self.now)
        subscriptions.subscribe(self.id_of(email), address, wanted, now=self.now)
        return self.id_of(email)

    def say(self, text: str, parent: str | None = None, author: str = "g:bob") -> records.Comment:
        written = records.Author("Bob", id=author)
        return trees.post(SITE, text, parent, author=written, now=START)

    def sweep(self) -> delivery.Done:
        return delivery.sweep(now=self.now, handlers=self.handlers)

    def deliver(self) -> None:
        """Sweep until nothing is due any more."""
        self.now += outbox.SWEPT_AFTER
        while self.sweep().delivered:
            pass

    def told(self, text: str) -> list[str]:
        """Who was sent a comment's text."""
        return sorted(
            address
            for number, address in enumerate(self.box.recipients)
            if f"> {text}\n" in self.box.text(number)
        )


@pytest.fixture
def box() -> Iterator[Box]:
    with postboxes.serving() as box:
        yield box


@pytest.fixture
def world(store: datastore.Store, site: records.Site, box: Box) -> World:
    made = World(store, box.settings(), box)
    made.say("first", author="g:ann")
    made.deliver()
    return made


def _held(text: str, status: Status = Status.PENDING) -> records.Comment:
    """A comment that waits, as moderation will write it: its row and its event in one commit."""
    node = trees.post(SITE, text, author=records.Author("Eve", id="g:eve"))
    events = outbox.read([f"{node.id}.1"])

    def body() -> None:
        row = datastore.get(models.comment_key(node.id))
        row.status, row.listed = status.value, False
        datastore.apply(datastore.Writes("tree", put=(row,)))
        for event in events:
            (change,) = outbox.record(event).changes
            assert change.new is not None
            new = change.new._replace(status=status.value, listed=False)
            told = [change._replace(new=new)]
            datastore.apply(outbox.tell(outbox.Kind.POSTED, event.key.id(), told, now=START))

    datastore.transaction(body)
    return node


def test_a_reply_is_told_to_whom_it_answers_and_to_nobody_else(world: World) -> None:
    first = world.say("a question", author="g:ann")
    world.subscribe("ann@example.org", author="g:ann", replies=True)
    world.subscribe("cid@example.org", author="g:cid", replies=True)
    world.say("an answer", first.id)
    world.say("elsewhere")
    world.deliver()
    assert world.box.recipients == ["ann@example.org"]
    made = world.box.taken[0][1]
    assert made["Subject"] == "Bob replied to you"
    assert "> an answer\n" in world.box.text()
    assert recounts.events() == []


def test_one_click_in_the_headers_ends_it(world: World) -> None:
    world.subscribe("ann@example.org")
    world.say("one")
    world.deliver()
    made = world.box.taken[0][1]
    assert made["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = made["List-Unsubscribe"].strip("<>")
    assert link.startswith(f"{postboxes.PUBLIC}/subscriptions/unsubscribe?token=")
    client = apps.create_app(world.settings, world.store).test_client()
    path = link.removeprefix(postboxes.PUBLIC)
    assert client.post(path, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    world.say("two")
    world.deliver()
    assert world.told("two") == []
    assert len(world.box.taken) == 1


def test_followers_are_told_in_pages_and_each_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "PAGE", 3)
    emails = [f"a{number}@example.org" for number in range(10)]
    for email in emails:
        world.subscribe(email)
    world.say("news")
    world.now += outbox.SWEPT_AFTER
    sent = [0]
    while world.sweep().delivered:
        assert len(recounts.events()) <= 1  # the rest of it, and nothing for each follower
        sent.append(len(world.box.taken))
    assert max(after - before for before, after in itertools.pairwise(sent)) == 3
    assert world.told("news") == sorted(emails)
    assert len({made["Message-ID"] for _, made in world.box.taken}) == 10


def test_who_has_several_reasons_gets_one_mail_and_his_own_comment_none(world: World) -> None:
    first = world.say("mine", author="g:ann")
    world.deliver()
    world.subscribe("ann@example.org", author="g:ann", replies=True)
    world.subscribe("ann@example.org", author="g:ann")
    world.subscribe("bob@example.org", author="g:bob")
    world.say("by bob", first.id)
    world.say("by ann", first.id, author="g:ann")
    world.deliver()
    assert world.told("by bob") == ["ann@example.org"]
    assert world.told("by ann") == ["bob@example.org"]


def test_who_unsubscribed_meanwhile_is_told_nothing(world: World) -> None:
    first = world.say("mine", author="g:ann")
    world.deliver()
    world.subscribe("ann@example.org", author="g:ann", replies=True)
    ann = world.subscribe("ann@example.org", author="g:another", replies=True)
    cid = world.subscribe("cid@example.org")
    world.say("late", first.id)
    world.now += outbox.SWEPT_AFTER
    world.sweep()  # it is decided who is told
    assert len(recounts.events()) == 2
    # Of these she wants no more; her address stays, for what she still wants.
    subscriptions.unsubscribe(ann, [subscriptions.name_of_replies("demo", "g:ann")], now=START)
    subscriptions.unsubscribe(cid, [subscriptions.name_of_thread(THREAD)], now=START)
    world.deliver()
    assert world.box.taken == []


@pytest.mark.parametrize("sweeps", [0, 1])
def test_what_was_taken_back_meanwhile_is_told_to_nobody(world: World, sweeps: int) -> None:
    world.subscribe("ann@example.org")
    row = world.say("regretted")
    world.now += outbox.SWEPT_AFTER
    for _ in range(sweeps):
        world.sweep()
    posting.retract(row.id, author_id="g:bob", revision=None, now=START)
    world.deliver()
    assert world.box.taken == []
    assert recounts.events() == []


def test_what_readers_do_not_see_is_told_to_moderators_only_if_it_waits(world: World) -> None:
    sites.change("demo", moderators=["mod@site.example", "two@site.example"])
    world.subscribe("ann@example.org")
    _held("waits")
    _held("spam", Status.SPAM)
    world.deliver()
    assert world.told("waits") == ["mod@site.example", "two@site.example"]
    assert world.told("spam") == []
    assert len(world.box.taken) == 2
    made = world.box.taken[0][1]
    assert made["Subject"] == "Eve wrote what waits for approval"
    assert "List-Unsubscribe" not in made


def test_an_edit_and_an_import_are_told_to_nobody(world: World) -> None:
    world.subscribe("ann@example.org")
    row = world.say("seen")
    world.deliver()
    posting.edit(
        row.id, author_id="g:bob", body="again", revision=None, settings=trees.SETTINGS, now=START
    )
    text = tree.Text("imported", "<p>imported</p>", "html-2")
    node = records.ImportedComment(
        id="a" * 26,
        reply_to=None,
        author=records.Author("Old"),
        body=text.body,
        html=text.html,
        renderer=text.renderer,
        status=Status.APPROVED,
        created=START,
        source="test",
    )
    assert trees.store_imported(THREAD, node) == 1
    world.deliver()
    assert len(world.box.taken) == 1


def test_an_address_gets_so_many_mails_a_day(world: World) -> None:
    world.settings = world.box.settings(mails_per_day=2)
    world.subscribe("ann@example.org")
    for text in ("1", "2", "3"):
        world.say(text)
        world.deliver()
    assert len(world.box.taken) == 2
    world.now += timedelta(days=1)
    world.say("4")
    world.deliver()
    assert world.told("4") == ["ann@example.org"]


def test_a_server_that_is_away_is_asked_again_and_loses_nobody(world: World) -> None:
    emails = [f"a{number}@example.org" for number in range(3)]
    for email in emails:
        world.subscribe(email)
    world.say("news")
    at_home = world.settings
    with postboxes.away() as box:
        world.settings = box.settings(mails_per_day=1)
        world.deliver()
        (event,) = outbox.read(recounts.events())
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
    with postboxes.away() as box:
        world.settings = box.settings()
        for _ in range(outbox.MOST_ATTEMPTS + 1):
            world.deliver()
            world.now += outbox.LONGEST_PAUSE
    assert list(postroom.dead_ids()) == recounts.events() != []
    world.settings = at_home
    for letter in [*postroom.dead_ids()]:
        assert "example.org" not in str(postroom.show(letter))
        postroom.revive(letter, now=world.now)
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
    (event,) = outbox.read(recounts.events())
    assert event.attempts == 1
    for attempts in (2, 3):
        world.now += outbox.LONGEST_PAUSE
        world.sweep()
        (event,) = outbox.read(recounts.events())
        assert event.attempts == attempts
    answers.clear()
    world.now += outbox.LONGEST_PAUSE
    world.deliver()
    assert world.told("news") == [*emails, busy]
    assert recounts.events() == []


def test_a_server_that_goes_away_in_the_middle_is_sent_only_the_rest(world: World) -> None:
    emails = [f"a{number}@example.org" for number in range(6)]
    for email in emails:
        world.subscribe(email)
    world.box.refuse = lambda _: "421 going away" if len(world.box.taken) >= 4 else None
    world.say("news")
    world.deliver()
    assert len(world.box.taken) == 4
    (event,) = outbox.read(recounts.events())
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


def test_a_link_leads_to_the_sites_page_or_to_ours(world: World) -> None:
    world.subscribe("ann@example.org")
    row = world.say("news")
    world.deliver()
    assert f"{postboxes.PUBLIC}/embed/demo?thread=page&around={row.id}#comment-{row.id}" in (
        world.box.text()
    )

    def place(url: str) -> None:
        thread = datastore.get(models.thread_key(THREAD))
        thread.url = url
        datastore.apply(datastore.Writes("tests", put=(thread,)))
        world.store._kept.pop("threads", None)

    for url, is_ours in (
        ("http://localhost:8080/post", False),
        ('http://localhost:8080/ü"x', True),
        ("https://evil.example/", True),
    ):
        datastore.transaction(lambda url=url: place(url))  # type: ignore[misc]
        row = world.say(f"at {len(url)}")
        world.deliver()
        ours = f"{postboxes.PUBLIC}/embed/"
        assert (ours in world.box.text()) is is_ours
        assert is_ours or f"{url}#comment-{row.id}" in world.box.text()
        assert "evil" not in world.box.text()


def test_while_a_mail_server_hangs_the_rest_of_a_process_goes_on(
    world: World, open_store: datastore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "TIMEOUT", 4 * programs.PATIENCE)
    world.subscribe("ann@example.org")
    hangs, goes_on = threading.Event(), threading.Event()

    def refuse(_: str) -> None:
        hangs.set()
        goes_on.wait(3 * programs.PATIENCE)

    world.box.refuse = refuse
    now = world.now
    handlers = (*delivery.HANDLERS, *notices.handlers(world.settings, lambda: now))
    worker = upkeep.Worker(open_store, trees.SETTINGS.scheme, handlers)
    worker.start()
    try:
        trees.post(SITE, "live", author=records.Author("Bob", id="g:bob"))
        assert hangs.wait(programs.PATIENCE)
        trees.post(SITE, "another", thread="other", author=records.Author("Bob", id="g:bob"))
        programs.wait_until(lambda: counts.of_site("demo").get("approved") == 3, "the counters")
        goes_on.set()
        programs.wait_until(lambda: world.told("live") == ["ann@example.org"], "the mail")
        programs.wait_until(lambda: recounts.events() == [], "the events to be done")
    finally:
        goes_on.set()
        assert worker.stop(programs.PATIENCE)


def test_a_page_of_a_long_list_costs_what_a_page_of_a_short_one_costs(
    world: World, engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "PAGE", 5)
    for number in range(5):
        world.subscribe(f"a{number}@example.org")

    def reads() -> int:
        world.say("news")
        world.now += outbox.SWEPT_AFTER
        world.sweep()
        with testing.meter(engine) as cost:
            world.sweep()  # the first page
        assert len(world.box.taken) % 5 == 0
        for event in outbox.read(recounts.events()):
            datastore.transaction(lambda event=event: datastore.apply(outbox.drop(event)))  # type: ignore[misc]
        return cost.reads

    short = reads()
    # Behind all ids of subscribers, which hold no "~".
    compaction.load(subscriptions.list_of(THREAD), (f"~{number:06d}" for number in range(30_000)))
    assert subscriptions.count(THREAD) == 30_005
    assert reads() <= short + 4
    assert len(world.box.taken) == 10


PEOPLE = ("ann", "bob", "cid")
STEPS = st.one_of(
    st.tuples(st.just("thread"), st.sampled_from(PEOPLE), st.booleans()),
    st.tuples(st.just("replies"), st.sampled_from(PEOPLE), st.booleans()),
    st.tuples(st.just("say"), st.sampled_from(PEOPLE), st.integers(-1, 3)),
    st.tuples(st.just("retract"), st.just(""), st.integers(0, 3)),
    st.tuples(st.just("deliver"), st.just(""), st.just(0)),
)


class Model:
    """Who has to be told what, in plain words: the oracle of `notices`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wants: set[tuple[str, str]] = set()
        self.said: list[tuple[records.Comment, str, str]] = []  # with author and whom it answers
        self.gone: set[str] = set()
        self.untold: list[int] = []
        self.expected: list[tuple[str, str]] = []

    def step(self, verb: str, who: str, how: int) -> None:
        getattr(self, verb)(who, how)

    def thread(self, who: str, how: int) -> None:
        self._subscribe(who, "thread", is_wanted=bool(how))

    def replies(self, who: str, how: int) -> None:
        self._subscribe(who, "replies", is_wanted=bool(how))

    def _subscribe(self, who: str, kind: str, *, is_wanted: bool) -> None:
        email, author = f"{who}@example.org", f"g:{who}"
        name = subscriptions.name_of_thread(THREAD)
        if kind == "replies":
            name = subscriptions.name_of_replies("demo", author)
        if is_wanted:
            self.world.subscribe(email, author=author, replies=kind == "replies")
            self.wants.add((who, kind))
        else:
            subscriptions.unsubscribe(self.world.id_of(email), [name], now=self.world.now)
            self.wants.discard((who, kind))

    def say(self, who: str, how: int) -> None:
        standing = [each for each in self.said if each[0].id not in self.gone]
        parent = standing[how] if 0 <= how < len(standing) else None
        text = f"text {len(self.said)}"
        row = self.world.say(text, parent[0].id if parent else None, f"g:{who}")
        self.untold.append(len(self.said))
        self.said.append((row, who, parent[1] if parent else ""))

    def retract(self, _: str, how: int) -> None:
        if how < len(self.said):
            row, who, _answered = self.said[how]
            self.gone.add(row.id)
            posting.retract(row.id, author_id=f"g:{who}", revision=None, now=START)

    def deliver(self, _: str = "", __: int = 0) -> None:
        for number in self.untold:
            row, author, answered = self.said[number]
            parent_is_gone = row.reply_to in self.gone
            for who in PEOPLE:
                is_told = (who, "thread") in self.wants
                is_told |= (who, "replies") in self.wants and who == answered and not parent_is_gone
                if is_told and who != author and row.id not in self.gone:
                    self.expected.append((f"{who}@example.org", f"text {number}"))
        self.untold.clear()
        self.world.deliver()


# The long run: NOTICES_EXAMPLES=500 .venv/bin/python -m pytest tests/comments/test_notices.py
@hypothesis_settings(max_examples=int(os.environ.get("NOTICES_EXAMPLES", "12")))
@given(steps=st.lists(STEPS, min_size=4, max_size=14))
def test_whatever_happens_everybody_gets_what_he_wants_once(
    steps: list[tuple[str, str, int]],
) -> None:
    with (
        postboxes.serving() as box,
        inprocess.open_engine(
            None, indexes=INDEXES, concurrency="pessimistic", history=0
        ) as engine,
    ):
        store = datastore.Store(inprocess.Channel(engine), project="test")
        with store.context():
            sites.add("demo", SITE.origins, scheme=trees.SETTINGS.scheme, now=START)
            model = Model(World(store, box.settings(), box))
            for step in steps:
                model.step(*step)
            model.deliver()
            told = [
                (address, re.search(r"^> (text \d+)$", box.text(number), re.MULTILINE)[1])  # type: ignore[index]
                for number, address in enumerate(box.recipients)
            ]
            assert sorted(told) == sorted(model.expected)
            recounts.check_all()


# Sends what is due, and dies behind so many mails.
DYING = """
import os
import sys
from datetime import datetime
from comments import datastore, delivery, mail, notices
from emulator import inprocess, testing
from tests.comments import test_notices as shared
from tests.comments.postboxes import Box

path, port, die_behind, now = sys.argv[1:]
sent = [0]
told = mail.Courier.send

def send(self, made):
    outcome = told(self, made)
    sent[0] += 1
    if sent[0] == int(die_behind):
        os._exit(9)
    return outcome

mail.Courier.send = send
notices.PAGE = shared.PAGE
engine = inprocess.open_engine(path, indexes=shared.INDEXES, concurrency="pessimistic", history=0)
store = datastore.Store(inprocess.Channel(engine), project="test")
now = datetime.fromisoformat(now)
handlers = (*delivery.HANDLERS, *notices.handlers(Box(int(port)).settings(), lambda: now))
with store.context():
    while delivery.sweep(now=now, handlers=handlers).delivered:
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
        store = datastore.Store(inprocess.Channel(engine), project="test")
        with store.context():
            sites.add("demo", SITE.origins, scheme=trees.SETTINGS.scheme, now=START)
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
        now += notices.TERM + timedelta(minutes=1)
    assert deaths == 2
    ids = [(address, made["Message-ID"]) for address, made in box.taken if "news" in str(made)]
    assert {address for address, _ in ids} == set(emails)
    assert len(set(ids)) == len(emails)  # a repeat is the same message
    assert len(ids) - len(emails) <= deaths * PAGE
    assert max(Counter(ids).values()) <= 1 + deaths
    with inprocess.open_engine(path, indexes=INDEXES) as engine:
        store = datastore.Store(inprocess.Channel(engine), project="test")
        with store.context():
            assert recounts.events() == []
