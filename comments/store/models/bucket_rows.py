"""Define the kinds and keys for a compacted thread: directory, buckets and rankings."""

from typing import Any

from comments.domain import records
from comments.store.models import schema
from comments.store.models.comment_rows import thread_key


class BucketDirectoryRow(schema.StoredRow):
    """The directory of a thread's buckets. `compactor` writes this kind; see `buckets`.

    `version` is the token of the attempt that wrote the directory. A directory that is too large
    for one entity continues in the Bucket entities listed in `parts`. `head` is the thread's first
    page (see `first_page`); rows from older releases have none. `due` is the earliest time at which
    a ranking that the directory replaced may be deleted. `terms` is a copy of some of the thread's
    fields (`thread_terms`).
    """

    version = schema.text(required=True)
    content = schema.blob()
    parts = schema.texts()
    head = schema.blob()
    due = schema.time()
    terms = schema.text(default="")


class BucketRow(schema.StoredRow):
    """Consecutive comments of a thread as readers get them, written only once (see `buckets`)."""

    content = schema.blob()


class RankingRow(schema.StoredRow):
    """A thread's discussions in order of votes, written only once (see `ranking`)."""

    content = schema.blob()


def ranking_key(name: records.ThreadName, key: str) -> schema.RowKey:
    """Return the key of a ranking; `key` identifies the attempt that wrote it."""
    return schema.RowKey(RankingRow, key, parent=thread_key(name))


def directory_key(name: records.ThreadName) -> schema.RowKey:
    return schema.RowKey(BucketDirectoryRow, "current", parent=thread_key(name))


def bucket_key(name: records.ThreadName, key: str) -> schema.RowKey:
    """Return the key of a bucket; `key` contains the attempt and the bucket's number."""
    return schema.RowKey(BucketRow, key, parent=thread_key(name))


def content(message: Any) -> bytes:
    """Return the content of a directory or bucket that was read as a protobuf message."""
    stored: bytes = message.properties["content"].blob_value
    return stored
