"""The window grants a moderation session only by its button, and only to moderators."""

import re

import flask
import pytest

from comments.accounts import accounts, moderation_sessions
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection, reads
from comments.web.sign_in import signed_in
from tests.support.people import account_holders, moderators, provider_login
from tests.support.people.account_holders import PASSWORD, SECRET, here, moderator
from tests.support.people.provider_login import Impostor, Traveller

pytestmark = pytest.mark.usefixtures("quick_passwords")


@pytest.fixture(autouse=True)
def _registered(store: connection.Store, site: records.Site) -> None:
    site_settings.change(site.id, origins=[moderators.ORIGIN])


def vouchers() -> int:
    return len(list(reads.fetch(reads.Query("Ticket"))))


def test_the_window_names_the_page_the_site_and_the_term_and_changes_nothing(
    app: flask.Flask,
) -> None:
    window = moderators.window(app, account_holders.account("ann", moderator()))
    shown = window.get()
    assert shown.status_code == 200
    for text in (moderators.ORIGIN, "<strong>demo</strong>", "12 hours", "Ann"):
        assert text in shown.text
    assert vouchers() == 0
    window.press()
    assert vouchers() == 1


def test_the_window_keeps_its_opener_and_is_neither_framed_nor_cached(app: flask.Flask) -> None:
    window = moderators.window(app, account_holders.account("ann", moderator()))
    answers = (window.get(), window.post(), moderators.window(app, None).get())
    for answer in answers:
        assert answer.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "asked",
    [
        {"origin": "https://demo.example.evil.example"},
        {"origin": "null"},
        {"origin": "http://demo.example"},
        {"challenge": "short"},
    ],
)
def test_no_window_opens_for_a_foreign_origin_or_a_malformed_challenge(
    app: flask.Flask, asked: dict[str, str]
) -> None:
    window = moderators.window(app, account_holders.account("ann", moderator()))
    token = window._form_token()
    window.asked |= asked
    status = 403 if "origin" in asked else 400
    assert window.get().status_code == status
    assert window.post(form=token).status_code == status
    assert vouchers() == 0


def test_the_button_needs_our_own_page_its_form_and_a_role(app: flask.Flask) -> None:
    window = moderators.window(app, account_holders.account("ann", moderator()))
    sent = {**window.asked, "form": window._form_token()}
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": moderators.ORIGIN}
    assert window.client.post(window.path, data=sent, headers=foreign).status_code == 403
    assert window.post(form="a" * 26).status_code == 403
    other = moderators.window(app, account_holders.account("bob", moderator("blog")))
    found = re.search(
        r'name="form" value="([a-z2-7]{52})"', other.client.get("/admin/account").text
    )
    assert found
    assert other.post(form=found[1]).status_code == 403
    assert vouchers() == 0


def test_a_person_without_a_session_signs_in_in_the_window_and_returns_to_it(
    app: flask.Flask,
) -> None:
    account_holders.account("ann", moderator())
    window = moderators.window(app, None)
    assert 'name="password"' in window.get().text
    sent = {**window.asked, "login": "ann", "password": "wrong"}
    own, path = {"Sec-Fetch-Site": "same-origin"}, f"{window.path}/sign-in"
    assert window.client.post(path, data=sent, headers=own).status_code == 403
    back = window.client.post(path, data={**sent, "password": PASSWORD}, headers=own)
    assert back.status_code == 303
    assert re.match(r"(\.\./)+moderate/sites/demo\?origin=", back.headers["Location"])
    assert back.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"
    assert window.press()


def test_a_person_without_a_role_is_offered_to_sign_in_as_somebody_else(app: flask.Flask) -> None:
    window = moderators.window(app, account_holders.account("bob", moderator("blog")))
    shown = window.get()
    assert shown.status_code == 403
    assert "Bob can&#39;t moderate comments on demo" in shown.text
    assert 'name="password"' in shown.text


def test_a_window_that_another_site_opened_reloads_itself_to_get_the_cookie(
    app: flask.Flask,
) -> None:
    shown = moderators.window(app, None).get(**{"Sec-Fetch-Site": "cross-site"})
    assert (shown.status_code, "refresh" in shown.text) == (200, True)
    assert shown.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"


@pytest.mark.settings(provider_login.SETTINGS)
def test_a_sign_in_through_a_provider_returns_to_the_window(
    app: flask.Flask, traveller: Traveller, provider: Impostor
) -> None:
    account_holders.account("ann", moderator())
    traveller.sign_in()
    traveller.link()
    other, asked = Traveller(app, provider), moderators.window(app, None).asked
    back = other.travel("/moderate/sites/demo/provider", provider="acme", **asked)
    assert back.status_code == 303, back.text
    assert re.match(r"(\.\./)+moderate/sites/demo\?origin=", back.headers["Location"])
    assert back.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"
    shown = other.client.get("/moderate/sites/demo", query_string=asked)
    assert "You are signed in as" in shown.text


def test_no_window_opens_while_moderation_in_the_thread_is_off(app: flask.Flask) -> None:
    window = moderators.window(app, account_holders.account("ann", moderator()))
    token = window._form_token()
    site_settings.change("demo", options={"moderation": False})
    assert window.get().status_code == 403
    assert window.post(form=token).status_code == 403
    assert vouchers() == 0


def test_the_account_page_lists_a_session_and_ends_it(app: flask.Flask) -> None:
    ann = account_holders.account("ann", moderator())
    begun, window = moderators.begun(ann), moderators.window(app, ann)
    shown = window.client.get("/admin/account").text
    assert moderators.ORIGIN in shown
    assert begun.token not in shown
    form = {"form": window._form_token(), "session": begun.session.id}
    own = {"Sec-Fetch-Site": "same-origin"}
    ended = window.client.post("/admin/account/moderation/end", data=form, headers=own)
    assert ended.status_code == 303
    assert moderation_sessions.find(begun.token, SECRET, now=here()) is None
    assert moderators.ORIGIN not in window.client.get("/admin/account").text


def test_signing_out_everywhere_ends_the_sessions_in_threads(app: flask.Flask) -> None:
    ann = account_holders.account("ann", moderator())
    token, window = moderators.token(ann), moderators.window(app, ann)
    form, own = {"form": window._form_token()}, {"Sec-Fetch-Site": "same-origin"}
    window.client.post("/admin/sign-out/everywhere", data=form, headers=own)
    assert moderation_sessions.find(token, SECRET, now=here()) is None


def test_a_moderators_token_is_not_a_session_cookie(app: flask.Flask) -> None:
    token = moderators.token(accounts.get(account_holders.account("ann", moderator()).id))  # type: ignore[arg-type]
    client = app.test_client()
    client.set_cookie(signed_in.COOKIE, token)
    assert client.get("/admin").status_code == 303
