"""Claims about asking for mail: one question to an address, nothing stored before it is answered.

Through HTTP and a real mail server, as people meet it.
"""

import dataclasses
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import app as apps
from comments import (
    compaction,
    config,
    consent,
    datastore,
    errors,
    followers,
    handlers,
    limits,
    records,
    sites,
    subscriptions,
    upkeep,
)
from emulator import inprocess, testing
from tests import recounts, trees
from tests.comments.postboxes import Box
from tests.comments.test_mail import ODD
from tests.conftest import ROOT

URL = "/api/v1/sites/demo/subscription?thread=page"
THREAD = records.ThreadName("demo", "page")
LIST = subscriptions.list_of(THREAD)
ANN = "Ann@example.org"
KINDS = ("Subscriber", "Subscription", "FollowerMark", "FollowerList", "FollowerSegment", "Event")
ONE_CLICK = {
    "data": "List-Unsubscribe=One-Click",
    "content_type": "application/x-www-form-urlencoded",
}


@dataclasses.dataclass
class World:
    """A service with a mail server, and somebody who has written in the thread "page"."""

    client: FlaskClient
    store: datastore.Store
    settings: config.Settings
    box: Box
    token: str = ""

    def ask(self, email: str = ANN, *, address: str = "203.0.113.1", **more: Any) -> TestResponse:
        sent = {"email": email, "thread": True} | more
        headers = {"Authorization": f"Bearer {self.token}"} if sent.get("replies") else {}
        peer = {"REMOTE_ADDR": address}
        return self.client.put(URL, json=sent, headers=headers, environ_overrides=peer)

    def deliver(self) -> None:
        with self.store.context():
            made = upkeep.Upkeep(self.settings.scheme, handlers=handlers.of(self.settings))
            while events := recounts.events():
                made.deliver(events)

    def follow(self, email: str = ANN, **more: Any) -> None:
        """Ask, and press the button of the page that the mail leads to."""
        assert self.ask(email, **more).status_code == 202
        self.deliver()
        assert self.client.post(self.box.link()).status_code == 200

    def stored(self) -> dict[str, int]:
        with self.store.context():
            counted = {kind: datastore.count(datastore.Query(kind)) for kind in KINDS}
        return {kind: count for kind, count in counted.items() if count}

    def is_following(self, email: str = ANN) -> bool:
        with self.store.context():
            who = consent.subscriber_of(email, self.settings.secret)
            return subscriptions.is_following(THREAD, who)


@pytest.fixture
def world(open_store: datastore.Store, site: records.Site, box: Box) -> World:
    settings = box.settings()
    client = apps.create_app(settings, open_store).test_client()
    made = World(client, open_store, settings, box)
    posted = client.post(
        "/api/v1/sites/demo/comments?thread=page",
        json={"name": "Mallory", "body": "Buy pills", "title": "Cheap pills"},
    )
    made.token = json.loads(posted.text)["token"]
    made.deliver()
    return made


def test_an_address_is_asked_once_and_nothing_of_it_is_stored(world: World) -> None:
    assert world.ask(replies=True).json == {"status": "asked"}
    world.deliver()
    assert world.box.recipients == [ANN]
    assert "replies to your comments" in world.box.text()
    assert "new comments in a discussion" in world.box.text()
    assert world.stored() == {}
    assert not world.is_following()


def test_nothing_that_a_stranger_chose_is_in_the_question(world: World) -> None:
    world.ask(replies=True)
    world.deliver()
    made = world.box.taken[0][1].as_string()
    for word in ("Mallory", "pills", "page?", "token=thread"):
        assert word not in made
    assert "List-Unsubscribe" not in world.box.taken[0][1]


def test_a_host_that_a_caller_names_is_in_no_mail(world: World) -> None:
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    sent = {"email": ANN, "thread": True}
    assert world.client.put(URL, json=sent, headers=evil).status_code == 202
    world.deliver()
    assert "evil" not in world.box.taken[0][1].as_string()
    assert world.settings.public_url.startswith("https://")
    assert f"{world.settings.public_url}/" in world.box.text()


