"""Test which requests reach the application and which proxy headers are trusted."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient
from hypothesis import example, given
from hypothesis import strategies as st
from werkzeug.test import TestResponse, create_environ, run_wsgi_app

from comments import app as apps
from comments import config
from comments.store import connection
from tests.support.people.account_holders import SECRET

PUBLIC = "https://comments.example"
SETTINGS = config.Settings(SECRET, public_url=PUBLIC, hosts=("www.blog.example",))
pytestmark = pytest.mark.settings(SETTINGS)
PAGE = "/api/v1/sites/demo/comments?thread=t"
CRON = "a secret of cron"


@contextlib.contextmanager
def _changed(store: connection.Store, **more: object) -> Iterator[FlaskClient]:
    app = apps.create_app(dataclasses.replace(SETTINGS, **more), store)  # type: ignore[arg-type]
    yield app.test_client()


def _asked(client: FlaskClient, host: str, path: str = PAGE, **environ: object) -> TestResponse:
    # Set the host directly in the environment, because werkzeug's client would correct it.
    return client.get(path, environ_overrides={"HTTP_HOST": host, **environ})


@pytest.mark.parametrize(
    "host",
    [
        "comments.example", "Comments.Example", "comments.example.", "comments.example:443",
        "comments.example:8080", "www.blog.example", "WWW.BLOG.EXAMPLE:8443",
    ],
)  # fmt: skip
def test_the_service_answers_to_its_own_names(client: FlaskClient, host: str) -> None:
    assert _asked(client, host).status_code == 200


@pytest.mark.usefixtures("site")
def test_a_trailing_dot_of_the_public_name_is_ignored(store: connection.Store) -> None:
    with _changed(store, public_url=f"{PUBLIC}.") as client:
        for host in ("comments.example", "comments.example.:443"):
            assert _asked(client, host).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "localhost", "127.0.0.1:8080", "[::1]", "xcomments.example", "blog.example",
        "comments.example.evil.example", "comments-example", "", ".", "flatthread.ew.r.appspot.com",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", [PAGE, "/", "/admin", "/nothing", "/tasks", "/healthz/", "//"])
def test_any_other_name_is_misdirected(client: FlaskClient, host: str, path: str) -> None:
    answer = _asked(client, host, path)
    assert answer.status_code == 421
    assert answer.content_type == "application/problem+json"
    problem = answer.json
    assert problem["code"] == "other-host"
    assert "PUBLIC_URL" in problem["detail"]
    assert "HOSTS" in problem["detail"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    allowed = answer.headers.get("Access-Control-Allow-Origin")
    assert allowed == ("*" if path.startswith("/api/") else None)
    assert "evil" not in answer.text


def test_a_write_to_another_name_changes_nothing_and_a_head_has_no_body(
    client: FlaskClient,
) -> None:
    other = {"HTTP_HOST": "evil.example"}
    sent = {"name": "Ann", "body": "Hello"}
    assert client.post(PAGE, json=sent, environ_overrides=other).status_code == 421
    assert _asked(client, "comments.example").json["comments"] == []
    head = client.head(PAGE, environ_overrides=other)
    assert (head.status_code, head.data) == (421, b"")
    assert int(head.headers["Content-Length"]) > 0


def test_health_checks_and_cron_may_use_an_ip_address(open_store: connection.Store) -> None:
    with _changed(open_store, tasks_secret=CRON) as client:
        assert _asked(client, "10.1.2.3:8080", "/healthz").status_code == 200
        bearer = f"Bearer {CRON}"
        done = _asked(client, "10.1.2.3", "/tasks/deliver", HTTP_AUTHORIZATION=bearer)
        assert done.status_code == 200
        assert _asked(client, "10.1.2.3", "/tasks/deliver").status_code == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("proj-1.ew.r.appspot.com", 200),
        ("PROJ-1.appspot.com:443", 200),
        ("20260101t000000-dot-proj-1.ew.r.appspot.com", 200),
        ("v1-dot-api-dot-proj-1.ew.r.appspot.com", 200),
        ("proj-1.evil.ew.r.appspot.com", 421),
        ("xproj-1.ew.r.appspot.com", 421),
        ("proj-2.ew.r.appspot.com", 421),
        ("proj-1.ew.r.appspot.com.evil.example", 421),
    ],
)
def test_on_app_engine_its_own_names_are_accepted_too(
    open_store: connection.Store, client: FlaskClient, host: str, status: int
) -> None:
    with _changed(open_store, on_app_engine=True, project="proj-1") as there:
        assert _asked(there, host).status_code == status
        assert _asked(there, "comments.example").status_code == 200
    assert _asked(client, host).status_code == 421, (
        "outside App Engine these names are not the service's"
    )


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]:80", "evil.example", "a_b"])
def test_without_a_public_url_every_name_is_accepted(
    open_store: connection.Store, client: FlaskClient, host: str
) -> None:
    with _changed(open_store, public_url="") as anywhere:
        assert _asked(anywhere, host).status_code == 200


NONSENSE = st.text(st.characters(max_codepoint=255), max_size=30)
PATHS = st.sampled_from([PAGE, "/", "/embed/demo?thread=t", "/admin/sign-in", "/nothing"])


@example(host="", path=PAGE, headers={"SCRIPT_NAME": "/["}, proxies=0)
@given(
    host=st.one_of(st.just("comments.example"), NONSENSE),
    path=PATHS,
    headers=st.dictionaries(
        st.sampled_from(
            [
                "HTTP_X_FORWARDED_PROTO",
                "HTTP_X_FORWARDED_HOST",
                "HTTP_X_FORWARDED_PORT",
                "HTTP_X_FORWARDED_PREFIX",
                "HTTP_X_FORWARDED_FOR",
                "HTTP_FORWARDED",
                "HTTP_SCRIPT_NAME",
                "SCRIPT_NAME",
                "HTTP_X_SCRIPT_NAME",
            ]
        ),
        NONSENSE,
    ),
    proxies=st.integers(0, 2),
)
def test_malformed_requests_never_cause_a_500(
    host: Any, path: Any, headers: Any, proxies: Any
) -> None:
    import grpc  # noqa: PLC0415 - only this test needs it

    if headers.get("SCRIPT_NAME"):  # It starts with a slash (PEP 3333).
        headers = {**headers, "SCRIPT_NAME": f"/{headers['SCRIPT_NAME']}"}
    with grpc.insecure_channel("127.0.0.1:1") as nowhere:
        store = connection.Store(nowhere, project="test", deadline=0.05, rpc_timeout=0.05)
        with _changed(store, trusted_proxies=proxies) as client:
            # Call the application without the client, which parses the address of each request.
            environ = {**create_environ(path), "HTTP_HOST": host, **headers}
            _body, line, _headers = run_wsgi_app(client.application, environ)
    status = int(line.split()[0])
    assert status < 500 or status == 503, "only the store is unavailable"


@pytest.mark.parametrize(
    ("proxies", "said", "scheme"),
    [
        (0, "https", "http"),
        (0, "gopher", "http"),
        (1, "https", "https"),
        (1, "HTTPS", "https"),
        (1, "http", "http"),
        (1, "gopher, https", "https"),
        (2, "https, http", "https"),
        (2, "http, https, http", "https"),
        (2, "https", "https"),
        (1, "", "http"),
        (1, "gopher", None),
        (1, "https, gopher", None),
        (2, "gopher, http", None),
        (1, "https,", None),
    ],
)
def test_a_proxys_scheme_is_trusted_as_the_settings_say(
    open_store: connection.Store, proxies: int, said: str, scheme: str | None
) -> None:
    app = apps.create_app(dataclasses.replace(SETTINGS, trusted_proxies=proxies), open_store)
    app.add_url_rule("/scheme", view_func=lambda: flask.request.scheme)
    answer = _asked(app.test_client(), "comments.example", "/scheme", HTTP_X_FORWARDED_PROTO=said)
    if scheme is None:
        assert answer.status_code == 400
        assert answer.json["field"] == "X-Forwarded-Proto"
    else:
        assert answer.text == scheme


@pytest.mark.parametrize("proxies", [0, 1, 2])
def test_no_header_moves_the_application_or_changes_its_host(
    open_store: connection.Store, site: object, proxies: int
) -> None:
    moved = {
        "HTTP_SCRIPT_NAME": "/evil", "HTTP_X_SCRIPT_NAME": "/evil",
        "HTTP_X_FORWARDED_PREFIX": "/evil", "HTTP_X_FORWARDED_HOST": "evil.example",
        "HTTP_X_FORWARDED_PORT": "666", "HTTP_FORWARDED": "host=evil.example;proto=gopher",
    }  # fmt: skip
    with _changed(open_store, trusted_proxies=proxies, public_url="") as client:
        for path in ("/", PAGE, "/embed/demo?thread=t", "/admin/sign-in", "/nothing"):
            plain, sent = _asked(client, "here", path), _asked(client, "here", path, **moved)
            assert (sent.status_code, sent.data) == (plain.status_code, plain.data), path


@pytest.mark.parametrize(
    ("script", "rest"), [("/api", "/v1/sites/demo/comments"), ("/api/v1/sites/demo/comments", "")]
)
def test_a_script_name_that_a_server_took_from_a_header_is_ignored(
    client: FlaskClient, script: str, rest: str
) -> None:
    """gunicorn takes the script name from a trusted peer's SCRIPT_NAME header."""
    taken = {"SCRIPT_NAME": script, "PATH_INFO": rest, "HTTP_SCRIPT_NAME": script}
    answer = _asked(client, "comments.example", PAGE, **taken)
    assert answer.status_code == 200
    assert answer.json["comments"] == []
