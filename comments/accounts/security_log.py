"""Keep a security log for each account: sign-ins, and changes to how the account is protected.

Owns the kind SecurityLog, one row per account with a role:

    SecurityLog  key: account id; `entries`: JSON, oldest first, each [event, seconds since 1970,
                 actor, network]; `due`: when the oldest entry expires; `language`: of the mails

The actor is "" for the account's owner, `OPERATOR`, or the id of another account. The network is
the beginning of a keyed digest that differs between accounts: it shows which entries came from the
same network, and nothing else.

An entry is written in the transaction of the change, together with the event for the mail about it.
The log keeps the last `MOST` entries, for `TERM`: an owner who looks after a long holiday still
finds what happened, and older sign-ins say little about a current attack. Rate limits bound the
number of sign-ins, so a stranger cannot push entries out of the log by guessing: at most one entry
in `_BLOCKED_ONCE` says that sign-in was blocked.
"""

import enum
import string
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from comments.domain import decoders
from comments.domain.crypto import keyed_hashes
from comments.events import backlog, mail_jobs, outbox
from comments.store import ownership, reads, transactions
from comments.store.memory import per_process
from comments.store.models import account_rows

_OWNER = "accounts"
OPERATOR = "operator"  # The actor of commands on the server
MOST = 100
TERM = timedelta(days=90)
_BLOCKED_ONCE = timedelta(minutes=15)  # The window of the limit for attempts
_NETWORK = 8  # Characters of a network's digest: 40 bits, to tell a few networks apart
_NOBODY = "nobody"  # The id of the row for names without an account, which nobody reads
_EVERY = 3600.0  # Minimum seconds between two searches of a process for expired entries
_AT_ONCE = 100
_LOOKS = per_process.PerProcess(dict[str, float])


class SecurityEvent(enum.StrEnum):
    """What happened to an account. The values are stored."""

    JOINED = "joined"
    SIGNED_IN = "signed-in"
    BLOCKED = "blocked"
    PASSWORD = "password"  # noqa: S105 - the name of an event
    RESET_LINK = "reset-link"
    AUTHENTICATOR_ADDED = "authenticator-added"
    AUTHENTICATOR_REMOVED = "authenticator-removed"
    RECOVERY_USED = "recovery-used"
    RECOVERY_RENEWED = "recovery-renewed"
    ADDRESS = "address"
    PASSKEY_ADDED = "passkey-added"
    PASSKEY_REMOVED = "passkey-removed"
    PROVIDER_LINKED = "provider-linked"
    PROVIDER_UNLINKED = "provider-unlinked"
    ROLES = "roles"
    SESSIONS_ENDED = "sessions-ended"


# The changes about which the account's owner gets a mail. Sign-ins are too many for mails, and a
# reset link changes nothing until it is used.
MAILED = frozenset(SecurityEvent) - {
    SecurityEvent.JOINED,
    SecurityEvent.SIGNED_IN,
    SecurityEvent.BLOCKED,
    SecurityEvent.RESET_LINK,
    SecurityEvent.SESSIONS_ENDED,
}


