"""Strangers' text stays text in threads as HTML, both in the page and in its structured data."""

import json
import re
from typing import Any

import flask.testing
import pytest

from comments.domain import records
from comments.domain.text import cleaning
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_info
from tests.support.html import html_reader
from tests.support.html.embedded_threads import ADA, PAYLOADS, get
from tests.support.threads import sample_threads


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("form", ["", "/fragment"])
def test_names_and_titles_are_text(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    payload: Any,
    form: str,
) -> None:
    with open_store.context():
        sample_threads.post(site, "plain", thread="plain", title="plain")
        sample_threads.post(
            site, "plain", title=payload, author=records.Author(_storable(payload), id="g:1")
        )
    page, plain = get(client, form), get(client, form, thread="plain")
    assert page.tags == plain.tags
    assert [set(values) for _, values in page.elements] == [
        set(values) for _, values in plain.elements
    ]
    assert _storable(payload) in page.text
    if not form:
        shown = cleaning.clean_title(payload)
        assert shown in page.text
        assert page.linked_data["headline"] == shown
        assert page.linked_data["comment"][0]["author"]["name"] == _storable(payload)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_data_block_cannot_be_closed_by_its_content(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    payload: Any,
) -> None:
    with open_store.context():
        sample_threads.post(site, payload, title=payload, author=ADA)
    source = client.get("/embed/demo?thread=page").text
    block = re.search(r'<script type="application/ld\+json">(.*?)</script>', source, re.DOTALL)
    assert block is not None
    assert not set("<>&\u2028\u2029") & set(block[1])
    assert json.loads(block[1])["headline"] == cleaning.clean_title(payload)
    assert source.count("<script") == 1


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/x",
        "http://localhost.evil.example:8080/x",
        "http://localhost:8081/x",
        "http://localhost/x",
        "https://localhost:8080/x",
        'http://evil.example/"><script>alert(1)</script>',
    ],
)
def test_a_foreign_url_is_shown_nowhere(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site, url: str
) -> None:
    with open_store.context():
        sample_threads.post(site, "hello", url=url)
    source = client.get("/embed/demo?thread=page").text
    page = html_reader.Document(source)
    assert page.links("canonical") == []
    assert "evil" not in source
    assert not {"url", "@id", "mainEntityOfPage"} & page.linked_data.keys()


@pytest.mark.parametrize(
    "rest", [".evil.example/", "@evil.example/", "1/", "\\@evil.example/", ":1"]
)
def test_a_url_that_only_starts_like_the_sites_origin_is_refused(rest: str) -> None:
    site = records.Site("demo", ("http://localhost:8080",), "AB", 2)
    url = f"http://localhost:8080{rest}"
    assert thread_info.address(url, site) == ""


def test_a_url_on_the_site_is_the_canonical_one_and_escaped(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    url = "http://localhost:8080/a?b='\"><c>&d"
    with open_store.context():
        row = sample_threads.post(site, "hello", url=f"{url}#top")
    page = get(client)
    assert page.links("canonical") == [url]
    assert page.linked_data["url"] == url
    assert page.linked_data["comment"][0]["url"] == f"{url}#comment-{row.id}"
    assert "c" not in page.tags


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://blog.example/a?b#c", "https://blog.example/a?b"),
        ("http://blog.example", "https://blog.example"),
        ("https://blog.example/a", "https://blog.example/a"),
        ("http://old.example/a", "http://old.example/a"),
        ("HTTPS://Blog.example/A", "https://blog.example/A"),
        ("https://old.example/a", ""),
        ("http://blog.example.evil.example/", ""),
    ],
)
def test_an_http_url_becomes_https_once_the_site_has_https(url: str, address: str) -> None:
    origins = ("https://old.example:8443", "https://blog.example", "http://old.example")
    assert thread_info.address(url, records.Site("demo", origins, "AB", 2)) == address


def test_a_url_of_a_withdrawn_origin_is_not_used(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        sample_threads.post(site, "hello", url="http://localhost:8080/a")
        assert get(client).links("canonical")
        site_settings.change("demo", origins=["https://new.example"])
    assert get(client).links("canonical") == []


def test_a_stored_website_that_is_not_a_web_address_is_not_a_link(
    client: flask.testing.FlaskClient,
    compacted_page: dict[str, records.Comment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cleaning, "clean_website", lambda raw: raw)
    body = {"name": "Mallory", "body": "hi", "website": "javascript:alert(1)"}
    assert client.post("/api/v1/sites/demo/comments?thread=m", json=body).status_code == 201
    source = client.get("/embed/demo?thread=m").text
    assert "Mallory" in source
    assert "javascript:" not in source


def _storable(payload: str) -> str:
    """Return the payload without the characters that names cannot contain."""
    return payload.replace("\u2028", "").replace("\u2029", "").replace("\u202e", "")


# --- Structured data --------------------


def test_structured_data_equals_the_page(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    url = "http://localhost:8080/a"
    website = "https://ada.example/"
    with open_store.context():
        top = sample_threads.post(
            site,
            "one *two*\n\nthree & <four>",
            title="A title",
            url=url,
            author=records.Author("Ada", website, id="g:1"),
        )
        reply = sample_threads.post(site, "five", top.id)
    said = get(client).linked_data
    assert said["@context"] == "https://schema.org"
    assert said["@type"] == "DiscussionForumPosting"
    assert (said["headline"], said["commentCount"]) == ("A title", 2)
    (first,) = said["comment"]
    assert first["text"] == "one two\nthree & <four>"
    assert first["author"] == {"@type": "Person", "name": "Ada", "url": website}
    assert first["datePublished"] == "2026-01-02T03:04:05Z"
    assert first["commentCount"] == 1
    (second,) = first["comment"]
    assert (second["@type"], second["url"]) == ("Comment", f"{url}#comment-{reply.id}")


def test_every_page_lists_its_own_comments_nested(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    def count(part: dict[str, Any]) -> int:
        return sum(1 + count(each) for each in part.get("comment", ()))

    first = get(client, limit=3)
    assert count(first.linked_data) == 3
    assert count(get(client).linked_data) == len(compacted_page)
    assert [each["text"] for each in get(client).linked_data["comment"]] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("lang", "names"), [("en", ("Code", "Table")), ("de", ("Code", "Tabelle"))]
)
def test_code_and_tables_have_names_because_they_can_be_focused(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    lang: str,
    names: tuple[str, str],
) -> None:
    quoted = '[x](https://x.example \'<pre tabindex="0">\') `<pre tabindex="0">`'
    body = f"```\ncode\n```\n\n| a |\n|---|\n| b |\n\n{quoted}"
    with open_store.context():
        sample_threads.post(site, body, author=ADA)
    page = get(client, lang=lang)
    focusable = [(tag, values) for tag, values in page.elements if tag in {"pre", "table"}]
    assert focusable == [
        ("pre", {"tabindex": "0", "role": "group", "aria-label": names[0]}),
        ("table", {"tabindex": "0", "aria-label": names[1]}),
    ]
    titles = [values["title"] for _, values in page.elements if values.get("title", "")[:1] == "<"]
    assert titles == ['<pre tabindex="0">']
