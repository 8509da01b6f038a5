"""Owners of one site manage its moderators, and neither see nor change anybody else."""

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.accounts import accounts, security_log
from comments.accounts.links import invitations
from comments.domain.moderation import roles
from comments.store import connection
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import browser, send, sign_in, token_of

pytestmark = pytest.mark.usefixtures("quick_passwords", "site")

OF_SITE = roles.Grant(roles.Role.OWNER, "demo")
OF_BLOG = roles.Grant(roles.Role.OWNER, "blog")
# People whom an owner of the site must not change.
OTHERS = {
    "owner of the service": (OWNER,),
    "owner of the service who moderates": (OWNER, moderator()),
    "moderator of the service": (moderator(roles.SERVICE), moderator()),
    "owner of the site": (OF_SITE,),
    "moderator of another site": (moderator("blog"),),
}


@pytest.fixture
def ann(app: flask.Flask, store: connection.Store) -> FlaskClient:
    account_holders.account("ann", OF_SITE)
    client = browser(app)
    sign_in(client)
    return client


def _post(client: FlaskClient, path: str, site: str = "demo", **form: str) -> TestResponse:
    sent = {"form": token_of(client), "current": PASSWORD} | form
    return send(client, f"/admin/sites/{site}/team/{path}", **sent)


def _grants(login: str) -> tuple[roles.Grant, ...]:
    return accounts.by_text(login, SECRET).grants


def test_a_moderator_is_invited_promoted_and_removed(ann: FlaskClient) -> None:
    assert _post(ann, "invite", email="bob@example.org").status_code == 200
    assert "b…@example.org" in ann.get("/admin/sites/demo/team").text
    (made,) = invitations.list_pending(secret=SECRET, now=now())
    assert made.grants == (moderator(),)
    bob = account_holders.account("bob", moderator("blog"), moderator())
    assert _post(ann, "role", id=bob.id, role="none").status_code == 303
    assert _grants("bob") == (moderator("blog"),), "the role on another site stays"
    cleo = account_holders.account("cleo", moderator())
    assert _post(ann, "role", id=cleo.id, role="owner").status_code == 303
    assert _grants("cleo") == (OF_SITE,)
    (entry,) = security_log.list_entries(cleo.id, now=now())
    assert entry.by == accounts.by_text("ann", SECRET).id


@pytest.mark.parametrize("grants", OTHERS.values(), ids=OTHERS)
def test_nobody_else_is_changed(ann: FlaskClient, grants: tuple[roles.Grant, ...]) -> None:
    bob = account_holders.account("bob", *grants)
    for role in ("none", "owner"):
        assert _post(ann, "role", id=bob.id, role=role).status_code == 404
    assert _grants("bob") == grants


def test_people_with_other_roles_are_not_shown(ann: FlaskClient) -> None:
    account_holders.account("dora", OWNER, moderator())
    account_holders.account("emil", moderator("blog"))
    account_holders.account("fred", OF_SITE, mail="fred@example.org")
    account_holders.account("gina", moderator(), moderator("blog"), mail="gina@example.org")
    page = ann.get("/admin/sites/demo/team").text
    assert "Fred" in page
    assert "Gina" in page
    for hidden in ("Dora", "Emil", "fred@", "gina@", "blog", "password,"):
        assert hidden not in page


def test_invitations_of_others_are_neither_shown_nor_withdrawn(ann: FlaskClient) -> None:
    for grant in (OWNER, OF_SITE, moderator("blog"), moderator(roles.SERVICE)):
        account_holders.invite(grant, now=now())
    page = ann.get("/admin/sites/demo/team").text
    assert "No pending invitations." in page
    for made in invitations.list_pending(secret=SECRET, now=now()):
        form = {"form": token_of(ann), "id": made.id}
        assert send(ann, "/admin/sites/demo/team/withdraw", **form).status_code == 400
    assert len(invitations.list_pending(secret=SECRET, now=now())) == 4
    _post(ann, "invite")
    (mine,) = [
        made
        for made in invitations.list_pending(secret=SECRET, now=now())
        if made.grants == (moderator(),)
    ]
    form = {"form": token_of(ann), "id": mine.id}
    assert send(ann, "/admin/sites/demo/team/withdraw", **form).status_code == 303
    assert len(invitations.list_pending(secret=SECRET, now=now())) == 4


@pytest.mark.usefixtures("store")
def test_owners_of_other_sites_and_moderators_are_refused(app: flask.Flask) -> None:
    account_holders.account("bob", moderator())
    account_holders.account("eve", OF_BLOG)
    target = account_holders.account("gina", moderator())
    for login, status in (("bob", 403), ("eve", 404)):
        client = browser(app)
        sign_in(client, login)
        assert client.get("/admin/sites/demo/team").status_code == status
        assert _post(client, "invite").status_code == status
        assert _post(client, "role", id=target.id, role="none").status_code == status
        assert client.get("/admin/people").status_code == 403
    assert _grants("gina") == (moderator(),)


def test_a_wrong_password_or_address_changes_nothing(ann: FlaskClient) -> None:
    bob = account_holders.account("bob", moderator())
    assert _post(ann, "role", id=bob.id, role="none", current="no").status_code == 403
    assert _post(ann, "invite", current="no").status_code == 403
    refused = _post(ann, "invite", email="a,b@example.org")
    assert refused.status_code == 400
    assert "Enter an e-mail address" in refused.text
    assert 'value="a,b@example.org"' in refused.text
    assert _grants("bob") == (moderator(),)
    assert not invitations.list_pending(secret=SECRET, now=now())


def test_the_page_is_valid_html(ann: FlaskClient) -> None:
    account_holders.account("bob", moderator())
    pages = [
        _post(ann, "invite"),
        ann.get("/admin/sites/demo/team"),
        _post(ann, "invite", current="no"),
    ]
    assert html_validator.complaints([page.text for page in pages]) == [[]] * len(pages)
