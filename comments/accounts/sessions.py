"""Store the sessions of signed-in browsers.

Owns the kind Session and the format of its token: "{account id}.{256 random bits}". One lookup
reads the session and its account together.

A session ends `IDLE` after its last use, `LONGEST` after its beginning, at sign-out, or when the
account's `epoch` changes. Every sign-in makes a new token and ends the browser's earlier session,
so a token that was planted in the browser earlier is useless. If the store does not answer, the
request fails: the caller is treated as neither signed in nor signed out.
"""

import functools
import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from comments import errors
from comments.accounts import accounts, security_log, session_rows
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, schema

_OWNER = "accounts"
_VISIT = timedelta(hours=1)  # A visit that begins later is a new one; also the least time of writes
IDLE = timedelta(hours=12)
LONGEST = timedelta(days=14)
_ENDING = ("Session", "ModerationSession", "Ticket")
_AT_ONCE = 300  # Maximum number of rows per transaction.
# The pattern has a variable of its own, so that the search for slow patterns finds it.
_TOKEN = re.compile(r"([a-z2-7]{26})\.[A-Za-z0-9_-]{43}")
KIND = session_rows.SessionKind(
    "Session",
    account_rows.session_key,
    purpose="session",
    token=_TOKEN,
    is_over=lambda row, now: now - row.seen >= IDLE or now - row.created >= LONGEST,
    order="seen",
)


class Session(NamedTuple):
    """A valid session: its account and the browser's token."""

    account: accounts.Account
    token: str


def new_token(account: str) -> str:
    """Make a token for a new session of an account."""
    return f"{account}.{secrets.token_urlsafe(32)}"


def begin_writes(
    token: str, row: account_rows.AccountRow, secret: str, *, now: datetime
) -> ownership.Writes:
    """Return the writes that begin a session and delete ended ones. Call this in a transaction."""
    key = KIND.keys(token, secret)[0]
    made = account_rows.SessionRow(key=key, epoch=row.epoch, created=now, seen=now)
    return KIND.begin_writes(made, row, now=now)


def begin(
    account: str, secret: str, *, now: datetime, cause: security_log.Cause | None = None
) -> Session:
    """Begin a session for an account whose owner has just been authenticated.

    With a `cause`, the security log gets an entry; without one, the session replaces another.

    Raises:
        errors.NotFound: the account does not exist.
    """
    token = new_token(account)

    def body() -> Session:
        row = reads.get(account_rows.account_key(account))
        if row is None:
            raise errors.NotFound("account", account)
        transactions.apply(begin_writes(token, row, secret, now=now))
        if cause is not None:
            security_log.append(account, cause, security_log.SecurityEvent.SIGNED_IN)
        return Session(accounts.record(row), token)

    return transactions.transaction(body)


def find(token: str, secret: str, *, now: datetime) -> Session | None:
    """Return a token's session, or None if the token is not valid.

    Raises:
        errors.Overloaded: the store did not answer.
    """
    rows = KIND.find(token, secret, now=now)
    return None if rows is None else Session(accounts.record(rows[0]), token)


def note_visit(account: str, *, now: datetime) -> datetime | None:
    """Note a visit of the console, at most once an hour; return when the visit before it began."""

    def body() -> datetime | None:
        row = reads.get(account_rows.account_key(account))
        if row is None:
            return None
        if row.visited is None or now - row.visited >= _VISIT:
            row.populate(visited=now, visited_before=row.visited)
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        before: datetime | None = row.visited_before
        return before

    return transactions.transaction(body)


def end(token: str, secret: str) -> None:
    """End a session. Do nothing if the session has ended or the token is malformed."""
    session_rows.end(KIND.keys(token, secret))


def end_all() -> int:
    """End all sessions and one-time links of all accounts; return their number.

    During the call, no other process may use the store.
    """
    ended = 0
    for kind in _ENDING:
        keys = [
            schema.RowKey(
                *(part for element in message.key.path for part in (element.kind, element.name))
            )
            for message in reads.walk(reads.Query(kind, keys_only=True))
        ]
        for start in range(0, len(keys), _AT_ONCE):
            writes = ownership.Writes(_OWNER, delete=tuple(keys[start : start + _AT_ONCE]))
            transactions.transaction(functools.partial(transactions.apply, writes))
        ended += len(keys)
    return ended
