"""Change an account's credentials: password, authenticator, recovery codes, reset link."""

from collections.abc import Sequence

from comments import errors
from comments.accounts import accounts, security_log
from comments.accounts.passwords import hashing
from comments.accounts.security_log import SecurityEvent
from comments.store.models import account_rows


def set_password(account: str, password: str, cause: security_log.Cause) -> accounts.Account:
    """Set a password, given as a hash, and end all sessions.

    Raises:
        errors.NotFound: the account does not exist.
    """

    def apply(row: account_rows.AccountRow) -> None:
        # A reset link must not work after the password was changed.
        row.populate(password=password, reset="", epoch=accounts.new_epoch())

    return accounts.change(account, apply, cause, SecurityEvent.PASSWORD)


def set_totp(
    account: str,
    key: str,
    step: int,
    cause: security_log.Cause,
    *,
    recovery: Sequence[str] = (),
) -> accounts.Account:
    """Set an authenticator's secret, its last used step and the hashes of its recovery codes.

    An empty `key` removes the authenticator.

    Raises:
        errors.NotFound: the account does not exist.
    """

    def apply(row: account_rows.AccountRow) -> None:
        row.totp = accounts.seal_totp(key, cause.secret, cause.now) if key else ""
        row.totp_step = step
        row.recovery = list(recovery)
        row.epoch = accounts.new_epoch()

    event = SecurityEvent.AUTHENTICATOR_ADDED if key else SecurityEvent.AUTHENTICATOR_REMOVED
    return accounts.change(account, apply, cause, event)


def set_recovery_codes(
    account: str, recovery: Sequence[str], cause: security_log.Cause
) -> accounts.Account:
    """Replace the hashes of the recovery codes, and end all sessions.

    Raises:
        errors.NotFound: the account does not exist.
        errors.Conflict: the account has no authenticator.
    """

    def apply(row: account_rows.AccountRow) -> None:
        if not row.totp:
            raise errors.Conflict("no-authenticator")
        row.populate(recovery=list(recovery), epoch=accounts.new_epoch())

    return accounts.change(account, apply, cause, SecurityEvent.RECOVERY_RENEWED)


def note_reset(account: str, mark: str, cause: security_log.Cause) -> accounts.Account:
    """Store the mark of the only reset link that works.

    Raises:
        errors.NotFound: the account does not exist.
    """

    def apply(row: account_rows.AccountRow) -> None:
        row.reset = mark

    return accounts.change(account, apply, cause, SecurityEvent.RESET_LINK)


def check_and_hash(password: str, *own: str) -> str:
    """Check a new password and return its hash. `own` contains what others know about the owner.

    Raises:
        errors.BadInput: the password is not allowed (`hashing.check`).
    """
    return hashing.hash_password(hashing.check(password, *own))
