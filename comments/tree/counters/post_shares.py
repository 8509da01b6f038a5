"""Divide a thread's limit of posts among the shards of its counters.

Each shard has a share of the limit, so that writers who use different shards do not wait for each
other. A writer whose shard is full counts the post in the share of another shard.

Together, the shards never count more posts in a period than the limit. A post is refused only if
all shards are full.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from comments.store.models import counter_rows

PACE = timedelta(minutes=10)


def share(most: int, shard: int, count: int) -> int:
    """Return a shard's share of a number; the shares of all `count` shards add up to the number."""
    whole, rest = divmod(most, count)
    return whole + (shard < rest)


def count_post(row: counter_rows.CounterRow, most: int, now: datetime) -> bool:
    """Count a post in a shard, unless the shard has counted `most` posts in this period."""
    # A start in the future was written by a clock that is far ahead. Such a period must not last
    # forever.
    began = _period_start(row)
    if began is None or abs(now - began) >= PACE:
        row.began, row.lately = now, 0
    if row.lately >= most:
        return False
    row.lately += 1
    return True


def wait(rows: Sequence[counter_rows.CounterRow], now: datetime) -> int:
    """Return the seconds until the first of these shards begins a period."""
    first = min(filter(None, map(_period_start, rows)))
    return max(1, int((first + PACE - now).total_seconds()))


def current_period(rows: Sequence[counter_rows.CounterRow]) -> tuple[datetime | None, int]:
    """Return the start of the latest period of these shards, and the posts that count in it."""
    began = max(filter(None, map(_period_start, rows)), default=None)
    if began is None:
        return None, 0
    starts = ((_period_start(row), row.lately) for row in rows)
    return began, sum(posts for start, posts in starts if start and began - start < PACE)


def divide(rows: Sequence[counter_rows.CounterRow]) -> bool:
    """Divide the counted posts among all shards of a thread; return False if there are no posts.

    No shard then has more than its share of the limit.
    """
    began, posts = current_period(rows)
    for shard, row in enumerate(rows):
        row.began, row.lately = began, share(posts, shard, len(rows))
    return began is not None


def _period_start(row: counter_rows.CounterRow) -> datetime | None:
    start: datetime | None = row.began
    return start
