"""People accept invitations and change their password and authenticator on their own pages."""

import html
import re

import flask
import pytest
import segno
from werkzeug.test import TestResponse

from comments.accounts import accounts
from comments.accounts.passwords import credentials, totp
from comments.store import connection
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import browser, cookie, reset_of, send, sign_in, token_of

pytestmark = pytest.mark.usefixtures("quick_passwords", "site")


def test_an_invitation_creates_a_signed_in_account(
    app: flask.Flask, store: connection.Store
) -> None:
    token, client = account_holders.invite(moderator(), now=now()), browser(app)
    assert client.get("/admin/welcome").status_code == 200
    wrong = send(client, "/admin/welcome", token=token, name="Ann", login="ann", password="short")
    assert wrong.status_code == 400
    assert "between 10 and 200 characters" in wrong.text
    assert f'value="{token}"' in wrong.text
    response = send(
        client, "/admin/welcome", token=token, name="Ann", login="ann", password=PASSWORD
    )
    assert response.status_code == 303
    assert "Moderator" in client.get("/admin").text
    again = send(
        browser(app),
        "/admin/welcome",
        token=token,
        name="Eve",
        login="eve",
        password=PASSWORD,
    )
    assert again.status_code == 400
    assert "was used before" in again.text


def test_an_invitation_is_accepted_with_an_existing_account(
    app: flask.Flask, store: connection.Store
) -> None:
    account_holders.account("ann", moderator("blog"))
    token, client = account_holders.invite(moderator(), now=now()), browser(app)
    refused = send(client, "/admin/welcome/accept", token=token)
    assert refused.status_code == 403
    assert "Sign in first" in refused.text
    sign_in(client)
    assert send(client, "/admin/welcome/accept", token=token).status_code == 303
    assert "demo" in client.get("/admin").text


def test_a_reset_sets_a_password_and_signs_in(app: flask.Flask, store: connection.Store) -> None:
    token, client = reset_of(account_holders.account("ann", OWNER)), browser(app)
    short = send(client, "/admin/reset", token=token, password="short")
    assert short.status_code == 400
    assert send(client, "/admin/reset", token=token, password="another one").status_code == 303
    assert client.get("/admin").status_code == 200
    sign_in(browser(app), password="another one")


