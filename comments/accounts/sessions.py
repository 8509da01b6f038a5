"""Sessions: the browsers in which somebody is signed in, and until when.

Owns the kind Session and the form of its token: "{account's id}.{256 random bits}". The store knows
a keyed digest of the token only, so whoever reads the store is signed in nowhere. One look-up
reads the session and its account together.

What must stay true:

- A session ends `IDLE` after it was last used, `LONGEST` after it began, when it is signed out,
  and when its account's `epoch` changes; whichever comes first.
- Every sign-in makes a new token, and ends the session that the browser had: a token that was
  planted there before is worth nothing afterwards.
- If the store does not answer, nobody is signed in, and nobody is told that he is not: it is an
  error.
"""

import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from google.cloud import ndb

from comments import errors
from comments.accounts import accounts
from comments.domain.crypto import keyed_hashes
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

_OWNER = "accounts"
IDLE = timedelta(hours=12)
LONGEST = timedelta(days=14)
# How old `seen` may be: a session is written at most so often, however much it is used.
_FRESH = timedelta(minutes=10)
MOST = 20  # of one account; the next ends the one that was used least recently
_TOKEN = re.compile(r"[a-z2-7]{26}\.[A-Za-z0-9_-]{43}")


class Session(NamedTuple):
    """A session that is good, and whose it is. `token` is the browser's."""

    account: accounts.Account
    token: str


def new_token(account: str) -> str:
    """A token for a session of an account."""
    return f"{account}.{secrets.token_urlsafe(32)}"


def keys_of(token: str, secret: str) -> list[ndb.Key]:
    """The keys that a token's session may have; none for what is no token."""
    if not _TOKEN.fullmatch(token):
        return []
    account = token.partition(".")[0]
    made = keyed_hashes.every(secret, "session", token)
    return [account_rows.session_key(account, keyed_hashes.text(each)) for each in made]


def key_of_new(token: str, secret: str) -> ndb.Key:
    """The key of the session of a token that was made here."""
    account = token.partition(".")[0]
    return account_rows.session_key(
        account, keyed_hashes.text(keyed_hashes.keyed(secret, "session", token))
    )


def others_of(account: str) -> list[account_rows.Session]:
    """The sessions there are of an account, good or not, the least recently used first."""
    query = reads.Query("Session", ancestor=account_rows.account_key(account), keys_only=True)
    names = [entity.key.path[-1].name for entity in reads.fetch(query)]
    rows = reads.get_multi([account_rows.session_key(account, name) for name in names])
    return sorted((row for row in rows if row is not None), key=lambda row: row.seen)


def beginning(
    token: str, row: account_rows.Account, secret: str, *, now: datetime
) -> ownership.Writes:
    """What makes a session of a token and ends those that are over, in a transaction."""
    made = account_rows.Session(
        key=key_of_new(token, secret), epoch=row.epoch, created=now, seen=now
    )
    found = [each for each in others_of(row.key.id()) if each.key != made.key]
    over = [each for each in found if not _is_good(each, row.epoch, now)]
    spare = [each for each in found if each not in over]
    over += spare[: max(0, len(spare) - MOST + 1)]
    return ownership.Writes(_OWNER, put=(made,), delete=tuple(each.key for each in over))


def begin(account: str, secret: str, *, now: datetime) -> Session:
    """Begin a session of somebody who has just shown who he is.

    Raises:
        errors.NotFound: there is no such account.
    """
    token = new_token(account)

    def body() -> Session:
        row = reads.get(account_rows.account_key(account))
        if row is None:
            raise errors.NotFound("account", account)
        transactions.apply(beginning(token, row, secret, now=now))
        return Session(accounts.record(row), token)

    return transactions.transaction(body)


def find(token: str, secret: str, *, now: datetime) -> Session | None:
    """The session of a token, if it is good.

    Raises:
        errors.Overloaded: the store did not answer.
    """
    keys = keys_of(token, secret)
    if not keys:
        return None
    owner = account_rows.account_key(token.partition(".")[0])
    account, *rows = reads.get_multi([owner, *keys])
    row = next((each for each in rows if each is not None), None)
    if row is None or account is None or not _is_good(row, account.epoch, now):
        return None
    if now - row.seen > _FRESH:
        _touch(row.key, now)
    return Session(accounts.record(account), token)


def end(token: str, secret: str) -> None:
    """End a session. Again, and for what is no token, it changes nothing."""
    keys = tuple(keys_of(token, secret))
    if not keys:
        return

    def body() -> None:
        transactions.apply(ownership.Writes(_OWNER, delete=keys))

    transactions.transaction(body)


def _is_good(row: account_rows.Session, epoch: str, now: datetime) -> bool:
    return bool(row.epoch == epoch and now - row.seen < IDLE and now - row.created < LONGEST)


def _touch(key: ndb.Key, now: datetime) -> None:
    def body() -> None:
        row = reads.get(key)
        if row is not None and row.seen < now:  # signed out meanwhile: it must not come back
            row.seen = now
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)
