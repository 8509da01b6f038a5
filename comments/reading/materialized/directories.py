"""Load directories and buckets from the store.

This module has no cache and writes nothing; `compactor` writes directories and buckets.

If a directory consists of several entities, it is returned only if all parts were found. Otherwise,
the directory is read again. Missing buckets are reported to the caller, never skipped.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from comments import errors
from comments.domain import records
from comments.reading.materialized import buckets, first_page
from comments.store import reads
from comments.store.models import bucket_rows, comment_rows, conversion
from comments.threads import thread_terms

A = TypeVar("A")
T = TypeVar("T")

_TRIES = 3
UNREADABLE = (zlib.error, msgspec.MsgspecError)  # The errors that damaged content raises


class DirectoryOutdated(Exception):
    """A bucket or ranking of the directory no longer exists, so the directory is outdated."""


def load_buckets(name: records.ThreadName, keys: Sequence[str]) -> list[buckets.Bucket | None]:
    """Read buckets by key. The result contains None for each missing bucket."""
    rows = reads.read([bucket_rows.bucket_key(name, key) for key in keys])
    return [
        None if row is None else buckets.decode_bucket(bucket_rows.content(row)) for row in rows
    ]


def load_directory(name: records.ThreadName) -> buckets.Directory:
    """Read a thread's directory. If there is none, return an empty directory with version ""."""
    return load(name).directory


class StoredDirectory(NamedTuple):
    """A stored directory, with the thread's first page and terms, which may both be missing."""

    directory: buckets.Directory
    page: first_page.FirstPage | None = None
    terms: records.ThreadTerms | None = None


def load(name: records.ThreadName) -> StoredDirectory:
    """Read a thread's directory with its first page, without decoding the directory yet.

    Raises:
        errors.Overloaded: the directory was switched during each of several attempts.
    """
    for _ in range(_TRIES):
        (stored,) = reads.read([bucket_rows.directory_key(name)])
        if stored is None:
            return StoredDirectory(buckets.Directory(""))
        parts = [value.string_value for value in stored.properties["parts"].array_value.values]
        rest = reads.read([bucket_rows.bucket_key(name, key) for key in parts]) if parts else []
        if None not in rest:  # Otherwise the directory was switched between the two reads
            content = b"".join(map(bucket_rows.content, (stored, *rest)))
            version = stored.properties["version"].string_value
            # Without a head or terms, readers use the view and the thread's row.
            page = _or_none(first_page.decode, stored.properties["head"].blob_value)
            terms = _or_none(thread_terms.decode, stored.properties["terms"].string_value)
            return StoredDirectory(buckets.Directory(version, content), page, terms)
    raise errors.Overloaded("the directory changes faster than it is read")


def _or_none(decode: Callable[[A], T | None], stored: A) -> T | None:
    try:
        return decode(stored)
    except UNREADABLE:
        return None


def load_base(name: records.ThreadName) -> tuple[buckets.Directory, bool]:
    """Read the directory that a compaction replaces, and return whether it is readable.

    An unreadable directory counts as empty. It keeps its version, so that it can be replaced.
    """
    try:
        directory = load_directory(name)
        directory.content  # noqa: B018 - it is decoded on first use
    except (errors.Overloaded, *UNREADABLE):
        (stored,) = reads.read([bucket_rows.directory_key(name)])
        version = "" if stored is None else stored.properties["version"].string_value
        return buckets.Directory(version), False
    return directory, True


def some(most: int) -> list[records.ThreadName]:
    """List up to `most` threads with a directory, with one query and one read per thread."""
    query = reads.Query("BucketDirectory", keys_only=True, limit=most)
    names = [message.key.path[0].name for message in reads.fetch(query)]
    rows = reads.get_multi([comment_rows.thread_key_of(name) for name in names])
    return [conversion.thread_record(row).name for row in rows if row is not None]


def parts_of(name: records.ThreadName) -> tuple[str, ...]:
    """Return the keys of a directory's other parts if the directory is too large for one entity."""
    stored = reads.get(bucket_rows.directory_key(name))
    return () if stored is None else tuple(stored.parts)
