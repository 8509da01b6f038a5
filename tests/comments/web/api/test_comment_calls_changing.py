"""Test who may edit or retract a comment through the API and what remains afterwards."""

import json
from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from comments import app as apps
from comments import config
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.web.api.callers import api_tokens
from tests.support.people.api_requests import (
    NOBODY,
    ONE,
    THREAD,
    answer,
    bearer,
    listed,
    post,
    refused,
)


def test_guests_edit_their_own_comment(client: FlaskClient) -> None:
    posted = post(client)
    response = client.patch(
        ONE + posted["comment"]["id"], json={"body": "*Bye*"}, headers=bearer(posted)
    )
    edited = answer(response)["comment"]
    assert edited["html"] == "<p><em>Bye</em></p>\n"
    assert edited["revision"] == 2
    assert edited["edited"] is not None
    assert response.headers["ETag"] == '"2"'
    assert listed(client) == ["<p><em>Bye</em></p>\n"]


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_nobody_else_changes_it(client: FlaskClient, method: str) -> None:
    path = ONE + post(client)["comment"]["id"]
    other = post(client, body="other")
    before = client.get(path).data
    sent = {"body": "x"}
    none = client.open(path, method=method, json=sent)
    assert refused(none, 401) == "no-token"
    assert none.headers["WWW-Authenticate"].startswith("Bearer")
    bad = client.open(path, method=method, json=sent, headers={"Authorization": "Bearer x.y.z"})
    assert refused(bad, 401) == "bad-token"
    foreign = client.open(path, method=method, json=sent, headers=bearer(other))
    assert refused(foreign, 403) == "not-own-comment"
    assert client.get(path).data == before


@pytest.mark.parametrize(
    ("method", "path"), [("PATCH", ""), ("DELETE", ""), ("DELETE", "/vote")], ids=str
)
def test_a_missing_token_is_reported_for_any_comment_id(
    client: FlaskClient, method: str, path: str
) -> None:
    sent, where = {"body": "x"}, f"{ONE}{NOBODY}{path}"
    assert refused(client.open(where, method=method, json=sent), 401) == "no-token"
    bad = {"Authorization": "Bearer x.y.z"}
    assert refused(client.open(where, method=method, json=sent, headers=bad), 401) == "bad-token"
    known = client.open(where, method=method, json=sent, headers=bearer(post(client)))
    assert refused(known, 404) == "comment-not-found"
    # Calls that need no token report the unknown comment instead.
    assert refused(client.put(f"{ONE}{NOBODY}/vote", json={"value": 1}), 404)


def test_a_token_in_the_query_is_ignored(client: FlaskClient) -> None:
    posted = post(client)
    path = f"{ONE}{posted['comment']['id']}?token={posted['token']}"
    assert client.delete(path).status_code in {400, 401}
    assert len(listed(client)) == 1


def test_a_token_of_another_site_is_refused(
    client: FlaskClient, open_store: connection.Store, site: records.Site, settings: config.Settings
) -> None:
    with open_store.context():
        site_settings.add("other", [], scheme=settings.scheme, now=datetime(2026, 1, 2, tzinfo=UTC))
    path = "/api/v1/sites/other/comments?thread=t"
    posted = post(client)
    response = client.post(path, json={"name": "a", "body": "b"}, headers=bearer(posted))
    assert refused(response, 401) == "token-of-other-site"
    assert answer(client.get(path))["total"] == 0


def test_an_expired_token_is_refused(open_store: connection.Store, site: records.Site) -> None:
    settings = config.Settings(secret="a secret of the tests", guest_token_seconds=-1)
    client = apps.create_app(settings, open_store).test_client()
    posted = post(client)
    response = client.delete(ONE + posted["comment"]["id"], headers=bearer(posted))
    assert refused(response, 401) == "token-expired"


def test_a_token_without_a_guest_changes_nothing(
    client: FlaskClient, settings: config.Settings
) -> None:
    posted = post(client)
    token = api_tokens.sign(api_tokens.Guest("demo", ""), secret=settings.secret)
    headers = {"Authorization": f"Bearer {token}"}
    refused(client.delete(ONE + posted["comment"]["id"], headers=headers), 401)


@pytest.mark.parametrize("given", ["1", 'W/"1"', '"x"', '"0"', '"1", "2"', "*", '"-1"', '"01"'])
def test_a_malformed_revision_is_refused(client: FlaskClient, given: str) -> None:
    posted = post(client)
    for method in ("PATCH", "DELETE"):
        response = client.open(
            ONE + posted["comment"]["id"],
            method=method,
            json={"body": "x"},
            headers={**bearer(posted), "If-Match": given},
        )
        refused(response, 400, "If-Match")
    assert listed(client) == ["<p>Hello</p>\n"]


def test_a_change_of_an_old_revision_is_refused(client: FlaskClient) -> None:
    posted = post(client)
    path = ONE + posted["comment"]["id"]
    client.patch(path, json={"body": "2"}, headers={**bearer(posted), "If-Match": '"1"'})
    for method in ("PATCH", "DELETE"):
        late = {**bearer(posted), "If-Match": '"1"'}
        response = client.open(path, method=method, json={"body": "3"}, headers=late)
        assert refused(response, 412) == "revision-mismatch"
    assert listed(client) == ["<p>2</p>\n"]


def test_a_retracted_comment_leaves_the_listing(client: FlaskClient) -> None:
    posted = post(client)
    path = ONE + posted["comment"]["id"]
    response = client.delete(path, headers=bearer(posted))
    assert answer(response)["comment"]["status"] == "removed"
    assert listed(client) == []
    refused(client.get(path), 404)


def test_a_retraction_may_be_repeated(client: FlaskClient) -> None:
    posted = post(client)
    path = ONE + posted["comment"]["id"]
    origin = {**bearer(posted), "Origin": "http://localhost:8080"}
    for _ in range(2):
        assert client.delete(path, headers=origin).status_code == 200


def test_a_tombstone_contains_nothing_of_the_comment(client: FlaskClient) -> None:
    canaries = {
        "name": "Canary Ann",
        "body": "canary body",
        "website": "https://canary.example/",
        "email": "canary@mail.example",
    }
    posted = post(client, **canaries)
    first = posted["comment"]["id"]
    reply = post(client, body="reply", parent=first)["comment"]["id"]
    client.delete(ONE + first, headers=bearer(posted))
    answers = [client.get(path) for path in (THREAD, ONE + first, ONE + reply)]
    for response in answers:
        assert response.status_code == 200
        assert b"anary" not in response.data
    tombstone = answer(answers[0])["comments"][0]
    assert (tombstone["html"], tombstone["author"], tombstone["status"]) == ("", None, "removed")
    assert tombstone["replies"] == 1


def test_no_response_contains_personal_data(client: FlaskClient) -> None:
    posted = client.post(
        THREAD,
        json={"name": "Ann", "body": "b", "email": "canary@mail.example"},
        headers={"User-Agent": "canary agent", "X-Forwarded-For": "203.0.113.77"},
    )
    comment = answer(posted)["comment"]
    for path in (THREAD, ONE + comment["id"], f"{ONE}{comment['id']}/replies", "/healthz", "/"):
        response = client.get(path)
        assert b"canary" not in response.data
        assert b"203.0.113.77" not in response.data
    assert "canary" not in json.dumps(comment)
