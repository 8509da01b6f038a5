"""Every page treats the content of an attacker's link as text, never as markup or a link target.

The tests use the routes in `every_route`, so new routes are included. They check the parsed
document, because a page may show the payload as text.
"""

import itertools
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from werkzeug.test import TestResponse

from comments.domain import records
from comments.domain.records import Verb
from comments.domain.text import cleaning
from comments.limits.site_request import SiteRequest
from comments.moderation import decisions
from comments.posting import admission, new_comment
from comments.web.rendering import nesting
from tests.support.every_route import ROWS, AllRoles, Row, path_of
from tests.support.html import html_reader
from tests.support.threads import sample_threads

pytestmark = pytest.mark.slow

EVIL = "evil.example"
PAYLOADS = (
    "javascript:alert(1)//\"'><img src=x onerror=alert(1)></script></title><svg/onload=alert(1)>",
    f"//{EVIL}/\\{EVIL}",
    f"https:{EVIL}",
    f"http://demo.example@{EVIL}/",
)
# Our own parameters, and parameters that attackers have used for redirects on other services.
NAMES = (
    "url", "page", "thread", "site", "from", "redirect", "redirect_uri", "next", "return_to",
    "callback", "jsonp", "token", "cursor", "q", "id", "status", "subject", "author", "category",
    "rule", "days", "order", "around", "below", "limit", "state", "error",
)  # fmt: skip
# Parameters from which links are made. They get every payload, and the others one each.
OF_LINKS = {"url", "page", "thread", "from", "next", "token"}
OURS = (
    "icon.svg", "embed.css", "admin.css", "demo.css", "flatthread.js", "console.js",
    "check-pages.js", "link-key.js",
    "upload.js", "copy.js", "events.js", "passkeys.js", "time-zone.js",
)  # fmt: skip
READING = [row for row in ROWS if row.method == "GET"]
LEADING = ("href", "src", "action", "formaction", "content", "data")


def assert_document_safe(source: str) -> None:
    """Check that only our own files run and that no link leads to an attacker's address."""
    for tag, values in html_reader.Elements(source).elements:
        assert tag not in {"object", "embed", "frame", "applet"}
        assert tag != "iframe" or (values.get("src") or "").startswith("examples/")
        assert not [name for name in values if name.startswith("on") or name == "style"]
        if tag in {"script", "img"} and values.get("type") != "application/ld+json":
            assert (values.get("src") or "").partition("?")[0].endswith(OURS), values
        for name in LEADING:
            where = (values.get(name) or "").strip().lower()
            assert not where.startswith(("javascript:", "data:", "vbscript:")), values
            if tag != "meta" or values.get("http-equiv"):
                assert urlsplit(where.replace("\\", "/")).hostname != EVIL, values
    assert "<svg/onload" not in source


def assert_safe(answer: TestResponse) -> None:
    assert answer.status_code < 500
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in answer.headers
    where = answer.headers.get("Location")
    if where is not None:
        assert not where.startswith(("/", "\\"))
        assert not urlsplit(where).scheme
    if answer.mimetype == "text/html":
        assert_document_safe(answer.text)
    elif "json" in answer.mimetype:  # type: ignore[operator]
        # The JSON must not follow a callback function, as in JSONP attacks.
        assert answer.text[:1] in "{["


@pytest.mark.parametrize("row", READING, ids=lambda row: row.rule)
def test_the_content_of_a_link_is_text_and_leads_nowhere(all_roles: AllRoles, row: Row) -> None:
    path, is_desk = path_of(row.rule, all_roles.comment().id), row.rule.startswith("/admin")
    client = all_roles.client("owner" if is_desk else "nobody")
    assert_safe(client.get(path, query_string=row.query))
    for number, name in enumerate(NAMES):
        is_whole = name in row.query or (name in OF_LINKS and not is_desk)
        for payload in PAYLOADS if is_whole else [PAYLOADS[number % len(PAYLOADS)]]:
            assert_safe(client.get(path, query_string={**row.query, name: payload}))
    if not is_desk:
        return
    # Anonymous visitors must sign in; cross-site links need a confirmation.
    stranger = all_roles.client("nobody")
    for payload, headers in itertools.product(PAYLOADS, ({}, {"Sec-Fetch-Site": "cross-site"})):
        query = {**row.query, "next": payload, "cursor": payload}
        assert_safe(stranger.get(path, query_string=query, headers=headers))


def test_the_page_that_confirms_a_cross_site_link_leads_to_itself(all_roles: AllRoles) -> None:
    """A moderator follows a link in mail, and the browser's first request contains no cookie."""
    cross, path = {"Sec-Fetch-Site": "cross-site"}, "/admin/sites/demo/thread?thread=https://a/b"
    answer = all_roles.client("nobody").get(path, headers=cross)
    links = [
        values.get("href")
        for tag, values in html_reader.Elements(answer.text).elements
        if tag == "a"
    ]
    assert links == ["./thread?thread=https://a/b"]


STORED = (
    "javascript:alert(1)", "data:text/html,x", " //x", "http://x..com", "http://x.com:65536/",
    "http://x.com:0/", "http://\u0430pple.com/",
)  # fmt: skip


def test_a_dangerous_website_in_the_store_is_never_a_link(
    all_roles: AllRoles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a second line of defense, pages never link to dangerous websites from older releases."""
    now, ada = datetime.now(UTC), records.Actor("cli", "Ada")
    with monkeypatch.context() as patch:
        patch.setattr(cleaning, "clean_website", lambda raw: raw)
        rows = []
        for number, website in enumerate(STORED):
            author = records.Author("Mallory", website, id=f"g:m{number}")
            draft = admission.Submission("bad", None, author, f"text {number}")
            request = SiteRequest(all_roles.site, sample_threads.SETTINGS, now)
            rows.append(new_comment.post(draft, request).comment)
    assert all(row.author.website for row in rows)
    decisions.decide("demo", rows[0].id, Verb.HOLD, ada, now=now)
    client, owner = all_roles.app.test_client(), all_roles.client("owner")
    documents = [
        client.get("/embed/demo?thread=bad"), client.get("/embed/demo/fragment?thread=bad"),
        owner.get("/admin/sites/demo/queue?status=any"), owner.get("/admin/sites/demo/queue"),
        owner.get("/admin/sites/demo/thread?thread=bad"),
        *(owner.get(f"/admin/sites/demo/comments/{row.id}") for row in rows),
        *(owner.get(f"/admin/sites/demo/author?id=g:m{number}") for number in range(len(rows))),
    ]  # fmt: skip
    for answer in documents:
        assert answer.status_code == 200
        assert "Mallory" in answer.text
        assert_document_safe(answer.text)
        assert "javascript:" not in answer.text
        targets = [values.get("href") for _, values in html_reader.Elements(answer.text).elements]
        assert not set(STORED) & set(targets)
    feed = client.get("/feeds/demo/thread?thread=bad").text
    assert "Mallory" in feed
    assert "javascript:" not in feed
    assert "<uri>" not in feed
    listed = client.get("/api/v1/sites/demo/comments?thread=bad").get_json()["comments"]
    assert len(listed) == len(STORED) - 1
    assert nesting.web_address("https://x.example/") == "https://x.example/"
