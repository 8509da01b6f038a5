"""Test which subscription requests are refused and how many confirmation mails are sent."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments import app as apps
from comments.notifications import double_opt_in
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess, testing
from tests.comments.notifications.mail.test_compose import ODD
from tests.conftest import ROOT
from tests.support.outside import mail_subscriber
from tests.support.outside.mail_server import Box
from tests.support.threads import sample_threads


def test_the_response_and_the_cost_are_the_same_for_every_address(
    asker: mail_subscriber.Asker, engine: inprocess.Engine
) -> None:
    asker.follow()
    answers, costs = [], []
    for email in (mail_subscriber.ANN, "nobody@example.org"):
        with testing.meter(engine) as cost:
            answer = asker.ask(email)
        headers = {name: value for name, value in answer.headers if name != "Date"}
        answers.append((answer.status_code, answer.data, headers))
        costs.append((cost.reads, cost.writes, cost.deletes, cost.small))
    assert answers[0] == answers[1]
    assert costs == [(2, 3, 0, 0)] * 2  # Reads and writes two rate limits; writes an event


def test_an_address_gets_a_limited_number_of_confirmation_mails(
    asker: mail_subscriber.Asker,
) -> None:
    for number in range(double_opt_in.PER_ADDRESS.most + 2):
        # Each request comes from a different network and has an address tag that mail servers
        # ignore.
        asked = asker.ask(f"ann+{number}@example.org", address=f"203.0.113.{number}")
        assert asked.status_code == 202
        asker.deliver()
    assert len(asker.box.taken) == double_opt_in.PER_ADDRESS.most


@pytest.mark.embedded
def test_concurrent_requests_for_an_address_are_counted(box: Box) -> None:
    """Other callers request mail for the same address between a limit's read and its commit."""
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
            connection.Store(inprocess.Channel(engine, each), project="test")
            for each in (overtake, None)
        ]
        slow, fast = (
            mail_subscriber.Asker(
                apps.create_app(settings, store).test_client(), store, settings, box
            )
            for store in stores
        )
        with fast.store.context():
            site = site_settings.add("demo", [], scheme=settings.scheme, now=datetime.now(UTC))
            sample_threads.post(site, "first")
        meanwhile.append(
            lambda: [
                fast.ask(address=f"198.51.100.{number}")
                for number in range(double_opt_in.PER_ADDRESS.most)
            ]
        )
        assert slow.ask().status_code == 202  # Callers do not learn that the limit is reached
        assert meanwhile == []
        fast.deliver()
    assert len(box.taken) == double_opt_in.PER_ADDRESS.most


def test_a_network_may_request_a_few_mails_an_hour(asker: mail_subscriber.Asker) -> None:
    for number in range(double_opt_in.PER_NETWORK.most):
        asked = asker.ask(f"a{number}@example.org", address="2001:db8::1:2")
        assert asked.status_code == 202
    refused = asker.ask("more@example.org", address="2001:db8::3:4")
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 3600
    assert json.loads(refused.text)["code"] == "too-many"
    # Headers in which clients claim an address are ignored.
    headers = {"X-Forwarded-For": "198.51.100.7", "X-Appengine-User-IP": "198.51.100.7"}
    sent = {"email": "more@example.org", "thread": True}
    peer = {"REMOTE_ADDR": "2001:db8::5"}
    refused = asker.client.put(
        mail_subscriber.URL, json=sent, headers=headers, environ_overrides=peer
    )
    assert refused.status_code == 429
    assert asker.ask("more@example.org", address="2001:db8:0:1::1").status_code == 202


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"email": 1}, "email"),
        ({"thread": False}, "thread"),
        ({"thread": "yes"}, "thread"),
        ({"all": True}, "all"),
    ],
)
def test_an_invalid_request_is_refused_by_field(
    asker: mail_subscriber.Asker, sent: dict[str, Any], field: str
) -> None:
    refused = asker.client.put(
        mail_subscriber.URL, json={"email": mail_subscriber.ANN, "thread": True} | sent
    )
    assert refused.status_code == 400
    assert json.loads(refused.text)["field"] == field
    asker.deliver()
    assert asker.box.taken == []


def test_several_addresses_or_none_get_no_mail(asker: mail_subscriber.Asker) -> None:
    for number, email in enumerate(ODD):
        refused = asker.ask(email, address=f"203.0.113.{number}")
        assert (refused.status_code, json.loads(refused.text)["field"]) == (400, "email"), email
    asker.deliver()
    assert asker.box.taken == []
    assert asker.stored() == {}


def test_replies_need_the_authors_token(asker: mail_subscriber.Asker) -> None:
    refused = asker.client.put(
        mail_subscriber.URL, json={"email": mail_subscriber.ANN, "replies": True}
    )
    assert (refused.status_code, json.loads(refused.text)["code"]) == (401, "no-token")


def test_a_thread_without_comments_is_not_found(asker: mail_subscriber.Asker) -> None:
    url = "/api/v1/sites/demo/subscription?thread=nothing"
    refused = asker.client.put(url, json={"email": mail_subscriber.ANN, "thread": True})
    assert (refused.status_code, json.loads(refused.text)["code"]) == (404, "thread-not-found")


def test_without_a_mail_server_subscriptions_are_refused(
    client: FlaskClient, open_store: connection.Store
) -> None:
    refused = client.put(mail_subscriber.URL, json={"email": mail_subscriber.ANN, "thread": True})
    assert (refused.status_code, json.loads(refused.text)["code"]) == (409, "no-mail")


def test_a_foreign_page_cannot_request_a_subscription(asker: mail_subscriber.Asker) -> None:
    headers = {"Origin": "https://evil.example"}
    sent = {"email": mail_subscriber.ANN, "thread": True}
    assert asker.client.put(mail_subscriber.URL, json=sent, headers=headers).status_code == 403
