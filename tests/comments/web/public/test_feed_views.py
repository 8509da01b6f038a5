"""Test the feeds' comments, links, validation and cost over HTTP."""

import dataclasses
import gzip
from datetime import timedelta
from typing import Any

import feedparser
import flask.testing
import pytest

from comments import app as apps
from comments.domain import records
from comments.posting import own_comment
from comments.reading import feeds
from comments.reading.compaction import compactor
from comments.reading.materialized import thread_view, view_cache
from comments.sites import site_settings
from comments.store import connection, reads
from comments.web.http import responses
from datastore_emulator import inprocess, testing
from tests.support.html import atom_rules
from tests.support.threads import sample_threads

SITE, THREAD = "/feeds/demo", "/feeds/demo/thread?thread=page"
NEWEST = ["3", "2.1", "2", "1.2", "1.1.2", "1.1.1", "1.1", "1"]
EMAIL = "canary@private.example"


def read(client: flask.testing.FlaskClient, path: str = THREAD, **headers: Any) -> Any:
    response = client.get(path, headers=headers)
    assert response.status_code == 200, response.text
    assert response.content_type == "application/atom+xml; charset=utf-8"
    told = {"content-type": response.content_type}
    found = feedparser.parse(response.data, response_headers=told)
    assert found.bozo is False
    assert atom_rules.problems(response.data) == []
    return found


def texts(found: Any) -> Any:
    return [
        entry.content[0].value.removeprefix("<p>").removesuffix("</p>") for entry in found.entries
    ]


def compact(name: str = "page") -> None:
    folded = compactor.compact(sample_threads.SETTINGS.scheme, records.ThreadName("demo", name))
    compactor.clear(folded)  # type: ignore[arg-type]


def forget(store: connection.Store) -> None:
    """Empty all caches except the copies of the site and its threads, as after a start."""
    for each in (view_cache.HOLDINGS, responses.PAGES):
        each.forget(store)


# --- Content --------------------


@pytest.mark.parametrize("path", [SITE, THREAD])
@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_feed_is_newest_first(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    path: Any,
    is_compacted: bool,
) -> None:
    with open_store.context():
        sample_threads.grow(site, sample_threads.TREE)
        if is_compacted:
            compact()
    assert texts(read(client, path)) == NEWEST


