"""Test, on a real engine, which posts the API accepts and refuses."""

import io

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config
from comments.domain import records
from comments.moderation.policy import policy_changes
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from tests.support.people.api_requests import (
    KEY,
    ONE,
    THREAD,
    answer,
    bearer,
    listed,
    post,
    refused,
)
from tests.support.people.post_times import Moment


def test_a_long_exchange_stays_within_the_levels(
    client: FlaskClient, settings: config.Settings
) -> None:
    last = post(client)["comment"]
    for _ in range(3 * settings.scheme.levels):
        answered, last = last, post(client, parent=last["id"])["comment"]
        assert last["reply_to"] == answered["id"]
        assert last["level"] < settings.scheme.levels
    assert len(listed(client)) == 1 + 3 * settings.scheme.levels


def test_a_post_returns_its_location(client: FlaskClient) -> None:
    response = client.post(THREAD, json={"name": "Ann", "body": "Hello"})
    comment = answer(response)["comment"]
    assert response.headers["Location"] == f"/api/v1/comments/{comment['id']}"
    assert response.headers["ETag"] == '"1"'
    assert client.get(response.headers["Location"]).status_code == 200


def test_a_retried_post_is_stored_once(client: FlaskClient) -> None:
    sent = {"name": "Ann", "body": "Hello"}
    first = client.post(THREAD, json=sent, headers=KEY)
    again = client.post(THREAD, json=sent, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert answer(again)["comment"]["id"] == answer(first)["comment"]["id"]
    assert len(listed(client)) == 1


def test_a_retried_post_has_the_same_guest(client: FlaskClient) -> None:
    sent = {"name": "Ann", "body": "Hello"}
    client.post(THREAD, json=sent, headers=KEY)
    again = answer(client.post(THREAD, json=sent, headers=KEY))
    edited = client.patch(ONE + again["comment"]["id"], json={"body": "b"}, headers=bearer(again))
    assert edited.status_code == 200


def test_a_key_with_other_content_is_refused(client: FlaskClient) -> None:
    client.post(THREAD, json={"name": "Ann", "body": "Hello"}, headers=KEY)
    other = client.post(THREAD, json={"name": "Ann", "body": "Bye"}, headers=KEY)
    assert refused(other, 409) == "idempotency-key-reused"
    assert listed(client) == ["<p>Hello</p>\n"]


def _repeated(client: FlaskClient, peer: str, **headers: str) -> dict:
    sent = {"name": "Ann", "body": "Hello"}
    response = client.post(
        THREAD, json=sent, headers={**KEY, **headers}, environ_base={"REMOTE_ADDR": peer}
    )
    assert response.status_code == 201
    return answer(response)


def test_a_retry_from_another_network_never_gets_a_token(
    client: FlaskClient, moment: Moment
) -> None:
    first = _repeated(client, "192.0.2.1")
    there = client.get(f"{ONE}{first['comment']['id']}")
    shown = {k: v for k, v in answer(there)["comment"].items() if k != "replies"}
    shown["editable_until"] = None
    for _ in range(2):
        assert _repeated(client, "198.51.100.1") == {"comment": shown}
        assert _repeated(client, "2001:db8::1") == {"comment": shown}
        assert _repeated(client, "192.0.2.1")["token"]
        moment.pass_by(minutes=61)


def test_such_a_retry_of_a_held_comment_shows_no_text(
    client: FlaskClient, moment: Moment, open_store: connection.Store
) -> None:
    with open_store.context():
        policy_changes.set_policy(
            "demo", records.Actor("cli", "Ada"), now=moment.at, policy=records.Policy.ALL
        )
    sent = {"name": "Ann", "body": "Secret"}
    assert client.post(THREAD, json=sent, headers=KEY).status_code == 202
    again = client.post(
        THREAD, json=sent, headers=KEY, environ_base={"REMOTE_ADDR": "198.51.100.1"}
    )
    assert "token" not in answer(again)
    assert "Secret" not in again.text
    assert "Ann" not in again.text


def test_a_retry_of_an_earlier_releases_comment_gets_no_token(
    client: FlaskClient, open_store: connection.Store
) -> None:
    first = _repeated(client, "192.0.2.1")
    with open_store.context():
        row = reads.get(comment_rows.comment_key(first["comment"]["id"]))
        assert len(row.origin) == 8
        row.origin = None
        transactions.transaction(lambda: transactions.apply(ownership.Writes("tree", put=(row,))))
    assert "token" not in _repeated(client, "192.0.2.1")


def test_a_retracted_comment_stores_nothing_of_its_network(
    client: FlaskClient, open_store: connection.Store
) -> None:
    first = _repeated(client, "192.0.2.1")
    client.delete(f"{ONE}{first['comment']['id']}", headers=bearer(first))
    with open_store.context():
        assert not reads.get(comment_rows.comment_key(first["comment"]["id"])).origin


@pytest.mark.parametrize("key", ["", "short", "x" * 15, "x" * 256, "spaces in a key ok", "ä" * 16])
def test_a_malformed_key_is_refused(client: FlaskClient, key: str) -> None:
    sent = {"name": "Ann", "body": "Hello"}
    response = client.post(THREAD, json=sent, headers={"Idempotency-Key": key})
    refused(response, 400, "Idempotency-Key")
    assert listed(client) == []


def test_guests_keep_their_id(client: FlaskClient) -> None:
    first = post(client)
    response = client.post(THREAD, json={"name": "Ann", "body": "2"}, headers=bearer(first))
    second = answer(response)["comment"]
    edited = client.patch(ONE + second["id"], json={"body": "3"}, headers=bearer(first))
    assert edited.status_code == 200


def test_a_new_comment_has_no_replies(client: FlaskClient) -> None:
    assert post(client)["comment"]["replies"] == 0


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"name": " ", "body": "b"}, "name"),
        ({"name": "a" * 500, "body": "b"}, "name"),
        ({"name": "a", "body": " \n"}, "body"),
        ({"name": "a", "body": "b" * 20_000}, "body"),
        ({"name": "a", "body": "b", "website": "javascript:alert(1)"}, "website"),
        ({"name": "a", "body": "b", "email": "a@x.org,b@y.org"}, "email"),
        ({"name": "a", "body": "b", "title": "x" * 5_000}, "title"),
        ({"name": "a", "body": "b", "title": "x\ny"}, "title"),
        ({"name": "a", "body": "b", "categories": ["a//b"]}, "categories"),
        ({"name": "a", "body": "b", "categories": "news"}, "categories"),
        ({"name": "a", "body": "b", "categories": [1]}, "categories"),
        ({"name": "a", "body": "b", "categories": ["a"] * 6}, "categories"),
        ({"name": "a", "body": "b", "url": "javascript:alert(1)"}, "url"),
        ({"name": "a", "body": "b", "score": 5}, "score"),
        ({"name": "a", "body": "b\x00"}, "body"),
        ({"name": "a", "body": "\ud800"}, "body"),
        ({"name": "a", "body": "b", "parent": 0}, "parent"),
        ({"name": "a", "body": "b", "parent": True}, "parent"),
        ({"name": "a", "body": "b", "parent": 2**63}, "parent"),
    ],
)
def test_an_invalid_post_is_refused_by_field(client: FlaskClient, sent: dict, field: str) -> None:
    refused(client.post(THREAD, json=sent), 400, field)
    assert listed(client) == []


