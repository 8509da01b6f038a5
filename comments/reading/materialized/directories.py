"""What folding has stored of a thread, as it is read: the directory, its parts, the buckets.

Keeps nothing and writes nothing (`compactor` does). What must stay true: a directory in several
entities is whole or is read again, and a bucket that is gone is told.
"""

from collections.abc import Sequence

from comments import errors
from comments.domain import records
from comments.reading.materialized import buckets, first_page
from comments.store import reads
from comments.store.models import bucket_rows, comment_rows, conversion

_TRIES = 3


class Gone(Exception):
    """A bucket of a directory is not there any more: the directory is old."""


def load_buckets(name: records.ThreadName, keys: Sequence[str]) -> list[buckets.Bucket | None]:
    """Read buckets; None for one that is gone."""
    found = reads.read([bucket_rows.bucket_path(name, key) for key in keys])
    return [
        None if row is None else buckets.decode_bucket(bucket_rows.content(row)) for row in found
    ]


def load_directory(name: records.ThreadName) -> buckets.Directory:
    """Read a thread's directory; an empty one if it has none."""
    return load(name)[0]


def load(name: records.ThreadName) -> tuple[buckets.Directory, first_page.Head | None]:
    """Read a thread's directory and its head. Unpacks of the directory nothing yet."""
    for _ in range(_TRIES):
        (stored,) = reads.read([bucket_rows.directory_path(name)])
        if stored is None:
            return buckets.Directory(""), None
        parts = [each.string_value for each in stored.properties["parts"].array_value.values]
        rest = reads.read([bucket_rows.bucket_path(name, each) for each in parts]) if parts else []
        if None not in rest:  # else it was switched between the two reads
            content = b"".join(map(bucket_rows.content, (stored, *rest)))
            version = stored.properties["version"].string_value
            head = first_page.decode(stored.properties["head"].blob_value)
            return buckets.Directory(version, content), head
    raise errors.Overloaded("the directory is switched faster than it is read")


def some(most: int) -> list[records.ThreadName]:
    """Threads that were folded, at most so many: one query, and a read for each."""
    query = reads.Query("BucketDirectory", keys_only=True, limit=most)
    names = [message.key.path[0].name for message in reads.fetch(query)]
    rows = reads.get_multi([comment_rows.thread_key_of(name) for name in names])
    return [conversion.thread_record(row).name for row in rows if row is not None]


def parts_of(name: records.ThreadName) -> tuple[str, ...]:
    """The keys of the entities that hold the rest of a directory too large for one."""
    stored = reads.get(bucket_rows.directory_key(name))
    return () if stored is None else tuple(stored.parts)