@pytest.mark.slow
def test_a_feed_from_many_buckets_equals_the_feed_from_the_rows(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_store.context():
        for number in range(300):
            sample_threads.post(
                site, f"{number}", now=sample_threads.START + timedelta(seconds=number % 100)
            )
        compact()
        view = thread_view.view(sample_threads.name_of(site))
        assert len(view.directory.lines) > 1
    expected = [f"{number}" for number in sorted(range(300), key=lambda n: (-(n % 100), -n))]
    assert texts(read(client)) == expected[: feeds.LIMIT]
    with open_store.context():
        sample_threads.post(site, "new", now=sample_threads.START + timedelta(days=1))
    assert texts(read(client)) == ["new", *expected[: feeds.LIMIT - 1]]


def test_equal_times_have_one_order_from_rows_and_from_buckets(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        for number in range(10):
            sample_threads.post(site, f"{number}")
    ordered = texts(read(client))
    with open_store.context():
        compact()
    assert texts(read(client)) == ordered == [f"{number}" for number in range(9, -1, -1)]


@pytest.mark.parametrize("path", [SITE, THREAD])
def test_a_retracted_comment_disappears(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site, path: Any
) -> None:
    with open_store.context():
        grown = sample_threads.grow(site, sample_threads.TREE)
        compact()
    assert texts(read(client, path)) == NEWEST
    with open_store.context():
        for body in ("1.1", "3"):  # One becomes a tombstone, one disappears
            retract(grown[body])
    left = [text for text in NEWEST if text not in {"1.1", "3"}]
    assert texts(read(client, path)) == left
    with open_store.context():
        compact()
    forget(open_store)  # The clearing did not wait for this process's directory
    assert texts(read(client, path)) == left


def retract(row: Any) -> None:
    now = sample_threads.START + timedelta(days=2)
    own_comment.retract(row.id, author_id=row.author.id, revision=None, now=now)


def test_a_feed_has_the_time_of_its_last_change(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        grown = sample_threads.grow(site, sample_threads.TREE)
    assert read(client).feed.updated == "2026-01-02T03:11:05Z"
    with open_store.context():
        retract(grown["3"])
    assert read(client).feed.updated == "2026-01-04T03:04:05Z"
    assert read(client, SITE).feed.updated == "2026-01-02T03:10:05Z"


def test_an_entry_links_to_its_place_on_the_sites_page(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        row = sample_threads.post(
            site, "here", url="http://localhost:8080/a?b=c&d#e", title="A page"
        )
    for path in (SITE, THREAD):
        (entry,) = read(client, path).entries
        assert entry.link == f"http://localhost:8080/a?b=c&d#comment-{row.id}"
        assert entry.title == "author of here on A page"
        assert entry.author_detail.name == "author of here"
    found = read(client).feed
    assert (found.link, found.title) == ("http://localhost:8080/a?b=c&d", "Comments on A page")


@pytest.mark.parametrize("url", ["", "https://evil.example/a", "http://localhost.evil.example/"])
@pytest.mark.parametrize("path", [SITE, THREAD])
def test_without_a_url_on_the_site_an_entry_links_to_our_page(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    path: Any,
    url: str,
) -> None:
    with open_store.context():
        sample_threads.post(site, "here", url=url)
    found = read(client, path)
    assert "evil" not in repr(found)
    (entry,) = found.entries
    assert entry.link.startswith("http://localhost/embed/demo?thread=page&around=")
    page = client.get(entry.link.removeprefix("http://localhost").partition("#")[0])
    assert f'id="{entry.link.partition("#")[2]}"' in page.text


def test_a_sites_feed_contains_only_its_own_threads(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        other = site_settings.add(
            "other",
            ["http://other.example"],
            scheme=sample_threads.SETTINGS.scheme,
            now=sample_threads.START,
        )
        for number, (where, thread) in enumerate([(site, "a"), (other, "a"), (site, "b" * 900)]):
            now = sample_threads.START + timedelta(seconds=number)
            sample_threads.post(where, f"{number}", thread=thread, now=now, title=f"title {number}")
    found = read(client, SITE)
    assert texts(found) == ["2", "0"]
    assert [entry.title.partition(" on ")[2] for entry in found.entries] == ["title 2", "title 0"]
    assert texts(read(client, "/feeds/other")) == ["1"]


def test_a_thread_without_comments_is_an_empty_feed(
    client: flask.testing.FlaskClient, site: records.Site
) -> None:
    assert read(client).entries == []
    assert read(client, SITE).entries == []


def test_a_feed_contains_no_personal_data(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    author = records.Author("Ann", "https://ann.example/", EMAIL, "g:secret-canary")
    with open_store.context():
        sample_threads.post(site, "hello", author=author)
    for path in (SITE, THREAD):
        text = client.get(path).text
        assert "Ann" in text
        assert "https://ann.example/" in text
        assert "canary" not in text


@pytest.mark.parametrize("public", ["", "https://comments.example/below"])
@pytest.mark.parametrize("page", ["", "http://localhost:8080/a"])
def test_every_link_is_absolute(
    open_store: connection.Store, site: records.Site, public: str, page: str
) -> None:
    settings = dataclasses.replace(
        sample_threads.SETTINGS, public_url=public, hosts=("localhost", "friend.example")
    )
    client = apps.create_app(settings, open_store).test_client()
    with open_store.context():
        row = sample_threads.post(site, "here", url=page)
    for host in ("localhost", "friend.example:8443"):
        service = public or f"http://{host}"
        embed = f"{service}/embed/demo?thread=page"
        alternate = {f"{page or embed}{'' if page else f'&around={row.id}'}#comment-{row.id}"}
        for path, about in ((SITE, site.origins[0]), (THREAD, page or embed)):
            # The service must never take its address from this header.
            answer = client.get(path, headers={"Host": host, "X-Forwarded-Host": "evil.example"})
            assert atom_rules.problems(answer.data) == []
            assert atom_rules.links(answer.data) == {
                "self": {service + path},
                "alternate": {about} | alternate,
            }


def test_a_threads_page_links_its_feed(
    client: flask.testing.FlaskClient, site: records.Site
) -> None:
    link = 'href="../feeds/demo/thread?thread=a%26b" type="application/atom+xml"'
    assert link in client.get("/embed/demo?thread=a%26b").text
    read(client, "/feeds/demo/thread?thread=a%26b")


# --- Answers --------------------


@pytest.mark.parametrize(
    ("path", "status", "named"),
    [
        ("/feeds/demo/thread", 400, "thread"),
        ("/feeds/demo/thread?thread=", 400, "thread"),
        ("/feeds/demo/thread?thread=a&thread=b", 400, "thread"),
        ("/feeds/demo/thread?page=nonsense", 400, "page"),
        ("/feeds/demo/thread?thread=a&limit=3", 400, "limit"),
        ("/feeds/demo?limit=3", 400, "limit"),
        ("/feeds/demo?thread=a", 400, "thread"),
        ("/feeds/demo?%ff", 400, "query"),
        ("/feeds/nobody", 404, ""),
        ("/feeds/nobody/thread?thread=a", 404, ""),
        ("/feeds/NOBODY", 404, ""),
        ("/feeds/", 404, ""),
    ],
)
def test_an_invalid_query_is_refused_by_field(
    client: flask.testing.FlaskClient, path: str, status: int, named: str
) -> None:
    response = client.get(path)
    assert (response.status_code, response.mimetype) == (status, "application/problem+json")
    assert response.json.get("field", "") == named
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", [SITE, THREAD])
@pytest.mark.parametrize("is_compacted", [True, False])
def test_an_unchanged_feed_is_not_sent_again(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    path: Any,
    is_compacted: bool,
) -> None:
    with open_store.context():
        grown = sample_threads.grow(site, sample_threads.TREE)
        if is_compacted:
            compact()
    first = client.get(path)
    assert first.headers["Cache-Control"] == "no-cache"
    tag = {"If-None-Match": first.headers["ETag"]}
    again = client.get(path, headers=tag)
    assert (again.status_code, again.data) == (304, b"")
    head = client.head(path)
    assert (head.status_code, head.data, head.headers["ETag"]) == (200, b"", first.headers["ETag"])
    assert head.headers["Content-Length"] == str(len(first.data))
    with open_store.context():
        own_comment.edit(
            grown["1"].id,
            author_id=grown["1"].author.id,
            body="edited",
            revision=None,
            settings=sample_threads.SETTINGS,
            now=sample_threads.START + timedelta(minutes=9),
        )
    changed = client.get(path, headers=tag)
    assert (changed.status_code, "edited" in changed.text) == (200, True)


@pytest.mark.parametrize("path", [SITE, THREAD])
def test_a_feed_is_compressed_for_clients_that_accept_it(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment], path: Any
) -> None:
    plain = client.get(path)
    packed = client.get(path, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert packed.headers["ETag"] != plain.headers["ETag"]
    assert "Accept-Encoding" in packed.headers["Vary"]


def test_a_sites_cdn_time_applies_to_feeds(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        site_settings.change("demo", cdn_seconds=5)
    for path in (SITE, THREAD):
        assert "s-maxage=5" in client.get(path).headers["Cache-Control"]


# --- Cost --------------------


def cost(
    client: flask.testing.FlaskClient, engine: inprocess.Engine, path: str
) -> tuple[int, int, int]:
    with testing.meter(engine) as met:
        assert client.get(path).status_code == 200
    return met.reads, met.writes, met.small


@pytest.mark.parametrize(("size", "costs"), [(10, (0, 1)), (1_500, (1, 2)), (3_000, (2, 32))])
def test_a_small_threads_feed_costs_its_directory_and_bucket(
    client: flask.testing.FlaskClient,
    engine: inprocess.Engine,
    open_store: connection.Store,
    site: records.Site,
    size: int,
    costs: tuple[int, ...],
) -> None:
    lines, reads = costs
    author = records.Author("Ann", id="g:ann")
    with open_store.context():
        for number in range(100):
            sample_threads.post(site, f"{number} {'x' * size}", author=author)
        compact()
        assert len(thread_view.view(sample_threads.name_of(site)).directory.lines) == lines
    client.get(SITE)  # Caches the site and the thread
    forget(open_store)
    # A longer thread needs the directory, the newest rows and the row after them.
    assert cost(client, engine, THREAD) == (reads, 0, 0)
    assert cost(client, engine, THREAD) == (0, 0, 0)


def test_a_sites_feed_costs_one_read_until_it_changes(
    client: flask.testing.FlaskClient,
    engine: inprocess.Engine,
    open_store: connection.Store,
    site: records.Site,
) -> None:
    with open_store.context():
        for number in range(100):
            now = sample_threads.START + timedelta(seconds=number)
            sample_threads.post(site, f"{number}", thread=f"{number % 40}", now=now)
    client.get("/feeds/demo/thread?thread=none")  # Caches the site.
    # The request reads the probe, the comments and their threads.
    assert cost(client, engine, SITE) == (1 + 2 * feeds.LIMIT, 0, feeds.LIMIT)
    assert cost(client, engine, SITE) == (1, 0, feeds.LIMIT)
    with open_store.context():
        sample_threads.post(
            site, "new", thread="another", now=sample_threads.START + timedelta(days=1)
        )
    assert cost(client, engine, SITE) == (1 + feeds.LIMIT + 1, 0, feeds.LIMIT)


# --- Changes while a feed is read --------------------


def test_a_sites_feed_that_changes_during_its_read_is_read_again(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ETag must match the bytes, so the service never sends the first version."""
    with open_store.context():
        rows = sample_threads.grow(site, sample_threads.TREE)
    lookup, waiting = reads.lookup, [rows["3"], rows["2.1"]]

    def meanwhile(kind: Any, names: Any) -> Any:
        if waiting:
            retract(waiting.pop())
        return lookup(kind, names)

    monkeypatch.setattr(reads, "lookup", meanwhile)
    first = client.get(SITE)
    monkeypatch.setattr(reads, "lookup", lookup)
    assert "author of 2.1" not in first.text
    again = client.get(SITE)
    assert (again.data, again.headers["ETag"]) == (first.data, first.headers["ETag"])


def test_a_feed_that_keeps_changing_gets_an_etag_of_its_bytes(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_store.context():
        rows = sample_threads.grow(site, sample_threads.TREE)
    lookup, waiting = reads.lookup, list(rows.values())

    def meanwhile(kind: Any, names: Any) -> Any:
        retract(waiting.pop())
        return lookup(kind, names)

    monkeypatch.setattr(reads, "lookup", meanwhile)
    response = client.get(SITE)
    assert response.status_code == 200
    assert len(feedparser.parse(response.data).entries) == len(waiting)


@pytest.mark.slow
def test_a_long_thread_that_changes_during_its_read_gets_an_etag_of_its_bytes(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_store.context():
        for number in range(300):
            sample_threads.post(site, f"{number}")
        compact()
    newest, waiting = feeds._newest, ["new"]

    def meanwhile(name: str) -> Any:
        found = newest(name)  # type: ignore[arg-type]
        while waiting:
            sample_threads.post(site, waiting.pop(), now=sample_threads.START + timedelta(days=1))
        return found

    monkeypatch.setattr(feeds, "_newest", meanwhile)
    first = client.get(THREAD)
    assert "author of new" in first.text
    assert client.get(THREAD).data == first.data