def test_a_retracted_parent_takes_no_reply(client: FlaskClient) -> None:
    first = post(client)
    client.delete(ONE + first["comment"]["id"], headers=bearer(first))
    sent = {"name": "a", "body": "b", "parent": first["comment"]["id"]}
    assert client.post(THREAD, json=sent).status_code in {404, 409}
    assert listed(client) == []


@pytest.mark.parametrize("data", ["[" * 3_000, '{"a":' * 3_000, "[]", "9" * 5_000, "", "nul"])
def test_malformed_json_is_a_bad_request(client: FlaskClient, data: str) -> None:
    for call, path in ((client.post, THREAD), (client.post, "/api/v1/sites/demo/preview")):
        refused(call(path, data=data, content_type="application/json"), 400, "body")


def test_a_body_above_the_limit_is_refused(client: FlaskClient, settings: config.Settings) -> None:
    data = b'{"name": "a", "body": "' + b"x" * settings.max_body
    response = client.post(THREAD, data=data, content_type="application/json")
    assert refused(response, 413) == "too-large"


def chunked(client: FlaskClient, source: object) -> TestResponse:
    """Post a body without a Content-Length, the way servers pass on chunked bodies."""
    return client.post(
        THREAD,
        content_type="application/json",
        environ_overrides={
            "wsgi.input": source,
            "wsgi.input_terminated": True,
            "HTTP_TRANSFER_ENCODING": "chunked",
            "CONTENT_LENGTH": "",
        },
    )


def test_a_chunked_body_has_the_same_limit(client: FlaskClient, settings: config.Settings) -> None:
    whole = b'{"name": "a", "body": "b"}'
    fits = whole.ljust(settings.max_body)
    assert chunked(client, io.BytesIO(fits)).status_code == 201
    for above in (fits + b" ", fits * 3):
        assert refused(chunked(client, io.BytesIO(above)), 413) == "too-large"
    assert len(listed(client)) == 1


def test_an_endless_body_is_not_read_beyond_the_limit(
    client: FlaskClient, settings: config.Settings
) -> None:
    source = Endless()
    assert refused(chunked(client, source), 413) == "too-large"
    assert source.bytes_read <= 2 * settings.max_body


class Endless:
    """An endless body that counts the bytes that are read from it."""

    bytes_read = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "the endless body is being read"
        self.bytes_read += size
        return b"x" * size


def test_a_truncated_body_is_refused(client: FlaskClient) -> None:
    response = client.post(
        THREAD,
        content_type="application/json",
        environ_overrides={
            "wsgi.input": io.BytesIO(b'{"name": "a", "body": "b"}'),
            "wsgi.input_terminated": True,
            "CONTENT_LENGTH": "200",
        },
    )
    refused(response, 400, "body")
    assert listed(client) == []


def test_a_compressed_body_is_refused(client: FlaskClient) -> None:
    response = client.post(
        THREAD,
        data=b"\x1f\x8b",
        content_type="application/json",
        headers={"Content-Encoding": "gzip"},
    )
    refused(response, 415)


def test_a_million_form_fields_are_not_read(client: FlaskClient) -> None:
    data = "&".join(["a=b"] * 10_000)
    response = client.post(THREAD, data=data, content_type="application/x-www-form-urlencoded")
    refused(response, 415)


@pytest.mark.parametrize("body", ["*a*", "<b>x</b>", "[x](javascript:alert(1))", "> q\n\n- a\n- b"])
def test_a_preview_equals_what_would_be_stored(client: FlaskClient, body: str) -> None:
    response = client.post("/api/v1/sites/demo/preview", json={"body": body})
    assert answer(response)["html"] == post(client, body=body)["comment"]["html"]
