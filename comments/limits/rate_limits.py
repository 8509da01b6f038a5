"""Apply rate limits per subject and time window, across all processes.

Owns the kind RateBucket. Each purpose has `SLOTS` buckets. A keyed digest selects the bucket in
which a subject (such as a network or a mail address) is counted. The number of buckets therefore
does not grow with the number of subjects. Without the secret, an attacker cannot choose a subject
that shares a victim's bucket, and a bucket reveals nothing about its subjects. In the rare case
that two subjects share a bucket, they also share its limit.

    RateBucket  key: "{purpose}/{slot}"; `count` since `began`; may be deleted after `ends`
                `recent`: the counted actions, 28 bytes each, oldest first (`CountedItem`):
                    seconds since 1970 (4, big endian)  what  text  proof (8 each, digests)

Call `count_writes` in the transaction of the limited action. If the transaction conflicts with
another one, it runs again and therefore also counts again.

A `Network` applies a limit per network. It consists of the bucket for the network itself and, for
IPv6, a bucket for each wider network around it (`client_networks.WIDER`). Wider networks have their
own purposes, so a wider network never shares a bucket with a single /64.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from comments.domain.crypto import client_networks, keyed_hashes
from comments.store import ownership, reads, transactions
from comments.store.models import event_rows, schema

SLOTS = 1 << 16
_OWNER = "rate_limits"


_MARK = struct.Struct(">I8s8s8s")
_UNMARKED = b""
NOTHING = bytes(8)
_FEW = 64  # Maximum number of marks without a proof; others are kept for `keeps`.
_MOST = 500  # Maximum number of marks of both types in one bucket: 14 kB.
_HOUR = 3600
_LONG_AGO = datetime.fromtimestamp(0, UTC)
UNLIMITED = 1 << 60
_AT_ONCE = 500  # Number of keys that one commit can delete (Datastore's limit)


class Limit(NamedTuple):
    """The maximum number of actions per subject in a window. The purpose's name is stored.

    `keeps` is the time for which a `RateLimitJournal` remembers counted actions.
    """

    purpose: str
    most: int
    window: timedelta
    keeps: timedelta = timedelta(0)

    def wider(self, factor: int) -> "Limit":
        """Return the limit for a wider network: `factor` times the actions in the same window."""
        return Limit(f"{self.purpose} x{factor}", self.most * factor, self.window)


class CountedItem(NamedTuple):
    """One counted action: its time, and digests of the action, its text and its proof."""

    at: int
    what: bytes
    text: bytes = NOTHING
    proof: bytes = NOTHING


class RateLimitBucket:
    """One subject's bucket in a transaction. Call `fill` first, then `count_writes`."""

    def __init__(self, limit: Limit, subject: str, secret: str) -> None:
        self.limit = limit
        made = keyed_hashes.keyed_digest(secret, "limit", limit.purpose, subject)
        self.key = event_rows.rate_bucket_key(f"{limit.purpose}/{int.from_bytes(made[:8]) % SLOTS}")
        self._row: event_rows.RateBucketRow | None = None
        self._now = _LONG_AGO

    def fill(self, row: event_rows.RateBucketRow | None, *, now: datetime) -> None:
        """Use the row that was read at `key`. Ignore the count of an expired window."""
        began: datetime | None = None if row is None else row.began
        # If a window begins in the future, a clock that was far ahead wrote it. Such a window must
        # not last forever.
        if row is None or began is None or abs(now - began) >= self.limit.window:
            recent = _UNMARKED if row is None else row.recent or _UNMARKED
            row = event_rows.RateBucketRow(key=self.key, began=now, count=0, recent=recent)
        self._row, self._now = row, now

    @property
    def is_empty(self) -> bool:
        """Return whether the limit for this window is reached."""
        assert self._row is not None, "fill it first"  # noqa: S101 - finds bugs, checks no input
        return bool(self._row.count >= self.limit.most)

    @property
    def count(self) -> int:
        """Return the number of actions counted in this window."""
        assert self._row is not None, "fill it first"  # noqa: S101 - finds bugs, checks no input
        return int(self._row.count)

    def wait(self, now: datetime) -> int:
        """Return the number of seconds until the window ends, at least 1."""
        assert self._row is not None, "fill it first"  # noqa: S101 - same
        left = self._row.began + self.limit.window - now
        return max(1, int(left.total_seconds()))

    def count_writes(self) -> ownership.Writes:
        """Count one more action."""
        assert self._row is not None, "fill it first"  # noqa: S101 - same
        self._row.count += 1
        self._row.ends = _end(self._now + max(self.limit.window, self.limit.keeps))
        return ownership.Writes(_OWNER, put=(self._row,))

    @property
    def began(self) -> datetime | None:
        """Return when the window began in which the last action was counted."""
        return None if self._row is None else self._row.began


