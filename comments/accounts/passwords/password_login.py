"""Signing in by name and password: the tries, the check, and the session.

What must stay true:

- A name that is not there costs what one with another password costs: the same look-ups, the same
  hashing, the same answer. So does one whose authenticator's code is wrong.
- Tries are counted before anything is checked, in one transaction with the store: `PER_NETWORK`
  and `PER_NAME` hold for all processes together, and for names that are nobody's too.
- A code of an authenticator is good once: the transaction that begins the session notes its step.

Whoever knows a name can use up its tries, and keep its owner out for `PER_NAME.window`. The links
of `account reset` are not counted.
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


class Attempt(NamedTuple):
    """What somebody typed, from where, and the session that his browser had."""

    login: str
    password: str
    code: str
    network: str
    token: str = ""


class Wrong(errors.Forbidden):
    """Name, password or code are wrong; which of them is not said."""

    code = "wrong-credentials"


def sign_in(attempt: Attempt, *, secret: str, now: datetime) -> sessions.Session:
    """Begin a session.

    Raises:
        Wrong: name, password or code are wrong.
        errors.TooMany: there were too many tries for this name or from this network.
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
    """See that somebody who is signed in knows his password.

    Raises:
        Wrong: he does not.
        errors.TooMany: there were too many tries.
    """
    count(f"account:{account}", network, secret, now=now)
    row = reads.get(account_rows.account_key(account))
    if not hashing.matches("" if row is None else row.password, password):
        raise Wrong


def count(name: str, network: str, secret: str, *, now: datetime) -> None:
    """Count one more try of a name from a network.

    Raises:
        errors.TooMany: there were too many.
    """
    buckets = (
        rate_limits.Network(PER_NETWORK, network, secret),
        rate_limits.Bucket(PER_NAME, name, secret),
    )

    def body() -> None:
        rate_limits.read(*buckets, now=now)
        for bucket in buckets:
            if bucket.is_empty:
                raise errors.TooMany(retry_after=bucket.wait(now))
        transactions.apply(*(bucket.take() for bucket in buckets))

    transactions.transaction(body)


def _begin(
    checked: account_rows.Account, attempt: Attempt, renewed: str, secret: str, *, now: datetime
) -> sessions.Session:
    account = checked.key.id()
    token = sessions.new_token(account)
    old = tuple(sessions.keys_of(attempt.token, secret))

    def body() -> sessions.Session:
        mine, row = reads.get_multi([sessions.key_of_new(token, secret), checked.key])
        if mine is not None and row is not None:
            return sessions.Session(accounts.record(row), token)  # our own commit, answer lost
        # What was checked must still be so: a new password, or a removal, came in between.
        if row is None or row.password != checked.password:
            raise Wrong
        use_code(row, attempt.code, secret, now)
        row.password = renewed or row.password
        begun = sessions.beginning(token, row, secret, now=now)
        ended = ownership.Writes(_OWNER, put=(row,), delete=old)
        transactions.apply(begun, ended)
        return sessions.Session(accounts.record(row), token)

    return transactions.transaction(body)


def use_code(row: account_rows.Account, code: str, secret: str, now: datetime) -> None:
    """Check the code of an account's authenticator, if it uses one, and note its step in the row.

    Raises:
        Wrong: it is not the code of now, or was used.
    """
    if not row.totp:
        return
    try:
        key = accounts.unseal_totp(row.totp, secret, now)
    except errors.BadLink as error:
        raise Wrong from error  # stored under another secret: only a reset helps
    step = totp.step_of(key, code, now=now, after=row.totp_step)
    if step is None:
        raise Wrong
    row.totp_step = step