def test_to_open_the_link_changes_nothing_and_its_button_subscribes(world: World) -> None:
    world.ask()
    world.deliver()
    link = world.box.link(page="confirm")
    for method in ("get", "head"):
        shown = getattr(world.client, method)(link)
        assert shown.status_code == 200
        assert world.stored() == {}
    assert 'method="post"' in world.client.get(link).text
    assert "Cheap pills" in world.client.get(link).text
    for _ in range(2):
        assert world.client.post(link).status_code == 200
        assert world.is_following()
        world.deliver()
        assert world.stored() == {"Subscriber": 1, "Subscription": 1, "FollowerMark": 1}


def test_upper_and_lower_case_are_one_address(world: World) -> None:
    world.follow("Ann@Example.org")
    assert world.is_following("ann@example.org")


def _one_click(world: World) -> str:
    with world.store.context():
        ending = consent.Ending(
            consent.subscriber_of(ANN, world.settings.secret),
            (subscriptions.name_of_thread(THREAD),),
        )
        return consent.ending_link(ending, world.settings.secret)


def test_one_click_ends_it_and_to_open_the_link_does_not(world: World) -> None:
    world.follow()
    link = f"/subscriptions/unsubscribe?token={_one_click(world)}"
    for method in ("get", "head"):
        assert getattr(world.client, method)(link).status_code == 200
        assert world.is_following()
    for _ in range(2):
        assert world.client.post(link, **ONE_CLICK).status_code == 200
        assert not world.is_following()
    world.deliver()
    # With the last subscription the address is erased.
    assert set(world.stored()) <= {"FollowerMark"}


def test_one_subscription_ends_alone_and_everything_at_once(world: World) -> None:
    world.follow(replies=True)
    world.client.post(f"/subscriptions/unsubscribe?token={_one_click(world)}")
    world.deliver()
    assert world.stored() == {"Subscriber": 1, "Subscription": 1, "FollowerMark": 1}
    world.follow(replies=True)
    world.client.post(f"/subscriptions/unsubscribe/all?token={_one_click(world)}")
    world.deliver()
    assert set(world.stored()) <= {"FollowerMark"}
    assert not world.is_following()


def test_a_link_opens_for_one_purpose_and_for_two_days(world: World) -> None:
    world.ask()
    world.deliver()
    confirming = world.box.link(page="confirm").partition("token=")[2]
    for page, token in (
        ("unsubscribe", confirming),
        ("unsubscribe/all", confirming),
        ("confirm", _one_click(world)),
        ("confirm", world.token),
        ("unsubscribe", world.token),
        ("confirm", confirming[:-2]),
        ("unsubscribe", "x" * 2000),
    ):
        refused = world.client.post(f"/subscriptions/{page}?token={token}")
        assert refused.status_code == 400, page
        assert refused.mimetype == "text/html"
    refused = world.client.delete(
        f"/api/v1/comments/{'a' * 26}", headers={"Authorization": f"Bearer {_one_click(world)}"}
    )
    assert refused.status_code in {401, 404}
    late = datetime.now(UTC) + consent.TERM + timedelta(minutes=1)
    with world.store.context(), pytest.raises(errors.BadLink) as caught:
        consent.confirm(confirming, secret=world.settings.secret, now=late)
    assert caught.value.code == "link-expired"
    assert world.stored() == {}


def test_the_answer_and_the_cost_are_the_same_for_every_address(
    world: World, engine: inprocess.Engine
) -> None:
    world.follow()
    answers, costs = [], []
    for email in (ANN, "nobody@example.org"):
        with testing.meter(engine) as cost:
            answer = world.ask(email)
        headers = {name: value for name, value in answer.headers if name != "Date"}
        answers.append((answer.status_code, answer.data, headers))
        costs.append((cost.reads, cost.writes, cost.deletes, cost.small))
    assert answers[0] == answers[1]
    assert costs == [(2, 3, 0, 0)] * 2  # two limits; they and the event


def test_to_confirm_costs_at_most_four_reads_and_four_writes(
    world: World, engine: inprocess.Engine
) -> None:
    world.ask()
    world.deliver()
    with testing.meter(engine) as cost:
        world.client.post(world.box.link())
    assert cost.reads <= 5  # the title on the page among them
    assert cost.writes <= 4


