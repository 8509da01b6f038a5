"""Check and encode the keys of requests, and remember the results.

Owns the result of checking a key. Programs that change an entity send its key at least twice, in a
lookup and in a commit. Therefore the results for the most recent keys are remembered.

A result depends only on the key's bytes and the default partition, so it never becomes outdated.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import entities, keys

_REMEMBERED = 256  # Maximum number of remembered keys; each has at most 6 KiB.


class RequestKey(NamedTuple):
    """A checked key of a request."""

    partition: keys.Partition
    path: bytes  # Encoded; empty if the key is incomplete.
    encoded: bytes  # The partition and the path; empty if the key is incomplete.
    has_project: bool  # Whether the key names its project and therefore its whole partition.
    reserved: str  # The first reserved name in the key, or an empty text.


def of(key: protobufs.Key, default: keys.Partition) -> RequestKey:
    """Check a key that a request names; its last element may be incomplete."""
    return of_bytes(key.SerializeToString(), default)


@functools.lru_cache(maxsize=_REMEMBERED)
def of_bytes(serialized: bytes, default: keys.Partition) -> RequestKey:
    """Check a serialized key; its last element may be incomplete."""
    key = protobufs.Key.FromString(serialized)
    partition = entities.check_key(key, default, may_be_incomplete=True)
    path = keys.encode_path(key) if keys.is_complete(key) else b""
    return RequestKey(
        partition,
        path,
        partition.encoded + path if path else b"",
        bool(key.partition_id.project_id),
        entities.reserved_name(key, partition),
    )


def of_mutation(
    key: protobufs.Key, default: keys.Partition, *, may_be_incomplete: bool
) -> RequestKey:
    """Check the key of a mutation: reserved names are read-only."""
    request_key = of(key, default)
    if not (request_key.path or may_be_incomplete):
        raise incomplete(key)
    entities.refuse_reserved(request_key.reserved)
    return request_key


def incomplete(key: protobufs.Key) -> errors.InvalidArgument:
    """Return the error for a key that must be complete."""
    return errors.InvalidArgument(f"Key path is incomplete: {entities.key_text(key)}")
