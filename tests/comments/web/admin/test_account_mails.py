"""The owner of an account gets a mail about each change of how the account is protected."""

from collections.abc import Callable

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config
from comments.accounts import accounts, identities, security_log
from comments.accounts.links import address_links, email_login
from comments.accounts.passwords import credentials, recovery_codes, totp
from comments.domain.languages import catalogue
from comments.store import connection
from comments.upkeep import scheduler, wiring
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import OWN, browser, send, sign_in, token_of

pytestmark = [
    pytest.mark.usefixtures("quick_passwords", "site"),
    pytest.mark.settings(mail=True, secret=SECRET),
]

MAIL = "ann@example.org"
NEW = "another password"
Deliver = Callable[[], object]


@pytest.fixture
def deliver(store: connection.Store, settings: config.Settings) -> Deliver:
    handlers = wiring.handlers(settings)
    return lambda: scheduler.Scheduler(handlers=handlers).deliver(counter_oracle.events())


@pytest.fixture
def ann(app: flask.Flask, store: connection.Store) -> FlaskClient:
    account_holders.account("ann", OWNER, mail=MAIL)
    return browser(app)


def _change_password(client: FlaskClient, language: str) -> None:
    headers = OWN | {"Accept-Language": language}
    form = {"form": token_of(client), "current": PASSWORD, "password": NEW}
    assert send(client, "/admin/account/password", headers, **form).status_code == 303


@pytest.mark.parametrize("language", catalogue.languages())
def test_a_changed_password_is_mailed_in_the_language_of_the_browser(
    ann: FlaskClient, box: mail_server.Box, deliver: Deliver, language: str
) -> None:
    sign_in(ann)
    _change_password(ann, language)
    deliver()
    words = catalogue.of(language).text
    ((address, mail),) = box.taken
    change = words("account-mail.change-password")
    assert address == MAIL
    assert mail["Subject"] == words("account-mail.subject", change=change, site="service.example")
    text = box.text()
    for part in (change, words("account-mail.by-self"), words("account-mail.unexpected")):
        assert part in text
    assert "https://service.example/admin/account\n" in text
    assert PASSWORD not in text
    assert NEW not in text
    rich = mail.get_body(("html",))
    assert rich is not None
    assert f'lang="{language}" dir="{"rtl" if language == "ar" else "ltr"}"' in rich.get_content()


def test_changes_by_others_say_so_in_the_language_of_the_last_sign_in(
    ann: FlaskClient, app: flask.Flask, box: mail_server.Box, deliver: Deliver
) -> None:
    send(ann, "/admin/sign-in", OWN | {"Accept-Language": "fr"}, login="ann", password=PASSWORD)
    account_holders.account("bob", OWNER)
    bob, person = browser(app), accounts.by_text("ann", SECRET)
    sign_in(bob, "bob")
    form = {"form": token_of(bob), "current": PASSWORD, "id": person.id}
    role = {"act": "role", "role": "moderator", "site": "*"}
    assert send(bob, "/admin/people/account", **form | role).status_code == 303
    deliver()
    words = catalogue.of("fr").text
    assert words("account-mail.change-roles") in box.text()
    assert words("account-mail.by-other") in box.text()


def test_an_authenticator_and_its_codes_are_mailed_and_a_sign_in_is_not(
    ann: FlaskClient, box: mail_server.Box, deliver: Deliver
) -> None:
    key, (code, *_) = totp.secret(), recovery_codes.make()
    cause = account_holders.cause(now())._replace(sends_mail=True)
    person = accounts.by_text("ann", SECRET)
    hashes = recovery_codes.hash_all([code])
    credentials.set_totp(person.id, key, 0, cause, recovery=hashes)
    sign_in(ann, code=code)
    deliver()
    words, texts = catalogue.ENGLISH.text, [box.text(number) for number in range(len(box.taken))]
    assert len(texts) == 2
    for event in ("authenticator-added", "recovery-used"):
        assert any(words(f"account-mail.change-{event}") in text for text in texts)
    assert not any(secret in "".join(texts) for secret in (key, code))


def test_an_account_without_an_address_gets_no_mail(
    app: flask.Flask, store: connection.Store, box: mail_server.Box, deliver: Deliver
) -> None:
    account_holders.account("bob", OWNER)
    client = browser(app)
    sign_in(client, "bob")
    _change_password(client, "en")
    deliver()
    assert not box.taken
    assert not counter_oracle.events()


def _join(app: flask.Flask, token: str, **form: str) -> int:
    form |= {"name": "Zoe", "login": "zoe", "password": PASSWORD, "token": token}
    return send(browser(app), "/admin/welcome", **form).status_code


def test_the_first_owner_gets_mail_at_an_address_that_leads_to_no_account(
    app: flask.Flask, store: connection.Store, box: mail_server.Box, deliver: Deliver
) -> None:
    first = account_holders.invite(OWNER, first=True, now=now())
    assert _join(app, first, email="zoe@x, y@x") == 400
    assert not accounts.is_owned()
    assert _join(app, first, email=" zoe@example.org ") == 303
    (zoe,) = accounts.staff()
    assert accounts.address_of(zoe, SECRET, now=now()) == "zoe@example.org"
    # Nobody has confirmed the address, so its real owner must not get into the account.
    assert accounts.by_identity(identities.of_address("zoe@example.org"), SECRET) is None
    client = browser(app)
    sign_in(client, "zoe")
    _change_password(client, "en")
    deliver()
    assert box.recipients == ["zoe@example.org"]


