"""Store the rows of both kinds of sessions below their account, found by a token's digest.

The store contains only a keyed digest of the token. A session is valid only with the `epoch` that
its account had when it began. Recording a use does not restore a deleted session.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from comments.domain.crypto import keyed_hashes
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, schema

_OWNER = "accounts"
MOST = 20  # Maximum number per account and kind; one more session ends the first by `order`
# `seen` is updated at most this often, no matter how often the session is used.
_FRESH = timedelta(minutes=10)


class SessionKind(NamedTuple):
    """A kind of sessions. The first group of `token` is the account's id.

    `is_over` decides from a row's times whether its session has expired. `order` names the time by
    which sessions are sorted when surplus ones are ended.
    """

    name: str
    key: Callable[[str, str], schema.RowKey]
    purpose: str
    token: re.Pattern[str]
    is_over: Callable[[Any, datetime], bool]
    order: str

    def keys(self, token: str, secret: str) -> list[schema.RowKey]:
        """Return the possible keys of a token's session, or none if the token is malformed.

        A new session gets the first key.
        """
        match = self.token.fullmatch(token)
        if match is None:
            return []
        made = keyed_hashes.every(secret, self.purpose, token)
        return [self.key(match[1], keyed_hashes.text(digest)) for digest in made]

    def find(self, token: str, secret: str, *, now: datetime) -> tuple[Any, Any] | None:
        """Return the rows of a valid session's account and of the session, and record the use."""
        match = self.token.fullmatch(token)
        if match is None:
            return None
        above = account_rows.account_key(match[1])
        account, *rows = reads.get_multi([above, *self.keys(token, secret)])
        row = next((candidate for candidate in rows if candidate is not None), None)
        if row is None or account is None or not self.is_valid(row, account.epoch, now):
            return None
        if now - row.seen > _FRESH:
            _touch(row.key, now)
        return account, row

    def is_valid(self, row: Any, epoch: str, now: datetime) -> bool:
        return bool(row.epoch == epoch and not self.is_over(row, now))

    def of_account(self, account: str) -> list[Any]:
        """Return an account's rows in order."""
        above = account_rows.account_key(account)
        keys = [self.key(account, name) for name in reads.names(self.name, ancestor=above)]
        rows = [row for row in reads.get_multi(keys) if row is not None]
        return sorted(rows, key=lambda row: getattr(row, self.order))

    def begin_writes(self, row: Any, account: Any, *, now: datetime) -> ownership.Writes:
        """Return the writes that begin a session and end invalid and surplus ones."""
        others = [other for other in self.of_account(account.key.id()) if other.key != row.key]
        over = [other for other in others if not self.is_valid(other, account.epoch, now)]
        spare = [other for other in others if other not in over]
        over += spare[: max(0, len(spare) - MOST + 1)]
        return ownership.Writes(_OWNER, put=(row,), delete=tuple(ended.key for ended in over))


def end(keys: Sequence[schema.RowKey]) -> None:
    """Delete sessions."""
    writes = ownership.Writes(_OWNER, delete=tuple(keys))
    if keys:
        transactions.transaction(lambda: transactions.apply(writes))


def _touch(key: schema.RowKey, now: datetime) -> None:
    def body() -> None:
        row = reads.get(key)
        if row is not None and row.seen < now:
            row.seen = now
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)
