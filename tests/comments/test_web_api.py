"""The calls of the API, through HTTP, on a real engine."""

import dataclasses
import io
import json
from datetime import UTC, datetime
from urllib.parse import quote

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import app as wiring
from comments import config, datastore, records, sites
from comments.web import session

THREAD = "/api/v1/sites/demo/comments?thread=t"
ONE = "/api/v1/comments/"
KEY = {"Idempotency-Key": "0123456789abcdef"}
NOBODY = "a" * 26


def post(client: FlaskClient, name: str = "Ann", body: str = "Hello", **more: object) -> dict:
    response = client.post(THREAD, json={"name": name, "body": body, **more})
    assert response.status_code == 201, response.text
    return answer(response)


def answer(response: TestResponse) -> dict:
    assert response.is_json
    return dict(json.loads(response.text))


def refused(response: TestResponse, status: int, field: str | None = None) -> str:
    """The stable code of a refusal, checked to be one."""
    assert response.status_code == status, response.text
    assert response.content_type == "application/problem+json"
    problem = json.loads(response.text)
    if field is not None:
        assert problem["field"] == field
    return str(problem["code"])


def bearer(posted: dict) -> dict[str, str]:
    return {"Authorization": f"Bearer {posted['token']}"}


def listed(client: FlaskClient, query: str = "") -> list[str]:
    return [row["html"] for row in answer(client.get(THREAD + query))["comments"]]


def stored(store: datastore.Store, kind: str) -> int:
    with store.context():
        return len(list(datastore.fetch(datastore.Query(kind, keys_only=True))))


# --- reading -------------------------------------------------------------------------------------


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


def test_a_comment_is_said_in_these_words(client: FlaskClient) -> None:
    post(client, website="https://ann.example/", email="ann@secret.example")
    (row,) = answer(client.get(THREAD))["comments"]
    assert row.keys() == {
        *("id", "slug", "parent", "reply_to", "level", "replies", "html", "author"),
        *("created", "edited", "score", "status", "revision"),
    }
    assert row["author"] == {"name": "Ann", "website": "https://ann.example/"}
    assert row["created"].endswith("Z")
    assert (row["edited"], row["score"], row["status"], row["revision"]) == (None, 0, "approved", 1)


def test_an_unknown_thread_is_an_empty_page(client: FlaskClient) -> None:
    page = answer(client.get("/api/v1/sites/demo/comments?thread=nothing"))
    assert page == {"comments": [], "cursor": None, "total": 0, "changed": None}


def test_an_unknown_site_is_not_there(client: FlaskClient) -> None:
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


def test_pages_follow_each_other(client: FlaskClient) -> None:
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


def test_threads_read_by_time_and_by_level(client: FlaskClient) -> None:
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
def test_a_permalink_goes_with_nothing_else(client: FlaskClient, beside: str) -> None:
    refused(client.get(f"{THREAD}&around={NOBODY}&{beside}"), 400, beside.partition("=")[0])


def test_one_comment_comes_with_those_above_it(client: FlaskClient) -> None:
    first = post(client, body="1")["comment"]
    reply = post(client, body="1.1", parent=first["id"])["comment"]
    response = client.get(ONE + reply["id"])
    found = answer(response)
    assert found["comment"]["id"] == reply["id"]
    assert [row["id"] for row in found["ancestors"]] == [first["id"]]
    assert response.headers["ETag"] == '"1"'


def test_a_subtree_is_a_listing_of_its_own(client: FlaskClient) -> None:
    first = post(client, body="1")["comment"]
    reply = post(client, body="1.1", parent=first["id"])["comment"]
    post(client, body="1.1.1", parent=reply["id"])
    post(client, body="2")
    page = answer(client.get(f"{ONE}{first['id']}/replies?limit=1"))
    assert [row["html"] for row in page["comments"]] == ["<p>1.1</p>\n"]
    more = answer(client.get(f"{ONE}{first['id']}/replies?cursor={page['cursor']}"))
    assert [row["html"] for row in more["comments"]] == ["<p>1.1.1</p>\n"]


def test_counts_come_in_the_order_asked(client: FlaskClient) -> None:
    post(client)
    response = client.post("/api/v1/sites/demo/counts", json={"threads": ["u", "t", "t"]})
    assert answer(response) == {"counts": [0, 1, 1]}


@pytest.mark.parametrize("thread", ["", "\x01", "x" * 2001])
def test_counting_what_is_no_thread_is_refused(client: FlaskClient, thread: str) -> None:
    response = client.post("/api/v1/sites/demo/counts", json={"threads": [thread]})
    refused(response, 400, "threads")


