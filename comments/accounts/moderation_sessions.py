"""Store the sessions of moderators in threads on the pages of a site.

Owns the kind ModerationSession and the format of its token: "m.{account id}.{256 random bits}". A
moderator grants a session in a window of this service, and the page that opened the window
exchanges the window's code for the token (`window_codes`). Scripts of the page can read the token,
so a session allows far less than its account: decisions about the comments of one site.

A session is valid while its account may moderate the site. It ends `TERM` after it began, no matter
how often it is used. It ends earlier if it is revoked, if an owner turns off moderation in the
thread, if the account begins too many other sessions (`session_rows.MOST`), or if the account's
`epoch` changes.
"""

import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from comments.accounts import accounts, reader_accounts, session_rows
from comments.accounts.links import one_time_links, window_codes
from comments.domain import decoders
from comments.domain.moderation import roles
from comments.store import reads, transactions
from comments.store.models import account_rows

TERM = timedelta(hours=12)
_TOKEN = re.compile(r"m\.([a-z2-7]{26})\.[A-Za-z0-9_-]{43}")
KIND = session_rows.SessionKind(
    "ModerationSession",
    account_rows.moderation_session_key,
    purpose="moderation session",
    token=_TOKEN,
    is_over=lambda row, now: now - row.created >= TERM,
    order="created",
)


class ModerationSession(NamedTuple):
    """A valid session. `id` identifies the session to its account without revealing the token."""

    account: accounts.Account
    id: str
    site: str
    origin: str
    created: datetime
    seen: datetime

    @property
    def expires(self) -> datetime:
        return self.created + TERM


class NewSession(NamedTuple):
    """A new session and its token."""

    token: str
    session: ModerationSession


class _Granted(msgspec.Struct, frozen=True):
    """The content of a window code: the account that granted a session, and the page's origin."""

    account: str
    epoch: str
    origin: str


def grant(
    account: accounts.Account, site: str, origin: str, challenge: str, *, secret: str, now: datetime
) -> str:
    """Return the code with which the page at `origin` begins a session.

    The caller must have checked the origin, and that the account may moderate the site.

    Raises:
        errors.BadInput: the challenge is malformed.
        errors.Conflict: the challenge was used before.
    """
    window_codes.check_challenge(challenge)
    content = msgspec.json.encode(_Granted(account.id, account.epoch, origin)).decode()
    claim = window_codes.Claim(one_time_links.LinkPurpose.MODERATION, site, content)
    return window_codes.issue(claim, challenge, secret=secret, now=now)


def begin(
    shown: window_codes.PresentedCode, site: str, origin: str | None, *, secret: str, now: datetime
) -> NewSession:
    """Begin a session with a code. `origin` is the caller's origin, or None if not sent.

    Raises:
        reader_accounts.Refused: the code is not valid (see `window_codes.redeem`), belongs to a
            different origin, or the account has changed since it granted the session.
    """
    bits = secrets.token_urlsafe(32)

    def body(content: str) -> NewSession:
        granted = decoders.json(_Granted).decode(content)
        account = reads.get(account_rows.account_key(granted.account))
        if (
            account is None
            or account.epoch != granted.epoch
            or origin not in {None, granted.origin}
        ):
            raise reader_accounts.Refused("code-expired")
        token = f"m.{granted.account}.{bits}"
        row = account_rows.ModerationSessionRow(
            key=KIND.keys(token, secret)[0],
            site=site,
            origin=granted.origin,
            epoch=account.epoch,
            created=now,
            seen=now,
        )
        transactions.apply(KIND.begin_writes(row, account, now=now))
        return NewSession(token, _session(accounts.record(account), row))

    purpose = one_time_links.LinkPurpose.MODERATION
    return window_codes.redeem(purpose, site, shown, body, secret=secret, now=now)


def find(token: str, secret: str, *, now: datetime) -> ModerationSession | None:
    """Return a token's session, or None if the token is not valid.

    Raises:
        errors.Overloaded: the store did not answer.
    """
    rows = KIND.find(token, secret, now=now)
    if rows is None:
        return None
    account, row = accounts.record(rows[0]), rows[1]
    return _session(account, row) if account.may(roles.Right.MODERATE, row.site) else None


def of_account(account: accounts.Account, *, now: datetime) -> list[ModerationSession]:
    """Return an account's valid sessions, oldest first."""
    rows = KIND.of_account(account.id)
    return [_session(account, row) for row in rows if KIND.is_valid(row, account.epoch, now)]


def end(token: str, secret: str) -> None:
    """End a token's session. Do nothing if the session has ended or the token is malformed."""
    session_rows.end(KIND.keys(token, secret))


def revoke(account: str, session: str) -> None:
    """End a session of an account by its id. Do nothing if the session has ended."""
    session_rows.end([account_rows.moderation_session_key(account, session)])


def end_all(site: str) -> None:
    """End all sessions on a site."""
    query = reads.Query(KIND.name, [("site", "=", site)], keys_only=True)
    for account, session in [entity.key.path for entity in reads.fetch(query)]:
        revoke(account.name, session.name)


def _session(
    account: accounts.Account, row: account_rows.ModerationSessionRow
) -> ModerationSession:
    created, seen = row.created, row.seen
    return ModerationSession(account, row.key.id(), row.site, row.origin, created, seen)
