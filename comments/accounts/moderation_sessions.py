"""Store the sessions of moderators in threads on the pages of a site.

Owns the kind ModerationSession and the format of its token: "m.{account id}.{256 random bits}". A
moderator grants a session in a window of this service, and the page that opened the window
exchanges the window's code for the token (`window_codes`). Scripts of the page can read the token,
so a session allows far less than its account: decisions about the comments of one site.

Invariants:

1. The store holds only a keyed digest of the token.
2. A session belongs to one site and one origin. It is valid while its account may moderate the
   site.
3. A session ends `TERM` after it began, when it is revoked, when an owner turns off moderation in
   the thread, when the account begins more than `MOST` sessions, or when the account's `epoch`
   changes (a different role, password or authenticator, or signing out everywhere), whichever
   comes first. Use does not extend a session.
4. An ended session never becomes valid again: recording a use does not restore a deleted session.
"""

import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from google.cloud import ndb

from comments.accounts import accounts, one_time_links, reader_accounts, window_codes
from comments.domain import decoders, roles
from comments.domain.crypto import keyed_hashes
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, conversion

_OWNER = "accounts"
_KIND = "ModerationSession"
_PURPOSE = "moderation session"
TERM = timedelta(hours=12)
# `seen` is updated at most this often, no matter how often the session is used.
_FRESH = timedelta(minutes=10)
MOST = 20  # sessions per account; one more ends the oldest session
_TOKEN = re.compile(r"m\.[a-z2-7]{26}\.[A-Za-z0-9_-]{43}")


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


class Begun(NamedTuple):
    """A new session and its token."""

    token: str
    session: ModerationSession


class _Granted(msgspec.Struct, frozen=True):
    """The content of a voucher: the account that granted a session, and the page's origin."""

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
    window_codes.checked_challenge(challenge)
    content = msgspec.json.encode(_Granted(account.id, account.epoch, origin)).decode()
    claim = window_codes.Claim(one_time_links.LinkPurpose.MODERATION, site, content)
    return window_codes.issue(claim, challenge, secret=secret, now=now)


def begin(
    shown: window_codes.PresentedCode, site: str, origin: str | None, *, secret: str, now: datetime
) -> Begun:
    """Begin a session with a code. `origin` is the caller's, or None if the browser sends none.

    Raises:
        reader_accounts.Refused: the code is not valid (see `window_codes.redeem`), belongs to a
            different origin, or the account has changed since it granted the session.
    """
    bits = secrets.token_urlsafe(32)

    def body(content: str) -> Begun:
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
            key=_keys(token, secret)[0],
            site=site,
            origin=granted.origin,
            epoch=account.epoch,
            created=now,
            seen=now,
        )
        others = [each for each in _rows(granted.account) if each.key != row.key]
        over = [each for each in others if not _is_good(each, account.epoch, now)]
        spare = [each for each in others if each not in over]
        over += spare[: max(0, len(spare) - MOST + 1)]
        gone = tuple(each.key for each in over)
        transactions.apply(ownership.Writes(_OWNER, put=(row,), delete=gone))
        return Begun(token, _session(accounts.record(account), row))

    purpose = one_time_links.LinkPurpose.MODERATION
    return window_codes.redeem(purpose, site, shown, body, secret=secret, now=now)


def find(token: str, secret: str, *, now: datetime) -> ModerationSession | None:
    """Return a token's session, or None if the token is not valid.

    Raises:
        errors.Overloaded: the store did not answer.
    """
    keys = _keys(token, secret)
    if not keys:
        return None
    owner, *rows = reads.get_multi([account_rows.account_key(token.split(".")[1]), *keys])
    row = next((each for each in rows if each is not None), None)
    if row is None or owner is None or not _is_good(row, owner.epoch, now):
        return None
    account = accounts.record(owner)
    if not account.may(roles.Right.MODERATE, row.site):
        return None
    if now - row.seen > _FRESH:
        _touch(row.key, now)
    return _session(account, row)


def of_account(account: accounts.Account, *, now: datetime) -> list[ModerationSession]:
    """Return an account's valid sessions, oldest first."""
    found = (row for row in _rows(account.id) if _is_good(row, account.epoch, now))
    return [_session(account, row) for row in found]


def end(token: str, secret: str) -> None:
    """End a token's session. Do nothing if the session has ended or the token is malformed."""
    _delete(_keys(token, secret))


def revoke(account: str, session: str) -> None:
    """End a session of an account by its id. Do nothing if the session has ended."""
    _delete([account_rows.moderation_session_key(account, session)])


def end_all(site: str) -> None:
    """End all sessions on a site."""
    query = reads.Query(_KIND, [("site", "=", site)], keys_only=True)
    paths = [entity.key.path for entity in reads.fetch(query)]
    for path in paths:
        _delete([account_rows.moderation_session_key(path[0].name, path[-1].name)])


def _keys(token: str, secret: str) -> list[ndb.Key]:
    """Return the possible keys of a token's session, or none if the token is malformed.

    A new session gets the first key.
    """
    if not _TOKEN.fullmatch(token):
        return []
    account = token.split(".")[1]
    made = keyed_hashes.every(secret, _PURPOSE, token)
    return [account_rows.moderation_session_key(account, keyed_hashes.text(each)) for each in made]


def _rows(account: str) -> Sequence[account_rows.ModerationSessionRow]:
    """Return an account's stored sessions, valid or not, oldest first."""
    query = reads.Query(_KIND, ancestor=account_rows.account_key(account), keys_only=True)
    names = [entity.key.path[-1].name for entity in reads.fetch(query)]
    keys = [account_rows.moderation_session_key(account, name) for name in names]
    rows = [row for row in reads.get_multi(keys) if row is not None]
    return sorted(rows, key=lambda row: row.created)


def _session(
    account: accounts.Account, row: account_rows.ModerationSessionRow
) -> ModerationSession:
    created, seen = conversion.plain(row.created), conversion.plain(row.seen)
    return ModerationSession(account, row.key.id(), row.site, row.origin, created, seen)


def _is_good(row: account_rows.ModerationSessionRow, epoch: str, now: datetime) -> bool:
    return bool(row.epoch == epoch and now - row.created < TERM)


def _delete(keys: Sequence[ndb.Key]) -> None:
    def body() -> None:
        transactions.apply(ownership.Writes(_OWNER, delete=tuple(keys)))

    if keys:
        transactions.transaction(body)


def _touch(key: ndb.Key, now: datetime) -> None:
    def body() -> None:
        row = reads.get(key)
        if row is not None and row.seen < now:  # do not restore an ended session
            row.seen = now
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)
