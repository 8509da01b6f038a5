"""Grant moderation sessions to pages of the site "demo", as the window and the widget do."""

import base64
import hashlib
import re
import secrets
from datetime import datetime
from typing import Any

import flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.accounts import accounts, moderation_sessions
from comments.accounts.links import window_codes
from comments.web.sign_in import signed_in
from tests.support.people import account_holders
from tests.support.people.account_holders import SECRET

ORIGIN = "https://demo.example"
ON_PAGE = {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}


def verifier() -> str:
    return secrets.token_urlsafe(32)


def challenge_of(made: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(made.encode()).digest()).decode().rstrip("=")


def begun(
    account: accounts.Account,
    site: str = "demo",
    *,
    origin: str = ORIGIN,
    now: datetime | None = None,
) -> moderation_sessions.NewSession:
    """Begin a session, without the window."""
    at, made = now or account_holders.here(), verifier()
    # An earlier change of the account may have changed its epoch.
    account = accounts.get(account.id) or account
    code = moderation_sessions.grant(
        account, site, origin, challenge_of(made), secret=SECRET, now=at
    )
    shown = window_codes.PresentedCode(made, code)
    return moderation_sessions.begin(shown, site, origin, secret=SECRET, now=at)


def token(account: accounts.Account, site: str = "demo", *, now: datetime | None = None) -> str:
    return begun(account, site, now=now).token


def bearer(token: str, **more: str) -> dict[str, str]:
    """Return the headers of a page's call with a moderator's token."""
    return {**ON_PAGE, "Authorization": f"Bearer {token}", **more}


def window(
    app: flask.Flask, account: accounts.Account | None, path: str = "/moderate/sites/demo"
) -> "Window":
    """Open the window in a browser where an account is signed in, or nobody."""
    client = app.test_client()
    if account is not None:
        client.set_cookie(signed_in.COOKIE, account_holders.session(account.id).token)
    return Window(client, path, challenge_of(verifier()))


class Window:
    """The window, in a browser."""

    def __init__(self, client: FlaskClient, path: str, challenge: str) -> None:
        self.client = client
        self.path = path
        self.asked = {"origin": ORIGIN, "challenge": challenge}

    def get(self, **headers: str) -> TestResponse:
        return self.client.get(self.path, query_string=self.asked, headers=headers)

    def post(self, below: str = "", **form: Any) -> TestResponse:
        """Send a form of the window; `below` is the path below the window's."""
        sent = {**self.asked, "form": self._form_token(), **form}
        own = {"Sec-Fetch-Site": "same-origin"}
        return self.client.post(f"{self.path}{below}", data=sent, headers=own)

    def press(self) -> str:
        """Press the button and return the code."""
        answer = self.post()
        assert answer.status_code == 200, answer.text
        found = re.search('class="ft-key"[^>]*>([a-z2-7]{4} [a-z2-7]{4})<', answer.text)
        assert found, answer.text
        return found[1]

    def _form_token(self) -> str:
        found = re.search(r'name="form" value="([a-z2-7]{52})"', self.get().text)
        return found[1] if found else ""
