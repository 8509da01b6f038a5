"""Owners of the service invite people, and change and remove accounts, in the admin console."""

import html
import re

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config, errors
from comments.accounts import accounts
from comments.accounts.links import invitations
from comments.accounts.passwords import credentials, totp
from comments.domain.moderation import roles
from comments.store import connection, reads
from comments.upkeep import scheduler, wiring
from tests.support.histories import counter_oracle
from tests.support.html import html_validator
from tests.support.outside import mail_server
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import browser, send, sign_in, token_of

pytestmark = pytest.mark.usefixtures("quick_passwords", "site")


@pytest.fixture
def owner(app: flask.Flask, store: connection.Store) -> FlaskClient:
    account_holders.account("ann", OWNER)
    client = browser(app)
    sign_in(client)
    return client


def _post(client: FlaskClient, path: str, *, current: str = PASSWORD, **form: str) -> TestResponse:
    sent = {"form": token_of(client), "current": current} | form
    return send(client, f"/admin/people/{path}", **sent)


def _invite(client: FlaskClient, role: str = "moderator", **form: str) -> TestResponse:
    return _post(client, "invite", **{"role": role, "site": "demo"} | form)


def _change(client: FlaskClient, person: accounts.Account, act: str, **form: str) -> TestResponse:
    return _post(client, "account", **{"id": person.id, "act": act} | form)


def _link(response: TestResponse, page: str) -> str:
    """Return the token in the link that a response shows."""
    assert response.status_code == 200, response.text
    found = re.search(rf">http://localhost/admin/{page}#([\w-]{{43}})<", response.text)
    assert found, response.text
    return found[1]


def test_an_owner_invites_a_moderator_who_then_is_listed(owner: FlaskClient) -> None:
    token = _link(_invite(owner), "welcome")
    page = owner.get("/admin/people").text
    assert "Moderator of demo" in page
    assert "anyone with the link" in page
    assert token not in page
    account_holders.accept(token, "bob", now=now())
    page = owner.get("/admin/people").text
    assert "No pending invitations." in page
    assert "Bob" in page


def test_a_bound_invitation_shows_only_a_shortened_address(owner: FlaskClient) -> None:
    _link(_invite(owner, "owner", site="*", email=" bob@example.org "), "welcome")
    page = html.unescape(owner.get("/admin/people").text)
    assert "Owner of all sites" in page
    assert "b…@example.org" in page
    assert "bob@example.org" not in page


@pytest.mark.settings(mail=True, secret=SECRET)
def test_a_bound_invitation_is_mailed(
    owner: FlaskClient, box: mail_server.Box, settings: config.Settings
) -> None:
    assert "on its way" in _invite(owner, email="bob@example.org").text
    _invite(owner)
    events = counter_oracle.events()
    assert "bob@example.org" not in str([*reads.fetch(reads.Query("Event"))])
    scheduler.Scheduler(handlers=wiring.handlers(settings)).deliver(events)
    assert box.recipients == ["bob@example.org"]
    found = re.search(r"https://service\.example/admin/welcome#([\w-]{43})\n", box.text())
    assert found, box.text()
    assert account_holders.accept(found[1], "bob", now=now()).account.grants == (moderator(),)


def test_a_withdrawn_invitation_cannot_be_accepted(owner: FlaskClient) -> None:
    token = _link(_invite(owner), "welcome")
    (made,) = invitations.list_pending(secret=SECRET, now=now())
    sent = {"form": token_of(owner), "id": made.id}
    assert send(owner, "/admin/people/withdraw", **sent).status_code == 303
    with pytest.raises(errors.BadLink):
        account_holders.accept(token, "bob", now=now())
    assert send(owner, "/admin/people/withdraw", **sent).status_code == 400
    reset = invitations.issue_reset(accounts.by_text("ann", SECRET), account_holders.cause(now()))
    assert reset, "a link for another purpose cannot be withdrawn"
    assert send(owner, "/admin/people/withdraw", **sent | {"id": reset}).status_code == 400


@pytest.mark.parametrize(
    ("form", "status", "problem"),
    [
        ({"current": "not this one"}, 403, "This is not your current password."),
        ({"site": "nothing"}, 404, "There is no site nothing."),
        ({"site": ""}, 400, "Site is required"),
        ({"email": "a,b@example.org"}, 400, "Enter an e-mail address"),
        ({"role": "none"}, 400, "Role"),
    ],
)
def test_a_wrong_password_site_or_address_creates_no_invitation(
    owner: FlaskClient, form: dict[str, str], status: int, problem: str
) -> None:
    refused = _invite(owner, **form)
    assert refused.status_code == status
    assert problem in html.unescape(refused.text)
    assert invitations.list_pending(secret=SECRET, now=now()) == []


