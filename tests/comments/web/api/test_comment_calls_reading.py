"""Test, on a real engine, the API's reading calls and the refusals of all calls."""

import json
from urllib.parse import quote

import flask
import pytest
from flask.testing import FlaskClient

from comments.store import connection
from datastore_emulator import inprocess, testing
from tests.conftest import ROOT
from tests.support.people.api_requests import (
    NOBODY,
    ONE,
    THREAD,
    answer,
    listed,
    post,
    refused,
    stored,
)


def test_a_thread_reads_in_order(client: FlaskClient) -> None:
    first = post(client, body="1")["comment"]
    post(client, body="2")
    reply = post(client, body="1.1", parent=first["id"])["comment"]
    post(client, body="1.1.1", parent=reply["id"])
    page = answer(client.get(THREAD))
    shape = [(row["html"], row["level"], row["replies"], row["parent"]) for row in page["comments"]]
    assert shape == [
        ("<p>1</p>\n", 0, 2, None),
        ("<p>1.1</p>\n", 1, 1, first["id"]),
        ("<p>1.1.1</p>\n", 2, 0, reply["id"]),
        ("<p>2</p>\n", 0, 0, None),
    ]
    assert page["total"] == 4
    assert page["cursor"] is None


def test_the_json_of_a_comment_has_these_fields(client: FlaskClient) -> None:
    post(client, website="https://ann.example/", email="ann@secret.example")
    (row,) = answer(client.get(THREAD))["comments"]
    assert row.keys() == {
        *("id", "slug", "parent", "reply_to", "level", "replies", "html", "author"),
        *("created", "edited", "score", "status", "revision", "pinned"),
        *("position", "subtree"),
    }
    assert row["pinned"] is False
    assert row["author"] == {"name": "Ann", "website": "https://ann.example/", "kind": "guest"}
    assert row["created"].endswith("Z")
    assert (row["edited"], row["score"], row["status"], row["revision"]) == (None, 0, "approved", 1)


def test_an_unknown_thread_is_an_empty_page(client: FlaskClient) -> None:
    page = answer(client.get("/api/v1/sites/demo/comments?thread=nothing"))
    assert page.keys() == {
        *("comments", "cursor", "total", "changed", "pinned", "order", "thread", "options"),
        *("first", "last"),
    }
    assert page["pinned"] == []
    assert (page["comments"], page["cursor"], page["total"], page["changed"]) == ([], None, 0, None)
    assert (page["order"], page["thread"]) == ("thread", {"state": "open"})


def test_an_unknown_site_is_not_found(client: FlaskClient) -> None:
    for call in (client.get, client.post):
        code = refused(call("/api/v1/sites/other/comments?thread=t", json={}), 404)
        assert code == "site-not-found"


def test_a_page_url_and_its_canonical_id_are_one_thread(client: FlaskClient) -> None:
    url = quote("https://blog.example/a/?utm_source=x#top", safe="")
    created = client.post(
        f"/api/v1/sites/demo/comments?page={url}", json={"name": "Ann", "body": "Hi"}
    )
    assert created.status_code == 201
    assert answer(client.get("/api/v1/sites/demo/comments?thread=blog.example/a"))["total"] == 1


def test_pages_continue_one_another(client: FlaskClient) -> None:
    for number in range(5):
        post(client, body=str(number))
    found, cursor = [], ""
    while cursor is not None:
        page = answer(client.get(f"{THREAD}&limit=2" + (f"&cursor={cursor}" if cursor else "")))
        found += [row["html"] for row in page["comments"]]
        assert page["total"] == 5
        cursor = page["cursor"]
    assert found == [f"<p>{number}</p>\n" for number in range(5)]


def test_a_cursor_of_another_listing_is_refused(client: FlaskClient) -> None:
    for number in range(3):
        post(client, body=str(number))
    cursor = answer(client.get(f"{THREAD}&limit=1"))["cursor"]
    wrong = [
        f"/api/v1/sites/demo/comments?thread=u&cursor={cursor}",
        f"{THREAD}&order=newest&cursor={cursor}",
        f"{THREAD}&parent=root&cursor={cursor}",
        f"{THREAD}&cursor={cursor}x",
        f"{THREAD}&cursor=AAAA",
        f"{THREAD}&cursor=%F0%9F%8E%88",
    ]
    for path in wrong:
        assert refused(client.get(path), 400, "cursor") == "bad-cursor"


