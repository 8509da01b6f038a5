"""Hostile content sent over HTTP has no effect when a browser parses the responses.

The tests check the parsed document and never strings, because pages may show escaped payloads.
"""

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments.domain.text import cleaning, sanitizing
from tests.support.html import html_reader
from tests.support.people import api_requests

THREAD = "/api/v1/sites/demo/comments?thread=t"
ONE = "/api/v1/comments/"
SAFE = {"href", "title", "rel", "align", "tabindex", sanitizing.IMAGE_MARK}


def assert_harmless(source: str) -> None:
    for tag, attributes in html_reader.Elements(source).elements:
        assert tag in sanitizing.TAGS
        assert attributes.keys() <= SAFE
        href = attributes.get("href", "https://")
        assert href is not None
        assert href.startswith(("http://", "https://"))


def post(client: FlaskClient, **sent: str) -> tuple[int, dict]:
    response = client.post(THREAD, json={"name": "Ann", "body": "b", **sent})
    assert response.is_json or response.content_type == "application/problem+json"
    return response.status_code, json.loads(response.text)


def edit(client: FlaskClient, body: str) -> tuple[int, dict]:
    posted = post(client, body="before")[1]
    response = client.patch(
        ONE + posted["comment"]["id"],
        json={"body": body},
        headers={"Authorization": f"Bearer {posted['token']}"},
    )
    return response.status_code, json.loads(response.text)


def preview(client: FlaskClient, body: str) -> tuple[int, dict]:
    response = client.post("/api/v1/sites/demo/preview", json={"body": body})
    return response.status_code, json.loads(response.text)


NOT_ON_THE_WEB = [
    "javascript:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "\x01javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "//evil.example",
    "/\\evil.example",
    "https:evil.example",
    "https:///evil.example",
    "http://",
    "http://user@evil.example",
    "http://ok.example\\@evil.example",
    "ftp://x.com/",
    "x.com",
    "http://x.com/\x00",
    "http://x.com/" + "a" * 3_000,
]
LEAVING_ITS_ATTRIBUTE = [
    "http://x.com/?'onmouseover='alert(1)'x='",
    'http://x.com/"><script>alert(1)</script>',
    "http://x.com/ onmouseover=alert(1)",
    "http://x.com/`",
    "http://x.com/\u2028",
]


@pytest.mark.parametrize("website", [*NOT_ON_THE_WEB, *LEAVING_ITS_ATTRIBUTE])
def test_a_dangerous_website_is_refused(client: FlaskClient, website: str) -> None:
    status, problem = post(client, website=website)
    assert (status, problem["field"]) == (400, "website")
    assert api_requests.is_empty(client.get(THREAD))


# The embedding page chooses the page URL; no response may repeat a refused URL.
@pytest.mark.parametrize("url", NOT_ON_THE_WEB)
def test_a_page_that_is_not_on_the_web_is_refused(client: FlaskClient, url: str) -> None:
    status, problem = post(client, url=url)
    assert (status, problem["field"]) == (400, "url")
    assert api_requests.is_empty(client.get(THREAD))


@pytest.mark.parametrize("field", ["website", "name", "email", "title", "url", "parent", "html"])
def test_an_edit_changes_the_text_only(client: FlaskClient, field: str) -> None:
    posted = post(client)[1]
    response = client.patch(
        ONE + posted["comment"]["id"],
        json={"body": "b", field: LEAVING_ITS_ATTRIBUTE[0]},
        headers={"Authorization": f"Bearer {posted['token']}"},
    )
    assert response.status_code == 400
    assert json.loads(response.text)["field"] == field


