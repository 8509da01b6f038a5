"""Divide a thread's limit of posts among the shards of its counters.

Each shard has a share of the limit, so that writers who use different shards do not wait for each
other. A writer whose shard is full counts the post in the share of another shard.

Invariants:

1. Together, the shards never count more posts in a period than the limit.
2. A post is refused only if all shards are full.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from comments.store.models import counter_rows

PACE = timedelta(minutes=10)


def share(most: int, shard: int, count: int) -> int:
    """Return a shard's share of a number; the shares of all `count` shards add up to it."""
    whole, rest = divmod(most, count)
    return whole + (shard < rest)


def is_counted(row: counter_rows.CounterRow, most: int, now: datetime) -> bool:
    """Count a post in a shard, unless the shard has counted `most` posts in this period."""
    # A start in the future was written by a clock that is far ahead. Such a period must not last
    # forever.
    if row.began is None or abs(now - row.began) >= PACE:
        row.began, row.lately = now, 0
    if row.lately >= most:
        return False
    row.lately += 1
    return True


def wait(rows: Sequence[counter_rows.CounterRow], now: datetime) -> int:
    """Return the seconds until the first of these shards begins a period."""
    ends = [row.began + PACE - now for row in rows if row.began is not None]
    return max(1, int(min(ends).total_seconds()))


def counted(rows: Sequence[counter_rows.CounterRow]) -> tuple[datetime | None, int]:
    """Return the start of the latest period of these shards, and the posts that count in it."""
    began = max((row.began for row in rows if row.began is not None), default=None)
    if began is None:
        return None, 0
    of_period = (row for row in rows if row.began is not None and began - row.began < PACE)
    return began, sum(row.lately for row in of_period)


def divide(rows: Sequence[counter_rows.CounterRow]) -> bool:
    """Divide the counted posts among these shards, which are all. Return False if there are none.

    No shard then has more than its share of the limit.
    """
    began, posts = counted(rows)
    for shard, row in enumerate(rows):
        row.began, row.lately = began, share(posts, shard, len(rows))
    return began is not None
