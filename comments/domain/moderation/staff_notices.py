"""Staff notices: who gets which mail about the comments of a site (pure).

A recipient is an account with a role on the site, or an address that an owner entered. Accounts
are stored by id, so their addresses stay encrypted with the account.

The digest of a day ends at the recipient's hour in their time zone and begins where the previous
digest ended. Each local day has exactly one digest, also when summer time begins or ends
(`StaffRecipient._end_of`).
"""

import enum
import functools
import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import msgspec

from comments.domain import decoders

MOST = 50  # Recipients of a site
FIRST_HOUR = 8  # The hour of a digest if nobody chose another one
LAST_HOUR = 23
NO_ZONE = "UTC"
_DAY = timedelta(days=1)


class NoticeChoice(enum.StrEnum):
    """The comments that a recipient gets mail about. Stored as text."""

    EACH = "each"
    HELD = "held"
    DAILY = "daily"
    NONE = "none"


class StaffRecipient(msgspec.Struct, frozen=True, omit_defaults=True):
    """A recipient and their choice. `who` is an account's author id, or an address.

    `since` is the end of the last digest, `hour` the hour of the next ones, and `zone` the name of
    its time zone. UTC replaces a zone that this machine does not know.
    """

    who: str
    choice: NoticeChoice
    hour: int = FIRST_HOUR
    since: datetime | None = None
    zone: str = NO_ZONE

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
        return min(end for end in self._ends(self.since) if end > self.since)

    def due_end(self, now: datetime) -> datetime | None:
        """Return the end of the digest that is due, or None. One digest covers all missed days."""
        end = self.next_end()
        if end is None or end > now:
            return None
        return max(end for end in self._ends(now) if end <= now)

    def _ends(self, moment: datetime) -> list[datetime]:
        """Return the ends of the digests of the local days around a moment."""
        from zoneinfo import ZoneInfo  # noqa: PLC0415 - few processes need it

        zone = ZoneInfo(self.zone) if self.zone in zones() else UTC
        today = moment.astimezone(zone).date()
        return [self._end_of(today + days * _DAY, zone) for days in (-1, 0, 1, 2)]

    def _end_of(self, day: date, zone: tzinfo) -> datetime:
        """Return the end of the digest of a local day: at the first of two equal hours.

        If summer time skips the hour, the digest ends an hour later, or an hour earlier if the
        later hour is on the next day.
        """
        first, second = (
            datetime.combine(day, time(self.hour, fold=fold), zone).astimezone(UTC)
            for fold in (0, 1)
        )
        return first if first.astimezone(zone).date() == day else second


@functools.cache
def zones() -> frozenset[str]:
    """Return the names of the time zones that this machine knows, without abbreviations."""
    import zoneinfo  # noqa: PLC0415 - few processes need it

    known = zoneinfo.available_timezones()
    return frozenset(name for name in known if "/" in name and name[:4] != "Etc/") | {NO_ZONE}


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
