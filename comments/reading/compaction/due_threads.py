"""Find the threads that are due for compaction.

A compaction writes a directory and usually a bucket, even for a small change. A thread is therefore
due only when `backlog.FOLD_ROWS` rows have changed or when the earliest deadline (`fold_by`) of its
changed rows has passed. A retracted row is due immediately. The result depends only on stored rows,
so it is the same in every process.
"""

import math
from collections.abc import Sequence
from datetime import datetime

from comments.domain import records
from comments.events import backlog
from comments.store import reads
from comments.store.models import comment_rows, conversion


def find(now: datetime) -> list[records.ThreadName]:
    """List the threads that are due at `now`.

    The function makes one query, plus one query for each thread with changes that are not due yet.
    """
    query = reads.Query(
        "Comment",
        where=(("unfolded", "=", True),),
        order=("thread", "fold_by"),
        projection=("thread", "fold_by"),
        distinct_on=("thread",),
    )
    names = [
        properties["thread"].string_value
        for properties in (message.properties for message in reads.walk(query))
        if not seconds_left([conversion.projected_time(properties["fold_by"])], now)
        or not _wait(properties["thread"].string_value, now)
    ]
    rows = reads.get_multi([comment_rows.thread_key_of(name) for name in names])
    return [conversion.thread_record(row).name for row in rows if row is not None]


def wait(name: records.ThreadName, now: datetime) -> float:
    """Return the seconds until a thread is due (infinity if no row has changed), with one read."""
    return _wait(comment_rows.thread_key_name(name), now)


def _wait(thread: str, now: datetime) -> float:
    query = reads.Query(
        "Comment",
        where=(("unfolded", "=", True), ("thread", "=", thread)),
        order=("fold_by",),
        projection=("fold_by",),
        limit=backlog.FOLD_ROWS,
    )
    messages = reads.fetch(query)
    return seconds_left(
        [conversion.projected_time(row.properties["fold_by"]) for row in messages], now
    )


def seconds_left(times: Sequence[datetime | None], now: datetime) -> float:
    """Return the seconds until rows with these deadlines are due, or infinity if there are none."""
    # Rows from older releases have no deadline and are due immediately.
    known = [time for time in times if time is not None]
    if len(known) < len(times) or len(times) >= backlog.FOLD_ROWS:
        return 0.0
    return max(0.0, (min(known) - now).total_seconds()) if known else math.inf