class Network:
    """The buckets of one network. Call `fill` on all of them first, then `count_writes`."""

    def __init__(self, limit: Limit, network: str, secret: str) -> None:
        wider = client_networks.around(network)
        self.buckets = (
            RateLimitBucket(limit, network, secret),
            *(RateLimitBucket(limit.wider(factor), name, secret) for name, factor in wider),
        )

    @property
    def keys(self) -> list[schema.RowKey]:
        """Return the keys of the buckets' rows."""
        return [bucket.key for bucket in self.buckets]

    def fill(self, rows: Sequence[event_rows.RateBucketRow | None], *, now: datetime) -> None:
        """Use the rows that were read at `keys`."""
        for bucket, row in zip(self.buckets, rows, strict=True):
            bucket.fill(row, now=now)

    @property
    def is_empty(self) -> bool:
        """Return whether the limit of any bucket is reached."""
        return any(bucket.is_empty for bucket in self.buckets)

    def wait(self, now: datetime) -> int:
        """Return the number of seconds until all buckets are below their limits again."""
        return max(bucket.wait(now) for bucket in self.buckets if bucket.is_empty)

    def count_writes(self) -> ownership.Writes:
        """Count one more action in all buckets."""
        return ownership.Writes(_OWNER, put=tuple(b.count_writes().put[0] for b in self.buckets))


def read(*subjects: RateLimitBucket | Network, now: datetime) -> None:
    """Read the rows of several buckets in one call, in the transaction that counts in them."""
    buckets = _buckets(subjects)
    rows = reads.get_multi([bucket.key for bucket in buckets])
    for bucket, row in zip(buckets, rows, strict=True):
        bucket.fill(row, now=now)


def take_back(*subjects: RateLimitBucket | Network) -> None:
    """Take back the action that was counted for each subject, if its window has not ended."""
    buckets = _buckets(subjects)

    def body() -> None:
        if transactions.may_have_run():
            return  # A second run must not take back the action of somebody else.
        rows = reads.get_multi([bucket.key for bucket in buckets])
        counted = [
            row
            for bucket, row in zip(buckets, rows, strict=True)
            if row is not None and row.began == bucket.began
        ]
        for row in counted:
            row.count -= 1
        transactions.apply(ownership.Writes(_OWNER, put=tuple(counted)))

    transactions.transaction(body)


def _buckets(subjects: Iterable[RateLimitBucket | Network]) -> list[RateLimitBucket]:
    return [
        bucket
        for subject in subjects
        for bucket in (subject.buckets if isinstance(subject, Network) else (subject,))
    ]