def test_nobody_can_have_an_address_flooded_with_questions(world: World) -> None:
    for number in range(consent.PER_ADDRESS.most + 2):
        # From another network each time, and with what mail servers ignore.
        asked = world.ask(f"ann+{number}@example.org", address=f"203.0.113.{number}")
        assert asked.status_code == 202
        world.deliver()
    assert len(world.box.taken) == consent.PER_ADDRESS.most


def test_who_asks_while_others_do_is_counted_with_them(box: Box) -> None:
    """Between the read of a limit and its commit, others ask for the same address."""
    meanwhile: list[Callable[[], object]] = []

    def overtake(method: str, _: Any, proceed: Callable[[], bytes]) -> bytes:
        if method == "Commit" and meanwhile:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(meanwhile.pop()).result()
        return proceed()

    settings = box.settings()
    with inprocess.open_engine(
        None, indexes=ROOT / "index.yaml", concurrency="optimistic"
    ) as engine:
        stores = [
            datastore.Store(inprocess.Channel(engine, each), project="test")
            for each in (overtake, None)
        ]
        slow, fast = (
            World(apps.create_app(settings, store).test_client(), store, settings, box)
            for store in stores
        )
        with fast.store.context():
            site = sites.add("demo", [], scheme=settings.scheme, now=datetime.now(UTC))
            trees.post(site, "first")
        meanwhile.append(
            lambda: [
                fast.ask(address=f"198.51.100.{number}")
                for number in range(consent.PER_ADDRESS.most)
            ]
        )
        assert slow.ask().status_code == 202  # nobody learns that it was asked often enough
        assert meanwhile == []
        fast.deliver()
    assert len(box.taken) == consent.PER_ADDRESS.most


def test_a_network_can_ask_a_few_times_an_hour(world: World) -> None:
    for number in range(consent.PER_NETWORK.most):
        asked = world.ask(f"a{number}@example.org", address="2001:db8::1:2")
        assert asked.status_code == 202
    refused = world.ask("more@example.org", address="2001:db8::3:4")
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 3600
    assert json.loads(refused.text)["code"] == "too-many"
    # What a client says of itself is nobody's word.
    headers = {"X-Forwarded-For": "198.51.100.7", "X-Appengine-User-IP": "198.51.100.7"}
    sent = {"email": "more@example.org", "thread": True}
    peer = {"REMOTE_ADDR": "2001:db8::5"}
    refused = world.client.put(URL, json=sent, headers=headers, environ_overrides=peer)
    assert refused.status_code == 429
    assert world.ask("more@example.org", address="2001:db8:0:1::1").status_code == 202


