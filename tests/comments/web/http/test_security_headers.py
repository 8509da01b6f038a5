"""Every kind of response has security headers."""

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.store import connection

THREAD = "/api/v1/sites/demo/comments?thread=t"


def answers(client: FlaskClient, store: connection.Store) -> dict[str, TestResponse]:
    """Return one response of each kind."""
    tag = client.get(THREAD).headers["ETag"]
    file_tag = client.get("/widget/flatthread.js").headers["ETag"]
    found = {
        "200": client.get(THREAD),
        "201": client.post(THREAD, json={"name": "Ann", "body": "b"}),
        "304": client.get("/widget/flatthread.js", headers={"If-None-Match": file_tag}),
        "304 api": client.get(
            "/api/v1/sites/demo/comments?thread=u", headers={"If-None-Match": tag}
        ),
        "400": client.get(THREAD + "&x=1"),
        "401": client.delete("/api/v1/comments/" + "a" * 26, headers={"Authorization": "x"}),
        "403": client.post(THREAD, json={}, headers={"Origin": "null"}),
        "404": client.get("/nothing"),
        "404 api": client.get("/api/v1/nothing"),
        "405": client.put(THREAD),
        "413": client.post(THREAD, data="x" * 100_000, content_type="application/json"),
        "415": client.post(THREAD, data="x"),
        "OPTIONS": client.options(THREAD),
        "OPTIONS page": client.options("/"),
        "HEAD": client.head(THREAD),
        "page": client.get("/"),
        "script": client.get("/widget/flatthread.js"),
        "style": client.get("/widget/admin.css"),
        "openapi": client.get("/api/v1/openapi.json"),
        "healthz": client.get("/healthz"),
    }
    store._run_query = None  # Simulates a broken store
    found["500"] = client.get(THREAD)
    return found


@pytest.fixture
def found(client: FlaskClient, open_store: connection.Store) -> dict[str, TestResponse]:
    return answers(client, open_store)


def test_each_response_has_the_expected_status(found: dict[str, TestResponse]) -> None:
    for kind, response in found.items():
        if kind[:3].isdigit() and kind != "401":
            assert response.status_code == int(kind[:3]), kind


def test_every_response_has_the_security_headers(found: dict[str, TestResponse]) -> None:
    for kind, response in found.items():
        headers = response.headers
        assert headers["X-Content-Type-Options"] == "nosniff", kind
        assert headers["Referrer-Policy"] == "strict-origin-when-cross-origin", kind
        assert "camera=()" in headers["Permissions-Policy"], kind
        assert "default-src 'none'" in headers["Content-Security-Policy"], kind
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"], kind
        assert "unsafe" not in headers["Content-Security-Policy"], kind
        assert headers["Cache-Control"], kind
        assert headers["Cross-Origin-Resource-Policy"] in {"same-origin", "cross-origin"}, kind
        assert "Set-Cookie" not in headers, kind
        assert "X-Powered-By" not in headers, kind


def test_each_header_is_given_once(found: dict[str, TestResponse]) -> None:
    for kind, response in found.items():
        names = [name.lower() for name, _ in response.headers]
        assert len(names) == len(set(names)), kind


def test_errors_are_not_cacheable(found: dict[str, TestResponse]) -> None:
    for kind, response in found.items():
        if response.status_code >= 400 or kind == "201":
            assert response.headers["Cache-Control"] == "no-store", kind


def test_public_responses_are_revalidated(found: dict[str, TestResponse]) -> None:
    for kind in ("200", "304", "304 api", "page", "script", "style", "openapi", "HEAD"):
        is_embedded = kind in {"script", "304"}
        kept = "public, max-age=300" if is_embedded else "no-cache"
        assert found[kind].headers["Cache-Control"] == kept, kind
        assert found[kind].headers["ETag"].startswith('"'), kind


def test_api_responses_are_neither_indexed_nor_shown_as_documents(
    found: dict[str, TestResponse],
) -> None:
    for kind in ("200", "201", "304 api", "400", "403", "404 api", "405", "413", "415", "500"):
        headers = found[kind].headers
        assert headers["X-Robots-Tag"] == "noindex", kind
        assert "sandbox" in headers["Content-Security-Policy"], kind
        assert "Origin" in headers["Vary"], kind


def test_only_public_responses_may_be_embedded(found: dict[str, TestResponse]) -> None:
    policies = {kind: found[kind].headers["Cross-Origin-Resource-Policy"] for kind in found}
    for kind in ("200", "304 api", "script", "style", "openapi"):
        assert policies[kind] == "cross-origin", kind
    for kind in ("201", "403", "404", "page", "healthz"):
        assert policies[kind] == "same-origin", kind


def test_a_page_runs_only_its_own_files(found: dict[str, TestResponse]) -> None:
    rules = found["page"].headers["Content-Security-Policy"].split("; ")
    assert "script-src 'self'" in rules
    assert "style-src 'self'" in rules
    assert "base-uri 'none'" in rules
    assert "form-action 'none'" in rules
