"""Test the file that contains the first owner's link."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import flask
import pytest

from comments import app as apps
from comments import config, errors
from comments.accounts import accounts
from comments.accounts.links import first_owner, invitations
from comments.store import connection
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import browser, send, sign_in

HERE = "http://127.0.0.1:8080/"

pytestmark = [
    pytest.mark.usefixtures("quick_passwords", "site", "store"),
    pytest.mark.settings(data_dir=Path()),
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an empty folder as the data folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def offer(app: flask.Flask) -> apps.Offer:
    found = apps.offer_ownership(app, HERE)
    assert found
    return found


def _token(offer: apps.Offer) -> str:
    link = offer.file.read_text(encoding="ascii").strip()
    assert link == offer.link
    return link.partition("#")[2]


def _joined(app: flask.Flask, token: str) -> None:
    form = {"name": "Ann", "login": "ann", "password": PASSWORD}
    assert send(browser(app), "/admin/welcome", token=token, **form).status_code == 303


def _accepted(app: flask.Flask, token: str) -> None:
    account_holders.account("ann", moderator())
    client = browser(app)
    sign_in(client)
    assert send(client, "/admin/welcome/accept", token=token).status_code == 303


def _added(app: flask.Flask, _token: str) -> None:
    arguments = ("account", "add", "ann", "--role", "owner", "--service")
    typed = f"{PASSWORD}\n{PASSWORD}\n"
    assert app.test_cli_runner().invoke(args=arguments, input=typed).exit_code == 0


def test_the_page_of_the_link_speaks_of_an_invitation_only_when_there_is_an_owner(
    app: flask.Flask, offer: apps.Offer
) -> None:
    client, token = browser(app), _token(offer)
    invited = (
        "You have been invited",
        "if the invitation is for your e-mail",
        "Already have an account?",
    )
    form = {"name": "Ann", "login": "ann", "password": "short"}
    refused = send(client, "/admin/welcome", token=token, **form)
    assert refused.status_code == 400
    for page in (client.get("/admin/welcome").text, refused.text):
        assert "This link makes you the owner of the service." in page
        assert not [words for words in invited if words in page]
    account_holders.account("bob", moderator())
    sign_in(client, "bob")
    page = client.get("/admin/welcome").text
    assert [words for words in invited if words in page] == ["Already have an account?"]
    _joined(app, token)
    page = browser(app).get("/admin/welcome").text
    assert "makes you the owner" not in page
    assert [words for words in invited if words in page] == list(invited)


def test_only_the_services_user_may_read_it_even_if_a_link_was_there(
    app: flask.Flask, settings: config.Settings, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch(0o644)
    first_owner.path(settings).symlink_to(elsewhere)
    offer = apps.offer_ownership(app, HERE)
    assert offer
    assert _token(offer)
    assert not offer.file.is_symlink()
    assert offer.file.stat().st_mode & 0o777 == 0o600
    assert elsewhere.read_bytes() == b""
    assert sorted(each.name for each in tmp_path.iterdir()) == ["elsewhere", "first-owner"]


def test_the_next_start_replaces_it(app: flask.Flask, offer: apps.Offer) -> None:
    again = apps.offer_ownership(app, HERE)
    assert again
    assert again.link != offer.link
    assert _token(again)


@pytest.mark.parametrize("come", [_joined, _accepted, _added])
def test_it_is_deleted_once_there_is_an_owner(
    app: flask.Flask, offer: apps.Offer, come: Callable[[flask.Flask, str], None]
) -> None:
    come(app, _token(offer))
    assert accounts.is_owned()
    assert not offer.file.exists()
    assert apps.offer_ownership(app, HERE) is None


def test_the_link_has_the_services_public_name(
    store: connection.Store, settings: config.Settings
) -> None:
    public = "https://comments.example"
    app = apps.create_app(dataclasses.replace(settings, public_url=public), store)
    offer = apps.offer_ownership(app, HERE)
    assert offer
    page, _, token = offer.link.partition("#")
    assert browser(app).get(page).status_code == 200
    assert page == f"{public}/admin/welcome"
    assert token


def test_another_invitation_does_not_change_it(app: flask.Flask, offer: apps.Offer) -> None:
    _joined(app, account_holders.invite(moderator(), now=now()))
    assert _token(offer)


def test_a_leftover_file_is_deleted_at_the_next_start(
    app: flask.Flask, settings: config.Settings, offer: apps.Offer
) -> None:
    account_holders.account("ann", OWNER)
    account_holders.accept(
        invitations.first_owner_link(HERE, secret=SECRET, now=now()).partition("#")[2],
        "bob",
        now=now(),
    )
    assert offer.file.exists(), "the link was not used yet"
    assert apps.offer_ownership(app, HERE) is None
    assert not offer.file.exists()


def test_an_unavailable_store_does_not_break_the_first_owners_session(
    settings: config.Settings, offer: apps.Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> bool:
        raise errors.Overloaded("the store is away")

    monkeypatch.setattr(accounts, "is_owned", away)
    first_owner.remove(settings)
    assert offer.file.exists()


@pytest.mark.parametrize(
    ("where", "is_elsewhere", "places"),
    [
        ("embedded", False, [">first-owner<", "flatthread account invite --owner"]),
        ("embedded", True, [">first-owner<"]),
        ("cloud", False, ["flatthread account invite --owner"]),
    ],
)
def test_the_pages_say_that_there_is_no_owner_but_never_show_the_link(
    settings: config.Settings,
    store: connection.Store,
    tmp_path: Path,
    where: str,
    places: list[str],
    *,
    is_elsewhere: bool,
) -> None:
    folder = tmp_path if is_elsewhere else Path("data")
    folder.mkdir(exist_ok=True)
    changed = dataclasses.replace(settings, datastore=where, data_dir=folder)
    app = apps.create_app(changed, store)
    offered = apps.offer_ownership(app, HERE)
    assert offered
    token = offered.link.partition("#")[2]
    assert bool(token) is (changed.datastore == "embedded")
    pages = [browser(app).get(path).text for path in ("/", "/admin/sign-in")]
    assert html_validator.complaints(pages) == [[], []]
    for page in pages:
        assert "This service has no owner yet" in page
        assert all(place in page for place in places)
        assert not token or token not in page
        assert str(tmp_path) not in page
    account_holders.accept(account_holders.invite(OWNER, now=now()), "ann", now=now())
    for path in ("/", "/admin/sign-in"):
        assert "no owner" not in browser(app).get(path).text


def test_a_link_that_was_used_has_expired_or_came_too_late_makes_no_owner(
    app: flask.Flask, offer: apps.Offer
) -> None:
    later = apps.offer_ownership(app, HERE)
    assert later
    before = now() - timedelta(days=1, seconds=1)
    expired = invitations.first_owner_link(HERE, secret=SECRET, now=before).partition("#")[2]

    def refused(token: str, login: str) -> str:
        form = {"name": "Eve", "login": login, "password": PASSWORD}
        answer = send(browser(app), "/admin/welcome", token=token, **form)
        assert answer.status_code in {400, 409}
        return answer.text

    assert "was used before" in refused(expired, "eve1")
    token = _token(later)
    _joined(app, token)
    assert "was used before" in refused(token, "eve2")
    assert "already" in refused(offer.link.partition("#")[2], "eve3")
    assert [each.login for each in accounts.staff()] == ["ann"]
