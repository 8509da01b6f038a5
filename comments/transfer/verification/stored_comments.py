"""Read stored comments and threads as they are, including damaged values."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from comments.domain import records
from comments.domain.records import Status
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion


class StoredComment(NamedTuple):
    """A comment's row, and the values that `records.Comment` does not have or cannot represent.

    `status` may be a text that is not a known status. `thread_key` is the key name of the comment's
    thread. Times are None if they are missing.
    """

    row: records.Comment
    status: str
    thread_key: str
    renderer: str
    created: datetime | None
    judged: datetime | None
    cast_up: int
    cast_down: int


class StoredThread(NamedTuple):
    """A thread's row. `named_by` is None in rows from releases that did not store it."""

    title: str
    url: str
    state: str
    named_by: str | None
    own: tuple[str, ...]
    shape: int
    pins: tuple[str, ...]


class StoredBatch(NamedTuple):
    """Threads and comments as of one moment; missing ones are None."""

    threads: tuple[StoredThread | None, ...]
    comments: tuple[StoredComment | None, ...]


def read(threads: Sequence[records.ThreadName], comments: Sequence[str]) -> StoredBatch:
    """Read threads and comments as of one moment.

    Raises:
        errors.Overloaded: the store did not respond in time.
    """
    keys = [
        *((("Thread", comment_rows.thread_key_name(name)),) for name in threads),
        *((("Comment", comment_id),) for comment_id in comments),
    ]
    messages = transactions.at_one_moment(lambda: reads.read(keys))
    return StoredBatch(
        tuple(message and _thread(message) for message in messages[: len(threads)]),
        tuple(message and _comment(message) for message in messages[len(threads) :]),
    )


def count_comments(site: str) -> int:
    """Count all comments of a site."""
    # These queries need only those indexes that the site's queue and feed use as well. For a query
    # by `site` alone, the embedded engine would create a permanent index.
    return sum(
        reads.count(
            reads.Query(
                "Comment",
                where=(("site", "=", site), ("status", "=", status.value)),
                order=("-created", "revision"),
            )
        )
        for status in records.Status
    )


def count_threads(site: str) -> int:
    """Count all threads of a site."""
    return reads.count(reads.Query("Thread", where=(("site", "=", site),), order=("-created",)))


def _thread(message: Any) -> StoredThread:
    values = message.properties
    named_by = values["named_by"]
    is_known = named_by.WhichOneof("value_type") == "string_value"
    return StoredThread(
        title=values["title"].string_value,
        url=values["url"].string_value,
        state=values["state"].string_value,
        named_by=named_by.string_value if is_known else None,
        own=conversion.texts(values["own"]),
        shape=values["shape"].integer_value,
        pins=conversion.texts(values["pins"]),
    )


def _comment(message: Any) -> StoredComment:
    values = message.properties
    status, created = values["status"].string_value, conversion.stored_time(message, "created")
    if status not in set(Status):
        values["status"].string_value = Status.PENDING.value
    return StoredComment(
        row=conversion.comment_from_message(message),
        status=status,
        thread_key=values["thread"].string_value,
        renderer=values["renderer"].string_value,
        created=created,
        judged=conversion.stored_time(message, "judged"),
        cast_up=values["cast_up"].integer_value,
        cast_down=values["cast_down"].integer_value,
    )