def test_an_unknown_order_is_refused_with_the_valid_ones(client: FlaskClient) -> None:
    response = client.get(f"{THREAD}&order=hot")
    assert refused(response, 400, "order") == "unknown-value"
    detail = answer(response)["detail"]
    assert detail == "order must be one of: thread, recent, best, oldest, newest."


def test_threads_are_read_by_time_and_by_level(client: FlaskClient) -> None:
    first = post(client, body="1")["comment"]
    post(client, body="2")
    post(client, body="1.1", parent=first["id"])
    assert listed(client, "&order=oldest") == ["<p>1</p>\n", "<p>2</p>\n", "<p>1.1</p>\n"]
    assert listed(client, "&order=newest") == ["<p>1.1</p>\n", "<p>2</p>\n", "<p>1</p>\n"]
    assert listed(client, "&parent=root") == ["<p>1</p>\n", "<p>2</p>\n"]
    assert listed(client, f"&parent={first['id']}") == ["<p>1.1</p>\n"]


def test_a_permalink_finds_its_page(client: FlaskClient) -> None:
    post(client, body="1")
    second = post(client, body="2")["comment"]
    reply = post(client, body="2.1", parent=second["id"])["comment"]
    assert listed(client, f"&around={reply['id']}") == ["<p>2</p>\n", "<p>2.1</p>\n"]


@pytest.mark.parametrize("beside", ["order=newest", "cursor=x", "parent=root"])
def test_around_cannot_be_combined_with_other_parameters(client: FlaskClient, beside: str) -> None:
    refused(client.get(f"{THREAD}&around={NOBODY}&{beside}"), 400, beside.partition("=")[0])


def test_a_comment_is_returned_with_its_ancestors(client: FlaskClient) -> None:
    first = post(client, body="1")["comment"]
    reply = post(client, body="1.1", parent=first["id"])["comment"]
    response = client.get(ONE + reply["id"])
    found = answer(response)
    assert found["comment"]["id"] == reply["id"]
    assert [row["id"] for row in found["ancestors"]] == [first["id"]]
    assert response.headers["ETag"] == '"1"'


def test_a_subtree_is_a_listing(client: FlaskClient) -> None:
    first = post(client, body="1")["comment"]
    reply = post(client, body="1.1", parent=first["id"])["comment"]
    post(client, body="1.1.1", parent=reply["id"])
    post(client, body="2")
    page = answer(client.get(f"{ONE}{first['id']}/replies?limit=1"))
    assert [row["html"] for row in page["comments"]] == ["<p>1.1</p>\n"]
    more = answer(client.get(f"{ONE}{first['id']}/replies?cursor={page['cursor']}"))
    assert [row["html"] for row in more["comments"]] == ["<p>1.1.1</p>\n"]


def test_counts_of_100_threads_cost_at_most_one_read_each(
    client: FlaskClient, engine: inprocess.Engine
) -> None:
    for number in range(3):
        path = f"/api/v1/sites/demo/comments?thread=page%20{number}"
        assert client.post(path, json={"name": "Ann", "body": "text"}).status_code == 201
    asked = {"threads": [f"page {number}" for number in range(100)]}
    with testing.meter(engine) as cost:
        response = client.post("/api/v1/sites/demo/counts", json=asked)
    assert answer(response) == {"counts": [1, 1, 1] + [0] * 97}
    assert (cost.reads <= 1 + 100, cost.writes, cost.index_entries) == (True, 0, 0)


@pytest.mark.parametrize("threads", [["t"] * 101, ["t", 1], ["t", None], "t", None, {}])
def test_threads_that_cannot_be_counted_are_refused_by_field(
    client: FlaskClient, threads: object
) -> None:
    response = client.post("/api/v1/sites/demo/counts", json={"threads": threads})
    assert response.status_code == 400
    assert response.get_json()["field"].startswith("threads")


