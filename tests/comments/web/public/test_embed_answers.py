"""Test threads as HTML: refused requests, framing, validation and cost."""

import gzip
from typing import Any

import flask
import pytest

from comments.domain import records
from comments.domain.text.addresses import web_origins
from comments.reading.compaction import compactor
from comments.reading.materialized import view_cache
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.threads import thread_cache
from comments.web.http import responses
from datastore_emulator import inprocess, testing
from tests.support.html import html_reader
from tests.support.html.embedded_threads import get
from tests.support.threads import sample_threads

# --- Refusals --------------------


@pytest.mark.parametrize(
    ("query", "status", "named"),
    [
        ("", 400, "thread"),
        ("thread=", 400, "thread"),
        ("thread=a&page=https://b.example", 400, "page"),
        ("page=nonsense", 400, "page"),
        ("thread=page&limit=0", 400, "limit"),
        ("thread=page&limit=201", 400, "limit"),
        ("thread=page&limit=x", 400, "limit"),
        ("thread=page&order=worst", 400, "order"),
        ("thread=page&cursor=forged", 400, "cursor"),
        ("thread=page&around=x", 400, "around"),
        (f"thread=page&around={'a' * 26}", 404, "comment"),
        (f"thread=page&below={'a' * 26}", 404, "comment"),
        (f"thread=page&below={'a' * 26}&around={'a' * 26}", 400, "below"),
        (f"thread=page&around={'a' * 26}&cursor=x", 400, "cursor"),
        (f"thread=page&below={'a' * 26}&order=newest", 400, "order"),
        ("thread=page&fragment=1", 400, "fragment"),
        ("thread=page&%3Cscript%3E=1", 400, "script"),
    ],
)
@pytest.mark.parametrize("form", ["", "/fragment"])
def test_an_invalid_query_gets_a_page_that_names_it(
    client: Any,
    compacted_page: dict[str, records.Comment],
    query: str,
    status: int,
    named: str,
    form: str,
) -> None:
    response = client.get(f"/embed/demo{form}?{query}")
    assert response.status_code == status
    assert response.content_type == "text/html; charset=utf-8"
    page = html_reader.Document(response.text)
    assert named in page.text
    assert "script" not in page.tags
    assert response.headers["Cache-Control"] == "no-store"
    assert page.links("stylesheet") == [("../../" if form else "../") + "widget/embed.css"]


@pytest.mark.parametrize("site_id", ["nobody", "UPPER", "a.b", "%3Cb%3E", "x" * 5_000])
def test_an_unknown_site_gets_an_error_page(client: Any, site_id: str) -> None:
    response = client.get(f"/embed/{site_id}?thread=page")
    assert (response.status_code, response.mimetype) == (404, "text/html")
    assert "There is no site" in response.text
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]


def test_a_comment_of_another_thread_is_refused_by_name(
    client: Any, compacted_page: dict[str, records.Comment]
) -> None:
    for name in ("around", "below"):
        response = client.get(f"/embed/demo?thread=other&{name}={compacted_page['1'].id}")
        assert (response.status_code, name in response.text) == (400, True)


def test_a_cursor_of_another_order_is_refused(
    client: Any, compacted_page: dict[str, records.Comment]
) -> None:
    cursor = get(client, limit=2).next["cursor"]
    response = client.get(f"/embed/demo?thread=page&order=recent&cursor={cursor}")
    assert (response.status_code, "cursor" in response.text) == (400, True)


def test_a_store_that_does_not_answer_gets_an_error_page(
    client: Any, engine: inprocess.Engine, short_deadline: connection.Store
) -> None:
    engine.close()
    response = client.get("/embed/demo?thread=page")
    assert (response.status_code, response.mimetype) == (503, "text/html")
    assert int(response.headers["Retry-After"]) > 0


# --- Headers --------------------