ELEMENTS = [
    "<img src=\"1'onerror='x'a='\">",
    "<img src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>x</details>",
    "<svg/onload=alert(1)>",
    "<script>alert(1)</script>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href=x onclick=alert(1)>x</a>",
    "<body onload=alert(1)>",
    "<object data=javascript:alert(1)></object><embed src=javascript:alert(1)>",
    "<base href=//evil.example><link rel=stylesheet href=//evil.example><meta http-equiv=refresh>",
]
LINKS = [
    "[x](javascript:alert(1))",
    "[x](java&#x0a;script:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,x)",
    "[x](//evil.example)",
    "[x](/relative)",
    "[x](vbscript:x)",
    "[x][r]\n\n[r]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    "![x](https://tracker.example/x.png)",
    '![x](x "onerror=alert(1)")',
    '[x](https://ok.example "\'onmouseover=alert(1)")',
    "[x](https://ok.example/'onmouseover='alert(1))",
    "<https://ok.example/?'onmouseover='alert(1)>",
]
MUTATIONS = [
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table>",
    '<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">',
    "<math><annotation-xml encoding='text/html'><img src=x onerror=alert(1)></annotation-xml>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "<template><script>alert(1)</script></template>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<xmp><img src=x onerror=alert(1)></xmp><plaintext>",
]
DISGUISES = [
    "<p style='position:fixed;inset:0'>x</p>",
    "<style>*{display:none}</style>",
    "<form action=//evil.example><input name=password><button>Sign in</button></form>",
    "<div class='flatthread-moderator' id=x>x</div>",
    '```html"onmouseover=alert(1)\nx\n```',
    "a\n{: onclick=alert(1)}",
]
BODIES = [*ELEMENTS, *LINKS, *MUTATIONS, *DISGUISES]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("write", [post, edit, preview], ids=["post", "edit", "preview"])
def test_no_body_becomes_anything_that_runs(client: FlaskClient, write: Any, body: str) -> None:
    status, found = write(client, body=body)
    if status == 400:
        assert found["field"] == "body"
        return
    assert_harmless(found["html"] if write is preview else found["comment"]["html"])
    for row in json.loads(client.get(THREAD).text)["comments"]:
        assert_harmless(row["html"])


@pytest.mark.parametrize("body", BODIES)
def test_a_preview_equals_what_an_edit_stores(client: FlaskClient, body: str) -> None:
    status, shown = preview(client, body)
    edited_status, edited = edit(client, body)
    assert status == edited_status
    if status == 200:
        assert shown["html"] == edited["comment"]["html"]


NAMES = ['Alex"</a><iframe srcdoc=x>', "<script>alert(1)</script>", "{{7*7}}", "O'Brien & Søn"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_text(client: FlaskClient, name: str) -> None:
    status, posted = post(client, name=name)
    if status == 400:
        assert posted["field"] == "name"
        return
    assert posted["comment"]["author"]["name"] == name
    response = client.get(THREAD)
    # The name is in JSON, which no browser parses as a document, and the widget shows it as text.
    assert response.content_type == "application/json"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize("size", [cleaning.MAX_BODY - 1, cleaning.MAX_BODY])
@pytest.mark.parametrize("last", ["x", "🎈", "é"])
def test_a_body_at_the_limit_is_stored_whole(client: FlaskClient, size: int, last: str) -> None:
    body = "a" * (size - 1) + last
    for write in (post, edit):
        assert write(client, body=body)[1]["comment"]["html"] == f"<p>{body}</p>\n"


@pytest.mark.parametrize("last", ["x", "🎈", "é"])
def test_a_body_above_the_limit_is_refused_not_cut(client: FlaskClient, last: str) -> None:
    body = "a" * cleaning.MAX_BODY + last
    for write in (post, edit, preview):
        status, problem = write(client, body=body)
        assert (status, problem["field"], problem["code"]) == (400, "body", "too-long")


def test_the_longest_body_fits_the_byte_limit_of_a_request(client: FlaskClient) -> None:
    body = "🎈" * cleaning.MAX_BODY
    data = json.dumps({"name": "Ann", "body": body}, ensure_ascii=False).encode()
    response = client.post(THREAD, data=data, content_type="application/json")
    assert response.status_code == 201


@pytest.mark.parametrize(
    "name",
    [
        "\u200d\u200d",
        "\u2066\u2069",
        "\u202e",
        "\u3164",
        "a" + "\u0301" * 200,
        "Admin",
        "\u0410dmin",
        "adm\u200din",
        "Ad\u202emin",
        "a\x00b",
        "a\ud800b",
        "a\nb",
        "a" * 81,
    ],
)
def test_a_deceptive_name_is_refused(client: FlaskClient, name: str) -> None:
    status, problem = post(client, name=name)
    assert (status, problem["field"]) == (400, "name")


@pytest.mark.parametrize(
    "body", ["\u200d", "\u2066\u2069", "a\x00", "\ud800", "a" + "\u0301" * 200]
)
def test_a_body_that_shows_nothing_or_too_much_is_refused(client: FlaskClient, body: str) -> None:
    for write in (post, edit, preview):
        status, problem = write(client, body=body)
        assert (status, problem["field"]) == (400, "body")


@pytest.mark.parametrize("mark", ["\u202e", "\u202a", "\u2066", "\u2067", "\u2068"])
def test_a_text_cannot_reorder_the_text_around_it(client: FlaskClient, mark: str) -> None:
    _, posted = post(client, name=f"Ann{mark}x", body=f"a{mark}b")
    assert mark not in json.dumps(posted, ensure_ascii=False)
    assert mark not in json.dumps(edit(client, f"a{mark}b")[1], ensure_ascii=False)
