"""Staff notices: who gets which mail about the comments of a site (pure).

A recipient is an account with a role on the site, or an address that an owner entered. Accounts
are stored by id, so their addresses stay encrypted with the account.

The digest of a day ends at the recipient's hour (UTC) and begins where the previous digest ended.
"""

import enum
import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from comments.domain import decoders

MOST = 50  # Recipients of a site
FIRST_HOUR = 8  # The hour (UTC) of a digest if nobody chose another one
LAST_HOUR = 23
_DAY = timedelta(days=1)


class NoticeChoice(enum.StrEnum):
    """The comments that a recipient gets mail about. Stored as text."""

    EACH = "each"
    HELD = "held"
    DAILY = "daily"
    NONE = "none"


class StaffRecipient(msgspec.Struct, frozen=True, omit_defaults=True):
    """A recipient and their choice. `who` is an account's author id, or an address.

    `since` is the end of the last digest, and `hour` the hour of the next ones.
    """

    who: str
    choice: NoticeChoice
    hour: int = FIRST_HOUR
    since: datetime | None = None

    @property
    def is_address(self) -> bool:
        return "@" in self.who

    @property
    def mark(self) -> str:
        """Return a digest that names the recipient in events, which contain no address."""
        return hashlib.sha256(self.who.encode()).hexdigest()[:32]

    def next_end(self) -> datetime | None:
        """Return when the recipient's next digest ends, or None if they get none."""
        if self.choice is not NoticeChoice.DAILY or self.since is None:
            return None
        end = self.since.replace(hour=self.hour, minute=0, second=0, microsecond=0)
        return end if end > self.since else end + _DAY

    def due_end(self, now: datetime) -> datetime | None:
        """Return the end of the digest that is due, or None. One digest covers all missed days."""
        end = self.next_end()
        if end is None or end > now:
            return None
        return end + (now - end) // _DAY * _DAY


def decode(stored: str) -> tuple[StaffRecipient, ...]:
    """Decode a site's stored choices; "" stands for none."""
    made: tuple[StaffRecipient, ...] = decoders.json(tuple[StaffRecipient, ...]).decode(
        stored or "[]"
    )
    return made


def encode(recipients: Iterable[StaffRecipient]) -> str:
    """Encode the choices that differ from what `merge` assumes."""
    kept = [
        recipient
        for recipient in recipients
        if not recipient.is_address or recipient.choice is not NoticeChoice.HELD
    ]
    return msgspec.json.encode(kept).decode() if kept else ""


def prune(stored: str, addresses: Sequence[str]) -> str:
    """Return stored choices without those of addresses that are no longer recipients."""
    return encode(
        recipient
        for recipient in decode(stored)
        if not recipient.is_address or recipient.who in addresses
    )


def merge(addresses: Sequence[str], stored: Iterable[StaffRecipient]) -> tuple[StaffRecipient, ...]:
    """Return a site's recipients, given its list of addresses and the stored choices.

    An address without a stored choice gets mail about held comments only.
    """
    by_name = {recipient.who: recipient for recipient in stored}
    listed = [
        by_name.get(recipient) or StaffRecipient(recipient, NoticeChoice.HELD)
        for recipient in addresses
    ]
    return (*listed, *(recipient for recipient in by_name.values() if not recipient.is_address))
