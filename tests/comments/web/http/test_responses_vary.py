"""Each cacheable response depends only on its URL and the headers that `Vary` names.

No other header may change the response. Otherwise, a caller could use the header to poison caches
in front of the service or in its process, and everyone would get the changed response.
"""

import itertools
from collections.abc import Iterator

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import app as apps
from comments import config
from comments.domain import records
from comments.reading.compaction import compactor
from comments.store import connection
from comments.web.http import responses
from tests.support.threads import sample_threads

PUBLIC = "https://comments.example"
pytestmark = pytest.mark.settings(public_url=PUBLIC, hosts=("localhost", "evil.example"))

# Headers that an attacker might send. Caches ignore all headers except those in `Vary` and the
# host.
UNKEYED = {
    "Accept": "text/html;q=1",
    "Accept-Charset": "utf-7",
    "Accept-Language": "zz",
    "Authorization": "Bearer x.y.z",
    "CF-Connecting-IP": "203.0.113.9",
    "Content-Type": "text/evil",
    "Cookie": "__Host-flatthread=x; session=evil",
    "DNT": "1",
    "Forwarded": "for=evil;host=evil.example;proto=evil",
    "Front-End-Https": "on",
    "Idempotency-Key": "evil-evil-evil-evil",
    "If-Match": '"1"',
    "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT",
    "If-Range": '"x"',
    "If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT",
    "Max-Forwards": "0",
    "Origin": "https://evil.example",
    "Pragma": "no-cache",
    "Prefer": "return=minimal",
    "Range": "bytes=0-3",
    "Referer": "https://evil.example/",
    "Sec-Fetch-Dest": "script",
    "Sec-Fetch-Mode": "no-cors",
    "Sec-Fetch-Site": "cross-site",
    "TE": "trailers",
    "True-Client-IP": "203.0.113.9",
    "User-Agent": "<script>evil</script>",
    "Via": "1.1 evil.example",
    "X-Appengine-Country": "ZZ",
    "X-Appengine-Cron": "true",
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Port": "1",
    "X-Forwarded-Prefix": "/evil",
    "X-Forwarded-Proto": "evil",
    "X-Forwarded-Scheme": "evil",
    "X-Forwarded-Server": "evil.example",
    "X-HTTP-Method": "DELETE",
    "X-HTTP-Method-Override": "DELETE",
    "X-Host": "evil.example",
    "X-Method-Override": "POST",
    "X-Original-Host": "evil.example",
    "X-Original-URL": "/nothing",
    "X-Real-IP": "203.0.113.9",
    "X-Requested-With": "XMLHttpRequest",
    "X-Rewrite-URL": "/nothing",
    "X-Script-Name": "/evil",
    "X-Wap-Profile": "https://evil.example/",
}
_AT_ONCE = 8
KEYED = {"Accept-Encoding": "gzip"}


@pytest.fixture
def paths(app: flask.Flask, open_store: connection.Store, site: records.Site) -> list[str]:
    """URLs for every cacheable public route, with a compacted and an uncompacted thread."""
    with open_store.context():
        grown = sample_threads.grow(
            site, sample_threads.TREE, url="http://localhost:8080/a", title="A"
        )
        assert (
            compactor.compact(sample_threads.SETTINGS.scheme, sample_threads.name_of(site))
            is not None
        )
        sample_threads.grow(site, {"a": {"b": {}}}, thread="other")
    one = grown["1"].id
    threads = ("thread=page", "thread=other", "thread=none", "thread=page&limit=all")
    found = [f"/api/v1/sites/demo/comments?{each}" for each in threads]
    found += [
        f"{path}?{each}"
        for path, each in itertools.product(
            ("/embed/demo", "/embed/demo/fragment", "/feeds/demo/thread"), threads[:3]
        )
    ]
    return [
        *found, f"/api/v1/comments/{one}", f"/api/v1/comments/{one}/replies", "/feeds/demo", "/",
        "/api/v1/sites/demo/threads?category=news", "/api/v1/sites/demo/comments?category=news",
        "/feeds/demo?category=news",
        "/api/v1/sites/demo/authors", "/api/v1/openapi.json", "/widget/flatthread.js",
        "/widget/demo.css", "/?site=x&thread=y", "/examples", "/examples/events",
        # Requests that are refused.
        "/nothing", "/api/v1/sites/demo/comments?thread=page&limit=0", "/embed/demo", "/feeds/no",
        "/widget/nothing.js",
    ]  # fmt: skip