def test_a_reset_requires_the_authenticators_code(
    app: flask.Flask, store: connection.Store
) -> None:
    ann, client, key = account_holders.account("ann", OWNER), browser(app), totp.secret()
    credentials.set_totp(ann.id, key, 0, account_holders.cause(now()))
    token = reset_of(ann)
    refused = send(client, "/admin/reset", token=token, password="another one")
    assert refused.status_code == 400
    assert "This is not the code that your authenticator shows." in refused.text
    assert token in refused.text, "the form must be resendable"
    code = totp.code(key, int(now().timestamp()) // totp.STEP)
    sent = {"token": token, "password": "another one", "code": code}
    assert send(client, "/admin/reset", **sent).status_code == 303
    assert accounts.by_text("ann", SECRET).has_totp
    dead = send(browser(app), "/admin/reset", **sent)
    assert dead.status_code == 400
    assert "was used before" in dead.text


@pytest.mark.parametrize("guessed", ["1qaz2wsx3edc", "ANN-AT-HOME", "Ann@Example.org"])
def test_an_easily_guessed_password_is_refused_wherever_one_is_chosen(
    app: flask.Flask, store: connection.Store, guessed: str
) -> None:
    ann, client = (
        account_holders.account("ann-at-home", OWNER, mail="ann@example.org"),
        browser(app),
    )
    reset = send(client, "/admin/reset", token=reset_of(ann), password=guessed)
    sign_in(client, "ann-at-home")
    change = {"form": token_of(client), "current": PASSWORD, "password": guessed}
    changed = send(client, "/admin/account/password", **change)
    for refused in (reset, changed):
        assert refused.status_code == 400
        assert "Choose another one." in refused.text
    if "@" not in guessed:
        form = {"name": "Ann", "login": guessed.lower(), "password": guessed}
        token = account_holders.invite(OWNER, now=now())
        joined = send(browser(app), "/admin/welcome", token=token, **form)
        assert joined.status_code == 400
        assert "Choose another one." in joined.text


def test_a_password_is_changed_with_the_current_one(
    app: flask.Flask, store: connection.Store
) -> None:
    account_holders.account("ann", OWNER)
    client, other = browser(app), browser(app)
    sign_in(client)
    sign_in(other)

    def change(**form: str) -> TestResponse:
        return send(client, "/admin/account/password", form=token_of(client), **form)

    assert change(current="not this one", password="another one").status_code == 403
    assert change(current=PASSWORD, password="short").status_code == 400
    before = cookie(client)
    assert change(current=PASSWORD, password="another one").status_code == 303
    assert cookie(client) != before
    assert client.get("/admin").status_code == 200
    assert other.get("/admin").status_code == 303


def test_the_qr_code_of_an_authenticator_is_that_of_its_address(
    app: flask.Flask, store: connection.Store
) -> None:
    account_holders.account("ann", OWNER)
    client = browser(app)
    sign_in(client)
    page = client.get("/admin/account").text
    assert html_validator.complaints([page]) == [[]]
    address = re.search(r'href="(otpauth://[^"]*)"', page)
    drawn = re.search(r"<svg[^>]*segno.*?</svg>", page, re.DOTALL)
    assert address
    assert drawn
    assert drawn[0] == segno.make(html.unescape(address[1])).svg_inline(omitsize=True)
    assert "style=" not in drawn[0], "the content security policy forbids it"


def test_an_authenticator_is_set_up_by_its_code_and_required_afterwards(
    app: flask.Flask, store: connection.Store
) -> None:
    account_holders.account("ann", OWNER)
    client = browser(app)
    sign_in(client)
    page = client.get("/admin/account").text
    found = re.search(r'name="key" value="([A-Z2-7]{32})"', page)
    assert found
    key, step = found[1], int(now().timestamp()) // totp.STEP
    assert f"secret={key}" in page

    def add(**form: str) -> TestResponse:
        path = "/admin/account/authenticator"
        return send(client, path, form=token_of(client), **{"key": key} | form)

    code = totp.code(key, step)
    assert add(current="not this one", code=code).status_code == 403
    assert add(current=PASSWORD, code=totp.code(key, step + 9)).status_code == 400
    assert add(current=PASSWORD, code=code, key="A" * 31).status_code == 400
    shown = add(current=PASSWORD, code=code)
    assert shown.status_code == 200
    codes = re.findall(r"\b\d( \d{4}){3}\b", shown.text)
    assert len(codes) == 10
    page = client.get("/admin/account").text
    assert "requires a code" in page
    assert "10 unused recovery codes" in page
    assert html_validator.complaints([shown.text, page]) == [[], []]

    for wrong in ("", code):  # The code from the setup is used up
        refused = send(browser(app), "/admin/sign-in", login="ann", password=PASSWORD, code=wrong)
        assert refused.status_code == 403
    sign_in(browser(app), code=totp.code(key, step + 1))
    path = "/admin/account/authenticator/remove"
    assert send(client, path, form=token_of(client), current="no").status_code == 403
    assert send(client, path, form=token_of(client), current=PASSWORD).status_code == 303
    sign_in(browser(app))


def test_new_recovery_codes_are_shown_once_and_sign_in(
    app: flask.Flask, store: connection.Store
) -> None:
    ann, client = account_holders.account("ann", OWNER), browser(app)
    sign_in(client)
    path = "/admin/account/recovery"
    assert send(client, path, form=token_of(client), current=PASSWORD).status_code == 409
    key = totp.secret()
    credentials.set_totp(ann.id, key, 0, account_holders.cause(now()))
    client = browser(app)
    sign_in(client, code=totp.code(key, int(now().timestamp()) // totp.STEP))
    assert "0 unused recovery codes" in client.get("/admin/account").text
    assert send(client, path, form=token_of(client), current="no").status_code == 403
    shown = send(client, path, form=token_of(client), current=PASSWORD)
    code = re.search(r"<code[^>]*>([\d ]{16})</code>", shown.text)
    assert code
    assert shown.headers["Cache-Control"] == "no-store"
    # The page's own form works, because it belongs to the new session.
    form = re.search(r'name="form" value="([a-z2-7]{52})"', shown.text)
    assert form
    assert code[1] not in client.get("/admin/account").text
    assert send(client, "/admin/sign-out", form=form[1]).status_code == 303
    sign_in(browser(app), code=code[1])
    again = send(browser(app), "/admin/sign-in", login="ann", password=PASSWORD, code=code[1])
    assert again.status_code == 403
