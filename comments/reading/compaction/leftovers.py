"""What is left over: buckets and rankings that no directory names, and such as have had their time.

What must stay true: each is deleted by a transaction that reads what the directory names, or names
for deletion, so none is deleted that a switch takes in meanwhile.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from comments.domain import records
from comments.reading.materialized import buckets, directories
from comments.store import ownership, reads, transactions
from comments.store.models import bucket_rows, comment_rows, conversion

T = TypeVar("T")

AT_ONCE = 100  # rows or buckets in one transaction
_OWNER = "compactor"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def sweep(name: records.ThreadName) -> list[str]:
    """What no directory names: the keys of buckets, and of rankings, which have no "-".

    Give them to `delete_orphans` after `GRACE`.
    """
    ancestor = comment_rows.thread_key(name)
    stored = [
        message.key.path[-1].name
        for kind in ("Bucket", "Ranking")
        for message in reads.fetch(reads.Query(kind, ancestor=ancestor, keys_only=True))
    ]
    named = _named(name) if stored else set()
    return [key for key in stored if key not in named]


def delete_orphans(name: records.ThreadName, found: Sequence[str]) -> None:
    """Delete those that no directory names by now."""

    def body(part: Sequence[str]) -> None:
        named = _named(name)
        delete(name, [key for key in part if key not in named])

    for part in in_parts(found):
        transactions.transaction(functools.partial(body, part))


def _named(name: records.ThreadName) -> set[str]:
    """The buckets and rankings that a thread's directory names, and those that it is to delete."""
    content = directories.load_directory(name).content
    named = {line.key for line in content.lines}.union(each.ranking for each in content.replaced)
    if content.best is not None:
        named |= {content.best.top, content.best.ranking}
    return named.union(content.dead, directories.parts_of(name))


def expire(now: datetime) -> int:
    """Delete the rankings whose cursors have expired by `now`; how many there were.

    This is for threads that nobody changes any more: the others' go with their foldings.
    """
    # Between two bounds: a directory that waits for nothing has null there, below all moments.
    query = reads.Query(
        "BucketDirectory", where=(("due", ">", _NEVER), ("due", "<=", now)), keys_only=True
    )
    threads = [message.key.path[0].name for message in reads.fetch(query)]
    return sum(
        transactions.transaction(functools.partial(_expire, thread, now)) for thread in threads
    )


def _expire(thread: str, now: datetime) -> int:
    row = reads.get(comment_rows.thread_key_of(thread))
    if row is None:
        return 0
    name = conversion.thread_record(row).name
    stored = reads.get(bucket_rows.directory_key(name))
    replaced = directories.load_directory(name).content.replaced
    gone = [each for each in replaced if each.until <= now]
    if stored is None or not gone:
        return 0
    # Only the moment changes, which is no reader's matter: the version stays. The next folding
    # shortens the list.
    stored.due = due(each for each in replaced if each.until > now)
    keys = tuple(bucket_rows.ranking_key(name, each.ranking) for each in gone)
    transactions.apply(ownership.Writes(_OWNER, put=(stored,), delete=keys))
    return len(gone)


def due(replaced: Iterable[buckets.Replaced]) -> datetime | None:
    """When the first of these rankings is to be deleted; None without any."""
    return min((each.until for each in replaced), default=None)


def in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many at once as one transaction takes."""
    return (items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE))


def delete(name: records.ThreadName, keys: Sequence[str]) -> None:
    """Delete buckets and rankings by their keys, in the current transaction."""
    gone = tuple(
        bucket_rows.bucket_key(name, key) if "-" in key else bucket_rows.ranking_key(name, key)
        for key in keys
    )
    transactions.apply(ownership.Writes(_OWNER, delete=gone))