class RateLimitJournal(RateLimitBucket):
    """A bucket that remembers recently counted actions."""

    def __init__(self, limit: Limit, subject: str, secret: str) -> None:
        super().__init__(limit, subject, secret)
        self._marks: list[CountedItem] = []

    def fill(self, row: event_rows.RateBucketRow | None, *, now: datetime) -> None:
        """Use the row that was read at `key`, and drop marks that are older than `keeps`."""
        super().fill(row, now=now)
        assert self._row is not None  # noqa: S101 - filled above
        since, until = ((now + sign * self.limit.keeps).timestamp() for sign in (-1, 1))
        marks = [mark for mark in _marks(self._row.recent) if since < mark.at < until]
        self._marks = []  # Needed because a transaction that runs again calls `fill` again
        surplus = sum(mark.proof == NOTHING for mark in marks) - _FEW
        for mark in marks:
            surplus -= mark.proof == NOTHING
            if mark.proof != NOTHING or surplus < 0:
                self._marks.append(mark)

    @property
    def is_empty(self) -> bool:
        """Return whether the limit is reached, or there is no room for marks that must be kept."""
        return super().is_empty or len(self._marks) >= _MOST

    def knows(self, what: bytes) -> bool:
        """Return whether exactly this action was counted before."""
        return any(mark.what == what for mark in self._marks)

    def is_spent(self, proof: bytes) -> bool:
        """Return whether a counted mark has this proof."""
        return proof != NOTHING and any(mark.proof == proof for mark in self._marks)

    def times(self, text: bytes) -> int:
        """Return the number of counted marks that have this text."""
        return 0 if text == NOTHING else sum(mark.text == text for mark in self._marks)

    def note_writes(self, mark: CountedItem) -> ownership.Writes:
        """Count one more action and remember the action."""
        assert self._row is not None, "fill it first"  # noqa: S101 - finds bugs, checks no input
        self._row.recent = b"".join(_MARK.pack(*counted) for counted in (*self._marks, mark))
        return self.count_writes()


class SharedBuckets:
    """The buckets of several actions in one transaction, with each row read and written once.

    Read `keys` and call `fill` first. Call `lend` before an action is checked, and `keep` with the
    writes of a counted action. The next action then sees the updated count.
    """

    def __init__(self, buckets: Iterable[RateLimitBucket]) -> None:
        self.keys: list[schema.RowKey] = list(dict.fromkeys(bucket.key for bucket in buckets))
        self._rows: dict[schema.RowKey, event_rows.RateBucketRow | None] = {}
        self._counted: dict[schema.RowKey, event_rows.RateBucketRow] = {}

    def fill(self, rows: Sequence[event_rows.RateBucketRow | None]) -> None:
        """Use the rows that were read at `keys`."""
        self._rows = dict(zip(self.keys, rows, strict=True))

    def lend(self, buckets: Iterable[RateLimitBucket], *, now: datetime) -> None:
        """Fill the buckets of one action from the rows as the previous actions left them."""
        for bucket in buckets:
            bucket.fill(self._rows[bucket.key], now=now)

    def keep(self, counted: Iterable[ownership.Writes]) -> None:
        """Keep the rows of an action that was counted."""
        for item in counted:
            for row in item.put:
                assert isinstance(row, event_rows.RateBucketRow)  # noqa: S101 - for the type
                self._rows[row.key] = self._counted[row.key] = row

    def writes(self) -> ownership.Writes:
        """Return the writes of all counted actions."""
        return ownership.Writes(_OWNER, put=tuple(self._counted.values()))


def _marks(recent: bytes | None) -> Iterator[CountedItem]:
    return map(CountedItem._make, _MARK.iter_unpack(recent or _UNMARKED))


def _end(moment: datetime) -> datetime:
    """Round up to a full hour, so that rewriting a bucket seldom changes its index row."""
    return datetime.fromtimestamp((int(moment.timestamp()) // _HOUR + 1) * _HOUR, UTC)


def expire(now: datetime) -> int:
    """Delete all expired buckets, and return their number."""
    query = reads.Query("RateBucket", where=(("ends", "<", now),), limit=_AT_ONCE)
    number = 0
    while names := [entity.key.path[-1].name for entity in reads.fetch(query)]:
        number += transactions.transaction(lambda names=names: _delete(names, now))  # type: ignore[misc]
    return number


def _delete(names: list[str], now: datetime) -> int:
    """Delete the buckets that are still expired, and return their number."""
    rows = reads.get_multi([event_rows.rate_bucket_key(name) for name in names])
    over = tuple(row.key for row in rows if row is not None and row.ends < now)
    transactions.apply(ownership.Writes(_OWNER, delete=over))
    return len(over)


def take(limit: Limit, subject: str, secret: str, *, now: datetime) -> bool:
    """Count one more action if the subject's limit allows it. Return whether it was counted."""
    bucket = RateLimitBucket(limit, subject, secret)

    def body() -> bool:
        bucket.fill(reads.get(bucket.key), now=now)
        if bucket.is_empty:
            return False
        transactions.apply(bucket.count_writes())
        return True

    return transactions.transaction(body)
