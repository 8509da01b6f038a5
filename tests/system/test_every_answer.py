"""Every response has the headers that browsers and caches need, including every error.

Callers with and without permission request every route in `every_route.ROWS`, so new routes are
included. They also make requests with every kind of fault: a wrong method, a wrong content type, a
body that is too long, a malformed query, a foreign page, an internal error, an unavailable store,
an unknown path.
"""

import contextlib
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterator

import flask
import pytest
from werkzeug.test import TestResponse

from comments import config, errors
from comments.web.http import context, security_headers
from comments.web.service import service_pages
from comments.web.sign_in import signed_in
from tests.comments.web.http.test_cors import FOREIGN
from tests.support.every_route import ROWS, AllRoles, Row, path_of

REGISTERED = "https://demo.example"
ALLOW = "Access-Control-Allow-Origin"
NOBODY = "a" * 26
API = "/api/v1"
PERSONAL = {
    f"{API}/sites/<site:site_id>/{name}"
    for name in (
        "author", "votes", "held", "inbox", "following", "followed", "moderation/comments",
        "moderation/author-links",
        "moderation/statistics/categories", "moderation/statistics/category-commenters",
        "moderation/statistics/thread-commenters", "moderation/statistics/author-categories",
        "moderation/statistics/author-threads", "moderation/statistics/audiences",
        "moderation/statistics/audience-cost", "moderation/statistics/audience-commenters",
        "moderation/statistics/pages", "moderation/statistics/people",
        "moderation/statistics/hours", "moderation/statistics/counters",
        "moderation/statistics/days",
        "moderation/statistics/thread-followers", "following/name",
        "moderation/statistics/counter-numbers",
    )
}  # fmt: skip
STAFF = ("/admin", "/sign-in", "/moderate")
LINKED = ("/subscriptions", "/decisions", "/notices")  # The URLs of these links are credentials
TYPES = {
    "application/json", "application/problem+json", "application/atom+xml; charset=utf-8",
    "text/html; charset=utf-8", "text/javascript; charset=utf-8", "application/gzip",
    "text/csv; charset=utf-8",
}  # fmt: skip
CANARY = "a canary of a fault"
NOWHERE = (
    "/nothing", "//", "/api/v1/", "/api/v1/nothing", "/api/v1/sites/NO/comments",
    "/api/v1/comments/x", "/api/v2/openapi.json", "/widget/", "/widget/nothing.js",
    "/widget/..%2fcors.py", "/embed", "/embed/NO%0d%0aX-Injected:%201?thread=t", "/embed/nobody",
    "/feeds/NO", "/feeds/nobody", "/admin/nothing", "/admin/sites/NO/queue", "/sign-in/nothing",
    "/subscriptions/nothing", "/decisions/nothing", "/tasks/nothing", "/healthz/",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Answer:
    """A response and its request."""

    method: str
    path: str
    rule: str
    response: TestResponse

    def __str__(self) -> str:
        return f"{self.method} {self.path}: {self.response.status_code}"

    @property
    def is_read(self) -> bool:
        return self.method in {"GET", "HEAD"}

    @property
    def is_refusal(self) -> bool:
        return self.response.status_code >= 400


@pytest.fixture(scope="module")
def answers(all_roles: AllRoles) -> dict[str, list[Answer]]:
    """All responses by kind of request."""
    return {way: list(ask(all_roles)) for way, ask in WAYS.items()}


@contextlib.contextmanager
def failing(app: flask.Flask, error: Exception) -> Iterator[None]:
    """Make every view fail."""
    kept = dict(app.view_functions)

    def broken(view: object) -> object:
        @functools.wraps(view)  # type: ignore[arg-type]
        def fail(**_: object) -> None:
            raise error

        return fail

    app.view_functions.update({name: broken(view) for name, view in kept.items()})  # type: ignore[misc]
    try:
        yield
    finally:
        app.view_functions.update(kept)


def rules() -> list[str]:
    return sorted({row.rule for row in ROWS})


def asked(all_roles: AllRoles, row: Row, caller: str, comment: str = "") -> Answer:
    comment = comment or all_roles.comment().id
    response = all_roles.ask(row, caller, comment)
    return Answer(row.method, path_of(row.rule, comment), row.rule, response)


def ordinary(all_roles: AllRoles) -> Iterator[Answer]:
    """Request every route correctly, by callers with and without permission."""
    for row, caller in itertools.product(ROWS, ("nobody", "")):
        answer = asked(all_roles, row, caller or _known(row))
        yield answer
        tag = answer.response.headers.get("ETag")
        if row.method == "GET" and tag:
            yield sent(all_roles, row, headers={"If-None-Match": tag}, query_string=row.query)


def wrong(all_roles: AllRoles) -> Iterator[Answer]:
    """Request every route incorrectly."""
    own = {"Sec-Fetch-Site": "same-origin"}
    for row in ROWS:
        if row.method == "GET":
            yield sent(all_roles, row, method="HEAD", query_string=row.query)
            for query in ("limit=1&limit=2", "%ff=%ff"):
                yield sent(all_roles, row, query_string=query)
            continue
        right = "application/x-www-form-urlencoded" if row.form is not None else "application/json"
        for data, kind in (
            (b"{", right),
            (b"x" * 100_000, right),
            (b"x", "text/plain"),
            (b"x", ""),
        ):
            yield sent(all_roles, row, data=data, content_type=kind, headers=own)
        yield sent(all_roles, row, headers={"Content-Encoding": "gzip"}, data=b"x")
        yield sent(all_roles, row, headers={"Origin": "https://evil.example"})
        yield sent(all_roles, row, headers={"Sec-Fetch-Site": "cross-site"})
    for rule in rules():
        methods = {row.method for row in ROWS if row.rule == rule}
        for method in ("OPTIONS", *sorted({"GET", "POST", "DELETE"} - methods)[:1]):
            yield sent(all_roles, Row(method, rule, {}, 0))


def _known(row: Row) -> str:
    return "owner" if row.rule.startswith("/admin") else "author"


def at_fault(all_roles: AllRoles) -> Iterator[Answer]:
    """Request every route while its view or the store fails."""
    comment = all_roles.comment().id
    for error, rows in ((RuntimeError(CANARY), ROWS), (errors.Overloaded("later"), ROWS[::4])):
        with failing(all_roles.app, error):
            for row in rows:
                yield asked(all_roles, row, _known(row), comment)


def nowhere(all_roles: AllRoles) -> Iterator[Answer]:
    """Request unknown paths."""
    client = all_roles.app.test_client()
    for path, method in itertools.product(NOWHERE, ("GET", "HEAD", "POST", "OPTIONS")):
        yield Answer(method, path, "", client.open(path, method=method))
    yield Answer("GET", "/", "/", client.get("/", headers={"Host": "a b<"}))
    for path, method in itertools.product(("/", "/admin"), ("GET", "HEAD", "POST", "OPTIONS")):
        elsewhere = client.open(path, method=method, headers={"Host": "elsewhere.example"})
        assert elsewhere.status_code == 421
        yield Answer(method, path, "", elsewhere)


def sent(all_roles: AllRoles, row: Row, *, method: str = "", **given: object) -> Answer:
    path = path_of(row.rule, NOBODY)
    method = method or row.method
    response = all_roles.app.test_client().open(path, method=method, **given)  # type: ignore[arg-type]
    return Answer(method, path, row.rule, response)


WAYS = {"ordinary": ordinary, "wrong": wrong, "at fault": at_fault, "nowhere": nowhere}


def problems(answer: Answer) -> Iterator[str]:
    """Yield the headers that a response lacks or must not have."""
    yield from _required(answer)
    yield from _names(answer)
    yield from _policy(answer)
    yield from _keeping(answer)
    yield from _sharing(answer)
    yield from _cookies(answer)
    yield from _body(answer)


def _required(answer: Answer) -> Iterator[str]:
    found = answer.response.headers
    required = {
        "X-Content-Type-Options": "nosniff",
        "Strict-Transport-Security": "max-age=31536000",
        "Permissions-Policy": None,
        "Content-Security-Policy": None,
        "Cross-Origin-Resource-Policy": _embedders(answer),
        "Cache-Control": None,
    }
    if answer.path.startswith("/admin"):
        required["Cross-Origin-Opener-Policy"] = "same-origin"
    is_page = answer.response.mimetype == "text/html"
    is_private = answer.rule.startswith((*STAFF, *LINKED)) and is_page
    if answer.path.startswith(("/api/", "/admin")) or is_private:
        required["X-Robots-Tag"] = "noindex"
    for name, value in required.items():
        if not found.get(name) or value not in {None, found[name]}:
            yield f"{name} is {found.get(name)!r}"
    if found.get("Referrer-Policy") not in _referrers(answer):
        yield f"Referrer-Policy is {found.get('Referrer-Policy')!r}"
    devices = {"camera=()", "microphone=()", "geolocation=()"}
    if not devices <= set(found["Permissions-Policy"].split(", ")):
        yield "devices"


def _names(answer: Answer) -> Iterator[str]:
    names = [name.lower() for name, _ in answer.response.headers if name != "Set-Cookie"]
    if len(names) != len(set(names)):
        yield "a header twice"
    if {"server", "x-powered-by", "x-injected", "access-control-allow-credentials"} & set(names):
        yield f"too much of {names}"


def _referrers(answer: Answer) -> set[str]:
    # A problem document is not a page, so it has no links to follow.
    if answer.response.mimetype == "application/problem+json":
        return {"strict-origin-when-cross-origin"}
    if answer.rule.startswith(LINKED):
        return {"no-referrer"}
    if answer.path.startswith(STAFF):
        return {"same-origin", "no-referrer"}
    return {"strict-origin-when-cross-origin"}


def _embedders(answer: Answer) -> str | None:
    if answer.rule in PERSONAL:
        # These responses are for one person, but pages on any origin may read refusals.
        return None if answer.is_refusal else "same-origin"
    is_public = answer.path.startswith("/api/") and answer.is_read
    return "cross-origin" if is_public or answer.path.startswith("/widget/") else "same-origin"


def _policy(answer: Answer) -> Iterator[str]:
    policy = answer.response.headers["Content-Security-Policy"]
    found = {name: rest for name, _, rest in (each.partition(" ") for each in policy.split("; "))}
    if found["default-src"] != "'none'" or "unsafe" in policy or "*" in policy:
        yield f"policy {policy}"
    framed = {"'none'"}
    if answer.rule.startswith("/embed") and "/demo" in answer.path:
        framed.add(REGISTERED)
    if answer.rule == "/examples/<example>":
        framed.add("'self'")
    if found["frame-ancestors"] not in framed:
        yield f"framed by {found['frame-ancestors']}"
    is_document = answer.response.mimetype == "text/html"
    if not is_document and "sandbox" not in found and not answer.rule.startswith("/"):
        yield "a document that is none"
    if "script-src" in found and (
        found["script-src"] != "'self'" or found.get("require-trusted-types-for") != "'script'"
    ):
        yield f"scripts {policy}"
    if is_document and found.get("base-uri") != "'none'":
        yield "base"


def _keeping(answer: Answer) -> Iterator[str]:
    kept = answer.response.headers["Cache-Control"]
    is_private = answer.rule in PERSONAL or answer.path.startswith((*STAFF, *LINKED))
    is_change = not answer.is_read
    if (answer.is_refusal or is_private or is_change) and "no-store" not in kept:
        yield f"kept: {kept}"
    is_file = answer.rule == "/widget/<name>"
    if "public" in kept and not is_file:
        yield f"kept too long: {kept}"
    is_own = answer.rule in PERSONAL and answer.response.status_code == 200
    if is_own and not ("private" in kept and "Authorization" in answer.response.vary):
        yield "somebody else's"
    is_page = answer.response.mimetype == "text/html"
    if answer.path.startswith("/admin") and is_page and "Cookie" not in answer.response.vary:
        yield f"varies by {answer.response.vary}"


def _sharing(answer: Answer) -> Iterator[str]:
    allowed = answer.response.headers.get(ALLOW)
    is_api = answer.path.startswith("/api/")
    if is_api and "Origin" not in answer.response.vary:
        yield "Vary lacks Origin"
    is_public = answer.is_read and is_api and answer.rule not in PERSONAL
    is_file = answer.rule == "/widget/<name>" and not answer.is_refusal and answer.is_read
    if allowed != ("*" if is_public or is_file else None):
        yield f"{ALLOW} is {allowed}"


def _cookies(answer: Answer) -> Iterator[str]:
    for cookie in answer.response.headers.getlist("Set-Cookie"):
        name, *rest = cookie.split("; ")
        if not name.startswith("__Host-") or not {"Secure", "HttpOnly", "Path=/"} <= set(rest):
            yield f"cookie {name} with {rest}"
        # Browsers send the session cookie only from our own pages.
        ways = {"SameSite=Strict"}
        if not name.startswith(f"{signed_in.COOKIE}="):
            ways.add("SameSite=Lax")
        if not ways & set(rest) or any(each.startswith("Domain") for each in rest):
            yield f"cookie {name} with {rest}"
        if not answer.path.startswith(STAFF):
            yield f"a cookie from {answer.path}"


def _body(answer: Answer) -> Iterator[str]:
    response = answer.response
    if response.data and response.content_type not in TYPES:
        yield f"type {response.content_type}"
    if answer.is_refusal and re.search(rf"Traceback|\.py\b|{CANARY}|werkzeug", response.text):
        yield "tells of our insides"
    if answer.method == "HEAD" and response.data:
        yield "HEAD with a body"


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_response_has_the_required_headers(
    answers: dict[str, list[Answer]], way: str
) -> None:
    found = [f"{answer}: {problem}" for answer in answers[way] for problem in problems(answer)]
    assert len(answers[way]) > 80
    assert found == []


@pytest.mark.slow
def test_every_status_occurs_among_the_responses(answers: dict[str, list[Answer]]) -> None:
    seen = {answer.response.status_code for each in answers.values() for answer in each}
    assert seen >= {200, 201, 202, 204, 303, 304, 400, 401, 403, 404, 405, 413, 415, 500, 503}


@pytest.mark.slow
def test_every_private_api_call_refuses_foreign_pages(
    all_roles: AllRoles,
) -> None:
    """No origin here is registered, though some look similar. Requests may have other faults."""
    client = all_roles.app.test_client()
    shut = [row for row in ROWS if row.rule.startswith(API) and _is_shut(row)]
    assert len(shut) > 12
    comment = all_roles.comment().id  # One comment is enough, because no call changes it
    # One place decides for all calls, so each call gets one of the origins, and the first call all.
    for row, origin in (
        *zip(shut, itertools.cycle(FOREIGN)),
        *((shut[0], each) for each in FOREIGN),
    ):
        path = path_of(row.rule, comment)
        headers = {"Origin": origin, "Authorization": f"Bearer {all_roles.tokens['author']}"}
        for response in (
            client.open(path, method=row.method, query_string=row.query, json=row.json,
                        headers=headers),
            client.options(path, headers={"Origin": origin,
                                          "Access-Control-Request-Method": row.method}),
        ):  # fmt: skip
            assert response.status_code in {403, 204}, (row, origin)
            assert not [name for name, _ in response.headers if name.startswith("Access-Control")]
            assert "Origin" in response.vary


def test_a_page_of_the_site_can_read_every_response_and_refusal(all_roles: AllRoles) -> None:
    for row in [row for row in ROWS if row.rule.startswith(API) and _is_shut(row)]:
        for token in (all_roles.tokens["author"], "x.y.z"):
            comment = all_roles.comment().id
            headers = {"Origin": REGISTERED, "Authorization": f"Bearer {token}"}
            response = all_roles.app.test_client().open(
                path_of(row.rule, comment), method=row.method, query_string=row.query,
                json=row.json, headers=headers,
            )  # fmt: skip
            assert response.headers[ALLOW] == REGISTERED, row
            assert "Origin" in response.vary


def test_a_cross_site_request_without_an_origin_is_refused(all_roles: AllRoles) -> None:
    for row in [row for row in ROWS if row.rule.startswith(API) and _is_shut(row)]:
        for said in ("cross-site", "same-site"):
            comment = all_roles.comment().id
            response = all_roles.app.test_client().open(
                path_of(row.rule, comment), method=row.method, query_string=row.query,
                json=row.json, headers={"Sec-Fetch-Site": said,
                                        "Authorization": f"Bearer {all_roles.tokens['author']}"},
            )  # fmt: skip
            assert response.status_code == 403, row
            assert response.json["code"] == "origin-missing"


@pytest.mark.parametrize("public", ["", "http://localhost:8080"])
def test_no_hsts_header_is_sent_where_https_is_not_in_use(all_roles: AllRoles, public: str) -> None:
    for scheme in ("http", "https"):
        answer = _health(all_roles, f"{scheme}://localhost", public_url=public)
        assert "Strict-Transport-Security" not in answer.headers


def test_on_app_engine_the_hsts_header_is_sent(all_roles: AllRoles) -> None:
    answer = _health(all_roles, "http://localhost", on_app_engine=True)
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"


def _health(all_roles: AllRoles, url: str, **given: object) -> TestResponse:
    settings = config.Settings(secret="a secret of the tests", **given)  # type: ignore[arg-type]
    app = flask.Flask("test")
    context.keep(app, context.Context(settings, all_roles.store))
    app.register_blueprint(service_pages.blueprint)
    app.after_request(security_headers.add)
    return app.test_client().get("/healthz", base_url=url)


def _is_shut(row: Row) -> bool:
    return row.method != "GET" or row.rule in PERSONAL
