"""Rows that are not in their buckets, seen from outside: of which threads, how many, since when.

Owns the question whether a thread is to be folded yet. A folding writes a directory and mostly a
bucket, however little changed, so it is worth its price when `backlog.FOLD_ROWS` rows wait, or when
the first of them has waited for its time, which is at once where a text was taken back. Every
process that looks comes to the same answer, whoever made the changes.
"""

import math
from collections.abc import Sequence
from datetime import datetime

from comments.domain import records
from comments.events import backlog
from comments.store import reads
from comments.store.models import comment_rows, conversion


def due(now: datetime) -> list[records.ThreadName]:
    """The threads that are to be folded now: a query, and one more for each that may wait."""
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
        if not left([conversion.projected_time(properties["fold_by"])], now)
        or not _wait(properties["thread"].string_value, now)
    ]
    rows = reads.get_multi([comment_rows.thread_key_of(name) for name in names])
    return [conversion.thread_record(row).name for row in rows if row is not None]


def wait(name: records.ThreadName, now: datetime) -> float:
    """In how many seconds a thread is to be folded; infinite where nothing waits. One read."""
    return _wait(comment_rows.thread_key_name(name), now)


def _wait(thread: str, now: datetime) -> float:
    query = reads.Query(
        "Comment",
        where=(("unfolded", "=", True), ("thread", "=", thread)),
        order=("fold_by",),
        projection=("fold_by",),
        limit=backlog.FOLD_ROWS,
    )
    found = reads.fetch(query)
    return left([conversion.projected_time(row.properties["fold_by"]) for row in found], now)


def left(times: Sequence[datetime | None], now: datetime) -> float:
    """In how many seconds rows that are to be folded by these times are; infinite for no rows.

    A row without a time is from before rows had one.
    """
    known = [each for each in times if each is not None]
    if len(known) < len(times) or len(times) >= backlog.FOLD_ROWS:
        return 0.0
    return max(0.0, (min(known) - now).total_seconds()) if known else math.inf
