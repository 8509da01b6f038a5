"""Test who can sign in to the admin console through a provider and which account they get."""

import re

import flask
import pytest
from werkzeug.test import TestResponse

from comments.accounts import accounts, identities
from comments.accounts.oidc import providers
from comments.accounts.passwords import credentials, password_login, totp
from comments.domain.moderation import roles
from comments.store import connection
from comments.web.sign_in import signed_in
from tests.support.html import html_validator
from tests.support.people import account_holders, provider_login
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator
from tests.support.people.account_holders import here as now
from tests.support.people.provider_login import Impostor, Traveller

pytestmark = [
    pytest.mark.usefixtures("quick_passwords"),
    pytest.mark.settings(provider_login.SETTINGS),
]

DESK = "/admin/sign-in/provider"


def whose(provider: Impostor) -> accounts.Account | None:
    issuer = identities.at_issuer(provider.issuer)
    return accounts.by_identity(identities.of_provider(issuer, provider.sub), SECRET)


def test_only_the_account_that_linked_a_provider_signs_in_by_it(
    app: flask.Flask, traveller: Traveller, provider: Impostor
) -> None:
    ann = account_holders.account("ann", OWNER)
    traveller.sign_in()
    back = traveller.link()
    assert (back.status_code, back.headers["Location"]) == (303, "../admin/account")
    assert "Unlink Acme" in traveller.client.get("/admin/account").text

    other = Traveller(app, provider)
    back = other.travel(DESK, provider="acme")
    assert back.status_code == 303
    _, *rest = next(
        each for each in back.headers.getlist("Set-Cookie") if each.startswith("__Host-flatthread=")
    ).split("; ")
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(rest)
    assert "You own this service" in other.client.get("/admin").text
    assert whose(provider) == ann

    provider.sub = "bob"
    refused = Traveller(app, provider).travel(DESK, provider="acme")
    assert refused.status_code == 403
    assert "not-linked" in refused.text
    assert signed_in.COOKIE not in refused.headers.get("Set-Cookie", "").split("=")
    assert whose(provider) is None


def test_signing_in_by_a_provider_gives_nobody_a_role(
    app: flask.Flask, traveller: Traveller, provider: Impostor, store: connection.Store
) -> None:
    """A sign-in grants no role on a service without an owner, nor to a reader with an account."""
    assert traveller.travel(DESK, provider="acme").status_code == 403
    assert accounts.staff() == []
    assert not accounts.is_owned()
    code = provider_login.code_of(traveller.window(provider_login.challenge_of()))
    sent = {"verifier": provider_login.VERIFIER, "code": code, "name": "Ann"}
    entered = traveller.client.post("/api/v1/sites/demo/sign-in/provider", json=sent)
    assert entered.status_code == 200
    reader = whose(provider)
    assert reader is not None
    refused = traveller.travel(DESK, provider="acme")
    assert refused.status_code == 403
    assert "not-linked" in refused.text
    assert traveller.client.get("/admin").status_code == 303
    # An invitation makes the reader a moderator, who then signs in through the same provider.
    token = account_holders.invite(moderator(), now=now())
    accepted = traveller.travel("/admin/welcome/provider", token=token, provider="acme")
    assert accepted.status_code == 303
    assert "Moderator" in traveller.client.get("/admin").text
    assert whose(provider).id == reader.id
    assert Traveller(app, provider).travel(DESK, provider="acme").status_code == 303


def test_an_invitation_is_accepted_once_and_creates_an_account_without_a_password(
    app: flask.Flask, traveller: Traveller, provider: Impostor
) -> None:
    token = account_holders.invite(moderator(), now=now())
    back = traveller.travel("/admin/welcome/provider", token=token, name="Ann B", provider="acme")
    assert back.status_code == 303, back.text
    made = whose(provider)
    assert made is not None
    assert (made.name, made.login, made.has_password, made.address) == ("Ann B", "", False, "")
    assert made.grants == (moderator(),)
    page = traveller.client.get("/admin/account").text
    assert "You have no password." in page

    provider.sub = "eve"
    again = Traveller(app, provider).travel(
        "/admin/welcome/provider", token=token, name="Eve", provider="acme"
    )
    assert again.status_code == 400
    assert whose(provider) is None


