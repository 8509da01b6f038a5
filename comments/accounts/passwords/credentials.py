"""What an account is signed in with: its password, its authenticator, and the link to reset it."""

from datetime import datetime

from comments.accounts import accounts
from comments.accounts.passwords import hashing
from comments.store.models import account_rows


def set_password(account: str, password: str) -> accounts.Account:
    """Change a password, by its hash, and end every session.

    Raises:
        errors.NotFound: there is no such account.
    """

    def apply(row: account_rows.Account) -> None:
        # A link to choose a password must not outlive the choice.
        row.populate(password=password, reset="", epoch=accounts.new_epoch())

    return accounts.change(account, apply)


def set_totp(account: str, key: str, step: int, *, secret: str, now: datetime) -> accounts.Account:
    """Take an authenticator's secret, of which the code of a step was shown; "" takes it away.

    Raises:
        errors.NotFound: there is no such account.
    """

    def apply(row: account_rows.Account) -> None:
        row.totp = accounts.seal_totp(key, secret, now) if key else ""
        row.totp_step = step
        row.epoch = accounts.new_epoch()

    return accounts.change(account, apply)


def note_reset(account: str, mark: str) -> accounts.Account:
    """Let the reset link with this mark count, and no other one.

    Raises:
        errors.NotFound: there is no such account.
    """

    def apply(row: account_rows.Account) -> None:
        row.reset = mark

    return accounts.change(account, apply)


def checked_password(password: str, *own: str) -> str:
    """The hash of a new password; `own` is what others know of its owner.

    Raises:
        errors.BadInput: it cannot be one (`hashing.check`).
    """
    return hashing.hashed(hashing.check(password, *own))
