"""Sign people in with a name and a password.

Known limitation: a person who knows a sign-in name can use up its attempts, which locks the owner
out for `PER_NAME.window`. Reset links made by `account reset` still work.

Invariant: An unknown name causes the same lookups, the same hashing and the same response as a
wrong password (test_sessions.py::test_a_wrong_name_and_a_wrong_password_are_indistinguishable).

Attempts are counted in the store before any credential is checked. The count covers all processes
and includes unknown names. An authenticator code and a recovery code are each valid once: the
transaction that begins the session notes the use.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from comments import errors
from comments.accounts import accounts, identities, security_log, sessions
from comments.accounts.passwords import hashing, recovery_codes, totp
from comments.accounts.security_log import SecurityEvent
from comments.limits import rate_limits
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

_OWNER = "accounts"
PER_NETWORK = rate_limits.Limit("sign-ins", 30, timedelta(minutes=15))
PER_NAME = rate_limits.Limit("sign-ins of a name", 10, timedelta(minutes=15))


class LoginAttempt(NamedTuple):
    """The input for a sign-in, and the browser's session token."""

    login: str
    password: str
    code: str
    token: str = ""


class Wrong(errors.Forbidden):
    """The name, password or code is wrong. The error does not say which."""

    code = "wrong-credentials"


class TooManyForName(errors.TooMany):
    """There were too many sign-in attempts for a name."""


def sign_in(attempt: LoginAttempt, cause: security_log.Cause) -> sessions.Session:
    """Check name, password and code, and begin a session.

    Raises:
        Wrong: the name, password or code is wrong.
        errors.TooMany: there were too many attempts for this name or from this network.
        errors.Overloaded: the store did not answer in time.
    """
    identity, secret = identities.of_text(attempt.login), cause.secret
    try:
        count(identity.name(secret), cause)
    except TooManyForName:
        security_log.note_blocked(accounts.id_by_identity(identity, secret), cause)
        raise
    account = accounts.id_by_identity(identity, secret)
    row = reads.get(account_rows.account_key(account))
    if not hashing.matches("" if row is None else row.password, attempt.password):
        raise Wrong
    renewed = hashing.hash_password(attempt.password) if hashing.is_outdated(row.password) else ""
    begun = _begin(row, attempt, renewed, cause)
    accounts.rekey(identity, secret)
    return begun


def confirm(account: str, password: str, cause: security_log.Cause) -> None:
    """Check the password of a signed-in account. Only wrong passwords count against the limits.

    The attempt is counted before the check, so that concurrent guesses cannot exceed the limits.

    Raises:
        Wrong: the password is wrong.
        errors.TooMany: there were too many attempts.
    """
    counted = count(f"account:{account}", cause)
    row = reads.get(account_rows.account_key(account))
    if not hashing.matches("" if row is None else row.password, password):
        raise Wrong
    rate_limits.take_back(*counted)


def count(
    name: str, cause: security_log.Cause
) -> tuple[rate_limits.Network, rate_limits.RateLimitBucket]:
    """Count a sign-in attempt for a name and a network, and return where it was counted.

    Raises:
        TooManyForName: there were too many attempts for the name.
        errors.TooMany: there were too many attempts from the network.
    """
    now = cause.now
    of_network = rate_limits.Network(PER_NETWORK, cause.network, cause.secret)
    of_name = rate_limits.RateLimitBucket(PER_NAME, name, cause.secret)
    buckets = (of_network, of_name)

    def body() -> None:
        rate_limits.read(*buckets, now=now)
        if of_network.is_empty:
            raise errors.TooMany(retry_after=of_network.wait(now))
        if of_name.is_empty:
            raise TooManyForName(retry_after=of_name.wait(now))
        transactions.apply(*(bucket.count_writes() for bucket in buckets))

    transactions.transaction(body)
    return buckets


def _begin(
    checked: account_rows.AccountRow,
    attempt: LoginAttempt,
    renewed: str,
    cause: security_log.Cause,
) -> sessions.Session:
    account, secret, now = checked.key.id(), cause.secret, cause.now
    token = sessions.new_token(account)
    old = tuple(sessions.KIND.keys(attempt.token, secret))

    def body() -> sessions.Session:
        mine, row = reads.get_multi([sessions.KIND.keys(token, secret)[0], checked.key])
        if mine is not None and row is not None:
            # An earlier run committed, but its response was lost.
            return sessions.Session(accounts.record(row), token)
        # Since the check, the password may have changed or the account may have been removed.
        if row is None or row.password != checked.password:
            raise Wrong
        used = use_code(row, attempt.code, secret, now)
        row.password = renewed or row.password
        begun = sessions.begin_writes(token, row, secret, now=now)
        ended = ownership.Writes(_OWNER, put=(row,), delete=old)
        transactions.apply(begun, ended)
        security_log.append(account, cause, *used, SecurityEvent.SIGNED_IN)
        return sessions.Session(accounts.record(row), token)

    return transactions.transaction(body)


def use_code(
    row: account_rows.AccountRow, code: str, secret: str, now: datetime
) -> tuple[SecurityEvent, ...]:
    """If the account has an authenticator, check the code or recovery code, and note its use.

    Return what the security log must note besides the sign-in. The caller stores the row.

    Raises:
        Wrong: the code is wrong, or was used already.
    """
    if not row.totp:
        return ()
    left = recovery_codes.without(row.recovery, code)
    if left is not None:
        row.recovery = left
        return (SecurityEvent.RECOVERY_USED,)
    try:
        key = accounts.unseal_totp(row.totp, secret, now)
    except errors.BadLink as error:
        # Encrypted under a different secret: only a recovery code or a password reset helps.
        raise Wrong from error
    step = totp.step_of(key, code, now=now, after=row.totp_step)
    if step is None:
        raise Wrong
    row.totp_step = step
    return ()
