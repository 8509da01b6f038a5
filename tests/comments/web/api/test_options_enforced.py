"""Test that the API refuses what a site's options turn off."""

from datetime import UTC, datetime
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.web.api.callers import api_tokens
from tests.support.people import account_holders
from tests.support.people.api_requests import KEY, ONE, THREAD, answer, bearer, post, refused
from tests.support.threads import sample_threads

TEXT = {"name": "Ann", "body": "Hello"}


@pytest.fixture
def options(open_store: connection.Store, site: records.Site) -> Any:
    def change(**given: object) -> None:
        with open_store.context():
            site_settings.change(site.id, options=given)

    return change


def _member(store: connection.Store) -> dict[str, str]:
    with store.context():
        account = account_holders.account("Mia")
    member = api_tokens.Member("demo", account.id, account.epoch)
    secret, now = sample_threads.SETTINGS.secret, datetime.now(UTC)
    token, _ = api_tokens.issue(member, secret=secret, term=3600, now=now)
    return {"Authorization": f"Bearer {token}"}


def test_votes_that_are_off_can_only_be_withdrawn(client: FlaskClient, options: Any) -> None:
    one = f"{ONE}{post(client)['comment']['id']}/vote"
    voter = bearer(answer(client.put(one, json={"value": 1})))
    options(votes=False)
    assert refused(client.put(one, json={"value": -1}, headers=voter), 403) == "votes-off"
    assert refused(client.put(one, json={"value": 1}), 403) == "votes-off"
    assert client.delete(one, headers=voter).status_code == 200
    options(votes=True)
    assert client.put(one, json={"value": 1}, headers=voter).status_code == 200


def test_a_website_that_is_off_is_refused_as_a_field(
    client: FlaskClient, open_store: connection.Store, options: Any
) -> None:
    options(website=False)
    site = {"website": "https://ann.example"}
    found = client.post(THREAD, json={**TEXT, **site})
    assert refused(found, 400, "website") == "website-off"
    mia = _member(open_store)
    assert refused(client.post(THREAD, json={**TEXT, **site}, headers=mia), 400) == "website-off"
    assert client.post(THREAD, json=TEXT).status_code == 201


def test_guests_that_are_off_cannot_post_and_members_can(
    client: FlaskClient, open_store: connection.Store, options: Any
) -> None:
    guest = post(client)
    options(guests=False)
    assert refused(client.post(THREAD, json=TEXT), 403) == "guests-off"
    found = client.post(THREAD, json={**TEXT, "body": "More"}, headers=bearer(guest))
    assert refused(found, 403) == "guests-off"
    mine = ONE + guest["comment"]["id"]
    assert client.patch(mine, json={"body": "Bye"}, headers=bearer(guest)).status_code == 200
    assert client.delete(mine, headers=bearer(guest)).status_code == 200
    posted = client.post(THREAD, json={**TEXT, "body": "Mine"}, headers=_member(open_store))
    assert posted.status_code == 201


def test_a_repeat_of_an_admitted_post_is_answered_after_a_change(
    client: FlaskClient, options: Any
) -> None:
    sent = {**TEXT, "website": "https://ann.example"}
    first = client.post(THREAD, json=sent, headers=KEY)
    options(guests=False, website=False)
    again = client.post(THREAD, json=sent, headers=KEY)
    assert answer(again)["comment"] == {
        name: value for name, value in answer(first)["comment"].items() if name != "replies"
    }
    assert again.headers["Idempotent-Replayed"] == "true"