def test_counts_are_in_the_requested_order(client: FlaskClient) -> None:
    post(client)
    response = client.post("/api/v1/sites/demo/counts", json={"threads": ["u", "t", "t"]})
    assert answer(response) == {"counts": [0, 1, 1]}


def test_a_name_that_cannot_be_a_thread_has_no_count(client: FlaskClient) -> None:
    post(client)
    named = ["", " ", "\x01", "\ufffd", "x" * 2001]
    pages = [
        "not a URL", "mailto:a@b.example", "http://u:p@blog.example/", "https://bad..example/",
        "https://blog.example/" + "x" * 2000, "https://blog.example/\ufffd", "",
    ]  # fmt: skip
    asked = {"threads": [*named, "t"], "pages": [*pages, "https://blog.example/caf%E9"]}
    shown = [None] * 5 + [1] + [None] * 7 + [0]
    response = client.post("/api/v1/sites/demo/counts", json=asked)
    assert answer(response) == {"counts": shown}
    response = client.post("/api/v1/sites/demo/counts", json=asked | {"followers": True})
    assert answer(response) == {"counts": shown, "followers": [*shown[:5], 0, *shown[6:]]}
    response = client.post("/api/v1/sites/demo/counts", json={"threads": [""]})
    assert answer(response) == {"counts": [None]}


def test_pages_are_counted_after_threads_by_the_sites_rules(client: FlaskClient) -> None:
    path = "/api/v1/sites/demo/comments?page=https://blog.example/post/"
    assert client.post(path, json={"name": "Ann", "body": "text"}).status_code == 201
    asked = {"pages": ["http://blog.example/post?utm=1", "https://blog.example/"], "threads": ["t"]}
    response = client.post("/api/v1/sites/demo/counts", json=asked)
    assert answer(response) == {"counts": [0, 1, 0]}


@pytest.mark.parametrize("pages", [["https://a"] * 51, [1]])
def test_pages_that_cannot_be_counted_are_refused_by_field(
    client: FlaskClient, pages: object
) -> None:
    asked = {"threads": ["t"] * 50, "pages": pages}
    response = client.post("/api/v1/sites/demo/counts", json=asked)
    assert response.status_code == 400
    assert response.get_json()["field"].startswith("pages")


def test_pages_of_an_unknown_site_are_not_found(client: FlaskClient) -> None:
    asked = {"pages": ["https://blog.example/"]}
    refused(client.post("/api/v1/sites/nobody/counts", json=asked), 404)


