"""Simulate a moderator's browser for tests of the pages under `/admin/sites`."""

import re

import flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.accounts import accounts
from comments.domain import records
from comments.web.sign_in import signed_in
from tests.support.people import account_holders
from tests.support.people.account_holders import SECRET

DESK = "/admin/sites/demo"
OWN = {"Sec-Fetch-Site": "same-origin"}


class Desk:
    """A signed-in account in the admin console, on the site "demo" by default."""

    def __init__(self, app: flask.Flask, login: str) -> None:
        self.client: FlaskClient = app.test_client()
        token = account_holders.session(accounts.by_text(login, SECRET).id).token
        self.client.set_cookie(signed_in.COOKIE, token)
        page = self.client.get("/admin/account").text
        found = re.search(r'name="form" value="([a-z2-7]{52})"', page)
        assert found
        self.token = found[1]

    def page(self, path: str) -> str:
        response = self.client.get(f"{DESK}{path}")
        assert response.status_code == 200, response.text
        return response.text

    def send(
        self, path: str, act: str, *chosen: records.Comment, desk: str = DESK, **form: str
    ) -> TestResponse:
        """Decide about comments."""
        accept = form.pop("accept", "text/html")
        fields = {f"c.{row.id}": str(row.revision) for row in chosen}
        return self.client.post(
            f"{desk}{path}",
            data={"act": act, "form": self.token, **fields, **form},
            headers={**OWN, "Accept": accept},
        )

    def settle(self, path: str, *, desk: str = DESK, status: int = 303, **form: str) -> str:
        """Send a form of any kind; return the response's text."""
        data = {"form": self.token, **form}
        response = self.client.post(f"{desk}{path}", data=data, headers=OWN)
        assert response.status_code == status, response.text
        return response.text