def test_an_invitation_for_an_address_needs_a_new_account_or_the_account_with_that_address(
    app: flask.Flask, traveller: Traveller, provider: Impostor
) -> None:
    """B17: the service ignores what the provider says about the address."""
    provider.claims = {"email": "bob@example.org", "email_verified": True}
    account_holders.account("ann", moderator("blog"))
    traveller.sign_in()
    traveller.link()
    token = account_holders.invite(OWNER, address="bob@example.org", now=now())
    refused = traveller.travel("/admin/welcome/provider", token=token, provider="acme")
    assert refused.status_code == 403
    assert accounts.by_text("ann", SECRET).grants == (moderator("blog"),)
    provider.sub = "bob"
    accepted = Traveller(app, provider).travel(
        "/admin/welcome/provider", token=token, name="Bob", provider="acme"
    )
    assert accepted.status_code == 303
    assert accounts.by_text("bob@example.org", SECRET) == whose(provider)


def test_an_invalid_name_is_refused_before_the_redirect(
    traveller: Traveller, provider: Impostor
) -> None:
    token = account_holders.invite(moderator(), now=now())
    wrong = traveller.send("/admin/welcome/provider", token=token, name="a" * 81, provider="acme")
    assert wrong.status_code == 400
    assert f'value="{token}"' in wrong.text
    # The service creates no account without a name from the form or the provider.
    nameless = traveller.travel("/admin/welcome/provider", token=token, provider="acme")
    assert nameless.status_code == 400
    assert whose(provider) is None
    provider.claims = {"name": "Ann"}
    assert (
        traveller.travel("/admin/welcome/provider", token=token, provider="acme").status_code == 303
    )


def test_linking_needs_the_password_and_takes_no_identity_from_another_account(
    app: flask.Flask, traveller: Traveller, provider: Impostor
) -> None:
    account_holders.account("ann", OWNER)
    bob = account_holders.account("bob", moderator())
    traveller.sign_in()
    wrong = traveller.send(
        "/admin/account/provider", form=traveller.form(), current="wrong", provider="acme"
    )
    assert wrong.status_code == 403
    assert "http-equiv" not in wrong.text
    other = Traveller(app, provider)
    other.sign_in("bob")
    assert other.link().status_code == 303
    taken = traveller.link()
    assert taken.status_code == 409
    assert whose(provider) == bob
    # An account can have only one identity at each provider.
    provider.sub = "second"
    assert other.link().status_code == 409
    assert whose(provider) is None
    # Signing out everywhere also cancels a link that is being set up.
    way = traveller.way(
        "/admin/account/provider", form=traveller.form(), current=PASSWORD, provider="acme"
    )
    accounts.end_sessions(accounts.by_text("ann", SECRET).id, account_holders.cause())
    assert traveller.back(way).status_code == 403
    assert whose(provider) is None


def test_unlinking_ends_the_link_and_every_session(
    app: flask.Flask, traveller: Traveller, provider: Impostor
) -> None:
    account_holders.account("ann", OWNER)
    traveller.sign_in()
    traveller.link()
    other = Traveller(app, provider)
    assert other.travel(DESK, provider="acme").status_code == 303
    sent = {"form": traveller.form(), "provider": "acme"}
    path = "/admin/account/provider/remove"
    assert traveller.send(path, current="wrong", **sent).status_code == 403
    assert traveller.send(path, current=PASSWORD, **sent).status_code == 303
    assert other.client.get("/admin").status_code == 303
    assert traveller.client.get("/admin").status_code == 200
    assert Traveller(app, provider).travel(DESK, provider="acme").status_code == 403
    sent["form"] = traveller.form()
    assert traveller.send(path, current=PASSWORD, **sent).status_code == 404


def test_signing_in_ends_the_browsers_earlier_session(
    app: flask.Flask, traveller: Traveller, provider: Impostor
) -> None:
    """The browser sends the session's cookie at the login's start but not on the redirect back."""
    account_holders.account("ann", OWNER)
    traveller.sign_in()
    traveller.link()
    found = traveller.client.get_cookie(signed_in.COOKIE)
    assert found is not None
    there = traveller.way(DESK, provider="acme")
    traveller.client.delete_cookie(signed_in.COOKIE)
    assert traveller.back(there).status_code == 303
    assert traveller.client.get("/admin").status_code == 200
    other = app.test_client()
    other.set_cookie(signed_in.COOKIE, found.value)
    assert other.get("/admin").status_code == 303


