"""Limits: how often something may happen to one subject within a while, in all processes together.

Owns the kind RateBucket. A subject (a network, a mail address) is counted in one of `SLOTS` buckets
for each purpose, chosen by a keyed digest. So the store never holds more of them, however many
subjects come; nobody who lacks the secret can choose whom to share a bucket with; and a bucket says
nothing of its subjects. Two that share one, which is rare, share its limit.

    RateBucket  key: "{purpose}/{slot}"; `count` since `began`

`take` belongs into the transaction of what it limits: whoever loses a race counts again.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from comments import datastore, digests, models

SLOTS = 1 << 16
_OWNER = "limits"


class Limit(NamedTuple):
    """At most so many of a purpose in a window. The purpose's name is stored."""

    purpose: str
    most: int
    window: timedelta


class Bucket:
    """One subject's bucket in a transaction: read first, then `take` from it."""

    def __init__(self, limit: Limit, subject: str, secret: str) -> None:
        self.limit = limit
        made = digests.keyed(secret, "limit", limit.purpose, subject)
        self.key = models.rate_bucket_key(f"{limit.purpose}/{int.from_bytes(made[:8]) % SLOTS}")
        self._row: models.RateBucket | None = None

    def fill(self, row: models.RateBucket | None, *, now: datetime) -> None:
        """Take what stands at `key`; a window that is over counts no more."""
        began: datetime | None = None if row is None else row.began
        # One that begins in the future was written by a clock far ahead: it must not last for ever.
        if row is None or began is None or abs(now - began) >= self.limit.window:
            row = models.RateBucket(key=self.key, began=now, count=0)
        self._row = row

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left in this window."""
        assert self._row is not None, "fill it first"  # noqa: S101 - a bug here, no input
        return bool(self._row.count >= self.limit.most)

    @property
    def count(self) -> int:
        """How many were counted in this window."""
        assert self._row is not None, "fill it first"  # noqa: S101 - a bug here, no input
        return int(self._row.count)

    def wait(self, now: datetime) -> int:
        """Seconds until the window is over, at least one."""
        assert self._row is not None, "fill it first"  # noqa: S101 - same
        left = self._row.began + self.limit.window - now
        return max(1, int(left.total_seconds()))

    def take(self) -> datastore.Writes:
        """Count one more."""
        assert self._row is not None, "fill it first"  # noqa: S101 - same
        self._row.count += 1
        return datastore.Writes(_OWNER, put=(self._row,))


def take(limit: Limit, subject: str, secret: str, *, now: datetime) -> bool:
    """Count one more of a subject, unless there were too many; whether it was counted."""
    bucket = Bucket(limit, subject, secret)

    def body() -> bool:
        bucket.fill(datastore.get(bucket.key), now=now)
        if bucket.is_empty:
            return False
        datastore.apply(bucket.take())
        return True

    return datastore.transaction(body)


def count(limit: Limit, subject: str, secret: str, *, now: datetime) -> int:
    """Count one more of a subject, whatever the limit; how many there are in this window."""
    bucket = Bucket(limit, subject, secret)

    def body() -> int:
        bucket.fill(datastore.get(bucket.key), now=now)
        datastore.apply(bucket.take())
        return bucket.count

    return datastore.transaction(body)
