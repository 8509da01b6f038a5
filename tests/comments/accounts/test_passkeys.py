"""A passkey signs in its own account, once for each challenge, at the service's own address."""

import base64
import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from comments import errors
from comments.accounts import accounts, passkeys, security_log, sessions
from comments.accounts.links import invitations
from comments.store import connection, reads
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, SECRET, cause
from tests.support.people.software_authenticator import Authenticator
from tests.support.prepared_stores import NOW

pytestmark = pytest.mark.usefixtures("quick_passwords")

PARTY = passkeys.RelyingParty("localhost", "http://localhost")


@pytest.fixture
def ann(store: connection.Store) -> accounts.Account:
    return account_holders.account("ann", OWNER)


def _session(login: str = "ann") -> sessions.Session:
    account = accounts.by_text(login, SECRET)
    return sessions.begin(account.id, SECRET, now=NOW)


def _add(authenticator: Authenticator, login: str = "ann", name: str = "Phone") -> accounts.Account:
    session = _session(login)
    asked = passkeys.begin_registration(session.account, PARTY, cause())
    answer = authenticator.create(asked.json)
    return passkeys.register(session, asked.token, name, answer, PARTY, cause())


def _sign_in(authenticator: Authenticator) -> sessions.Session:
    asked = passkeys.begin_sign_in(PARTY, cause())
    return passkeys.sign_in(asked.token, authenticator.get(asked.json), PARTY, cause(), browser="")


def test_a_passkey_is_added_used_listed_and_removed(ann: accounts.Account) -> None:
    phone, session = Authenticator(), _session()
    _add(phone)
    assert sessions.find(session.token, SECRET, now=NOW) is None
    assert _sign_in(phone).account.id == ann.id
    (kept,) = passkeys.list_passkeys(ann.id)
    assert (kept.name, kept.used) == ("Phone", NOW)
    passkeys.remove(ann.id, kept.id, cause())
    with pytest.raises(passkeys.WrongPasskey):
        _sign_in(phone)
    with pytest.raises(errors.NotFound):
        passkeys.remove(ann.id, kept.id, cause())
    events = [entry.event for entry in security_log.list_entries(ann.id, now=NOW)]
    assert events[:3] == ["passkey-removed", "signed-in", "passkey-added"]


def _claim(phone: Authenticator, user: bytes) -> None:
    phone.user = base64.urlsafe_b64encode(user).rstrip(b"=")


WRONG: dict[str, Callable[[Authenticator], object]] = {
    "origin": lambda phone: setattr(phone, "origin", "http://localhost.evil.example"),
    "port": lambda phone: setattr(phone, "origin", "http://localhost:81"),
    "relying party": lambda phone: setattr(phone, "party", "evil.example"),
    "key": lambda phone: setattr(phone, "key", Authenticator().key),
    "credential": lambda phone: setattr(phone, "credential", b"another one"),
    "no verification": lambda phone: setattr(phone, "flags", 0x01),
    "no presence": lambda phone: setattr(phone, "flags", 0x04),
    "no user": lambda phone: setattr(phone, "user", b""),
    "no account": lambda phone: _claim(phone, b"a" * 26),
    "a user too long for a key": lambda phone: _claim(phone, b"a" * 5_000),
    "a user with a reserved name": lambda phone: _claim(phone, b"__user__"),
    "a user with NUL": lambda phone: _claim(phone, b"a\x00b"),
    "a user that is no text": lambda phone: _claim(phone, b"\xff"),
    "signature count": lambda phone: setattr(phone, "count", 4),
}


@pytest.mark.parametrize("spoil", WRONG.values(), ids=WRONG)
def test_a_wrong_answer_is_refused(
    ann: accounts.Account, spoil: Callable[[Authenticator], object]
) -> None:
    phone = Authenticator(count=4)
    _add(phone)
    phone.count = 5
    spoil(phone)
    with pytest.raises(passkeys.WrongPasskey):
        _sign_in(phone)


@pytest.mark.parametrize("spoil", [*list(WRONG)[:3], "no verification"])
def test_a_wrong_answer_adds_no_passkey(ann: accounts.Account, spoil: str) -> None:
    phone = Authenticator()
    WRONG[spoil](phone)
    with pytest.raises(passkeys.WrongPasskey):
        _add(phone)
    assert passkeys.list_passkeys(ann.id) == []


def test_a_passkey_opens_no_other_account(ann: accounts.Account) -> None:
    bob = account_holders.account("bob", OWNER)
    phone = Authenticator()
    _add(phone)
    phone.user = bob.id.encode()
    with pytest.raises(passkeys.WrongPasskey):
        _sign_in(phone)


