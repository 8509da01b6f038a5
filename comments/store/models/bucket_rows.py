"""The kinds that store a compacted thread: directory, buckets and rankings; and their keys."""

from datetime import UTC
from typing import Any

from google.cloud import ndb

from comments.domain import records
from comments.store.models import schema
from comments.store.models.comment_rows import thread_key, thread_key_name


class BucketDirectoryRow(schema.StoredRow):
    """The directory of a thread's buckets. Written only by `compactor`; see `buckets`.

    `version` is the token of the attempt that wrote it. A directory too large for one entity
    continues in Bucket entities, `parts`. `head` is the thread's first page, described in
    `first_page`; rows of older releases have none. `due` is the time from which the first ranking
    that it replaced may be deleted.
    """

    version = schema.TextProperty(required=True)
    content = schema.BlobProperty(indexed=False)
    parts = schema.TextProperty(repeated=True)
    head = schema.BlobProperty(indexed=False)
    due = schema.DateTimeProperty(tzinfo=UTC)


class BucketRow(schema.StoredRow):
    """A run of a thread's comments as readers get them, written once; see `buckets`."""

    content = schema.BlobProperty(indexed=False)


class RankingRow(schema.StoredRow):
    """Discussions ordered by their votes, written once; see `ranking`."""

    content = schema.BlobProperty(indexed=False)


def ranking_key(name: records.ThreadName, key: str) -> ndb.Key:
    """Return the key of a ranking; `key` names its attempt."""
    return ndb.Key(RankingRow, key, parent=thread_key(name))


def directory_path(name: records.ThreadName) -> tuple[tuple[str, str], ...]:
    """Return the path of a thread's directory, for callers that read it without NDB."""
    return ("Thread", thread_key_name(name)), ("BucketDirectory", "current")


def directory_key(name: records.ThreadName) -> ndb.Key:
    return ndb.Key(BucketDirectoryRow, "current", parent=thread_key(name))


def bucket_path(name: records.ThreadName, key: str) -> tuple[tuple[str, str], ...]:
    """Return the path of a bucket; `key` contains its attempt and number."""
    return ("Thread", thread_key_name(name)), ("Bucket", key)


def bucket_key(name: records.ThreadName, key: str) -> ndb.Key:
    """Return the key of a bucket; `key` contains its attempt and number."""
    return ndb.Key(BucketRow, key, parent=thread_key(name))


def content(message: Any) -> bytes:
    """Return the content of a directory or a bucket that was read as a message."""
    stored: bytes = message.properties["content"].blob_value
    return stored
