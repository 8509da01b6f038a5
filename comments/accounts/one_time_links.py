"""One-time links: what may be done once, and within a while, by whoever holds a token.

Owns the kind Ticket. A token is 256 random bits; the store knows a keyed digest of it. What a
ticket is for stands in the store and not in the token, so a ticket of one purpose is none of
another, and nobody can make one without this service.

To use a ticket is part of the transaction of what it allows: of twenty who use one at once, the
store's order lets one through. Its row stays until it would have expired, so that a transaction
whose answer was lost finds its own work (`used` is its attempt) and anybody else is refused.
"""

import enum
import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from google.cloud import ndb

from comments import errors
from comments.domain.crypto import keyed_hashes
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

_OWNER = "accounts"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
# Of those that nobody used: each new ticket takes a few away, so they do not pile up.
_SWEPT = 5


class Purpose(enum.StrEnum):
    """What a ticket is for. Stored as text."""

    INVITATION = "invitation"
    RESET = "reset"
    SIGN_IN = "sign-in"
    JOURNEY = "journey"
    SECOND_STEP = "second-step"
    VOUCHER = "voucher"
    CONFIRMATION = "confirmation"


class Ticket(NamedTuple):
    """What may be done: `content` is the purpose's own."""

    purpose: Purpose
    content: str


def new_token() -> str:
    """A token for a ticket, or for an attempt to use one."""
    return secrets.token_urlsafe(32)


def issuing(
    token: str, ticket: Ticket, secret: str, *, now: datetime, term: timedelta
) -> ownership.Writes:
    """What makes a ticket, in a transaction."""
    row = account_rows.Ticket(
        key=_keys(token, secret)[0],
        purpose=ticket.purpose,
        content=ticket.content,
        expires=now + term,
    )
    return ownership.Writes(_OWNER, put=(row,))


def issue(ticket: Ticket, secret: str, *, now: datetime, term: timedelta) -> str:
    """Make a ticket; its token."""
    token = new_token()
    sweep(now=now)

    def body() -> None:
        transactions.apply(issuing(token, ticket, secret, now=now, term=term))

    transactions.transaction(body)
    return token


def using(
    token: str, purpose: Purpose, attempt: str, secret: str, *, now: datetime
) -> tuple[str, ownership.Writes]:
    """The content of a ticket and what uses it up, in the transaction of what it allows.

    `attempt` is the same in every run of a transaction, and another one in every other.

    Raises:
        errors.BadLink: it is no ticket of this purpose, or was used, or is too old.
    """
    row = _row(token, secret) if _TOKEN.fullmatch(token) else None
    if row is None or row.purpose != purpose or row.used not in {"", attempt}:
        raise errors.BadLink
    if row.used != attempt and now >= row.expires:
        raise errors.BadLink("link-expired")
    content = str(row.content)
    # What it held may be personal; that it was used is all that is needed from here on.
    row.used = attempt
    return content, ownership.Writes(_OWNER, put=(row,))


def spending(
    subject: str, purpose: Purpose, attempt: str, secret: str, *, now: datetime, term: timedelta
) -> ownership.Writes:
    """Return what marks something that needs no ticket beforehand as used, in a transaction.

    `subject` is what may be used once; after `term` it must be refused for its age. `attempt` is as
    in `using`.

    Raises:
        errors.BadLink: it was used.
    """
    key, row = _keys(subject, secret)[0], _row(subject, secret)
    if row is not None and row.used != attempt:
        raise errors.BadLink("link-used")
    row = account_rows.Ticket(
        key=key, purpose=purpose, content="", expires=now + term, used=attempt
    )
    return ownership.Writes(_OWNER, put=(row,))


def is_spent(subject: str, secret: str) -> bool:
    """Whether `spending` has marked something as used."""
    return _row(subject, secret) is not None


def held(token: str, secret: str) -> str | None:
    """What the ticket of a token holds, used or not; None where there is none."""
    row = _row(token, secret)
    return None if row is None else str(row.content)


def holding(token: str, content: str, secret: str) -> ownership.Writes:
    """What makes a ticket that is there hold something else, in the transaction that read it."""
    row = _row(token, secret)
    assert row is not None, "it was read"  # noqa: S101 - a bug here, no input
    row.content = content
    return ownership.Writes(_OWNER, put=(row,))


def sweep(*, now: datetime) -> None:
    """Delete a few tickets that are too old."""
    query = reads.Query("Ticket", [("expires", "<", now)], limit=_SWEPT, keys_only=True)
    names = [entity.key.path[-1].name for entity in reads.fetch(query)]

    def body() -> None:
        gone = tuple(account_rows.ticket_key(name) for name in names)
        transactions.apply(ownership.Writes(_OWNER, delete=gone))

    if names:
        transactions.transaction(body)


def _row(token: str, secret: str) -> account_rows.Ticket | None:
    rows = reads.get_multi(_keys(token, secret))
    return next((row for row in rows if row is not None), None)


def _keys(token: str, secret: str) -> list[ndb.Key]:
    """The keys that the ticket of a token may have, that of a new one first."""
    made = keyed_hashes.every(secret, "ticket", token)
    return [account_rows.ticket_key(keyed_hashes.text(each)) for each in made]