class Cause(NamedTuple):
    """Who acts, from which network, and when. All runs of one transaction use the same cause.

    `by` is an account's id, `OPERATOR`, or "" for the owner of the account that is changed.
    `language` is that of the actor's browser. `sends_mail` says whether the service sends mail.
    """

    by: str
    network: str
    secret: str
    now: datetime
    language: str = "en"
    sends_mail: bool = False


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An entry of a log, as it is stored."""

    event: SecurityEvent
    at: int
    by: str = ""
    network: str = ""

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)


def append(account: str, cause: Cause, *events: SecurityEvent, address: str = "") -> None:
    """Append entries, and queue the mails about them, to the encrypted `address` if there is one.

    Call this once in the transaction of the change, which also reads or writes the account's row.
    """
    row = _row(account) or account_rows.SecurityLogRow(key=account_rows.security_log_key(account))
    by = "" if cause.by == account else cause.by
    network = cause.network and keyed_hashes.text(
        keyed_hashes.keyed_digest(cause.secret, "security log", account, cause.network)
    )
    at = int(cause.now.timestamp())
    if not by and cause.network:
        row.language = cause.language
    made = [Entry(event, at, by, network[:_NETWORK]) for event in events]
    _fill(row, [*_recent_entries(_entries(row), cause.now), *made][-MOST:])
    transactions.apply(ownership.Writes(_OWNER, put=(row,)))
    if cause.sends_mail:
        for entry in made:
            if entry.event in MAILED:
                job = mail_jobs.AccountMail(account, entry.event, by, at, row.language, address)
                _queue_mail(job, cause)


def language_of(account: str) -> str:
    """Return the language of the browser that last signed in, or "" if it is not known."""
    row = _row(account)
    return "" if row is None else row.language


def note_blocked(account: str, cause: Cause) -> None:
    """Note that there were too many sign-in attempts, at most once in their window.

    For an id without an account, the same calls to the store are made, so that the time of the
    response does not say whether the account exists.
    """

    def body() -> None:
        row = reads.get(account_rows.account_key(account))
        log = account if row is not None else _NOBODY
        who = "" if row is not None else account
        since = int((cause.now - _BLOCKED_ONCE).timestamp())
        if not any(
            entry.event is SecurityEvent.BLOCKED and entry.by == who and entry.at > since
            for entry in _entries(_row(log))
        ):
            append(log, cause._replace(by=who), SecurityEvent.BLOCKED)

    transactions.transaction(body)


def list_entries(account: str, *, now: datetime) -> list[Entry]:
    """Return an account's entries, newest first."""
    return _recent_entries(_entries(_row(account)), now)[::-1]


def with_network_names(entries: Sequence[Entry]) -> list[tuple[Entry, str]]:
    """Return entries, newest first, each with a name for its network: A, B, ...; "" if unknown.

    A is the network that was first used.
    """
    order = list(dict.fromkeys(entry.network for entry in reversed(entries) if entry.network))
    return [(entry, _network_name(order, entry.network)) for entry in entries]


def expire(now: datetime) -> int:
    """Delete expired entries, at most once an hour; return the number of changed logs."""
    looks = _LOOKS.get()
    if time.monotonic() < looks.get("next", 0.0):
        return 0
    looks["next"] = time.monotonic() + _EVERY
    number = 0
    while names := reads.names("SecurityLog", [("due", "<=", now)], limit=_AT_ONCE):
        for name in names:
            number += transactions.transaction(lambda name=name: _prune(name, now))  # type: ignore[misc]
    return number


def _queue_mail(job: mail_jobs.AccountMail, cause: Cause) -> None:
    # The id is the same in all runs of the transaction.
    moment = f"{cause.now.timestamp():.6f}".replace(".", "-")
    event = outbox.mail_id(mail_jobs.tag(job), job.account, job.event, moment)
    row = outbox.follow(outbox.EventKind.MAIL, event, mail_jobs.encode(job), due=cause.now)
    transactions.apply(outbox.follow_up_writes([row]))
    transactions.afterwards(lambda: backlog.tell(event))


def _prune(name: str, now: datetime) -> int:
    row = _row(name)
    if row is None or row.due > now:
        return 0
    entries = _recent_entries(_entries(row), now)
    if not entries:
        transactions.apply(ownership.Writes(_OWNER, delete=(row.key,)))
        return 1
    _fill(row, entries)
    transactions.apply(ownership.Writes(_OWNER, put=(row,)))
    return 1


def _network_name(order: Sequence[str], network: str) -> str:
    if not network:
        return ""
    number, letters = order.index(network), string.ascii_uppercase
    return letters[number % 26] + (str(number // 26) if number >= 26 else "")  # noqa: PLR2004


def _fill(row: account_rows.SecurityLogRow, entries: Sequence[Entry]) -> None:
    row.entries = msgspec.json.encode(entries).decode()
    row.due = entries[0].time + TERM


def _recent_entries(entries: Sequence[Entry], now: datetime) -> list[Entry]:
    return [entry for entry in entries if entry.time + TERM > now]


def _entries(row: account_rows.SecurityLogRow | None) -> list[Entry]:
    return [] if row is None else decoders.json(list[Entry]).decode(row.entries)


def _row(account: str) -> account_rows.SecurityLogRow | None:
    row: account_rows.SecurityLogRow | None = reads.get(account_rows.security_log_key(account))
    return row
