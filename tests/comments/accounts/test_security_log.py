"""The security log says who changed an account, and keeps no address and nothing for ever."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from comments import errors
from comments.accounts import accounts, security_log
from comments.accounts.links import invitations
from comments.accounts.passwords import credentials, password_login, recovery_codes, totp
from comments.accounts.security_log import SecurityEvent
from comments.domain.moderation import roles
from comments.store import connection, reads
from datastore_emulator import inprocess, testing
from tests.support.histories import counter_oracle
from tests.support.people import account_holders
from tests.support.people.account_holders import NETWORK, OWNER, SECRET, cause, moderator
from tests.support.prepared_stores import NOW

pytestmark = pytest.mark.usefixtures("quick_passwords")

DAY = timedelta(days=1)


def _events(account: str) -> list[str]:
    return [entry.event for entry in security_log.list_entries(account, now=NOW)]


def _totp(ann: accounts.Account) -> None:
    hashes = recovery_codes.hash_all(["0" * 13])
    credentials.set_totp(ann.id, totp.secret(), 0, cause(), recovery=hashes)


def _use_recovery_code(ann: accounts.Account) -> None:
    _totp(ann)
    account_holders.sign_in("ann", code="0" * 13)


def _reset(ann: accounts.Account) -> None:
    _totp(ann)
    token = invitations.issue_reset(ann, cause(), removes_second_factor=True)
    invitations.reset_password(token, invitations.PasswordReset("another password"), cause())


CHANGES: dict[str, tuple[Callable[[accounts.Account], object], list[str]]] = {
    "sign-in": (lambda _: account_holders.sign_in("ann"), ["signed-in"]),
    "password": (lambda ann: credentials.set_password(ann.id, "x", cause()), ["password"]),
    "authenticator": (_totp, ["authenticator-added"]),
    "no authenticator": (
        lambda ann: credentials.set_totp(ann.id, "", 0, cause()),
        ["authenticator-removed"],
    ),
    "recovery code": (_use_recovery_code, ["signed-in", "recovery-used", "authenticator-added"]),
    "recovery codes": (
        lambda ann: (_totp(ann), credentials.set_recovery_codes(ann.id, [], cause())),
        ["recovery-renewed", "authenticator-added"],
    ),
    "reset": (
        _reset,
        ["authenticator-removed", "password", "reset-link", "authenticator-added"],
    ),
    "role": (
        lambda ann: accounts.grant(ann.id, roles.Role.MODERATOR, "blog", cause()),
        ["roles"],
    ),
    "sessions": (lambda ann: accounts.end_sessions(ann.id, cause()), ["sessions-ended"]),
    "invitation": (
        lambda ann: invitations.accept_as(ann.id, account_holders.invite(moderator()), cause()),
        ["roles"],
    ),
}


@pytest.mark.parametrize(("change", "events"), CHANGES.values(), ids=CHANGES)
def test_each_change_is_in_the_log(
    store: connection.Store, change: Callable[[accounts.Account], object], events: list[str]
) -> None:
    ann = account_holders.account("ann", OWNER)
    change(ann)
    assert _events(ann.id) == events


def test_an_entry_names_who_acted_but_no_network(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER)
    bob = account_holders.account("bob", OWNER)
    other = cause()._replace(network="198.51.100.9")
    accounts.end_sessions(ann.id, cause(by=ann.id))
    accounts.end_sessions(ann.id, cause(by=bob.id))
    accounts.end_sessions(ann.id, other)
    accounts.end_sessions(ann.id, cause(by=security_log.OPERATOR)._replace(network=""))
    named = security_log.with_network_names(security_log.list_entries(ann.id, now=NOW))
    assert [(entry.by, letter) for entry, letter in named] == [
        ("operator", ""), ("", "B"), (bob.id, "A"), ("", "A"),
    ]  # fmt: skip
    accounts.end_sessions(bob.id, other)
    stored = str([*reads.fetch(reads.Query("SecurityLog"))])
    assert NETWORK not in stored
    (entry,) = security_log.list_entries(bob.id, now=NOW)
    assert entry.network not in {each.network for each, _ in named}, "accounts can be compared"


def test_a_log_is_bounded_and_expires(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER)
    accounts.end_sessions(ann.id, cause())
    for _ in range(security_log.MOST + 3):
        accounts.end_sessions(ann.id, cause(NOW + DAY))
    assert len(_events(ann.id)) == security_log.MOST
    late = NOW + DAY + security_log.TERM
    assert security_log.list_entries(ann.id, now=late) == []
    assert security_log.expire(late) == 1
    assert not [*reads.fetch(reads.Query("SecurityLog"))]


def test_an_expired_entry_goes_and_later_ones_stay(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER)
    accounts.end_sessions(ann.id, cause())
    credentials.set_password(ann.id, "x", cause(NOW + DAY))
    assert security_log.expire(NOW + security_log.TERM) == 1
    assert _events(ann.id) == ["password"]


def test_a_removed_account_has_no_log(store: connection.Store) -> None:
    ann = account_holders.account("ann", moderator())
    account_holders.sign_in("ann")
    accounts.dismiss(ann.id)
    assert not [*reads.fetch(reads.Query("SecurityLog"))]


def test_blocked_attempts_are_noted_once_and_cost_the_same_without_an_account(
    store: connection.Store, engine: inprocess.Engine
) -> None:
    ann = account_holders.account("ann", OWNER)
    costs = {}
    for login in ("ann", "nobody", "somebody"):
        for _ in range(password_login.PER_NAME.most):
            with pytest.raises(password_login.Wrong):
                _attempt(login, login)
        seen = []
        for _ in range(2):
            with testing.meter(engine) as cost, pytest.raises(errors.TooMany):
                _attempt(login, login)
            seen.append((cost.reads + cost.small, cost.writes))
        costs[login] = seen
    assert costs["ann"] == costs["nobody"] == costs["somebody"]
    assert _events(ann.id) == ["blocked"]


def _attempt(login: str, network: str) -> None:
    attempt = password_login.LoginAttempt(login, "a wrong password", "")
    password_login.sign_in(attempt, cause()._replace(network=network))


def test_a_mail_is_queued_with_its_change_and_contains_no_address(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER, mail="ann@example.org")
    mails = cause()._replace(sends_mail=True, language="de")
    credentials.set_password(ann.id, "x", mails)
    accounts.end_sessions(ann.id, mails)
    (event,) = counter_oracle.events()
    stored = str([*reads.fetch(reads.Query("Event"))])
    assert SecurityEvent.PASSWORD in event
    assert "ann@example.org" not in stored
    assert SECRET not in stored
