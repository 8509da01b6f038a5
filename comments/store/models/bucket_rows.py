"""Define the kinds and keys for a compacted thread: directory, buckets and rankings."""

from datetime import UTC
from typing import Any

from google.cloud import ndb

from comments.domain import records
from comments.store.models import schema
from comments.store.models.comment_rows import thread_key, thread_key_name


class BucketDirectoryRow(schema.StoredRow):
    """The directory of a thread's buckets. `compactor` writes it; see `buckets`.

    `version` is the token of the attempt that wrote the directory. A directory that is too large
    for one entity continues in the Bucket entities listed in `parts`. `head` is the thread's first
    page (see `first_page`); rows from older releases have none. `due` is the time from which the
    oldest ranking that the directory replaced may be deleted. `terms` is a copy of a part of the
    thread (`thread_terms`).
    """

    version = schema.TextProperty(required=True)
    content = schema.BlobProperty(indexed=False)
    parts = schema.TextProperty(repeated=True)
    head = schema.BlobProperty(indexed=False)
    due = schema.DateTimeProperty(tzinfo=UTC)
    terms = schema.TextProperty(default="")


class BucketRow(schema.StoredRow):
    """Consecutive comments of a thread as readers get them. Written once; see `buckets`."""

    content = schema.BlobProperty(indexed=False)


class RankingRow(schema.StoredRow):
    """A thread's discussions in order of votes. Written once; see `ranking`."""

    content = schema.BlobProperty(indexed=False)


def ranking_key(name: records.ThreadName, key: str) -> ndb.Key:
    """Return the key of a ranking; `key` identifies the attempt that wrote it."""
    return schema.RowKey(RankingRow, key, parent=thread_key(name))


def directory_path(name: records.ThreadName) -> tuple[tuple[str, str], ...]:
    """Return the path of a thread's directory, for callers that read the directory without NDB."""
    return ("Thread", thread_key_name(name)), ("BucketDirectory", "current")


def directory_key(name: records.ThreadName) -> ndb.Key:
    return schema.RowKey(BucketDirectoryRow, "current", parent=thread_key(name))


def bucket_path(name: records.ThreadName, key: str) -> tuple[tuple[str, str], ...]:
    """Return the path of a bucket; `key` contains the attempt and the bucket's number."""
    return ("Thread", thread_key_name(name)), ("Bucket", key)


def bucket_key(name: records.ThreadName, key: str) -> ndb.Key:
    """Return the key of a bucket; `key` contains the attempt and the bucket's number."""
    return schema.RowKey(BucketRow, key, parent=thread_key(name))


def content(message: Any) -> bytes:
    """Return the content of a directory or bucket that was read as a protobuf message."""
    stored: bytes = message.properties["content"].blob_value
    return stored