def test_an_unchanged_page_is_not_sent_again(client: FlaskClient) -> None:
    tag = client.get(THREAD).headers["ETag"]
    again = client.get(THREAD, headers={"If-None-Match": tag})
    assert (again.status_code, again.text) == (304, "")
    post(client)
    changed = client.get(THREAD, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag


def test_head_is_get_without_its_body(client: FlaskClient) -> None:
    post(client)
    got, head = client.get(THREAD), client.head(THREAD)
    assert head.text == ""
    assert head.headers["Content-Length"] == str(len(got.data))
    assert head.headers["ETag"] == got.headers["ETag"]


@pytest.mark.slow
def test_reading_and_refused_writing_create_nothing(
    client: FlaskClient, open_store: datastore.Store
) -> None:
    for number in range(10_000):
        path = f"/api/v1/sites/demo/comments?thread={number}"
        assert client.get(path).status_code == 200
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
def test_what_is_no_thread_id_is_refused(client: FlaskClient, name: str) -> None:
    path = f"/api/v1/sites/demo/comments?thread={name}"
    refused(client.get(path), 400, "thread")
    refused(client.post(path, json={"name": "a", "body": "b"}), 400, "thread")


def test_a_long_exchange_stays_within_the_levels(
    client: FlaskClient, settings: config.Settings
) -> None:
    last = post(client)["comment"]
    for _ in range(3 * settings.scheme.levels):
        answered, last = last, post(client, parent=last["id"])["comment"]
        assert last["reply_to"] == answered["id"]
        assert last["level"] < settings.scheme.levels
    assert len(listed(client)) == 1 + 3 * settings.scheme.levels


# --- posting -------------------------------------------------------------------------------------


def test_a_post_says_where_it_is(client: FlaskClient) -> None:
    response = client.post(THREAD, json={"name": "Ann", "body": "Hello"})
    comment = answer(response)["comment"]
    assert response.headers["Location"] == f"/api/v1/comments/{comment['id']}"
    assert response.headers["ETag"] == '"1"'
    assert client.get(response.headers["Location"]).status_code == 200


def test_a_repeated_post_stores_one_comment(client: FlaskClient) -> None:
    sent = {"name": "Ann", "body": "Hello"}
    first = client.post(THREAD, json=sent, headers=KEY)
    again = client.post(THREAD, json=sent, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert answer(again)["comment"]["id"] == answer(first)["comment"]["id"]
    assert len(listed(client)) == 1


def test_a_guest_of_a_repeated_post_is_the_same_guest(client: FlaskClient) -> None:
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


@pytest.mark.parametrize("key", ["", "short", "x" * 15, "x" * 256, "spaces in a key ok", "ä" * 16])
def test_a_malformed_key_is_refused(client: FlaskClient, key: str) -> None:
    sent = {"name": "Ann", "body": "Hello"}
    response = client.post(THREAD, json=sent, headers={"Idempotency-Key": key})
    refused(response, 400, "Idempotency-Key")
    assert listed(client) == []


def test_a_guest_keeps_his_id(client: FlaskClient) -> None:
    first = post(client)
    response = client.post(THREAD, json={"name": "Ann", "body": "2"}, headers=bearer(first))
    second = answer(response)["comment"]
    edited = client.patch(ONE + second["id"], json={"body": "3"}, headers=bearer(first))
    assert edited.status_code == 200


def test_the_replies_of_a_new_comment_are_none(client: FlaskClient) -> None:
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
        ({"name": "a", "body": "b", "url": "javascript:alert(1)"}, "url"),
        ({"name": "a", "body": "b", "score": 5}, "score"),
        ({"name": "a", "body": "b\x00"}, "body"),
        ({"name": "a", "body": "\ud800"}, "body"),
        ({"name": "a", "body": "b", "parent": 0}, "parent"),
        ({"name": "a", "body": "b", "parent": True}, "parent"),
        ({"name": "a", "body": "b", "parent": 2**63}, "parent"),
    ],
)
def test_a_bad_post_is_refused_by_field(client: FlaskClient, sent: dict, field: str) -> None:
    refused(client.post(THREAD, json=sent), 400, field)
    assert listed(client) == []


def test_a_parent_is_of_the_same_thread(client: FlaskClient) -> None:
    first = post(client)["comment"]
    response = client.post(
        "/api/v1/sites/demo/comments?thread=u",
        json={"name": "a", "body": "b", "parent": first["id"]},
    )
    assert response.status_code in {400, 404, 409}
    assert client.get("/api/v1/sites/demo/comments?thread=u").json == {
        "comments": [],
        "cursor": None,
        "total": 0,
        "changed": None,
    }


def test_a_retracted_parent_takes_no_reply(client: FlaskClient) -> None:
    first = post(client)
    client.delete(ONE + first["comment"]["id"], headers=bearer(first))
    sent = {"name": "a", "body": "b", "parent": first["comment"]["id"]}
    assert client.post(THREAD, json=sent).status_code in {404, 409}
    assert listed(client) == []