def test_other_new_accounts_get_no_address_that_nobody_confirmed(
    app: flask.Flask, store: connection.Store
) -> None:
    token = account_holders.invite(account_holders.moderator(), now=now())
    assert _join(app, token, email="zoe@example.org") == 400
    assert accounts.staff() == []
    assert _join(app, token) == 303


OTHER = "new@example.org"


def _request(client: FlaskClient, email: str = OTHER, password: str = PASSWORD) -> TestResponse:
    form = {"form": token_of(client), "current": password, "email": email}
    return send(client, "/admin/account/address", **form)


def _confirm(
    client: FlaskClient, box: mail_server.Box, number: int = -1, language: str = "en"
) -> TestResponse:
    key = box.text(number).rpartition("#")[2].strip()
    return send(client, "/admin/address", OWN | {"Accept-Language": language}, token=key)


@pytest.mark.parametrize("language", catalogue.languages())
def test_a_new_address_is_confirmed_by_a_link_and_the_old_one_gets_a_notice(
    ann: FlaskClient, app: flask.Flask, box: mail_server.Box, deliver: Deliver, language: str
) -> None:
    accept = OWN | {"Accept-Language": language}
    elsewhere = browser(app)
    for client in (ann, elsewhere):
        send(client, "/admin/sign-in", accept, login="ann", password=PASSWORD)
    assert _request(ann, password="wrong").status_code == 403
    assert OTHER in _request(ann, f" {OTHER} ").text
    deliver()
    words = catalogue.of(language).text
    ((address, mail),) = box.taken
    assert address == OTHER
    assert mail["Subject"] == words("mail.address-subject", site="service.example")
    person = accounts.by_text(MAIL, SECRET)
    assert _confirm(ann, box, language=language).location == "../admin/account#confirmed"
    deliver()
    assert box.recipients == [OTHER, MAIL]
    assert words("account-mail.change-address") in box.text()
    changed = accounts.by_text(OTHER, SECRET)
    assert changed.id == person.id
    assert accounts.address_of(changed, SECRET, now=now()) == OTHER
    assert accounts.by_identity(identities.of_address(MAIL), SECRET) is None
    entry, *_ = security_log.list_entries(person.id, now=now())
    assert (entry.event, entry.by) == (security_log.SecurityEvent.ADDRESS, "")
    assert ann.get("/admin/account").status_code == 200
    assert elsewhere.get("/admin/account").location == "../admin/sign-in#ended"
    assert _confirm(ann, box, 0).status_code == 400


def test_a_link_to_a_new_address_works_only_for_the_account_that_asked(
    ann: FlaskClient, app: flask.Flask, box: mail_server.Box, deliver: Deliver
) -> None:
    account_holders.account("bob", OWNER)
    bob = browser(app)
    sign_in(ann)
    _request(ann)
    deliver()
    assert _confirm(bob, box).status_code == 403
    sign_in(bob, "bob")
    assert _confirm(bob, box).status_code == 400
    # A change of the password ends the link.
    _change_password(ann, "en")
    assert _confirm(ann, box).status_code == 400
    assert accounts.by_identity(identities.of_address(OTHER), SECRET) is None


def test_only_the_owner_of_an_address_learns_that_another_account_has_it(
    ann: FlaskClient, box: mail_server.Box, deliver: Deliver
) -> None:
    account_holders.account("bob", OWNER, mail=OTHER)
    sign_in(ann)
    free, taken = _request(ann, "free@example.org"), _request(ann)
    assert (free.status_code, taken.status_code) == (200, 200)
    deliver()
    assert _confirm(ann, box, box.recipients.index(OTHER)).status_code == 409
    assert accounts.by_text(OTHER, SECRET).login == "bob"


def test_a_mailbox_gets_few_links_to_confirm_an_address(
    ann: FlaskClient, box: mail_server.Box, deliver: Deliver
) -> None:
    sign_in(ann)
    most = email_login.PER_ADDRESS.most
    assert {_request(ann).status_code for _ in range(most + 1)} == {200}
    deliver()
    assert len(box.taken) == most


def test_the_operator_sets_and_removes_an_address(
    ann: FlaskClient, box: mail_server.Box, deliver: Deliver
) -> None:
    person = accounts.by_text("ann", SECRET)
    for address in (OTHER, ""):
        cause = account_holders.cause(now(), by=security_log.OPERATOR)._replace(sends_mail=True)
        address_links.set_address(person.id, address, cause)
    deliver()
    assert box.recipients == [MAIL, OTHER]
    without = accounts.by_text("ann", SECRET)
    assert not without.address
    assert accounts.by_identity(identities.of_address(OTHER), SECRET) is None