def test_a_role_is_changed_and_removed(owner: FlaskClient) -> None:
    bob = account_holders.account("bob", moderator())
    assert _change(owner, bob, "role", role="owner", site="demo").status_code == 303
    assert accounts.by_text("bob", SECRET).grants == (roles.Grant(roles.Role.OWNER, "demo"),)
    assert "Owner of demo" in owner.get(f"/admin/people/account?id={bob.id}").text
    assert _change(owner, bob, "role", role="owner", site="nothing").status_code == 404
    assert _change(owner, bob, "role", role="none", site="demo").status_code == 303
    assert accounts.by_text("bob", SECRET).grants == ()
    assert owner.get(f"/admin/people/account?id={bob.id}").status_code == 404


def test_ended_sessions_and_a_removed_account_are_signed_out(
    app: flask.Flask, owner: FlaskClient
) -> None:
    bob, other = account_holders.account("bob", moderator()), browser(app)
    sign_in(other, "bob")
    assert _change(owner, bob, "sign-out", current="not this one").status_code == 403
    assert other.get("/admin").status_code == 200
    assert _change(owner, bob, "sign-out").status_code == 303
    assert other.get("/admin").status_code == 303
    sign_in(other, "bob")
    assert _change(owner, bob, "remove").status_code == 303
    assert other.get("/admin").status_code == 303
    assert accounts.get(bob.id) is None


def test_a_reset_link_removes_the_authenticator_only_if_requested(owner: FlaskClient) -> None:
    bob = account_holders.account("bob", moderator())
    credentials.set_totp(bob.id, totp.secret(), 0, account_holders.cause(now()))
    choice = invitations.PasswordReset("another one")
    token = _link(_change(owner, bob, "reset"), "reset")
    with pytest.raises(errors.BadInput, match="wrong-totp-code"):
        invitations.reset_password(token, choice, account_holders.cause(now()))
    shown = _change(owner, bob, "reset-all")
    assert "also removes the authenticator" in shown.text
    token = _link(shown, "reset")
    assert not invitations.reset_password(
        token, choice, account_holders.cause(now())
    ).account.has_totp


def test_the_last_owner_stays(owner: FlaskClient) -> None:
    ann = accounts.by_text("ann", SECRET)
    for refused in (
        _change(owner, ann, "remove"),
        _change(owner, ann, "role", role="none", site="*"),
        _change(owner, ann, "role", role="moderator", site="*"),
    ):
        assert refused.status_code == 409
        assert "last owner" in refused.text
    assert accounts.get(ann.id) == ann
    account_holders.account("bob", OWNER)
    assert _change(owner, ann, "remove").status_code == 303
    assert owner.get("/admin").status_code == 303


def test_only_owners_of_the_service_see_the_team(app: flask.Flask, owner: FlaskClient) -> None:
    bob = account_holders.account("bob", roles.Grant(roles.Role.OWNER, "demo"))
    client = browser(app)
    sign_in(client, "bob")
    assert "/admin/people" not in client.get("/admin").text
    for path in ("", f"/account?id={bob.id}"):
        assert client.get(f"/admin/people{path}").status_code == 403
        assert browser(app).get(f"/admin/people{path}").status_code == 303
    assert _invite(client).status_code == 403
    assert _change(client, bob, "role", role="owner", site="*").status_code == 403
    stale = send(owner, "/admin/people/account", id=bob.id, act="remove", current=PASSWORD)
    assert stale.status_code == 403
    assert accounts.get(bob.id) == bob


def test_owners_see_the_security_log_of_an_account(owner: FlaskClient, app: flask.Flask) -> None:
    bob = account_holders.account("bob", moderator())
    _change(owner, bob, "sign-out")
    sign_in(browser(app), "bob")
    page = owner.get(f"/admin/people/account?id={bob.id}").text
    row = r'<th scope="row">([^<]*)</th><td><time.*?<bdi>(.*?)</bdi>.*?"Network">(.*?)<'
    rows = re.findall(row, page)
    assert rows == [("Signed in", "Account&#39;s owner", "A"), ("Sessions ended", "Ann", "A")]


def test_a_reader_is_not_a_member_of_the_team(owner: FlaskClient) -> None:
    reader = account_holders.account("reader", password="")
    assert owner.get(f"/admin/people/account?id={reader.id}").status_code == 404
    assert _change(owner, reader, "role", role="owner", site="*").status_code == 404


def test_every_page_of_the_team_is_valid_html(owner: FlaskClient) -> None:
    bob = account_holders.account("bob", moderator(), OWNER)
    credentials.set_totp(bob.id, totp.secret(), 0, account_holders.cause(now()))
    pages = [
        owner.get("/admin/people"),
        _invite(owner, current="no"),
        _invite(owner),
        owner.get("/admin/people"),
        owner.get(f"/admin/people/account?id={bob.id}"),
        _change(owner, bob, "remove", current="no"),
        _change(owner, bob, "reset-all"),
    ]
    assert html_validator.complaints([page.text for page in pages]) == [[]] * len(pages)
