"""A moderation link opens a page with buttons that decide about the mailed revision."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config, errors
from comments.domain import records
from comments.domain.crypto import encryption
from comments.domain.records import Status, Verb
from comments.events import audit_log, dispatcher
from comments.moderation import decisions
from comments.notifications import double_opt_in, form_tokens, moderation_links, planner
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import wiring
from tests.support import stored_state
from tests.support.html import html_reader, page_buttons
from tests.support.outside import mail_server
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
MOD = "mod@site.example"
SECRET = sample_threads.SETTINGS.secret
Link = Callable[..., str]


@pytest.fixture
def held(open_store: connection.Store, site: records.Site) -> records.Comment:
    with open_store.context():
        site_settings.change("demo", moderators=[MOD])
        row = sample_threads.post(site, "Is <b>this</b> fine?", now=datetime.now(UTC))
        now = datetime.now(UTC)
        return decisions.decide("demo", row.id, Verb.HOLD, ADA, now=now, reason="why not")


def _token(comment: records.Comment, address: str = MOD, age: timedelta = timedelta()) -> str:
    return moderation_links.link(comment, address, secret=SECRET, now=datetime.now(UTC) - age)


def _press(client: FlaskClient, token: str, verb: str = "approve") -> TestResponse:
    """Press a button on the page that the link has just opened."""
    slip = form_tokens.make(token, "decide", SECRET, now=datetime.now(UTC))
    return client.post(f"/decisions/{verb}", data={"token": slip})


def _status(store: connection.Store, row: records.Comment) -> Status:
    with store.context():
        return decisions.case("demo", row.id).comment.status


def test_opening_the_link_changes_nothing_and_shows_the_comment(
    client: FlaskClient, open_store: connection.Store, held: records.Comment
) -> None:
    with open_store.context():
        before = list(map(str, stored_state.rows("Comment")))
    for method in ("GET", "HEAD"):
        response = client.open(f"/decisions?token={_token(held)}", method=method)
        assert response.status_code == 200
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["X-Robots-Tag"] == "noindex"
        assert response.headers["Cache-Control"] == "no-store"
    shown = client.get(f"/decisions?token={_token(held)}").text
    assert "Is &lt;b&gt;this&lt;/b&gt; fine?" in shown
    assert "why not" in shown
    for verb in moderation_links.VERBS:
        assert client.get(f"/decisions/{verb}?token={_token(held)}").status_code in {404, 405}
    with open_store.context():
        assert list(map(str, stored_state.rows("Comment"))) == before


@pytest.mark.parametrize(
    ("label", "status"),
    [("Approve", Status.APPROVED), ("Reject", Status.REJECTED), ("Mark as spam", Status.SPAM)],
)
def test_a_button_decides_and_the_log_names_the_mail(
    client: FlaskClient,
    open_store: connection.Store,
    held: records.Comment,
    label: str,
    status: Status,
) -> None:
    page = client.get(f"/decisions?token={_token(held)}").text
    action, fields = page_buttons.buttons(page)[label]
    for _ in range(2):  # A second press changes nothing
        pressed = client.post(urljoin("/decisions", action), data=fields)
        assert pressed.status_code == 200, pressed.text
    assert _status(open_store, held) is status
    with open_store.context():
        entry, _ = audit_log.log("demo")
        assert entry.actor.id == "mail"
        assert MOD not in str(list(stored_state.rows("AuditEntry")))


def test_a_comment_edited_or_decided_since_is_not_decided_by_the_link(
    client: FlaskClient, open_store: connection.Store, held: records.Comment
) -> None:
    token = _token(held)
    with open_store.context():
        own_comment.edit(
            held.id, author_id=held.author.id, body="buy", revision=None,
            settings=sample_threads.SETTINGS, now=datetime.now(UTC),
        )  # fmt: skip
    told = client.get(f"/decisions?token={token}")
    assert "edited or moderated after" in told.text
    assert "<form" not in told.text
    assert "buy" not in told.text
    assert _press(client, token).status_code == 412
    assert _status(open_store, held) is Status.PENDING
    with open_store.context():
        own_comment.retract(held.id, author_id=held.author.id, revision=None, now=datetime.now(UTC))
    assert _press(client, token).status_code == 409


def test_a_link_is_valid_for_a_week_one_purpose_and_one_secret(
    client: FlaskClient, open_store: connection.Store, held: records.Comment
) -> None:
    young = _token(held, age=moderation_links.TERM - timedelta(minutes=1))
    assert client.get(f"/decisions?token={young}").status_code == 200
    now = datetime.now(UTC)
    seal = encryption.unseal(young, "decide", SECRET, now=now)
    bad = [
        _token(held, age=moderation_links.TERM + timedelta(minutes=1)),
        encryption.seal(seal, "confirm", SECRET, now=now),
        encryption.seal(seal, "decide", "another secret of tests", now=now),
        double_opt_in.unsubscribe_link(double_opt_in.Unsubscription("a" * 26, ()), SECRET),
        young[:-8], young[:60] + ("A" if young[60] == "B" else "B") + young[61:], "x", "é",
    ]  # fmt: skip
    for token in bad:
        assert client.get("/decisions", query_string={"token": token}).status_code == 400
        told = _press(client, token)
        assert told.status_code == 400
        assert "is not valid or has expired" in told.text
    assert client.post("/decisions/approve").status_code == 415
    assert client.post("/subscriptions/confirm", data={"token": young}).status_code == 400
    assert _status(open_store, held) is Status.PENDING


def test_a_link_decides_only_through_its_page_and_the_page_for_a_short_time(
    client: FlaskClient,
    open_store: connection.Store,
    held: records.Comment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = _token(held)
    page = client.get(f"/decisions?token={token}").text
    assert token not in page
    _, fields = page_buttons.buttons(page)["Approve"]
    for answer in (
        client.post(f"/decisions/approve?token={token}"),
        client.post("/decisions/approve", data={"token": token}),
        client.post(f"/decisions/approve?token={fields['token']}"),
        client.get(f"/decisions?token={fields['token']}"),
        client.post("/subscriptions/confirm", data=fields),
    ):
        assert answer.status_code in {400, 415}
    monkeypatch.setattr(form_tokens, "TERM", timedelta(seconds=-1))
    late = client.post("/decisions/approve", data=fields)
    assert late.status_code == 400
    assert "Open the link in the e-mail again" in late.text
    assert _status(open_store, held) is Status.PENDING


def test_a_former_moderators_link_decides_nothing(
    client: FlaskClient, open_store: connection.Store, held: records.Comment
) -> None:
    token = _token(held)
    assert client.get(f"/decisions?token={_token(held, 'eve@else.example')}").status_code == 400
    with open_store.context():
        site_settings.change("demo", moderators=["other@site.example"])
    assert _press(client, token).status_code == 400
    assert _status(open_store, held) is Status.PENDING


def test_a_link_decides_only_about_its_comment_and_with_its_actions(
    store: connection.Store, held: records.Comment
) -> None:
    warrant = moderation_links.read(_token(held), secret=SECRET, now=datetime.now(UTC))
    with pytest.raises(errors.BadInput):
        moderation_links.act(warrant, Verb.PIN, now=datetime.now(UTC))
    elsewhere = moderation_links.ModerationLink("other", held.id, held.revision, warrant.moderator)
    with pytest.raises(errors.NotFound):
        moderation_links.act(elsewhere, Verb.APPROVE, now=datetime.now(UTC))


def test_the_mail_of_a_held_comment_links_to_the_page(
    client: FlaskClient, open_store: connection.Store, held: records.Comment
) -> None:
    with mail_server.serving() as box, open_store.context():
        settings: config.Settings = box.settings()
        now = datetime.now(UTC) + timedelta(minutes=1)
        handlers = (*wiring.HANDLERS, *planner.handlers(settings, lambda: now))
        while dispatcher.sweep(now=now, handlers=handlers).delivered:
            pass
        (text,) = [box.text(number) for number in range(len(box.taken))]
    found = re.search(r"Approve or reject: (\S+)", text)
    assert found is not None
    parts = urlsplit(found[1])
    assert parts.path == "/decisions"
    (token,) = parse_qs(parts.query)["token"]
    page = client.get(f"/decisions?token={token}")
    assert page.status_code == 200, page.text
    assert html_reader.Document(page.text)
    assert _press(client, token).status_code == 200
    assert _status(open_store, held) is Status.APPROVED
