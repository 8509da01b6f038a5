"""Threads as HTML show the images of the origins that the site lists."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.domain.text.addresses import web_origins
from comments.moderation import decisions
from comments.sites import site_settings
from comments.store import connection
from tests.support.html import html_reader
from tests.support.threads import sample_threads

IMAGE = "https://img.example/cat.png"
BODY = f"![A cat]({IMAGE}) ![a fox](https://other.example/fox.png)"
PATHS = ("/embed/demo", "/embed/demo/fragment")
FEEDS = ("/feeds/demo", "/feeds/demo/thread?thread=page")


def lists(store: connection.Store, *origins: str) -> None:
    with store.context():
        site_settings.change("demo", options={"images": origins})


def images(source: str) -> list[str | None]:
    found = html_reader.Document(source).elements
    return [attributes["src"] for name, attributes in found if name == "img"]


@pytest.fixture
def comment(open_store: connection.Store, site: records.Site) -> records.Comment:
    with open_store.context():
        return sample_threads.post(site, BODY, author=sample_threads.author("Ada"))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("below", [False, True])
def test_a_change_of_the_list_changes_the_page_and_its_tag(
    client: FlaskClient,
    open_store: connection.Store,
    comment: records.Comment,
    path: str,
    below: bool,
) -> None:
    query = {"thread": "page", "below": comment.id} if below else {"thread": "page"}

    def read(tag: str = "") -> Any:
        return client.get(path, query_string=query, headers={"If-None-Match": tag})

    before = read()
    assert images(before.text) == []
    lists(open_store, "https://img.example")
    shown = read(before.headers["ETag"])
    assert images(shown.text) == [IMAGE]
    assert read(shown.headers["ETag"]).status_code == 304
    assert (
        'href="https://other.example/fox.png" rel="nofollow ugc noopener">a fox</a>' in shown.text
    )
    lists(open_store)
    after = read(shown.headers["ETag"])
    assert (after.text, after.headers["ETag"]) == (before.text, before.headers["ETag"])


def test_pinned_comments_show_images_too(
    client: FlaskClient, open_store: connection.Store, comment: records.Comment
) -> None:
    lists(open_store, "https://img.example")
    with open_store.context():
        ada = records.Actor("cli", "Ada")
        decisions.decide("demo", comment.id, records.Verb.PIN, ada, now=sample_threads.START)
    assert images(client.get("/embed/demo?thread=page").text) == [IMAGE, IMAGE]


def test_the_policy_allows_exactly_the_listed_origins(
    client: FlaskClient, open_store: connection.Store, comment: records.Comment
) -> None:
    def policies() -> list[str]:
        answers = [client.get(f"{path}?thread=page") for path in PATHS]
        answers.append(client.get("/embed/demo?thread="))
        return [answer.headers["Content-Security-Policy"] for answer in answers]

    assert all("; img-src 'self'; " in policy for policy in policies())
    lists(open_store, "https://img.example", "https://cdn.example:8443")
    wanted = "; img-src 'self' https://img.example https://cdn.example:8443; "
    assert all(wanted in policy for policy in policies())
    for path in ("/", "/embed/nobody?thread=page", "/subscriptions/confirm", *FEEDS):
        assert "img.example" not in client.get(path).headers["Content-Security-Policy"], path


def test_a_stored_origin_cannot_add_a_source_to_the_policy(
    client: FlaskClient,
    open_store: connection.Store,
    comment: records.Comment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_origins, "check", lambda origin, _field="": origin)
    lists(open_store, "https://a;script-src", "https://*", "https://a 'unsafe-inline'")
    policy = client.get("/embed/demo?thread=page").headers["Content-Security-Policy"]
    assert "; img-src 'self'; " in policy


def test_feeds_the_api_and_the_data_block_keep_the_link(
    client: FlaskClient, open_store: connection.Store, comment: records.Comment
) -> None:
    def found() -> list[Any]:
        listed = client.get("/api/v1/sites/demo/comments?thread=page").json
        page = html_reader.Document(client.get("/embed/demo?thread=page").text)
        return [*(client.get(path).data for path in FEEDS), listed["comments"], page.linked_data]

    before = found()
    lists(open_store, "https://img.example")
    assert found() == before
    assert "<img" not in repr(before)
