"""Send admin forms as a browser does from our own pages."""

import re
from typing import Any

import flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.accounts import accounts
from comments.accounts.links import invitations
from comments.web.sign_in import signed_in
from tests.support.people import account_holders
from tests.support.people.account_holders import PASSWORD
from tests.support.people.account_holders import here as now

OWN = {"Sec-Fetch-Site": "same-origin"}


def browser(app: flask.Flask) -> FlaskClient:
    return app.test_client()


def send(client: FlaskClient, path: str, headers: Any = None, **form: str) -> TestResponse:
    return client.post(path, data=form, headers=OWN if headers is None else headers)


def sign_in(client: FlaskClient, login: str = "ann", **more: str) -> TestResponse:
    response = send(client, "/admin/sign-in", login=login, **{"password": PASSWORD} | more)
    assert response.status_code == 303, response.text
    return response


def token_of(client: FlaskClient) -> str:
    """Return the signed-in account's form token."""
    found = re.search(r'name="form" value="([a-z2-7]{52})"', client.get("/admin/account").text)
    assert found
    return found[1]


def cookie(client: FlaskClient) -> str:
    found = client.get_cookie(signed_in.COOKIE)
    return "" if found is None else found.value


def reset_of(account: accounts.Account) -> str:
    """Return the token from a password-reset link."""
    return invitations.issue_reset(account, account_holders.cause(now()))