def test_the_authenticator_is_required_too_and_its_code_is_valid_once(
    app: flask.Flask, traveller: Traveller, provider: Impostor
) -> None:
    ann = account_holders.account("ann", OWNER)
    traveller.sign_in()
    traveller.link()
    key = totp.secret()
    credentials.set_totp(ann.id, key, 0, account_holders.cause(now()))
    other = Traveller(app, provider)
    asked = other.travel(DESK, provider="acme")
    assert asked.status_code == 200
    assert "__Host-flatthread=" not in str(asked.headers)
    token = re.search(r'name="token" value="(\S{43})"', asked.text)[1]
    assert other.client.get("/admin").status_code == 303
    wrong = other.send("/admin/sign-in/code", token=token, code="000000")
    assert wrong.status_code == 403
    assert "Wrong code." in wrong.text
    code = totp.code(key, int(now().timestamp()) // totp.STEP)
    assert other.send("/admin/sign-in/code", token="t" * 43, code=code).status_code == 400
    assert other.send("/admin/sign-in/code", token=token, code=code).status_code == 303
    assert other.client.get("/admin").status_code == 200
    assert other.send("/admin/sign-in/code", token=token, code=code).status_code == 400
    # Code attempts are limited like password attempts, regardless of the provider.
    again = re.search(
        r'name="token" value="(\S{43})"',
        Traveller(app, provider).travel(DESK, provider="acme").text,
    )
    statuses = [
        other.send("/admin/sign-in/code", token=again[1], code="000000").status_code
        for _ in range(password_login.PER_NAME.most)
    ]
    assert statuses[-1] == 429


def test_a_provider_that_is_not_offered_is_not_found(
    app: flask.Flask, traveller: Traveller, provider: Impostor
) -> None:
    account_holders.account("ann", OWNER)
    traveller.sign_in()
    traveller.link()
    way = Traveller(app, provider)
    there = way.way(DESK, provider="acme")
    providers.withdraw("acme", (), at_desk=True)
    assert way.back(there).status_code == 404
    assert traveller.send(DESK, provider="acme").status_code == 404
    assert traveller.send(DESK, provider="nothing").status_code == 404
    assert "Acme" not in app.test_client().get("/admin/sign-in").text
    assert "Acme" in traveller.client.get("/admin/account").text  # The owner can unlink it here
    providers.offer("acme", (), at_desk=True)
    assert "Acme" in app.test_client().get("/admin/sign-in").text


def test_a_foreign_page_cannot_start_a_login(traveller: Traveller) -> None:
    account_holders.account("ann", OWNER)
    traveller.sign_in()
    form = traveller.form()
    for path in (
        DESK, "/admin/sign-in/code", "/admin/welcome/provider", "/admin/account/provider",
        "/admin/account/provider/remove", "/sign-in/sites/demo",
    ):  # fmt: skip
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {}):
            refused = traveller.client.post(
                path, data={"form": form, "provider": "acme", "current": PASSWORD}, headers=headers
            )
            assert refused.status_code == 403
            assert "cross-site" in refused.text


@pytest.fixture
def pages(traveller: Traveller, provider: Impostor) -> list[TestResponse]:
    """Responses with every page of the login flow."""
    ann = account_holders.account("ann", OWNER)
    traveller.sign_in()
    pages = [traveller.client.get("/admin/account"), traveller.send(DESK, provider="acme")]
    traveller.link()
    pages.append(traveller.client.get("/admin/account"))
    credentials.set_totp(ann.id, totp.secret(), 0, account_holders.cause(now()))
    pages.append(traveller.travel(DESK, provider="acme"))
    query = {"origin": provider_login.ORIGIN, "challenge": provider_login.challenge_of()}
    pages.append(traveller.client.get("/sign-in/sites/demo", query_string=query))
    pages.append(traveller.window(provider_login.challenge_of()))
    pages += [traveller.client.get(f"/admin/{name}") for name in ("sign-in", "welcome")]
    assert [each.status_code for each in pages] == [200] * len(pages)
    return pages


def test_the_pages_have_our_security_headers_and_are_not_framed(pages: list[TestResponse]) -> None:
    for each in pages:
        assert "frame-ancestors 'none'" in each.headers["Content-Security-Policy"]
        assert each.headers["Cache-Control"] == "no-store"
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", each.text)


def test_the_pages_are_valid_html(pages: list[TestResponse]) -> None:
    assert html_validator.complaints([each.text for each in pages]) == [[]] * len(pages)


def test_roles_come_from_the_invitation_and_never_from_the_provider(
    traveller: Traveller, provider: Impostor
) -> None:
    """B6: the service ignores claims about groups and roles."""
    provider.claims = {"roles": ["owner"], "groups": ["admin"], "name": "Ann", "grants": "owner *"}
    token = account_holders.invite(roles.Grant(roles.Role.MODERATOR, "demo"), now=now())
    traveller.travel("/admin/welcome/provider", token=token, provider="acme")
    made = whose(provider)
    assert made is not None
    assert made.grants == (moderator("demo"),)
