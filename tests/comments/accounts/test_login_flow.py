"""A provider's answer in a login flow is valid once, for a short time, in the same browser."""

import flask
import pytest

from comments import config
from comments.accounts.oidc import login_flow
from comments.store import connection, reads
from comments.web.sign_in import provider_redirects, signed_in
from tests.support.people import account_holders, provider_login
from tests.support.people.account_holders import OWNER, SECRET, moderator
from tests.support.people.account_holders import here as now
from tests.support.people.provider_login import OWN, Impostor, Traveller

pytestmark = [
    pytest.mark.usefixtures("quick_passwords"),
    pytest.mark.settings(provider_login.SETTINGS),
]

DESK = "/admin/sign-in/provider"


class TestState:
    """B13: the state parameter is valid once, and only in the browser that started the login."""

    def test_it_is_valid_once(self, traveller: Traveller) -> None:
        account_holders.account("ann", OWNER)
        traveller.sign_in()
        traveller.link()
        way = traveller.way(DESK, provider="acme")
        assert traveller.back(way).status_code == 303
        again = traveller.back(way)
        assert again.status_code == 403
        assert "bad-state" in again.text

    @pytest.mark.parametrize("state", ["", "s" * 43, "short", "\u00e9" * 43, "a.b"])
    def test_a_missing_or_invented_state_is_refused(self, traveller: Traveller, state: str) -> None:
        way = traveller.way(DESK, provider="acme")
        refused = traveller.back(way, state=state)
        assert refused.status_code == 403
        assert "bad-state" in refused.text
        assert traveller.client.get("/sign-in/return").status_code == 403

    def test_another_browsers_state_is_refused_and_not_used_up(
        self, app: flask.Flask, traveller: Traveller, provider: Impostor
    ) -> None:
        account_holders.account("ann", OWNER)
        traveller.sign_in()
        traveller.link()
        mine = Traveller(app, provider)
        way = mine.way(DESK, provider="acme")
        without, other = Traveller(app, provider), Traveller(app, provider)
        other.way(DESK, provider="acme")
        forged = Traveller(app, provider)
        forged.client.set_cookie(provider_redirects.COOKIE, "")
        for each in (without, other, forged):
            refused = each.back(way)
            assert refused.status_code == 403
            assert "bad-state" in refused.text
            assert each.client.get("/admin").status_code == 303
        assert mine.back(way).status_code == 303

    def test_it_expires(self, traveller: Traveller, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(login_flow, "TERM", -login_flow.TERM)
        way = traveller.way(DESK, provider="acme")
        refused = traveller.back(way)
        assert (refused.status_code, "bad-state" in refused.text) == (403, True)

    def test_a_token_for_another_purpose_is_not_a_state(self, traveller: Traveller) -> None:
        token = account_holders.invite(OWNER, now=now())
        refused = traveller.back(traveller.way(DESK, provider="acme"), state=token)
        assert (refused.status_code, "bad-state" in refused.text) == (403, True)

    def test_its_cookie_is_first_party_short_lived_and_not_a_session(
        self, traveller: Traveller, app: flask.Flask
    ) -> None:
        response = traveller.send(DESK, provider="acme")
        (cookie,) = response.headers.getlist("Set-Cookie")
        name, *rest = cookie.split("; ")
        assert name.startswith(f"{provider_redirects.COOKIE}=")
        assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"} <= set(rest)
        assert not any(each.startswith("Domain") for each in rest)
        browser = app.test_client()
        browser.set_cookie(signed_in.COOKIE, name.partition("=")[2])
        assert browser.get("/admin").status_code == 303

    def test_the_started_action_is_stored_encrypted(self, traveller: Traveller) -> None:
        token = account_holders.invite(moderator(), now=now())
        traveller.way("/admin/welcome/provider", token=token, name="Ann", provider="acme")
        stored = "".join(
            str(entity)
            for kind in ("Ticket", "Providers", "RateBucket")
            for entity in reads.fetch(reads.Query(kind))
        )
        assert token not in stored
        assert provider_login.CLIENT_SECRET not in stored
        assert provider_login.CLIENT in stored


def test_a_network_with_too_many_logins_gets_a_retry_time(traveller: Traveller) -> None:
    for _ in range(login_flow.PER_NETWORK.most):
        traveller.way(DESK, provider="acme")
    refused = traveller.send(DESK, provider="acme")
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 900


def test_without_a_public_url_no_login_starts(
    provider: Impostor, open_store: connection.Store
) -> None:
    from comments import app as apps  # noqa: PLC0415 - import Flask only on demand

    bare = apps.create_app(config.Settings(secret=SECRET), open_store)
    refused = Traveller(bare, provider).send(DESK, provider="acme")
    assert refused.status_code == 409
    assert "PUBLIC_URL" in refused.text
    offered = bare.test_client().get("/api/v1/sites/demo/sign-in")
    assert offered.json == {"mail": False, "providers": [], "url": ""}


def test_the_return_url_does_not_depend_on_the_host_header(traveller: Traveller) -> None:
    """C13: the service takes its own address from the settings."""
    sent = traveller.client.post(
        DESK, data={"provider": "acme"},
        headers={**OWN, "Host": "evil.example", "X-Forwarded-Host": "evil.example"},
    )  # fmt: skip
    assert sent.status_code == 200
    assert "evil.example" not in sent.text
