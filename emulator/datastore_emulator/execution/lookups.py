"""Lookups: read entities by key from one snapshot.

Owns the bytes of the response, and the number of keys that one request answers; the other keys are
deferred. Lookups copy entities as stored bytes and never parse them. A transaction's ReadSet
records each read.
"""

from __future__ import annotations

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import property_masks
from datastore_emulator.storage import read_sets, row_reader

MAX_BYTES = 3_000_000  # Size limit of one response


def answer(
    snapshot: row_reader.RowReader | row_reader.PointRead,
    asked: list[bytes],
    encoded: list[bytes],
    reads: read_sets.ReadSet | None,
    mask: property_masks.Mask | None,
) -> tuple[bytes, int]:
    """Return the fields of a LookupResponse and the number of keys that they answer.

    A key in the response has exactly the same bytes as in the request, because clients match
    results by these bytes. The last keys may be deferred.
    """
    parts: list[bytes | memoryview] = []
    size = 0
    waiting = sum(map(len, asked))
    if waiting > MAX_BYTES:
        raise errors.InvalidArgument(
            f"The keys of a lookup may have at most {MAX_BYTES} bytes in total. Send fewer keys."
        )
    answered = 0
    for given, name in zip(asked, encoded, strict=True):
        if size + waiting > MAX_BYTES:
            parts.append(protobufs.field(3, given))
            continue
        answered += 1
        waiting -= len(given)
        stored = snapshot.entity(name)
        if reads is not None:
            reads.note(name, stored)
        if stored is None:
            missing = protobufs.field(1, protobufs.field(1, given))
            part = protobufs.field(2, missing + protobufs.number_field(4, snapshot.version))
            parts.append(part)
            size += len(part)
        else:
            proto = (
                stored.proto if mask is None else property_masks.narrow_bytes(stored.proto, mask)
            )
            size += _splice(parts, given, proto, stored.meta)
    parts.append(protobufs.field(7, protobufs.timestamp(snapshot.version)))
    return b"".join(parts), answered


def _splice(parts: list[bytes | memoryview], key: bytes, proto: bytes, meta: bytes) -> int:
    """Append an EntityResult to the parts of a response; return its size, including tag and length.

    The properties are large, so they are copied only when the parts are joined.
    """
    named = protobufs.field(1, key)
    properties = memoryview(proto)[protobufs.end_of_key(proto) :]
    entity = protobufs.opening(1, len(named) + len(properties)) + named
    size = len(entity) + len(properties) + len(meta)
    opening = protobufs.opening(1, size) + entity
    parts += (opening, properties, meta)
    return len(opening) + len(properties) + len(meta)
