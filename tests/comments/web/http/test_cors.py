"""CORS lets any page read public data but lets only pages on registered origins write."""

import json

import flask
import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.web.http import cors
from tests.support.people.account_holders import here

THREAD = "/api/v1/sites/demo/comments?thread=t"
BLOG = "https://blog.example"
REGISTERED = "http://localhost:8080"
SENT = {"name": "Ann", "body": "Hello"}
ALLOW = "Access-Control-Allow-Origin"

FOREIGN = [
    "null",
    "",
    "*",
    "https://localhost:8080",
    "http://localhost:8081",
    "http://localhost:80801",
    "http://localhost:8080.evil.com",
    "https://localhost",
    "http://localhost:8080/",
    "http://localhost:8080@evil.com",
    "http://evillocalhost:8080",
    "http://sub.localhost:8080",
    "HTTP://LOCALHOST:8080",
    "http://localhost:8080 http://evil.com",
    "http://evil.com",
    "file://",
]


def writes(client: FlaskClient) -> list[tuple[str, str]]:
    posted = json.loads(client.post(THREAD, json=SENT).text)
    one = f"/api/v1/comments/{posted['comment']['id']}"
    return [
        ("POST", THREAD),
        ("PATCH", one),
        ("PUT", f"{one}/vote"),
        ("DELETE", f"{one}/vote"),
        ("DELETE", one),
        ("POST", "/api/v1/sites/demo/preview"),
        ("POST", "/api/v1/sites/demo/counts"),
    ]


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_foreign_page_may_not_write(client: FlaskClient, origin: str) -> None:
    for method, path in writes(client):
        response = client.open(path, method=method, json=SENT, headers={"Origin": origin})
        assert response.status_code == 403
        assert json.loads(response.text)["code"] == "origin-not-allowed"
        assert ALLOW not in response.headers
        assert "Origin" in response.headers["Vary"]
    assert json.loads(client.get(THREAD).text)["total"] == 1


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_preflight_from_a_foreign_page_allows_nothing(client: FlaskClient, origin: str) -> None:
    for _, path in writes(client):
        response = client.options(path, headers={"Origin": origin})
        assert response.status_code == 204
        assert not [name for name in response.headers if name[0].startswith("Access-Control")]


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_foreign_page_can_read_that_it_may_not_post(client: FlaskClient, origin: str) -> None:
    response = client.get("/api/v1/sites/demo/challenge", headers={"Origin": origin})
    assert (response.status_code, response.headers[ALLOW]) == (403, "*")
    assert json.loads(response.text)["code"] == "origin-not-allowed"
    assert "no-store" in response.headers["Cache-Control"]
    assert "Access-Control-Allow-Credentials" not in response.headers


@pytest.mark.parametrize("headers", [{}, {"Origin": REGISTERED}, {"Origin": "http://localhost"}])
def test_pages_that_may_post_get_a_challenge(client: FlaskClient, headers: dict[str, str]) -> None:
    response = client.get("/api/v1/sites/demo/challenge", headers=headers)
    assert response.status_code == 200
    assert "challenge" in json.loads(response.text)


def test_null_is_never_an_allowed_origin(client: FlaskClient, open_store: connection.Store) -> None:
    with open_store.context():
        row = reads.get(comment_rows.site_key("demo"))
        row.origins = ["null", *row.origins]
        written = ownership.Writes("site_settings", put=(row,))
        transactions.transaction(lambda: transactions.apply(written))
    response = client.post(THREAD, json=SENT, headers={"Origin": "null"})
    assert (response.status_code, response.headers.get(ALLOW)) == (403, None)


def test_a_registered_page_may_write(client: FlaskClient) -> None:
    response = client.post(THREAD, json=SENT, headers={"Origin": REGISTERED})
    assert response.status_code == 201
    assert response.headers[ALLOW] == REGISTERED
    assert "Access-Control-Allow-Credentials" not in response.headers
    assert "Origin" in response.headers["Vary"]


def test_a_registered_page_may_read_the_reason_of_a_refusal(client: FlaskClient) -> None:
    headers = {"Origin": REGISTERED}
    (_, thread), (_, one), *_ = writes(client)
    refusals = [
        client.post(thread, json={}, headers=headers),
        client.post(thread, data="x" * 100_000, headers=headers, content_type="application/json"),
        client.post(thread, data="x", headers=headers),
        client.patch(one, json={"body": "b"}, headers=headers),
        client.patch(one, json={"body": "b"}, headers={**headers, "Authorization": "Bearer a.b.c"}),
    ]
    assert [response.status_code for response in refusals] == [400, 413, 415, 401, 401]
    for response in refusals:
        assert response.headers[ALLOW] == REGISTERED


