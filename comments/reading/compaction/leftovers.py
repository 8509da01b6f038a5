"""Collect garbage: delete unreferenced buckets and expired rankings.

Invariant: The transaction that deletes a bucket or ranking first reads what the directory names or
lists for deletion, so it never deletes an entity that a concurrent switch starts to use
(test_compactor_hazards.py::test_a_bucket_that_a_switch_named_since_the_sweep_is_not_deleted).
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

AT_ONCE = 100  # Maximum number of rows or buckets per transaction
_OWNER = "compactor"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def orphans(name: records.ThreadName) -> list[str]:
    """Return the keys of unreferenced buckets and rankings. Only bucket keys contain a "-".

    Pass the keys to `delete_orphans` after `GRACE` seconds.
    """
    ancestor = comment_rows.thread_key(name)
    stored = [key for kind in ("Bucket", "Ranking") for key in reads.names(kind, ancestor=ancestor)]
    named = _named_keys(name) if stored else set()
    return [key for key in stored if key not in named]


def delete_orphans(name: records.ThreadName, keys: Sequence[str]) -> None:
    """Delete the buckets and rankings that are still unreferenced."""

    def body(part: Sequence[str]) -> None:
        named = _named_keys(name)
        delete(name, [key for key in part if key not in named])

    for part in in_parts(keys):
        transactions.transaction(functools.partial(body, part))


def deletion_writes(name: records.ThreadName) -> ownership.Writes:
    """Return the writes that delete the directory, buckets and rankings of an emptied thread.

    Apply these writes in the transaction that deletes the thread's last comment.
    """
    ancestor = comment_rows.thread_key(name)
    keys = [
        *(bucket_rows.bucket_key(name, key) for key in reads.names("Bucket", ancestor=ancestor)),
        *(bucket_rows.ranking_key(name, key) for key in reads.names("Ranking", ancestor=ancestor)),
    ]
    if reads.get(bucket_rows.directory_key(name)) is not None:
        keys.append(bucket_rows.directory_key(name))
    return ownership.Writes(_OWNER, delete=tuple(keys))


def _named_keys(name: records.ThreadName) -> set[str]:
    """Return the keys that a thread's directory names or lists for deletion."""
    content = directories.load_directory(name).content
    named = {line.key for line in content.lines}.union(old.ranking for old in content.replaced)
    if content.best is not None:
        named |= {content.best.top, content.best.ranking}
    return named.union(content.dead, directories.parts_of(name))


def expire(now: datetime) -> int:
    """Delete the replaced rankings that have expired by `now`, and return their number.

    Threads that no longer change need this function. In other threads, the next compaction deletes
    expired rankings.
    """
    # The lower bound excludes null, which sorts before all times and means that no ranking expires.
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
    gone = [old for old in replaced if old.until <= now]
    if stored is None or not gone:
        return 0
    # Keep the version, because only the due time changes, which readers do not see. The next
    # compaction shortens the list of rankings.
    stored.due = first_expiry(old for old in replaced if old.until > now)
    keys = tuple(bucket_rows.ranking_key(name, old.ranking) for old in gone)
    transactions.apply(ownership.Writes(_OWNER, put=(stored,), delete=keys))
    return len(gone)


def first_expiry(replaced: Iterable[buckets.ReplacedRanking]) -> datetime | None:
    """Return the time at which the first of these rankings expires, or None if there are none."""
    return min((old.until for old in replaced), default=None)


def in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split items into parts that each fit in one transaction."""
    return (items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE))


def delete(name: records.ThreadName, keys: Sequence[str]) -> None:
    """Delete buckets and rankings by key, in the current transaction."""
    gone = tuple(
        bucket_rows.bucket_key(name, key) if "-" in key else bucket_rows.ranking_key(name, key)
        for key in keys
    )
    transactions.apply(ownership.Writes(_OWNER, delete=gone))