def test_an_unchanged_page_is_not_sent_again(client: FlaskClient) -> None:
    tag = client.get(THREAD).headers["ETag"]
    again = client.get(THREAD, headers={"If-None-Match": tag})
    assert (again.status_code, again.text) == (304, "")
    post(client)
    changed = client.get(THREAD, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag


def test_head_equals_get_without_its_body(client: FlaskClient) -> None:
    post(client)
    got, head = client.get(THREAD), client.head(THREAD)
    assert head.text == ""
    assert head.headers["Content-Length"] == str(len(got.data))
    assert head.headers["ETag"] == got.headers["ETag"]


@pytest.mark.slow
def test_reads_and_refused_writes_create_nothing(
    client: FlaskClient, open_store: connection.Store
) -> None:
    for number in range(500):
        path = f"/api/v1/sites/demo/comments?thread={number}"
        assert client.get(path).status_code == 200
        if number % 10 == 0:
            refused(client.post(path, json={"name": "", "body": "b"}), 400, "name")
            refused(client.post(path, json={"name": "a", "body": "b", "parent": NOBODY}), 404)
    for start in range(0, 10_000, 100):
        asked = [str(number) for number in range(start, start + 100)]
        counts = client.post("/api/v1/sites/demo/counts", json={"threads": asked})
        assert answer(counts)["counts"] == [0] * 100
    client.get("/api/v1/sites/made-up/comments?thread=t")
    assert [stored(open_store, kind) for kind in ("Thread", "Comment", "Site")] == [0, 0, 1]


NAMES = [
    *(
        "/a",
        "/a/",
        "/A",
        "//a",
        "/a?utm=1",
        "/a%23x",
        "a%2Fb",
        "a%252Fb",
        "..",
        "__x__",
        "0",
        "%20a",
    ),
    *("caf%C3%A9", "%E2%84%AA", "x" * 1_500, "x" * 1_501, "x" * 2_000),
]


def test_different_thread_ids_are_different_threads(client: FlaskClient) -> None:
    paths = [f"/api/v1/sites/demo/comments?thread={name}" for name in NAMES]
    for number, path in enumerate(paths):
        assert client.post(path, json={"name": "a", "body": f"{number}"}).status_code == 201
    for number, path in enumerate(paths):
        page = answer(client.get(path))
        assert [row["html"] for row in page["comments"]] == [f"<p>{number}</p>\n"], path


def test_one_thread_id_in_two_encodings_is_one_thread(client: FlaskClient) -> None:
    for names in (("a%2Fb", "a/b", "%61/b"), ("cafe%CC%81", "caf%C3%A9"), ("a+b", "a%20b")):
        paths = [f"/api/v1/sites/demo/comments?thread={name}" for name in names]
        client.post(paths[0], json={"name": "a", "body": "b"})
        assert [answer(client.get(path))["total"] for path in paths] == [1] * len(paths)


@pytest.mark.parametrize("name", ["", "%00", "%ff", "%0a", "+", "%EF%BF%BD", "%zz", "x" * 2_001])
def test_an_invalid_thread_id_is_refused(client: FlaskClient, name: str) -> None:
    path = f"/api/v1/sites/demo/comments?thread={name}"
    refused(client.get(path), 400, "thread")
    refused(client.post(path, json={"name": "a", "body": "b"}), 400, "thread")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/sites/Demo/comments?thread=t",
        "/api/v1/sites/../comments?thread=t",
        "/api/v1/sites/%2e%2e/comments?thread=t",
        "/api/v1/sites/de%0amo/comments?thread=t",
        "/api/v1/sites/de%0d%0aX-Evil:1/comments?thread=t",
        "/api/v1/sites/demo%00/comments?thread=t",
        "/api/v1/sites/" + "a" * 64 + "/comments?thread=t",
        "/api/v1/sites//comments?thread=t",
        "/api/v1//sites/demo/comments?thread=t",
        "/api/v1/sites/demo/comments/?thread=t",
        "/api/v1/comments/1",
        "/api/v1/comments/" + "A" * 26,
        "/api/v1/comments/" + "a" * 25 + "%0a",
        "/api/v1/comments/" + "a" * 26 + "%00",
        "/api/v1/comments/" + "a" * 26,
        "/api/v1/comments/" + "%ff" * 26,
        "/api/v2/sites",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_an_unknown_path_or_id_is_not_found(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method, json={"body": "b"})
    # For any id, a missing token is reported before an unknown comment.
    is_named = path == ONE + "a" * 26 and method in {"PATCH", "DELETE"}
    assert response.status_code in ({401} if is_named else {404, 405})
    assert response.content_type == "application/problem+json"
    assert "X-Evil" not in response.headers
    assert "\n" not in json.loads(response.text)["detail"]
    assert str(ROOT) not in response.text
    assert ".py" not in response.text


@pytest.mark.parametrize("path", [THREAD, ONE + NOBODY, f"{ONE}{NOBODY}/replies"])
def test_an_unknown_parameter_is_refused(client: FlaskClient, path: str) -> None:
    mark = "&" if "?" in path else "?"
    refused(client.get(f"{path}{mark}utm_source=x"), 400, "utm_source")


def test_requests_change_nothing_in_the_application(app: flask.Flask, client: FlaskClient) -> None:
    kept = app.extensions["flatthread"]
    post(client)
    assert app.extensions["flatthread"] is kept
    with pytest.raises(AttributeError):
        kept.settings = None
