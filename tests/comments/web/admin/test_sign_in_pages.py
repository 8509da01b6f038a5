"""Owners manage providers for signing in, and the keys of a website, in the console."""

import re
from collections.abc import Iterator

import flask
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.accounts import reader_accounts, site_keys
from comments.accounts.oidc import providers
from comments.events import audit_log
from comments.store import connection
from tests.support.html import html_validator
from tests.support.people import account_holders, provider_login, site_tokens
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import OWN, browser, sign_in, token_of
from tests.support.people.console_browser import Desk
from tests.support.people.provider_login import CLIENT, CLIENT_SECRET, Impostor

KEYS = "/sign-in/keys"


@pytest.mark.usefixtures("quick_passwords", "store", "site")
@pytest.mark.settings(provider_login.SETTINGS)
class TestProviders:
    @pytest.fixture
    def provider(self, open_store: connection.Store) -> Iterator[Impostor]:
        with provider_login.impostor(open_store) as found:
            yield found

    @pytest.fixture
    def client(self, app: flask.Flask) -> FlaskClient:
        account_holders.account("ann", OWNER)
        client = browser(app)
        sign_in(client)
        return client

    def _post(self, tab: FlaskClient, path: str, /, **form: str) -> TestResponse:
        sent = {"form": token_of(tab), "current": PASSWORD} | form
        return tab.post(f"/admin/providers{path}", data=sent, headers=OWN)

    def _add(self, client: FlaskClient, provider: Impostor, **form: str) -> TestResponse:
        given = {
            "name": "acme", "title": "Acme Inc.", "issuer": provider.issuer, "client": CLIENT,
            "secret": CLIENT_SECRET,
        }  # fmt: skip
        return self._post(client, "", **given | form)

    def _change(self, client: FlaskClient, act: str, **form: str) -> TestResponse:
        return self._post(client, "/change", act=act, name="acme", **form)

    def test_a_provider_is_added_tested_offered_and_removed(
        self, client: FlaskClient, provider: Impostor
    ) -> None:
        page = client.get("/admin/providers").text
        assert "http://localhost/sign-in/return" in page
        added = self._add(client, provider).text
        assert "Added Acme Inc." in added
        assert CLIENT_SECRET not in added
        (stored,) = providers.every()
        assert (stored.title, stored.sites, stored.at_desk) == ("Acme Inc.", (), False)
        assert providers.client_secret(stored, SECRET, now=now()) == CLIENT_SECRET
        assert "Acme Inc. answers" in self._change(client, "check", current="").text
        self._change(client, "save", sites="demo", staff="on")
        (stored,) = providers.every()
        assert (stored.sites, stored.at_desk) == (("demo",), True)
        assert "<li>Acme Inc.</li>" in client.get("/admin/sites/demo/sign-in").text
        page = self._change(client, "save", sites="").text
        (stored,) = providers.every()
        assert (stored.sites, stored.at_desk) == ((), False)
        assert html_validator.complaints([page]) == [[]]
        assert "Removed Acme Inc." in self._change(client, "remove").text
        assert providers.every() == ()
        log = client.get("/admin/service").text
        assert re.findall(r"<bdi>Provider acme</bdi></td>\s*<td[^>]*>(.*?)<", log) == [
            "nobody → \u2013", "demo, staff → nobody", "nobody → demo, staff", "\u2013 → nobody",
        ]  # fmt: skip
        assert html_validator.complaints([log]) == [[]]

    def test_a_change_needs_the_password_and_known_sites(
        self, client: FlaskClient, provider: Impostor
    ) -> None:
        assert self._add(client, provider, current="wrong").status_code == 403
        assert providers.every() == ()
        self._add(client, provider)
        assert self._change(client, "save", staff="on", current="wrong").status_code == 403
        assert self._change(client, "remove", current="wrong").status_code == 403
        assert self._change(client, "save", sites="demo, none").status_code == 404
        (stored,) = providers.every()
        assert (stored.sites, stored.at_desk) == ((), False)

    def test_a_provider_that_does_not_answer_is_not_added(
        self, client: FlaskClient, provider: Impostor
    ) -> None:
        provider.document = {"issuer": "https://another.example"}
        refused = self._add(client, provider)
        assert refused.status_code == 403
        assert f'value="{provider.issuer}"' in refused.text
        assert CLIENT_SECRET not in refused.text
        assert providers.every() == ()


@pytest.mark.usefixtures("site")
class TestSiteKeys:
    def test_a_key_is_created_shown_once_and_revoked(self, owner: Desk) -> None:
        assert "No keys yet." in owner.page("/sign-in")
        created = owner.settle(KEYS, act="shared", status=200)
        found = re.search(r">([\w-]{43})</textarea>", created)
        assert found
        token = site_tokens.token(found[1])
        assert reader_accounts.of_site(token, "demo", secret=SECRET, now=now()).name == "Ann"
        page = owner.page("/sign-in")
        assert found[1] not in page
        assert html_validator.complaints([page]) == [[]]
        (key,) = site_keys.every("demo")
        assert "Key revoked." in owner.settle(KEYS, act="remove", id=key.id, status=200)
        assert site_keys.every("demo") == ()
        entries = audit_log.log("demo")
        assert [(each.subject, each.after) for each in entries] == [
            (f"key:{key.id}", "removed"), (f"key:{key.id}", "added"),
        ]  # fmt: skip
        assert f"Key {key.id}" in owner.page("/log")
        assert found[1] not in str(entries)

    def test_a_public_key_is_added_although_browsers_remove_its_line_breaks(
        self, owner: Desk
    ) -> None:
        public = ed25519.Ed25519PrivateKey.generate().public_key()
        pem = public.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ).decode()
        owner.settle(KEYS, act="public", public=pem.replace("\n", ""), status=200)
        (key,) = site_keys.every("demo")
        assert (key.algorithm, key.content.strip()) == (site_keys.EDDSA, pem.strip())
        refused = owner.settle(KEYS, act="public", public="no key", status=400)
        assert "Public key must be a public Ed25519 key" in refused
        owner.settle(KEYS, act="public", status=400)
        owner.settle(KEYS, act="remove", status=400)
        assert len(site_keys.every("demo")) == 1