def test_a_preflight_names_what_is_allowed(client: FlaskClient) -> None:
    asked = {
        "Origin": REGISTERED,
        "Access-Control-Request-Method": "PATCH",
        "Access-Control-Request-Headers": "content-type, authorization",
        "Access-Control-Request-Private-Network": "true",
    }
    for _, path in writes(client):
        response = client.options(path, headers=asked)
        assert response.status_code == 204
        assert response.headers[ALLOW] == REGISTERED
        assert "PATCH" in response.headers["Access-Control-Allow-Methods"]
        allowed = response.headers["Access-Control-Allow-Headers"].split(", ")
        assert allowed == ["Content-Type", "Authorization", "Idempotency-Key", "If-Match"]
        assert int(response.headers["Access-Control-Max-Age"]) <= 600
        assert "Origin" in response.headers["Vary"]
        assert "Access-Control-Allow-Private-Network" not in response.headers
        assert "Access-Control-Allow-Credentials" not in response.headers


def test_authors_may_edit_and_delete_their_held_comment_from_their_page(
    store: connection.Store, client: FlaskClient
) -> None:
    posted = client.post(THREAD, json=SENT).get_json()
    held = posted["comment"]["id"]
    decisions.decide("demo", held, Verb.HOLD, records.Actor("cli", "Ada"), now=here())
    path, headers = f"/api/v1/comments/{held}", {"Origin": REGISTERED}
    preflight = client.options(path, headers=headers)
    assert (preflight.status_code, preflight.headers[ALLOW]) == (204, REGISTERED)
    foreign = client.options(path, headers={"Origin": "http://evil.com"})
    assert ALLOW not in foreign.headers
    own = {**headers, "Authorization": f"Bearer {posted['token']}"}
    response = client.delete(path, headers=own)
    assert (response.status_code, response.headers[ALLOW]) == (200, REGISTERED)


@pytest.mark.parametrize(
    "path", ["/api/v1/sites/other/comments?thread=t", "/api/v1/comments/" + "a" * 26]
)
def test_a_preflight_for_an_unknown_path_allows_nothing(client: FlaskClient, path: str) -> None:
    response = client.options(path, headers={"Origin": REGISTERED})
    assert (response.status_code, response.headers.get(ALLOW)) == (204, None)


def test_a_request_without_an_origin_may_write(client: FlaskClient) -> None:
    response = client.post(THREAD, json=SENT)
    assert (response.status_code, response.headers.get(ALLOW)) == (201, None)


def test_the_services_own_page_may_write(client: FlaskClient) -> None:
    response = client.post(THREAD, json=SENT, headers={"Origin": "http://localhost"})
    assert response.status_code == 201
    assert ALLOW not in response.headers


def test_behind_a_proxy_sec_fetch_site_identifies_our_own_pages(client: FlaskClient) -> None:
    headers = {"Origin": "https://comments.example", "Sec-Fetch-Site": "same-origin"}
    assert client.post(THREAD, json=SENT, headers=headers).status_code == 201
    for site in ("same-site", "cross-site", "none"):
        response = client.post(THREAD, json=SENT, headers={**headers, "Sec-Fetch-Site": site})
        assert response.status_code == 403


@pytest.mark.parametrize("origin", [*FOREIGN, REGISTERED])
@pytest.mark.parametrize("path", [THREAD, THREAD + "&limit=0", "/api/v1/nothing"])
def test_any_page_may_read_public_data(client: FlaskClient, origin: str, path: str) -> None:
    response = client.get(path, headers={"Origin": origin})
    assert response.headers[ALLOW] == "*"
    assert "Access-Control-Allow-Credentials" not in response.headers
    assert "Origin" in response.headers["Vary"]


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "text/plain",
        "application/x+json",
        "application/json;text/plain",
        "multipart/form-data",
    ],
)
def test_a_form_cannot_write(client: FlaskClient, content_type: str | None) -> None:
    for path in [path for method, path in writes(client) if method == "POST"]:
        response = client.post(path, data=json.dumps(SENT), content_type=content_type)
        assert response.status_code == 415
    assert json.loads(client.get(THREAD).text)["total"] == 1


def test_an_edit_accepts_only_json(client: FlaskClient) -> None:
    posted = json.loads(client.post(THREAD, json=SENT).text)
    response = client.patch(
        f"/api/v1/comments/{posted['comment']['id']}",
        data='{"body": "x"}',
        content_type="text/plain",
        headers={"Authorization": f"Bearer {posted['token']}"},
    )
    assert response.status_code == 415


@pytest.mark.parametrize(
    ("origin", "thread", "origins", "is_test"),
    [
        ("http://localhost:8000", "blog.example/a", ("http://localhost:8000", BLOG), True),
        ("http://192.168.0.7", "an-id", ("http://192.168.0.7", BLOG), True),
        ("http://localhost:8000", "localhost:8000/a", ("http://localhost:8000", BLOG), False),
        ("http://localhost:8000", "localhost:80/a", ("http://localhost:8000",), False),
        (BLOG, "blog.example/a", ("http://localhost:8000", BLOG), False),
        ("https://www.blog.example", "blog.example/a", (BLOG,), False),
        (None, "blog.example/a", (BLOG,), False),
    ],
)
def test_a_page_on_a_local_host_is_a_test_page_of_a_public_website(
    app: flask.Flask, origin: str | None, thread: str, origins: tuple[str, ...], is_test: bool
) -> None:
    site = records.Site("blog", origins, "", 2)
    headers = {} if origin is None else {"Origin": origin}
    with app.test_request_context(headers=headers):
        assert cors.is_test_page(site, thread) is is_test