def test_a_challenge_is_valid_once_and_in_one_browser(ann: accounts.Account) -> None:
    phone = Authenticator()
    _add(phone)
    mine, other = (passkeys.begin_sign_in(PARTY, cause()) for _ in range(2))
    answer = phone.get(mine.json)
    with pytest.raises(passkeys.WrongPasskey):
        passkeys.sign_in(other.token, answer, PARTY, cause(), browser="")
    with pytest.raises(passkeys.WrongPasskey):
        passkeys.sign_in(other.token, phone.get(other.json), PARTY, cause(), browser="")
    late = cause(NOW + passkeys.TERM)
    expired = passkeys.begin_sign_in(PARTY, cause())
    with pytest.raises(passkeys.WrongPasskey):
        passkeys.sign_in(expired.token, phone.get(expired.json), PARTY, late, browser="")
    assert passkeys.sign_in(mine.token, answer, PARTY, cause(), browser="").account.id == ann.id
    with pytest.raises(passkeys.WrongPasskey):
        passkeys.sign_in(mine.token, answer, PARTY, cause(), browser="")


def test_a_challenge_for_a_new_passkey_belongs_to_its_session(ann: accounts.Account) -> None:
    account_holders.account("bob", OWNER)
    phone, asked = Authenticator(), passkeys.begin_registration(ann, PARTY, cause())
    answer = phone.create(asked.json)
    with pytest.raises(passkeys.WrongPasskey):
        passkeys.register(_session("bob"), asked.token, "Phone", answer, PARTY, cause())
    asked = passkeys.begin_registration(ann, PARTY, cause())
    accounts.end_sessions(ann.id, cause())
    answer = phone.create(asked.json)
    with pytest.raises(passkeys.WrongPasskey):
        passkeys.register(_session(), asked.token, "Phone", answer, PARTY, cause())
    signing = passkeys.begin_sign_in(PARTY, cause())
    with pytest.raises(passkeys.WrongPasskey):
        passkeys.register(_session(), signing.token, "Phone", answer, PARTY, cause())


@pytest.mark.parametrize(
    "answer",
    ["", "null", "[]", "{}", '{"id": 1}', "\ud800", "x" * 100, '{"id":"a","rawId":"!","type":"x"}',
     json.dumps({"id": "YQ", "rawId": "YQ", "type": "public-key", "response": {
         "clientDataJSON": "YQ", "authenticatorData": "YQ", "signature": "YQ",
         "attestationObject": "YQ", "userHandle": "_w"}})],
)  # fmt: skip
def test_an_answer_that_is_none_is_refused(ann: accounts.Account, answer: str) -> None:
    asked = passkeys.begin_sign_in(PARTY, cause())
    with pytest.raises(passkeys.WrongPasskey):
        passkeys.sign_in(asked.token, answer, PARTY, cause(), browser="")
    session = _session()
    asked = passkeys.begin_registration(ann, PARTY, cause())
    with pytest.raises(passkeys.WrongPasskey):
        passkeys.register(session, asked.token, "Phone", answer, PARTY, cause())


def test_the_number_of_passkeys_and_of_challenges_is_limited(ann: accounts.Account) -> None:
    for number in range(passkeys.MOST):
        _add(Authenticator(), name=f"Key {number}")
    with pytest.raises(errors.Conflict):
        _add(Authenticator())
    for _ in range(passkeys.PER_NETWORK.most):
        passkeys.begin_sign_in(PARTY, cause())
    with pytest.raises(errors.TooMany):
        passkeys.begin_sign_in(PARTY, cause())


def test_a_reset_without_second_factor_and_a_removal_delete_passkeys(
    ann: accounts.Account,
) -> None:
    _add(Authenticator())
    choice = invitations.PasswordReset("another password")
    invitations.reset_password(invitations.issue_reset(ann, cause()), choice, cause())
    assert passkeys.list_passkeys(ann.id)
    token = invitations.issue_reset(ann, cause(), removes_second_factor=True)
    invitations.reset_password(token, choice, cause())
    assert not passkeys.list_passkeys(ann.id)
    later = cause(NOW + timedelta(hours=1))
    account_holders.account("bob", OWNER)
    _add(Authenticator(), login="bob")
    bob = accounts.by_text("bob", later.secret)
    accounts.remove(bob.id)
    assert not [*reads.fetch(reads.Query("Passkey"))]


@pytest.mark.parametrize(
    ("url", "party"),
    [
        ("https://service.example", ("service.example", "https://service.example")),
        ("https://service.example:8443/a", ("service.example", "https://service.example:8443")),
        ("http://localhost:8080", ("localhost", "http://localhost:8080")),
        ("http://service.example", None),
        ("http://127.0.0.1:8080", None),
        ("https://[::1]", None),
        ("", None),
    ],
)
def test_passkeys_are_offered_with_https_and_on_localhost(
    url: str, party: tuple[str, str] | None
) -> None:
    assert passkeys.relying_party(url) == party