def test_only_the_sites_own_pages_may_frame_it(
    client: Any, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        site_settings.change("demo", origins=["https://a.example", "http://b.example:81"])
    policy = client.get("/embed/demo?thread=page").headers["Content-Security-Policy"]
    rules = policy.split("; ")
    assert "frame-ancestors https://a.example http://b.example:81" in rules
    assert "default-src 'none'" in rules
    assert "base-uri 'none'" in rules
    assert "script-src" not in policy
    assert "unsafe" not in policy


def test_a_refusal_may_be_framed_like_the_page(client: Any, site: records.Site) -> None:
    policy = client.get("/embed/demo?thread=").headers["Content-Security-Policy"]
    assert policy.endswith("frame-ancestors http://localhost:8080")


def test_a_stored_origin_cannot_add_a_policy_directive(
    client: Any, open_store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_origins, "check", lambda origin: origin)
    with open_store.context():
        site_settings.change("demo", origins=["https://a;script-src", "https://*"])
    policy = client.get("/embed/demo?thread=page").headers["Content-Security-Policy"]
    assert policy.endswith("frame-ancestors 'none'")


@pytest.mark.parametrize("form", ["", "/fragment"])
def test_an_unchanged_page_is_not_sent_again(
    client: Any,
    open_store: connection.Store,
    site: records.Site,
    compacted_page: dict[str, records.Comment],
    form: str,
) -> None:
    path = f"/embed/demo{form}?thread=page"
    first = client.get(path)
    assert first.headers["Cache-Control"] == "no-cache"
    tag = {"If-None-Match": first.headers["ETag"]}
    again = client.get(path, headers=tag)
    assert (again.status_code, again.data) == (304, b"")
    head = client.head(path)
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["ETag"] == first.headers["ETag"]
    assert head.headers["Content-Length"] == str(len(first.data))
    with open_store.context():
        sample_threads.post(site, "new")
    assert client.get(path, headers=tag).status_code == 200


def test_a_page_is_rendered_once_until_it_changes(
    client: Any,
    open_store: connection.Store,
    site: records.Site,
    compacted_page: dict[str, records.Comment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    render = flask.render_template
    monkeypatch.setattr(
        flask, "render_template", lambda name, **more: made.append(name) or render(name, **more)
    )
    path = "/embed/demo?thread=page"
    first = client.get(path)
    assert client.get(path).data == first.data
    tag = {"If-None-Match": first.headers["ETag"]}
    assert client.get(path, headers=tag).status_code == 304
    assert len(made) == 1
    assert (
        client.get(f"{path}&limit=2").headers["Link"]
        == client.get(f"{path}&limit=2").headers["Link"]
    )
    assert len(made) == 2
    with open_store.context():
        sample_threads.post(site, "new")
    assert "new" in client.get(path, headers=tag).text
    assert len(made) == 3


def test_the_etag_covers_everything_a_page_shows(
    client: Any, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        sample_threads.post(site, "hello", url="http://localhost:8080/a")
        sample_threads.post(site, "again")
        compactor.compact(sample_threads.SETTINGS.scheme, sample_threads.name_of(site))
    paths = ("/embed/demo?thread=page", "/embed/demo/fragment?thread=page")
    tags = [client.get(path).headers["ETag"] for path in paths]
    assert tags[0] != tags[1]
    elsewhere = client.get(paths[1], headers={"Host": "other.example"})
    assert "//other.example/" in elsewhere.text
    assert "other.example" not in client.get(paths[1]).text
    with open_store.context():
        site_settings.change("demo", origins=["https://new.example"])
    response = client.get(paths[0], headers={"If-None-Match": tags[0]})
    assert response.status_code == 200
    assert "localhost:8080" not in response.text


def test_a_sites_cdn_time_applies_to_pages(
    client: Any, open_store: connection.Store, compacted_page: dict[str, records.Comment]
) -> None:
    with open_store.context():
        site_settings.change("demo", cdn_seconds=5)
    for form in ("", "/fragment"):
        kept = client.get(f"/embed/demo{form}?thread=page").headers["Cache-Control"]
        assert "s-maxage=5" in kept


def test_a_page_is_compressed_for_clients_that_accept_it(
    client: Any, compacted_page: dict[str, records.Comment]
) -> None:
    response = client.get("/embed/demo?thread=page", headers={"Accept-Encoding": "gzip"})
    assert response.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(response.data) == client.get("/embed/demo?thread=page").data


# --- Cost --------------------


PATHS = ("/api/v1/sites/demo/comments", "/embed/demo", "/embed/demo/fragment")


@pytest.mark.parametrize("query", ["", "&order=recent", "&order=best", "&order=newest"])
def test_a_page_costs_the_same_as_the_json_page(
    client: Any,
    engine: inprocess.Engine,
    open_store: connection.Store,
    site: records.Site,
    compacted_page: dict[str, records.Comment],
    query: str,
) -> None:
    def cost(path: str) -> tuple[int, int, int]:
        with testing.meter(engine) as met:
            assert client.get(f"{path}?thread=page{query}").status_code == 200
        return met.reads, met.writes, met.small

    cost(PATHS[0])  # Caches the site
    for number in range(3):
        with open_store.context():
            for each in range(number):
                sample_threads.post(site, f"new {number} {each}")
        cold = []
        for path in PATHS:
            _forget(open_store)
            cold.append(cost(path))
        assert cold[1:] == [cold[0]] * 2
    warm = [cost(path) for path in PATHS]
    assert warm[1:] == [warm[0]] * 2


def test_a_page_below_a_comment_costs_the_same_as_its_replies(
    client: Any,
    engine: inprocess.Engine,
    open_store: connection.Store,
    compacted_page: dict[str, records.Comment],
) -> None:
    client.get("/embed/demo?thread=page")  # Caches the site
    client.get("/api/v1/sites/demo/subscription")  # Caches the mail server
    costs = []
    for path in (
        f"/api/v1/comments/{compacted_page['1'].id}/replies?",
        f"/embed/demo?thread=page&below={compacted_page['1'].id}",
    ):
        _forget(open_store)
        with testing.meter(engine) as cost:
            assert client.get(path).status_code == 200
        costs.append(cost.reads)
    assert costs == [2, 2]  # The comment, and the directory with all rows in its tail


def test_a_compacted_thread_shows_its_title_and_changes_it_at_the_next_compaction(
    client: Any, open_store: connection.Store, site: records.Site
) -> None:
    def shown() -> str:
        return get(client).linked_data["headline"]

    with open_store.context():
        sample_threads.post(site, "hello", title="first")
        name = sample_threads.name_of(site)
        assert shown() == "first"
        compactor.compact(sample_threads.SETTINGS.scheme, name)
        assert shown() == "first"
        tag = client.get("/embed/demo?thread=page").headers["ETag"]

        def rename() -> None:
            row = reads.get(comment_rows.thread_key(name))
            row.title = "second"
            transactions.apply(ownership.Writes("an operator", put=(row,)))

        transactions.transaction(rename)
        compactor.compact(sample_threads.SETTINGS.scheme, name)
        _forget(open_store)
    response = client.get("/embed/demo?thread=page", headers={"If-None-Match": tag})
    assert response.status_code == 200
    assert shown() == "second"


def _forget(store: connection.Store) -> None:
    """Empty all caches except the site's copy, as if the process had just started."""
    for each in (view_cache.HOLDINGS, responses.PAGES, thread_cache.COPIES):
        each.forget(store)