@pytest.mark.parametrize("data", ["[" * 3_000, '{"a":' * 3_000, "[]", "9" * 5_000, "", "nul"])
def test_strange_json_is_a_bad_request(client: FlaskClient, data: str) -> None:
    for call, path in ((client.post, THREAD), (client.post, "/api/v1/sites/demo/preview")):
        refused(call(path, data=data, content_type="application/json"), 400, "body")


# --- large and odd bodies ------------------------------------------------------------------------


def test_a_body_above_the_limit_is_refused(client: FlaskClient, settings: config.Settings) -> None:
    data = b'{"name": "a", "body": "' + b"x" * settings.max_body
    response = client.post(THREAD, data=data, content_type="application/json")
    assert refused(response, 413) == "too-large"


def chunked(client: FlaskClient, source: object) -> TestResponse:
    """Post a body whose length nobody says, as servers hand chunked ones on."""
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


def test_an_endless_body_is_not_read_on(client: FlaskClient, settings: config.Settings) -> None:
    source = Endless()
    assert refused(chunked(client, source), 413) == "too-large"
    assert source.bytes_read <= 2 * settings.max_body


class Endless:
    """A body without an end, and how much of it was read."""

    bytes_read = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "somebody reads it all"
        self.bytes_read += size
        return b"x" * size


def test_a_body_that_was_cut_short_is_refused(client: FlaskClient) -> None:
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


def test_a_million_form_fields_are_not_even_read(client: FlaskClient) -> None:
    data = "&".join(["a=b"] * 10_000)
    response = client.post(THREAD, data=data, content_type="application/x-www-form-urlencoded")
    refused(response, 415)


# --- changing ------------------------------------------------------------------------------------


def test_a_guest_edits_his_comment(client: FlaskClient) -> None:
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
    assert refused(foreign, 403) == "forbidden"
    assert client.get(path).data == before


def test_a_token_in_the_query_is_no_token(client: FlaskClient) -> None:
    posted = post(client)
    path = f"{ONE}{posted['comment']['id']}?token={posted['token']}"
    assert client.delete(path).status_code in {400, 401}
    assert len(listed(client)) == 1


def test_a_token_of_another_site_is_refused(
    client: FlaskClient, open_store: datastore.Store, site: records.Site, settings: config.Settings
) -> None:
    with open_store.context():
        sites.add("other", [], scheme=settings.scheme, now=datetime(2026, 1, 2, tzinfo=UTC))
    path = "/api/v1/sites/other/comments?thread=t"
    posted = post(client)
    response = client.post(path, json={"name": "a", "body": "b"}, headers=bearer(posted))
    assert refused(response, 401) == "bad-token"
    assert answer(client.get(path))["total"] == 0


def test_an_expired_token_is_refused(open_store: datastore.Store, site: records.Site) -> None:
    settings = config.Settings(secret="a secret of the tests", guest_term=-1)
    client = wiring.create_app(settings, open_store).test_client()
    posted = post(client)
    response = client.delete(ONE + posted["comment"]["id"], headers=bearer(posted))
    assert refused(response, 401) == "token-expired"


def test_a_token_that_names_nobody_changes_nothing(
    client: FlaskClient, settings: config.Settings
) -> None:
    posted = post(client)
    token = session.sign(session.Guest("demo", ""), secret=settings.secret)
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


def test_a_tombstone_says_nothing_of_what_it_was(client: FlaskClient) -> None:
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


def test_what_is_personal_is_in_no_answer(client: FlaskClient) -> None:
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


# --- preview -------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["*a*", "<b>x</b>", "[x](javascript:alert(1))", "> q\n\n- a\n- b"])
def test_a_preview_is_what_would_be_stored(client: FlaskClient, body: str) -> None:
    response = client.post("/api/v1/sites/demo/preview", json={"body": body})
    assert answer(response)["html"] == post(client, body=body)["comment"]["html"]


# --- paths ---------------------------------------------------------------------------------------


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
def test_what_names_nothing_is_not_there(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method, json={"body": "b"})
    assert response.status_code in {404, 405}
    assert response.content_type == "application/problem+json"
    assert "X-Evil" not in response.headers
    assert "\n" not in json.loads(response.text)["detail"]
    assert "/work" not in response.text
    assert ".py" not in response.text


@pytest.mark.parametrize("path", [THREAD, ONE + NOBODY, f"{ONE}{NOBODY}/replies"])
def test_an_unknown_parameter_is_refused(client: FlaskClient, path: str) -> None:
    mark = "&" if "?" in path else "?"
    refused(client.get(f"{path}{mark}utm_source=x"), 400, "utm_source")


def test_requests_leave_nothing_in_the_application(app: flask.Flask, client: FlaskClient) -> None:
    kept = app.extensions["flatthread"]
    post(client)
    assert app.extensions["flatthread"] is kept
    with pytest.raises(dataclasses.FrozenInstanceError):
        kept.settings = None
