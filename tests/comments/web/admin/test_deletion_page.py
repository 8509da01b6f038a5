"""Owners delete a site after typing its id and their password, and take it back."""

from datetime import UTC, datetime, timedelta

import flask
import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.domain.moderation import roles
from comments.events import audit_log
from comments.sites import site_deletion, site_settings
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import PASSWORD
from tests.support.people.console_browser import OWN, Desk
from tests.support.threads import sample_threads

DELETE = "/settings/delete"
ADA = records.Actor("cli", "Ada")


@pytest.fixture
def siteowner(app: flask.Flask, owner: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An owner of only this site, with a password."""
    account_holders.weaken_passwords(monkeypatch)
    account_holders.account("carol", roles.Grant(roles.Role.OWNER, "demo"))
    return Desk(app, "carol")


def home(desk: Desk) -> str:
    return desk.client.get("/admin").text


def undelete(desk: Desk) -> int:
    sent = {"form": desk.token}
    return desk.client.post("/admin/sites/demo/undelete", data=sent, headers=OWN).status_code


def test_an_owner_deletes_a_site_and_takes_it_back(
    siteowner: Desk, client: FlaskClient, site: records.Site
) -> None:
    sample_threads.post(site, "hello")
    page = siteowner.page(DELETE)
    assert "type its short name: <strong>demo</strong>" in page
    assert "Backups of this service contain the site" in page
    siteowner.settle(DELETE, site=" demo ", current=PASSWORD)
    assert client.get("/api/v1/sites/demo/comments?thread=page").status_code == 404
    gone = home(siteowner)
    assert "Take back demo" in gone
    assert "/admin/sites/demo/queue" not in gone
    assert undelete(siteowner) == 303
    back = home(siteowner)
    assert "Take back" not in back
    answer = client.get("/api/v1/sites/demo/comments?thread=page")
    assert [row["html"] for row in answer.json["comments"]] == ["<p>hello</p>\n"]
    assert sorted(entry.verb for entry in audit_log.log("demo")) == ["delete-site", "undelete-site"]
    assert "Took the deleted site back" in siteowner.page("/log")
    assert html_validator.complaints([page, gone, back]) == [[], [], []]


@pytest.mark.parametrize(
    ("form", "status", "said"),
    [
        ({"site": "blog", "current": PASSWORD}, 400, "Type the short name exactly as it is: demo."),
        ({"site": "", "current": PASSWORD}, 400, "Type the short name exactly as it is: demo."),
        ({"site": "demo", "current": "not this one"}, 403, "This is not your current password."),
        ({"site": "demo"}, 403, "This is not your current password."),
    ],
)
def test_a_site_is_not_deleted_without_its_id_and_the_password(
    siteowner: Desk, form: dict[str, str], status: int, said: str
) -> None:
    page = siteowner.settle(DELETE, status=status, **form)
    assert said in page
    assert html_validator.complaints([page]) == [[]]
    assert site_settings.is_active("demo")


def test_an_owner_without_a_password_types_only_the_id(app: flask.Flask, owner: Desk) -> None:
    account_holders.account("dora", roles.Grant(roles.Role.OWNER, "demo"), password="")
    dora = Desk(app, "dora")
    assert 'name="current"' not in dora.page(DELETE)
    dora.settle(DELETE, site="demo")
    assert not site_settings.is_active("demo")


def test_a_moderator_neither_sees_nor_takes_back_a_deleted_site(desk: Desk, owner: Desk) -> None:
    assert desk.client.get("/admin/sites/demo/settings/delete").status_code == 403
    site_deletion.delete("demo", ADA, now=datetime.now(UTC))
    assert "demo" not in home(desk).replace("demo.example", "")
    assert undelete(desk) == 403
    assert not site_settings.is_active("demo")
    assert undelete(owner) == 303


def test_a_site_that_is_being_erased_is_listed_without_a_button(owner: Desk) -> None:
    then = datetime.now(UTC) - timedelta(days=30)
    site_deletion.delete("demo", ADA, now=then)
    site_deletion.begin_erasure("demo", now=then)
    page = home(owner)
    assert "demo: being erased, can no longer be taken back" in page
    assert "Take back demo" not in page
    assert undelete(owner) == 409
    assert html_validator.complaints([page]) == [[]]
