"""Sign in with name and password.

Known limit: a person who knows a sign-in name can use up its attempts and lock its owner out for
`PER_NAME.window`. Reset links made by `account reset` are not affected.

Invariants:

1. An unknown name costs as much as a wrong password: the same look-ups, the same hashing and the
   same response. The response to a wrong authenticator code is the same too.
2. Attempts are counted in the store before anything is checked. `PER_NETWORK` and `PER_NAME` limit
   all processes together, and apply to unknown names too.
3. A code of an authenticator is valid once: the transaction that begins the session stores its
   step.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from comments import errors
from comments.accounts import accounts, identities, sessions
from comments.accounts.passwords import hashing, totp
from comments.sites import rate_limits
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

_OWNER = "accounts"
PER_NETWORK = rate_limits.Limit("sign-ins", 30, timedelta(minutes=15))
PER_NAME = rate_limits.Limit("sign-ins of a name", 10, timedelta(minutes=15))


class LoginAttempt(NamedTuple):
    """The input of a sign-in, the caller's network, and the token of the browser's session."""

    login: str
    password: str
    code: str
    network: str
    token: str = ""


class Wrong(errors.Forbidden):
    """The name, password or code is wrong. The error does not say which of them."""

    code = "wrong-credentials"


def sign_in(attempt: LoginAttempt, *, secret: str, now: datetime) -> sessions.Session:
    """Check name, password and code, and begin a session.

    Raises:
        Wrong: the name, password or code is wrong.
        errors.TooMany: there were too many attempts for this name or from this network.
        errors.Overloaded: the store did not answer in time.
    """
    identity = identities.of_typed(attempt.login)
    count(identity.name(secret), attempt.network, secret, now=now)
    account = accounts.id_by_identity(identity, secret)
    row = reads.get(account_rows.account_key(account))
    if not hashing.matches("" if row is None else row.password, attempt.password):
        raise Wrong
    renewed = hashing.hashed(attempt.password) if hashing.is_outdated(row.password) else ""
    begun = _begin(row, attempt, renewed, secret, now=now)
    accounts.rekey(identity, secret)
    return begun


def confirm(account: str, password: str, *, network: str, secret: str, now: datetime) -> None:
    """Check the password of a signed-in account.

    Raises:
        Wrong: the password is wrong.
        errors.TooMany: there were too many attempts.
    """
    count(f"account:{account}", network, secret, now=now)
    row = reads.get(account_rows.account_key(account))
    if not hashing.matches("" if row is None else row.password, password):
        raise Wrong


def count(name: str, network: str, secret: str, *, now: datetime) -> None:
    """Count an attempt to sign in under a name, made from a network.

    Raises:
        errors.TooMany: there were too many attempts.
    """
    buckets = (
        rate_limits.Network(PER_NETWORK, network, secret),
        rate_limits.RateLimitBucket(PER_NAME, name, secret),
    )

    def body() -> None:
        rate_limits.read(*buckets, now=now)
        for bucket in buckets:
            if bucket.is_empty:
                raise errors.TooMany(retry_after=bucket.wait(now))
        transactions.apply(*(bucket.take() for bucket in buckets))

    transactions.transaction(body)


def _begin(
    checked: account_rows.AccountRow,
    attempt: LoginAttempt,
    renewed: str,
    secret: str,
    *,
    now: datetime,
) -> sessions.Session:
    account = checked.key.id()
    token = sessions.new_token(account)
    old = tuple(sessions.keys_of(attempt.token, secret))

    def body() -> sessions.Session:
        mine, row = reads.get_multi([sessions.key_of_new(token, secret), checked.key])
        if mine is not None and row is not None:
            # An earlier run committed, and its answer was lost.
            return sessions.Session(accounts.record(row), token)
        # The password may have been changed, or the account removed, since the check.
        if row is None or row.password != checked.password:
            raise Wrong
        use_code(row, attempt.code, secret, now)
        row.password = renewed or row.password
        begun = sessions.beginning(token, row, secret, now=now)
        ended = ownership.Writes(_OWNER, put=(row,), delete=old)
        transactions.apply(begun, ended)
        return sessions.Session(accounts.record(row), token)

    return transactions.transaction(body)


def use_code(row: account_rows.AccountRow, code: str, secret: str, now: datetime) -> None:
    """Check the code of an account's authenticator, if it has one, and set its step in the row.

    Raises:
        Wrong: the code is wrong, or was used already.
    """
    if not row.totp:
        return
    try:
        key = accounts.unseal_totp(row.totp, secret, now)
    except errors.BadLink as error:
        raise Wrong from error  # encrypted under another secret; only a reset helps
    step = totp.step_of(key, code, now=now, after=row.totp_step)
    if step is None:
        raise Wrong
    row.totp_step = step