def test_a_limit_is_over_after_its_window_whatever_a_clock_said(store: datastore.Store) -> None:
    limit = limits.Limit("test", 2, timedelta(hours=1))
    now = datetime(2026, 1, 2, tzinfo=UTC)

    def taken(moment: datetime) -> bool:
        return limits.take(limit, "somebody", "a secret", now=moment)

    assert [taken(now) for _ in range(3)] == [True, True, False]
    assert taken(now + timedelta(minutes=59)) is False
    assert taken(now + timedelta(hours=1)) is True
    # A clock that is far ahead does not close a bucket for years.
    assert [taken(now + timedelta(days=999)) for _ in range(3)] == [True, True, False]
    assert taken(now + timedelta(hours=2)) is True


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"email": 1}, "email"),
        ({"thread": False}, "thread"),
        ({"thread": "yes"}, "thread"),
        ({"all": True}, "all"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_field(
    world: World, sent: dict[str, Any], field: str
) -> None:
    refused = world.client.put(URL, json={"email": ANN, "thread": True} | sent)
    assert refused.status_code == 400
    assert json.loads(refused.text)["field"] == field
    world.deliver()
    assert world.box.taken == []


def test_an_address_that_is_several_or_none_is_asked_nothing(world: World) -> None:
    for number, email in enumerate(ODD):
        refused = world.ask(email, address=f"203.0.113.{number}")
        assert (refused.status_code, json.loads(refused.text)["field"]) == (400, "email"), email
    world.deliver()
    assert world.box.taken == []
    assert world.stored() == {}


def test_replies_are_told_to_who_holds_the_token(world: World) -> None:
    refused = world.client.put(URL, json={"email": ANN, "replies": True})
    assert (refused.status_code, json.loads(refused.text)["code"]) == (401, "no-token")


def test_a_thread_that_nobody_wrote_in_is_not_there(world: World) -> None:
    url = "/api/v1/sites/demo/subscription?thread=nothing"
    refused = world.client.put(url, json={"email": ANN, "thread": True})
    assert (refused.status_code, json.loads(refused.text)["code"]) == (404, "thread-not-found")


def test_without_a_mail_server_there_is_nothing_to_ask_for(
    client: FlaskClient, open_store: datastore.Store
) -> None:
    refused = client.put(URL, json={"email": ANN, "thread": True})
    assert (refused.status_code, json.loads(refused.text)["code"]) == (409, "no-mail")


def test_a_page_of_somebody_else_asks_for_nothing(world: World) -> None:
    headers = {"Origin": "https://evil.example"}
    sent = {"email": ANN, "thread": True}
    assert world.client.put(URL, json=sent, headers=headers).status_code == 403


def test_the_pages_run_nothing_and_give_their_address_to_nobody(world: World) -> None:
    world.ask()
    world.deliver()
    for answer in (
        world.client.get(world.box.link()),
        world.client.get("/subscriptions/confirm"),
        world.client.get(f"/subscriptions/unsubscribe?token={_one_click(world)}"),
        world.client.post(f"/subscriptions/unsubscribe/all?token={_one_click(world)}"),
    ):
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Robots-Tag"] == "noindex"
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "frame-ancestors 'none'" in policy


def _everything(engine: inprocess.Engine, store: datastore.Store) -> str:
    """All that is stored, as text."""
    with store.context():
        kinds = ("Subscriber", "Subscription", "RateBucket", "Event", "Job", *KINDS[2:5])
        rows = [str(row) for kind in kinds for row in datastore.fetch(datastore.Query(kind))]
    return "".join(rows)


def test_an_address_is_nowhere_in_the_store_as_it_is(
    world: World, engine: inprocess.Engine
) -> None:
    world.ask()
    assert "example.org" not in _everything(engine, world.store).lower()
    world.deliver()
    world.client.post(world.box.link())
    assert "example.org" not in _everything(engine, world.store).lower()


def test_what_is_forgotten_is_gone_from_every_row_and_segment(
    world: World, engine: inprocess.Engine
) -> None:
    others = [f"other{number}@example.org" for number in range(3)]
    for number, email in enumerate([ANN, *others]):
        world.follow(email, address=f"203.0.113.{number}")
    secret = world.settings.secret
    who = consent.subscriber_of(ANN, secret)
    with world.store.context():
        assert compaction.compact(LIST)
        assert list(followers.naming(who)) == [LIST]
        # He left long ago: only the list still names him.
        subscriptions.unfollow(THREAD, who, now=datetime.now(UTC))
        assert subscriptions.of_subscriber(who) == []
        assert consent.forget(ANN, secret, now=datetime.now(UTC)) == 0
        assert list(followers.naming(who)) == []
        kept = subscriptions.page(THREAD, limit=9).ids
        assert sorted(kept) == sorted(consent.subscriber_of(each, secret) for each in others)
        # And while he follows, with marks that nobody has folded.
        subscriptions.follow(THREAD, who, now=datetime.now(UTC))
        assert consent.forget(ANN.upper(), secret, now=datetime.now(UTC)) == 1
        assert list(followers.naming(who)) == []
        assert consent.forget(ANN, secret, now=datetime.now(UTC)) == 0
    assert who not in _everything(engine, world.store)
    for email in others:
        assert world.is_following(email)


def test_an_address_stored_under_another_secret_is_unreadable(world: World) -> None:
    now = datetime.now(UTC)
    stored = consent.sealed.seal(ANN, "address", "another secret", now=now)
    with pytest.raises(errors.BadLink):
        consent.address(stored, secret=world.settings.secret, now=now)