def shown(answer: TestResponse) -> tuple[int, bytes, list[tuple[str, str]]]:
    return answer.status_code, answer.data, sorted(answer.headers)


def asked(app: flask.Flask, path: str, headers: dict[str, str] | None = None) -> TestResponse:
    return app.test_client().get(path, headers=headers)


@pytest.mark.slow
def test_a_header_that_no_cache_keys_changes_no_response(
    app: flask.Flask, settings: config.Settings, open_store: connection.Store, paths: list[str]
) -> None:
    for path in paths:
        answer = asked(app, path)
        plain = shown(answer)
        unkeyed = {name: value for name, value in UNKEYED.items() if name not in answer.vary}
        # The first request to an empty cache sends the headers, a few at a time and with different
        # subjects in each group.
        changed = [
            list(few)
            for few in _few(unkeyed)
            if shown(asked(_fresh(settings, open_store), path, few)) != plain
        ]
        assert changed == [], path


def _few(headers: dict[str, str]) -> Iterator[dict[str, str]]:
    names = list(headers)
    for start in range(_AT_ONCE):
        yield {name: headers[name] for name in names[start::_AT_ONCE]}


def _fresh(settings: config.Settings, store: connection.Store) -> flask.Flask:
    """Return an application with an empty cache."""
    responses.PAGES.forget(store)
    return apps.create_app(settings, store)


def test_requests_after_an_attackers_get_the_usual_response(
    app: flask.Flask, settings: config.Settings, open_store: connection.Store, paths: list[str]
) -> None:
    """The attacker sends all headers together, with every coding."""
    for coding in ("gzip", "identity"):
        keyed, other = {"Accept-Encoding": coding}, _fresh(settings, open_store)
        for path in paths:
            asked(other, path, UNKEYED | keyed)
        after = {path: shown(asked(other, path, keyed)) for path in paths}
        responses.PAGES.forget(open_store)
        for path in paths:
            assert after[path] == shown(asked(app, path, keyed)), path
            assert b"evil" not in after[path][1]


def test_vary_names_what_a_response_depends_on(app: flask.Flask, paths: list[str]) -> None:
    for path in paths:
        plain, packed = asked(app, path), asked(app, path, KEYED)
        if "Content-Encoding" in packed.headers:
            assert "Accept-Encoding" in plain.vary, path
            assert plain.headers["ETag"] != packed.headers["ETag"]
        else:
            assert shown(plain) == shown(packed), path


def test_no_response_contains_another_host_if_the_public_url_is_set(
    app: flask.Flask, paths: list[str]
) -> None:
    """Caches key by host, but confusing two spellings of a host must not poison a cache."""
    for path in paths:
        elsewhere = asked(app, path, {"Host": "evil.example:8080"})
        assert shown(elsewhere) == shown(asked(app, path)), path
    assert f'"{PUBLIC}/embed/demo?' in asked(app, "/embed/demo/fragment?thread=page").text


def test_a_method_override_header_is_ignored(client: FlaskClient) -> None:
    path = "/api/v1/sites/demo/comments?thread=t"
    for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        answer = client.post(path, json={"name": "Ann", "body": "b"}, headers={name: "GET"})
        assert answer.status_code == 201
    assert client.get(f"{path}&_method=DELETE").status_code == 400


def test_errors_are_not_cacheable(app: flask.Flask, paths: list[str]) -> None:
    for path in paths:
        answer = asked(app, path)
        if answer.status_code >= 400:
            assert answer.headers["Cache-Control"] == "no-store", path
            assert "ETag" not in answer.headers
            # An If-None-Match header must not turn the error into a 304.
            again = asked(app, path, {"If-None-Match": "*"})
            assert again.status_code == answer.status_code
