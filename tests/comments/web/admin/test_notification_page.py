"""Test the console's page for notifications, and the command that does the same."""

from collections.abc import Iterator

import pytest

from comments import app as apps
from comments import config
from comments.accounts import accounts
from comments.domain import records
from comments.domain.moderation.staff_notices import NoticeChoice
from comments.events import audit_log
from comments.sites import site_settings
from comments.store import connection
from tests.support.html import html_validator
from tests.support.outside.mail_server import Box
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, SECRET
from tests.support.people.console_browser import Desk

MOD = "mod@example.org"


@pytest.fixture
def mod(open_store: connection.Store, site: records.Site) -> Iterator[accounts.Account]:
    with open_store.context():
        yield account_holders.account("mod", account_holders.moderator(), mail=MOD)


def _enter(store: connection.Store, box: Box, login: str) -> Desk:
    return Desk(apps.create_app(box.settings(secret=SECRET), store), login)


@pytest.fixture
def moderator(open_store: connection.Store, mod: accounts.Account, box: Box) -> Desk:
    return _enter(open_store, box, mod.login)


@pytest.fixture
def chief(open_store: connection.Store, mod: accounts.Account, box: Box) -> Desk:
    account_holders.account("chief", OWNER)
    return _enter(open_store, box, "chief")


def _stored() -> dict[str, tuple[NoticeChoice, int, str]]:
    site_settings.COPIES.get().drop("demo")
    recipients = site_settings.get("demo").recipients
    return {each.who: (each.choice, each.hour, each.zone) for each in recipients}


def test_a_moderator_chooses_for_themselves_only(moderator: Desk, mod: accounts.Account) -> None:
    assert MOD in moderator.page("/notifications")
    assert "For others" not in moderator.page("/notifications")
    moderator.settle(
        "/notifications", who=mod.author, choice="daily", hour="23", zone=" Asia/Tokyo "
    )
    assert _stored() == {mod.author: (NoticeChoice.DAILY, 23, "Asia/Tokyo")}
    assert 'value="Asia/Tokyo">' in moderator.page("/notifications")
    (entry,) = audit_log.log("demo")
    assert (entry.verb, entry.after) == ("set-site", "notices")
    for who in ({"email": "other@example.org"}, {"who": "a:" + "b" * 26}):
        moderator.settle("/notifications", **who, choice="each", status=403)
    moderator.settle("/notifications", who=mod.author, choice="none")
    assert _stored() == {}


def test_an_owner_chooses_for_everyone(chief: Desk, mod: accounts.Account) -> None:
    site_settings.change("demo", moderators=["old@example.org"])
    page = chief.page("/notifications")
    assert "Your account has no e-mail address. Add an address below." in page
    assert "Mod" in page
    assert MOD not in page, "the address of another account"
    chief.settle("/notifications", who=mod.author, choice="each")
    chief.settle("/notifications", email="new@example.org", choice="daily", hour="0")
    assert _stored() == {
        "old@example.org": (NoticeChoice.HELD, 8, "UTC"),
        "new@example.org": (NoticeChoice.DAILY, 0, "UTC"),
        mod.author: (NoticeChoice.EACH, 8, "UTC"),
    }
    page = chief.page("/notifications")
    assert html_validator.complaints([page]) == [[]]
    chief.settle("/notifications", email="old@example.org", choice="none")
    site_settings.change("demo", moderators=["third@example.org"])
    assert [*_stored()] == ["third@example.org", mod.author]
    assert "new@example.org" not in str(site_settings.get("demo").notices)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"choice": "each"}, "E-mail address"),
        ({"choice": "each", "email": "no address@x"}, "E-mail address"),
        ({"choice": "daily", "email": MOD, "hour": "24"}, "Hour must be between 0 and 23."),
        ({"choice": "daily", "email": MOD, "hour": "x"}, "Hour"),
        ({"choice": "daily", "email": MOD, "zone": "Mars/Base"}, "Time zone"),
        ({"choice": "daily", "email": MOD, "zone": "../etc/passwd"}, "Time zone"),
        ({"choice": "hourly", "email": MOD}, "Mail about"),
        ({"choice": "each", "who": "a:" + "b" * 26}, "Recipient"),
    ],
)
def test_a_wrong_form_is_refused_with_its_field(
    chief: Desk, form: dict[str, str], said: str
) -> None:
    assert said in chief.settle("/notifications", **form, status=400)
    assert _stored() == {}


def test_a_test_mail_shows_the_answer_of_the_mail_server(moderator: Desk, box: Box) -> None:
    page = moderator.settle("/notifications/test", status=200)
    assert "The mail server accepted the test mail (sent)." in page
    assert box.recipients == [MOD]
    assert box.taken[0][1]["Subject"] == "Test message from the comments on demo"
    box.refuse = lambda _: "550 unknown"
    page = moderator.settle("/notifications/test", status=200)
    assert "The test mail was not sent: refused: 550." in page
    for _ in range(3):
        moderator.settle("/notifications/test", status=200)
    moderator.settle("/notifications/test", status=429)


def test_without_a_mail_server_the_page_says_so(
    open_store: connection.Store, mod: accounts.Account
) -> None:
    desk = Desk(apps.create_app(config.Settings(secret=SECRET), open_store), mod.login)
    page = desk.page("/notifications")
    assert "This service sends no mail yet" in page
    assert "Send me a test mail" not in page
    desk.settle("/notifications/test", status=409)
