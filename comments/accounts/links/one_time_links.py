"""Create and use one-time tokens, which allow one action within a limited time.

Owns the kind Ticket, which stores one-time tokens. A token is 256 random bits, and the store
contains only a keyed digest of the token.

Invariant: The transaction of the allowed action also marks the token as used, so exactly one of
several concurrent uses succeeds
(test_invitations.py::test_one_of_twenty_concurrent_acceptances_of_an_invitation_succeeds).

The purpose of a token is stored in its row, so a token for one purpose is not valid for another. A
used row is kept until its expiry: if the response to a transaction is lost, the next run recognizes
its own attempt (`used`), and every other attempt is refused.
"""

import enum
import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from comments import errors
from comments.domain.crypto import keyed_hashes
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, schema

_OWNER = "accounts"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
# The number of expired links that each new link deletes.
_SWEPT = 5
_MOST_LISTED = 200


class LinkPurpose(enum.StrEnum):
    """The action that a one-time link allows. The value is stored as text."""

    INVITATION = "invitation"
    RESET = "reset"
    SIGN_IN = "sign-in"
    JOURNEY = "journey"
    SECOND_STEP = "second-step"
    WINDOW_CODE = "voucher"
    CONFIRMATION = "confirmation"
    MODERATION = "moderation"
    PASSKEY = "passkey"
    NEW_PASSKEY = "new-passkey"


class UnusedLink(NamedTuple):
    """A ticket that nobody has used. The token cannot be derived from `id`, which is a digest."""

    id: str
    content: str
    expires: datetime


def new_token() -> str:
    """Return a random token, for a link or for an attempt to use a link."""
    return secrets.token_urlsafe(32)


def issue_writes(
    token: str, purpose: LinkPurpose, content: str, secret: str, *, now: datetime, term: timedelta
) -> ownership.Writes:
    """Return the writes that create a one-time link, for use in a transaction."""
    row = account_rows.TicketRow(
        key=_keys(token, secret)[0],
        purpose=purpose,
        content=content,
        expires=now + term,
    )
    return ownership.Writes(_OWNER, put=(row,))


def issue(
    purpose: LinkPurpose, content: str, secret: str, *, now: datetime, term: timedelta
) -> str:
    """Create a one-time link and return its token."""
    token = new_token()
    sweep(now=now)

    def body() -> None:
        transactions.apply(issue_writes(token, purpose, content, secret, now=now, term=term))

    transactions.transaction(body)
    return token


def use_writes(
    token: str, purpose: LinkPurpose, attempt: str, secret: str, *, now: datetime
) -> tuple[str, ownership.Writes]:
    """Return a ticket's content and the writes that mark it as used, in the action's transaction.

    `attempt` must be the same in all runs of one transaction, and differ between transactions.

    Raises:
        errors.BadLink: the token is not valid for this purpose, was used, or has expired.
    """
    row = _row(token, secret) if _TOKEN.fullmatch(token) else None
    if row is None or row.purpose != purpose or row.used not in {"", attempt}:
        raise errors.BadLink
    if row.used != attempt and now >= row.expires:
        raise errors.BadLink("link-expired")
    content = str(row.content)
    row.used = attempt
    return content, ownership.Writes(_OWNER, put=(row,))


def spend_writes(
    subject: str, purpose: LinkPurpose, attempt: str, secret: str, *, now: datetime, term: timedelta
) -> ownership.Writes:
    """Return the writes that mark a subject without a link as used. Call this in a transaction.

    A subject can be used once. After `term`, the caller must refuse the subject because of its age.
    `attempt` has the same meaning as in `use_writes`.

    Raises:
        errors.BadLink: the subject was used already.
    """
    key, row = _keys(subject, secret)[0], _row(subject, secret)
    if row is not None and row.used != attempt:
        raise errors.BadLink("link-used")
    row = account_rows.TicketRow(
        key=key, purpose=purpose, content="", expires=now + term, used=attempt
    )
    return ownership.Writes(_OWNER, put=(row,))


def is_spent(subject: str, secret: str) -> bool:
    """Return whether `spend_writes` has marked a subject as used."""
    return _row(subject, secret) is not None


def content_of(token: str, secret: str) -> str | None:
    """Return the content of a token's link, used or not, or None if there is no link."""
    row = _row(token, secret)
    return None if row is None else str(row.content)


def list_unused(purpose: LinkPurpose, *, now: datetime) -> list[UnusedLink]:
    """List the valid tickets for a purpose, the first to expire first; at most `_MOST_LISTED`."""
    names = reads.names("Ticket", [("purpose", "=", purpose)], limit=_MOST_LISTED)
    rows = reads.get_multi([account_rows.link_key(name) for name in names])
    links = [
        UnusedLink(row.key.id(), row.content, row.expires)
        for row in rows
        if row is not None and not row.used and now < row.expires
    ]
    return sorted(links, key=lambda link: link.expires)


def withdraw(link: str, purpose: LinkPurpose) -> None:
    """Delete an unused ticket with this id (`UnusedLink.id`).

    Raises:
        errors.BadLink: there is no such ticket for this purpose, or it was used.
    """

    def body() -> None:
        row = reads.get(account_rows.link_key(link)) if link else None
        if row is None or row.purpose != purpose or row.used:
            raise errors.BadLink
        transactions.apply(ownership.Writes(_OWNER, delete=(row.key,)))

    transactions.transaction(body)


def content_writes(token: str, content: str, secret: str) -> ownership.Writes:
    """Return the writes that replace a ticket's content, for the transaction that read it."""
    row = _row(token, secret)
    assert row is not None, "it was read"  # noqa: S101 - a bug here, no input
    row.content = content
    return ownership.Writes(_OWNER, put=(row,))


def sweep(*, now: datetime) -> None:
    """Delete a few expired one-time links."""
    names = reads.names("Ticket", [("expires", "<", now)], limit=_SWEPT)

    def body() -> None:
        gone = tuple(account_rows.link_key(name) for name in names)
        transactions.apply(ownership.Writes(_OWNER, delete=gone))

    if names:
        transactions.transaction(body)


def _row(token: str, secret: str) -> account_rows.TicketRow | None:
    rows = reads.get_multi(_keys(token, secret))
    return next((row for row in rows if row is not None), None)


def _keys(token: str, secret: str) -> list[schema.RowKey]:
    """Return the possible keys of a token's link. A new link gets the first key."""
    made = keyed_hashes.every(secret, "ticket", token)
    return [account_rows.link_key(keyed_hashes.text(digest)) for digest in made]
