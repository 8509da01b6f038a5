"""Store the sessions of signed-in browsers.

Owns the kind Session and the format of its token: "{account id}.{256 random bits}". One lookup
reads the session and its account together.

Invariants:

1. The store holds only a keyed digest of the token, so a person who can read the store still cannot
   use a session.
2. A session ends `IDLE` after its last use, `LONGEST` after its beginning, at sign-out, or when the
   account's `epoch` changes, whichever comes first.
3. Every sign-in makes a new token and ends the browser's earlier session, so a token that was
   planted in the browser earlier is useless.
4. If the store does not answer, the request fails. The caller is treated as neither signed in nor
   signed out.
"""

import functools
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
# `seen` is updated at most this often, no matter how often the session is used.
_FRESH = timedelta(minutes=10)
MOST = 20  # sessions per account; a new one beyond this ends the least recently used one
_ENDING = ("Session", "ModerationSession", "Ticket")
_AT_ONCE = 300  # Rows in one transaction.
_TOKEN = re.compile(r"[a-z2-7]{26}\.[A-Za-z0-9_-]{43}")


class Session(NamedTuple):
    """A valid session: its account and the browser's token."""

    account: accounts.Account
    token: str


def new_token(account: str) -> str:
    """Make a token for a new session of an account."""
    return f"{account}.{secrets.token_urlsafe(32)}"


def keys_of(token: str, secret: str) -> list[ndb.Key]:
    """Return the possible keys of a token's session, or none if the token is malformed."""
    if not _TOKEN.fullmatch(token):
        return []
    account = token.partition(".")[0]
    made = keyed_hashes.every(secret, "session", token)
    return [account_rows.session_key(account, keyed_hashes.text(each)) for each in made]


def key_of_new(token: str, secret: str) -> ndb.Key:
    """Return the key under which a new token's session is stored."""
    account = token.partition(".")[0]
    return account_rows.session_key(
        account, keyed_hashes.text(keyed_hashes.keyed(secret, "session", token))
    )


def others_of(account: str) -> list[account_rows.SessionRow]:
    """Return an account's stored sessions, valid or not, least recently used first."""
    query = reads.Query("Session", ancestor=account_rows.account_key(account), keys_only=True)
    names = [entity.key.path[-1].name for entity in reads.fetch(query)]
    rows = reads.get_multi([account_rows.session_key(account, name) for name in names])
    return sorted((row for row in rows if row is not None), key=lambda row: row.seen)


def beginning(
    token: str, row: account_rows.AccountRow, secret: str, *, now: datetime
) -> ownership.Writes:
    """Return the writes that begin a session and delete ended ones. Call this in a transaction."""
    made = account_rows.SessionRow(
        key=key_of_new(token, secret), epoch=row.epoch, created=now, seen=now
    )
    found = [each for each in others_of(row.key.id()) if each.key != made.key]
    over = [each for each in found if not _is_good(each, row.epoch, now)]
    spare = [each for each in found if each not in over]
    over += spare[: max(0, len(spare) - MOST + 1)]
    return ownership.Writes(_OWNER, put=(made,), delete=tuple(each.key for each in over))


def begin(account: str, secret: str, *, now: datetime) -> Session:
    """Begin a session for an account whose owner has just been authenticated.

    Raises:
        errors.NotFound: the account does not exist.
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
    """Return a token's session, or None if the token is not valid.

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
    """End a session. Do nothing if the session has ended or the token is malformed."""
    keys = tuple(keys_of(token, secret))
    if not keys:
        return

    def body() -> None:
        transactions.apply(ownership.Writes(_OWNER, delete=keys))

    transactions.transaction(body)


def end_all() -> int:
    """End all sessions and one-time links of all accounts; return their number.

    Only one process may use the store.
    """
    ended = 0
    for kind in _ENDING:
        keys = [
            ndb.Key(*(part for each in message.key.path for part in (each.kind, each.name)))
            for message in reads.walk(reads.Query(kind, keys_only=True))
        ]
        for start in range(0, len(keys), _AT_ONCE):
            writes = ownership.Writes(_OWNER, delete=tuple(keys[start : start + _AT_ONCE]))
            transactions.transaction(functools.partial(transactions.apply, writes))
        ended += len(keys)
    return ended


def _is_good(row: account_rows.SessionRow, epoch: str, now: datetime) -> bool:
    return bool(row.epoch == epoch and now - row.seen < IDLE and now - row.created < LONGEST)


def _touch(key: ndb.Key, now: datetime) -> None:
    def body() -> None:
        row = reads.get(key)
        if row is not None and row.seen < now:  # an ended session must not be stored again
            row.seen = now
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)
