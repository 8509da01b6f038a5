"""Test cached responses' codings, ETags, 304 statuses and CDN instructions.

Instead of measuring time, the tests count how often rows are read from a view and how often bytes
are compressed.
"""

from collections import Counter
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header

from comments import app as apps
from comments import config
from comments.domain import records
from comments.reading.compaction import compactor
from comments.reading.materialized import first_page, merged_view
from comments.sites import site_settings
from comments.store import connection
from comments.store.memory import caches
from comments.web.http import content_coding, responses
from tests.support.people.page_request import PAGE, plain
from tests.support.threads import compaction, sample_threads

WAYS = {
    "plain": PAGE,
    "short": PAGE + "&limit=2",
    "newest discussions first": PAGE + "&order=recent",
    "flat": PAGE + "&order=newest",
    "roots": PAGE + "&parent=root",
}
FOLDED_WAYS = ("plain", "short", "newest discussions first")
GZIP = {"Accept-Encoding": "gzip"}


@pytest.fixture
def rows(open_store: connection.Store, site: records.Site) -> dict[str, records.Comment]:
    """A compacted thread with two buckets of comments and one comment in the tail."""
    with open_store.context(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(compactor, "BUCKET_ROWS", 4)
        grown = sample_threads.grow(site, sample_threads.TREE)
        compaction.whole(sample_threads.name_of(site))
        return grown


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the pages that views or stored first pages provide, and the calls that encode bytes."""
    counted: Counter[str] = Counter()
    cut, at, top = merged_view.View.rows, merged_view.View.at, first_page.FirstPage.page
    encode = content_coding.encode

    def counting_rows(self: merged_view.View, *args: object, **named: object) -> object:
        counted["rows"] += 1
        return cut(self, *args, **named)  # type: ignore[arg-type]

    def counting_at(self: merged_view.View, *args: object) -> object:
        counted["rows"] += 1
        return at(self, *args)  # type: ignore[arg-type]

    def counting_top(self: first_page.FirstPage, *args: object, **named: object) -> object:
        counted["rows"] += 1
        return top(self, *args, **named)  # type: ignore[arg-type]

    def counting_encode(data: bytes, coding: content_coding.Coding) -> bytes:
        counted["encode"] += 1
        return encode(data, coding)

    monkeypatch.setattr(merged_view.View, "rows", counting_rows)
    monkeypatch.setattr(merged_view.View, "at", counting_at)
    monkeypatch.setattr(first_page.FirstPage, "page", counting_top)
    monkeypatch.setattr(content_coding, "encode", counting_encode)
    return counted


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        (None, "identity"),
        ("", "identity"),
        ("gzip", "gzip"),
        ("GZip", "gzip"),
        ("gzip, deflate, br, zstd", "gzip"),
        ("br", "identity"),
        ("*", "gzip"),
        ("gzip;q=0", "identity"),
        ("gzip;q=0, *", "identity"),
        ("gzip;q=0.1", "gzip"),
        ("identity, gzip;q=0.5", "identity"),
        ("identity;q=0.5, gzip", "gzip"),
        ("identity;q=0.5, gzip;q=0.5", "gzip"),
        ("gzip;q=0.5, *;q=0", "gzip"),
        ("identity;q=0", "identity"),
        ("*;q=0", "identity"),
        ("gzip;q=x", "identity"),
        (",;=,\x00", "identity"),
    ],
)
def test_the_client_chooses_the_coding(header: str | None, coding: str) -> None:
    assert content_coding.preferred_coding(parse_accept_header(header, Accept)) == coding


@pytest.mark.parametrize("way", WAYS)
def test_gzip_is_the_same_page_smaller_with_another_etag(
    client: FlaskClient, rows: dict[str, records.Comment], way: str
) -> None:
    bare, packed = client.get(WAYS[way]), client.get(WAYS[way], headers=GZIP)
    assert "Content-Encoding" not in bare.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert plain(packed) == bare.data
    assert len(packed.data) < len(bare.data)
    assert packed.headers["ETag"] != bare.headers["ETag"]
    for response in (bare, packed):
        assert response.headers["Content-Length"] == str(len(response.data))
        assert {"Accept-Encoding", "Origin"} <= set(response.vary)
        assert response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("headers", [{}, GZIP], ids=["plain", "gzip"])
@pytest.mark.parametrize("way", WAYS)
def test_head_equals_get_without_its_body(
    client: FlaskClient, rows: dict[str, records.Comment], way: str, headers: dict[str, str]
) -> None:
    got, head = client.get(WAYS[way], headers=headers), client.head(WAYS[way], headers=headers)
    assert (head.status_code, head.data) == (200, b"")
    assert dict(head.headers) == dict(got.headers)
    known = headers | {"If-None-Match": got.headers["ETag"]}
    assert client.head(WAYS[way], headers=known).status_code == 304


@pytest.mark.parametrize("way", WAYS)
def test_a_request_with_the_current_etag_gets_304(
    client: FlaskClient, rows: dict[str, records.Comment], way: str
) -> None:
    for headers in ({}, GZIP):
        got = client.get(WAYS[way], headers=headers)
        tag = got.headers["ETag"]
        for named in (tag, f"W/{tag}", f'"other", {tag}', f'{tag},W/"other"', "*"):
            again = client.get(WAYS[way], headers=headers | {"If-None-Match": named})
            assert (again.status_code, again.data) == (304, b""), named
            for name in ("ETag", "Vary", "Cache-Control", "Access-Control-Allow-Origin"):
                assert again.headers[name] == got.headers[name], name
            assert "Content-Encoding" not in again.headers
            assert "Content-Type" not in again.headers
        for named in ('"other"', tag.strip('"') + "x", "", "W/"):
            again = client.get(WAYS[way], headers=headers | {"If-None-Match": named})
            assert again.data == got.data, named


def test_the_etag_of_one_coding_is_not_valid_for_another(
    client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    known = {"If-None-Match": client.get(PAGE).headers["ETag"]}
    assert client.get(PAGE, headers=GZIP | known).status_code == 200


@pytest.mark.parametrize("way", FOLDED_WAYS)
def test_a_304_and_a_cached_page_read_no_rows(
    client: FlaskClient, rows: dict[str, records.Comment], work: Counter[str], way: str
) -> None:
    got = client.get(WAYS[way], headers=GZIP)
    assert (work["rows"] > 0, work["encode"]) == (True, 1)
    work.clear()
    again = client.get(WAYS[way], headers=GZIP)
    assert (again.data, again.headers["ETag"]) == (got.data, got.headers["ETag"])
    known = GZIP | {"If-None-Match": got.headers["ETag"]}
    assert client.get(WAYS[way], headers=known).status_code == 304
    assert work == {}


def test_a_304_needs_no_cached_page(
    open_store: connection.Store,
    client: FlaskClient,
    rows: dict[str, records.Comment],
    work: Counter[str],
) -> None:
    known = {"If-None-Match": client.get(PAGE).headers["ETag"]}
    work.clear()
    responses.PAGES.of(open_store).drop((next(_keys(open_store)), "identity"))  # type: ignore[arg-type]
    assert client.get(PAGE, headers=known).status_code == 304
    assert work == {}


def _keys(store: connection.Store) -> Any:
    """Return the keys of the cached responses."""
    return (key[0] for key in responses.PAGES.of(store)._kept)


def test_an_uncompacted_page_is_compressed_once(
    client: FlaskClient, rows: dict[str, records.Comment], work: Counter[str]
) -> None:
    first = client.get(WAYS["flat"], headers=GZIP)
    assert client.get(WAYS["flat"], headers=GZIP).data == first.data
    assert work["encode"] == 1


def test_every_change_is_another_page_with_another_etag(
    open_store: connection.Store,
    client: FlaskClient,
    rows: dict[str, records.Comment],
    site: records.Site,
) -> None:
    seen = [(client.get(PAGE).headers["ETag"], client.get(PAGE).data)]

    def changed() -> None:
        got = client.get(PAGE, headers={"If-None-Match": seen[-1][0]})
        assert got.status_code == 200
        seen.append((got.headers["ETag"], got.data))

    mine = client.post(PAGE, json={"name": "Ann", "body": "a text of mine"}).json
    assert mine is not None
    changed()
    assert b"a text of mine" in seen[-1][1]
    one = f"/api/v1/comments/{mine['comment']['id']}"
    token = {"Authorization": f"Bearer {mine['token']}"}
    assert client.patch(one, json={"body": "corrected"}, headers=token).status_code == 200
    changed()
    assert client.delete(one, headers=token).status_code == 200
    changed()
    assert b"corrected" not in seen[-1][1]
    assert len({tag for tag, _ in seen}) == len(seen)
    kept = responses.PAGES.of(open_store)
    bodies = [b"".join(page.body) for page, *_ in kept._kept.values()]
    assert any(b"author of 1" in body for body in bodies)
    assert not any(b"a text of mine" in body for body in bodies)


def test_the_query_is_part_of_the_etag(
    client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    cursor = client.get(WAYS["short"]).json["cursor"]
    some = rows["1"].id
    asked = [
        *(WAYS[way] for way in FOLDED_WAYS),
        *(f"{PAGE}&limit={limit}" for limit in (1, 3, 50, 200)),
        f"{PAGE}&cursor={cursor}",
        f"{PAGE}&limit=2&cursor={cursor}",
        f"{PAGE}&around={some}",
        f"{PAGE}&around={rows['2'].id}",
        f"/api/v1/comments/{some}/replies",
        f"/api/v1/comments/{some}/replies?limit=3",
    ]
    found: dict[str, set[str]] = {}
    for url in asked:
        url_tag = client.get(url).headers["ETag"]
        found.setdefault(url_tag, set()).add(client.get(url).text)
    # Among these requests, only the one with limit=50 returns the same page as a different request.
    assert len(found) == len(asked) - 1
    assert all(len(bodies) == 1 for bodies in found.values())


def test_another_secret_gives_another_etag(
    open_store: connection.Store, client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    other = apps.create_app(config.Settings(secret="another secret of tests"), open_store)
    tag = client.get(WAYS["short"]).headers["ETag"]
    got = other.test_client().get(WAYS["short"], headers={"If-None-Match": tag})
    assert got.status_code == 200
    assert got.data != client.get(WAYS["short"]).data


@pytest.mark.parametrize("given", ["*", '"x"'])
def test_an_invalid_query_is_refused_with_any_etag(
    client: FlaskClient, rows: dict[str, records.Comment], given: str
) -> None:
    some = f"/api/v1/comments/{rows['1'].id}/replies"
    for url in (PAGE + "&cursor=x", PAGE + "&order=recent&cursor=x", some + "?cursor=x"):
        response = client.get(url, headers=GZIP | {"If-None-Match": given})
        assert response.status_code == 400
        assert response.json["field"] == "cursor"
        assert response.headers["Cache-Control"] == "no-store"
        assert "ETag" not in response.headers


def test_the_page_does_not_depend_on_the_caller(
    client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    posted = client.post(PAGE, json={"name": "Ann", "body": "b"}).json
    assert posted is not None
    got = client.get(PAGE, headers={"Authorization": f"Bearer {posted['token']}", "Cookie": "a=b"})
    assert got.data == client.get(PAGE).data
    assert got.headers["ETag"] == client.get(PAGE).headers["ETag"]


def test_the_size_of_the_cache_is_bounded(
    open_store: connection.Store, client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    cache = responses.PAGES.put(open_store, caches.Cache(12_000))
    for limit in range(1, 60):
        assert client.get(f"{PAGE}&limit={limit}").status_code == 200
        assert 0 < cache.size <= 12_000


class TestCdn:
    """Tests of the instructions for caches between the service and its readers."""

    PUBLIC = "public, max-age=0, s-maxage=7, stale-while-revalidate=7"

    @pytest.fixture(autouse=True)
    def _allowed(self, open_store: connection.Store, site: records.Site) -> None:
        with open_store.context():
            site_settings.change(site.id, cdn_seconds=7)

    def test_it_may_answer_for_the_sites_number_of_seconds(
        self, client: FlaskClient, rows: dict[str, records.Comment]
    ) -> None:
        for url in (*WAYS.values(), f"/api/v1/comments/{rows['1'].id}/replies"):
            got = client.get(url)
            assert got.headers["Cache-Control"] == self.PUBLIC
            known = {"If-None-Match": got.headers["ETag"]}
            assert client.get(url, headers=known).headers["Cache-Control"] == self.PUBLIC
            assert client.head(url).headers["Cache-Control"] == self.PUBLIC

    def test_errors_writes_and_single_comments_are_not_cacheable(
        self, client: FlaskClient, rows: dict[str, records.Comment]
    ) -> None:
        for response in (
            client.get(PAGE + "&limit=0"),
            client.get("/api/v1/sites/nobody/comments?thread=page"),
            client.post(PAGE, json={"name": "Ann", "body": "b"}),
            client.get(f"/api/v1/comments/{rows['1'].id}"),
            client.post("/api/v1/sites/demo/counts", json={"threads": ["page"]}),
        ):
            assert response.headers["Cache-Control"] == "no-store"

    def test_when_disabled_every_request_is_validated(
        self, client: FlaskClient, open_store: connection.Store
    ) -> None:
        with open_store.context():
            site_settings.change("demo", origins=["https://a.example"])
            assert site_settings.get("demo").cdn_seconds == 7
            site_settings.change("demo", cdn_seconds=0)
        assert client.get(PAGE).headers["Cache-Control"] == "no-cache"


def test_the_widgets_files_are_compressed_once(app: flask.Flask, work: Counter[str]) -> None:
    client = app.test_client()
    for url in ("/widget/flatthread.js", "/widget/admin.css"):
        bare, packed = client.get(url), client.get(url, headers=GZIP)
        assert packed.headers["Content-Encoding"] == "gzip"
        assert plain(packed) == bare.data
        assert "Accept-Encoding" in packed.vary
        known = GZIP | {"If-None-Match": packed.headers["ETag"]}
        assert client.get(url, headers=known).status_code == 304
    assert work["encode"] == 0
    page = client.get("/", headers=GZIP)
    assert plain(page) == client.get("/").data
