"""Rows that are not in their buckets, seen from outside: of which threads, how many, since when.

Owns the question whether a thread is to be folded yet. A folding writes a directory and mostly a
bucket, however little changed, so it is worth its price when `tasks.FOLD_ROWS` rows wait, or when
the first of them has waited for its time, which is at once where a text was taken back. Every
process that looks comes to the same answer, whoever made the changes.
"""

import math
from datetime import datetime
from typing import Any

from comments import datastore, models, records, tasks


def due(now: datetime) -> list[records.ThreadName]:
    """The threads that are to be folded now: a query, and one more for each that may wait."""
    query = datastore.Query(
        "Comment",
        where=(("unfolded", "=", True),),
        order=("thread", "fold_by"),
        projection=("thread", "fold_by"),
        distinct_on=("thread",),
    )
    names = [
        message.properties["thread"].string_value
        for message in datastore.fetch(query)
        if _seconds(message, now) <= 0 or _wait(message.properties["thread"].string_value, now) <= 0
    ]
    rows = datastore.get_multi([models.thread_key_of(name) for name in names])
    return [models.thread_record(row).name for row in rows if row is not None]


def wait(name: records.ThreadName, now: datetime) -> float:
    """In how many seconds a thread is to be folded; infinite where nothing waits. One read."""
    return _wait(models.thread_key_name(name), now)


def _wait(thread: str, now: datetime) -> float:
    query = datastore.Query(
        "Comment",
        where=(("unfolded", "=", True), ("thread", "=", thread)),
        order=("fold_by",),
        projection=("fold_by",),
        limit=tasks.FOLD_ROWS,
    )
    found = list(datastore.fetch(query))
    if len(found) >= tasks.FOLD_ROWS:
        return 0.0
    return _seconds(found[0], now) if found else math.inf


def _seconds(message: Any, now: datetime) -> float:
    """Until a row is to be folded. One without a time is from before rows had one."""
    fold_by = models.projected_time(message.properties["fold_by"])
    return 0.0 if fold_by is None else max(0.0, (fold_by - now).total_seconds())
