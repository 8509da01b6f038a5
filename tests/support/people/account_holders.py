"""Create accounts with every role in the same way as the product."""

import functools
from datetime import UTC, datetime

import argon2
import pytest

from comments.accounts import accounts, identities, security_log, sessions
from comments.accounts.links import invitations
from comments.accounts.passwords import credentials, hashing, password_login
from comments.domain.moderation import roles
from tests.support.prepared_stores import NOW

SECRET = "a secret of the tests"
PASSWORD = "correct horse battery"
NETWORK = "192.0.2.7"
OWNER = roles.Grant(roles.Role.OWNER, roles.SERVICE)


def weaken_passwords(patch: pytest.MonkeyPatch) -> None:
    """Hash passwords as weakly as possible for tests of other features."""
    weak = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    patch.setattr(hashing, "hasher", lambda: weak)


def cause(now: datetime = NOW, *, secret: str = SECRET, by: str = "") -> security_log.Cause:
    return security_log.Cause(by, NETWORK, secret, now)


def moderator(site: str = "demo") -> roles.Grant:
    return roles.Grant(roles.Role.MODERATOR, site)


def account(
    login: str, *grants: roles.Grant, password: str = PASSWORD, mail: str = "", now: datetime = NOW
) -> accounts.Account:
    """Create an account with a password, or without a password if `password` is empty."""
    known = [identities.of_login(login)]
    if mail:
        known.append(identities.of_address(mail))
    newcomer = accounts.NewAccount(
        id=accounts.new_id(),
        name=login.capitalize(),
        identities=tuple(known),
        login=login,
        address=mail,
        password=_hash(password, hashing.hasher()) if password else "",
        grants=grants,
    )
    return accounts.add(newcomer, secret=SECRET, now=now)


@functools.cache
def _hash(password: str, _hasher: object) -> str:
    return credentials.check_and_hash(password)


def sign_in(
    login: str, password: str = PASSWORD, code: str = "", *, now: datetime = NOW, token: str = ""
) -> sessions.Session:
    attempt = password_login.LoginAttempt(login, password, code, token)
    return password_login.sign_in(attempt, cause(now))


def invite(
    *grants: roles.Grant, address: str = "", first: bool = False, now: datetime = NOW
) -> str:
    return invitations.invite(
        invitations.Invitation(grants, address, first), secret=SECRET, now=now
    )


def accept(
    token: str, login: str = "ann", password: str = PASSWORD, *, now: datetime = NOW
) -> sessions.Session:
    form = invitations.SignUpForm(login.capitalize() or "Ann", login, password)
    return invitations.accept(token, form, cause(now), browser="")


def here() -> datetime:
    """Return the real time, which the application also reads."""
    return datetime.now(UTC)


def session(account: str) -> sessions.Session:
    """Begin a session at the present time, without checking a password."""
    return sessions.begin(account, SECRET, now=here())
