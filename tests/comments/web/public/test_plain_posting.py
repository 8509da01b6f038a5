"""Readers post without JavaScript: once per form, held like other unproven posts, never cached."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from comments import errors
from comments.domain import records
from comments.domain.records import Policy
from comments.moderation.policy import policy_changes
from comments.posting import admission
from comments.store import connection
from tests.support.html import html_reader, html_validator
from tests.support.html.embedded_threads import PAYLOADS
from tests.support.html.plain_forms import PAGE, TEXT, form, resend, rows, send
from tests.support.people import api_requests
from tests.support.threads import sample_threads

BOSS = records.Actor("cli", "the command line")


# --- Where the form is --------------------


def test_a_site_offers_no_form_unless_its_owner_enables_it(
    client: FlaskClient, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        row = sample_threads.post(site, "one")
    for path in (PAGE, f"{PAGE}&reply={row.id}"):
        page = client.get(path)
        assert form(page.text) == {}
        assert "Reply" not in page.text
        assert "form-action 'none'" in page.headers["Content-Security-Policy"]
    answer = client.post(PAGE, data={**TEXT, "key": "0" * 32})
    assert answer.status_code == 403
    assert "forms-off" in answer.text
    assert rows(open_store) == [row]


def test_a_form_is_allowed_by_the_policy_only_where_it_is_shown(
    client: FlaskClient, plain: Any, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        row = sample_threads.post(site, "one")
    shown = {
        PAGE: True,
        f"{PAGE}&reply={row.id}": True,
        f"{PAGE}&around={row.id}": False,
        "/embed/demo/fragment?thread=page": False,
    }
    for path, is_shown in shown.items():
        answers = [client.get(path)]
        tag = {"If-None-Match": answers[0].headers["ETag"]}
        answers.append(client.get(path, headers=tag))
        assert [each.status_code for each in answers] == [200, 304]
        assert bool(form(answers[0].text)) is is_shown, path
        action = "'self'" if is_shown else "'none'"
        for each in answers:
            policy = each.headers["Content-Security-Policy"]
            assert f"form-action {action};" in policy
            assert "script-src" not in policy


def test_a_fragment_links_to_the_page_with_the_form(
    client: FlaskClient, plain: Any, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        row = sample_threads.post(site, "one")
    part = html_reader.Document(client.get("/embed/demo/fragment?thread=page").text)
    targets = [values.get("href") or "" for tag, values in part.elements if tag == "a"]
    assert "//localhost/embed/demo?thread=page" in targets
    assert f"//localhost/embed/demo?thread=page&reply={row.id}#comment-{row.id}" in targets


@pytest.mark.parametrize(
    ("policy", "said"),
    [(Policy.CLOSED, "Comments are closed."), (Policy.READ_ONLY, "New comments are paused.")],
)
def test_a_closed_thread_says_so_in_place_of_the_form(
    client: FlaskClient, plain: Any, open_store: connection.Store, policy: Policy, said: str
) -> None:
    before = client.get(PAGE)
    with open_store.context():
        policy_changes.set_policy("demo", BOSS, now=sample_threads.START, policy=policy)
    page = client.get(PAGE, headers={"If-None-Match": before.headers["ETag"]})
    assert page.status_code == 200
    assert said in page.text
    assert form(page.text) == {}
    answer = resend(client, **form(before.text) | TEXT)
    assert answer.status_code == 409
    assert form(answer.text)["name"] == "Ann"
    assert ">\nHello</textarea>" in answer.text
    assert rows(open_store) == []


def test_a_site_without_guests_says_so_in_place_of_the_form(
    client: FlaskClient, plain: Any, open_store: connection.Store
) -> None:
    found = form(client.get(PAGE).text)
    plain(guests=False)
    page = client.get(PAGE)
    assert "Only signed-in readers can comment here." in page.text
    assert form(page.text) == {}
    answer = resend(client, **found | TEXT)
    assert (answer.status_code, rows(open_store)) == (403, [])
    assert "Sign in to comment on this site." in answer.text


# --- Posting --------------------


def test_a_post_leads_to_the_comment(
    client: FlaskClient, plain: Any, open_store: connection.Store
) -> None:
    answer = send(client, body="one\r\ntwo\r\n\r\n*three*", website="ann.example/")
    (row,) = rows(open_store)
    assert answer.status_code == 303
    assert answer.headers["Location"] == f"?thread=page&around={row.id}#comment-{row.id}"
    assert (row.author.name, row.author.website) == ("Ann", "https://ann.example/")
    assert row.body == "one\ntwo\n\n*three*"
    assert row.id in client.get(f"/embed/demo{answer.headers['Location']}").text


def test_a_reply_is_stored_below_its_comment(
    client: FlaskClient, plain: Any, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        sample_threads.post(site, "one")
        other = sample_threads.post(site, "two")
    page = client.get(f"{PAGE}&reply={other.id}")
    document = html_reader.Document(page.text)
    assert document.ids == [other.id]
    assert page.text.index(f"comment-{other.id}") < page.text.index("<form")
    assert "noindex" in page.text
    assert send(client, f"{PAGE}&reply={other.id}").status_code == 303
    assert [(row.author.name, row.parent) for row in rows(open_store)][-1] == ("Ann", other.id)


def test_a_reply_to_a_comment_that_has_moved_leads_to_its_page(
    client: FlaskClient, plain: Any, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        row = sample_threads.post(site, "one", thread="other")
    answer = send(client, parent=row.id)
    assert answer.status_code == 303, answer.text
    assert "Hello" in client.get(f"/embed/demo{answer.location}").text


def test_a_reply_to_a_missing_comment_is_refused(client: FlaskClient, plain: Any) -> None:
    assert client.get(f"{PAGE}&reply={api_requests.NOBODY}").status_code == 404
    assert client.get(f"{PAGE}&reply=x").status_code == 400
    answer = send(client, parent=api_requests.NOBODY)
    assert answer.status_code == 404
    assert form(answer.text)["parent"] == api_requests.NOBODY


@pytest.mark.parametrize("name", ["around", "below", "cursor", "order"])
def test_a_reply_has_its_own_page(client: FlaskClient, plain: Any, name: str) -> None:
    value = {"cursor": "x", "order": "best"}.get(name, api_requests.NOBODY)
    answer = client.get(f"{PAGE}&reply={api_requests.NOBODY}&{name}={value}")
    assert answer.status_code == 400
    assert name in answer.text


def test_pressing_the_button_twice_posts_once(
    client: FlaskClient, plain: Any, open_store: connection.Store
) -> None:
    found = form(client.get(PAGE).text) | TEXT
    answers = [resend(client, **found) for _ in range(2)]
    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    assert len(rows(open_store)) == 1
    # The page has changed, so the same text is a new comment.
    assert send(client).headers["Location"] != answers[0].headers["Location"]
    assert len(rows(open_store)) == 2


@pytest.mark.parametrize(
    "other", [{"name": "Bob"}, {"body": "Bye"}, {"website": "https://b.example"}, {"peer": "::1"}]
)
def test_readers_of_one_page_do_not_share_a_comment(
    client: FlaskClient, plain: Any, open_store: connection.Store, other: dict[str, str]
) -> None:
    found = form(client.get(PAGE).text) | TEXT
    assert resend(client, **found).status_code == 303
    assert resend(client, **{**found, **other}).status_code == 303
    assert len(rows(open_store)) == 2


def test_a_page_with_the_form_is_the_same_for_everybody(client: FlaskClient, plain: Any) -> None:
    found = [
        client.get(PAGE, environ_base={"REMOTE_ADDR": peer}, headers={"User-Agent": peer})
        for peer in ("192.0.2.1", "198.51.100.7")
    ]
    assert found[0].data == found[1].data
    assert found[0].headers["ETag"] == found[1].headers["ETag"]
    assert "Cookie" not in found[0].headers["Vary"]


def test_answers_keep_the_language_of_the_page(client: FlaskClient, plain: Any) -> None:
    german = f"{PAGE}&lang=de"
    page = client.get(german).text
    assert "Kommentar schreiben" in page
    assert 'action="demo?thread=page&amp;lang=de"' in page
    sent = form(page) | TEXT
    refused = client.post(german, data={**sent, "name": ""}).text
    assert "Gib deinen Namen ein." in refused
    assert 'lang="de"' in refused
    assert "lang=de" in client.post(german, data=sent).headers["Location"]
    assert (
        "Danke für deinen Kommentar" in client.get("/embed/demo/waiting?thread=page&lang=de").text
    )
    assert client.get("/embed/demo/waiting?thread=page&lang=tlh").status_code == 400


def test_answers_have_the_theme_of_the_site(client: FlaskClient, plain: Any) -> None:
    auto = '<meta name="color-scheme" content="light dark">'
    assert auto in client.get("/embed/demo/waiting?thread=page").text
    plain(theme="dark")
    for answer in (client.get("/embed/demo/waiting?thread=page"), send(client, name="")):
        assert '<meta name="color-scheme" content="dark">' in answer.text


# --- Refusals --------------------


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "", "Enter your name."),
        ("name", "admin", "reserved"),
        ("name", "x" * 81, "80"),
        ("website", "javascript:alert(1)", "web address"),
        ("body", " \r\n ", "Write a comment first."),
        ("body", "x" * 10_001, "10,000"),
        ("body", "a\0b", "characters"),
    ],
)
def test_an_error_is_at_its_field_and_the_text_is_kept(
    client: FlaskClient, plain: Any, open_store: connection.Store,
    field: str, value: str, said: str,
) -> None:  # fmt: skip
    typed = {**TEXT, "website": "https://ann.example/", field: value}
    answer = send(client, **typed)
    assert answer.status_code == 400
    assert answer.headers["Cache-Control"] == "no-store"
    if "\0" in value:
        assert said in answer.text
        return
    page = html_reader.Elements(answer.text)
    (wrong,) = [values for _, values in page.elements if "aria-invalid" in values]
    assert (wrong["name"], wrong["aria-describedby"]) == (field, f"{field}-error")
    assert f'id="{field}-error"' in answer.text
    assert said in answer.text
    kept = form(answer.text)
    for name in {"name", "website"} - {field}:
        assert kept[name] == typed[name]
    if field != "body":
        assert ">\nHello</textarea>" in answer.text
    assert rows(open_store) == []
    assert resend(client, **{**kept, **TEXT, "website": ""}).status_code == 303


def test_the_honeypot_is_hidden_without_a_style_sheet_and_refuses(
    client: FlaskClient, plain: Any, open_store: connection.Store
) -> None:
    page = client.get(PAGE).text
    trap = page[page.index("<p hidden>") :]
    assert 'name="subject"' in trap[: trap.index("</p>")]
    answer = send(client, subject="buy now")
    assert (answer.status_code, rows(open_store)) == (403, [])


@pytest.mark.parametrize(
    "fields", [{"key": "short"}, {"extra": "1"}, {"parent": "x"}, {"key": "k" * 65}]
)
def test_a_form_that_is_not_ours_is_refused_by_the_name_of_the_field(
    client: FlaskClient, plain: Any, open_store: connection.Store, fields: dict[str, str]
) -> None:
    answer = send(client, **fields)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert next(iter(fields)) in answer.text
    assert rows(open_store) == []
    assert client.post(PAGE, json=TEXT).status_code == 415
    assert client.post("/embed/demo", data=TEXT).status_code == 400
    assert client.post("/embed/nobody?thread=page", data=TEXT).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_origin_cannot_send_the_form(
    client: FlaskClient, plain: Any, open_store: connection.Store, headers: dict[str, str]
) -> None:
    found = form(client.get(PAGE).text) | TEXT
    answer = client.post(PAGE, data=found, headers=headers)
    assert (answer.status_code, rows(open_store)) == (403, [])
    ours = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    assert client.post(PAGE, data=found, headers=ours).status_code == 303


def test_the_text_is_kept_if_the_store_does_not_answer(
    client: FlaskClient, plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = form(client.get(PAGE).text) | TEXT
    with monkeypatch.context() as patch:
        patch.setattr(admission, "prepare", _unavailable)
        answer = resend(client, **found)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert form(answer.text)["name"] == "Ann"


# --- Documents --------------------


def test_every_page_is_valid_and_shows_text_as_text(
    client: FlaskClient, plain: Any, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        row = sample_threads.post(site, "one", author=records.Author('"><b>', id="g:1"))
    waiting = client.get("/embed/demo/waiting?thread=page")
    assert "It is awaiting approval." in waiting.text
    assert waiting.headers["Cache-Control"] == "no-store"
    documents = [
        waiting.text,
        *(client.get(path).text for path in (PAGE, f"{PAGE}&reply={row.id}")),
    ]
    for payload in PAYLOADS:
        answer = send(client, name=payload, website=payload, body=f"{payload}</textarea>")
        assert answer.status_code == 400
        tags = html_reader.Document(answer.text).tags
        assert not {"img", "script", "b"} & set(tags)
        documents.append(answer.text)
    assert html_validator.complaints(documents) == [[]] * len(documents)


def _unavailable(*_: object, **__: object) -> None:
    raise errors.Overloaded("the test says so")
