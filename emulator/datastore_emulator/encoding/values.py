"""Property values as bytes that sort in Datastore's value order.

Owns the order and the stored form of values. Pure.

    08                          null
    20 int64                    integer, and a timestamp as its microseconds: one scale
    30 | 31                     false | true
    41 text                     string, and a byte string as the same bytes: one scale
    50 double                   8 bytes; NaN is one value, above all others
    60 double double            geo point: latitude, longitude
    70 partition path           key

`keys` defines text, int64, partition and path. The encoding is prefix-free, and its first byte is
never above 70 (hexadecimal). Therefore ff sorts after every entry. In a descending index, the first
byte of a complemented value is 8f or above, so such a value cannot be confused with a plain value.
Changing this encoding makes every data file wrong. Files of formats 1 to 3 have 40 in place of 41
for byte strings; the upgrade in `schema` rewrites the entries of byte strings.
"""

from __future__ import annotations

import math
import struct

from datastore_emulator import protobufs
from datastore_emulator.encoding import keys

NULL = b"\x08"
_INTEGER = b"\x20"
_FALSE = b"\x30"
_TRUE = b"\x31"
_STRING = b"\x41"
_DOUBLE = b"\x50"
_GEO = b"\x60"
_KEY = b"\x70"
ABOVE = b"\xff"

# The meaning number of a projected timestamp; it tells clients to convert the integer back to a
# timestamp.
PROJECTED = 18

_unsigned = struct.Struct(">Q")
_tagged = struct.Struct(">cQ")  # Packs a tag and an int64
_float64 = struct.Struct(">d")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_COMPLEMENT = bytes(255 - byte for byte in range(256))


def complement(encoded: bytes) -> bytes:
    """Return the complement of the bytes, which sorts in reverse order."""
    return encoded.translate(_COMPLEMENT)


def encode(value: protobufs.Value, default: keys.Partition) -> bytes:
    """Encode one value; `default` is the partition for keys that name no partition.

    Raises:
        TypeError: The value is an array, an entity or unset; values of these types have no order.
    """
    return encode_as(value.WhichOneof("value_type"), value, default)


def encode_as(kind: str | None, value: protobufs.Value, default: keys.Partition) -> bytes:
    """Encode one value whose type the caller has already determined."""
    if kind == "string_value":
        return _STRING + keys.encode_text(value.string_value)
    if kind == "integer_value":
        return _tagged.pack(_INTEGER, value.integer_value + _SIGN)
    if kind == "boolean_value":
        return _TRUE if value.boolean_value else _FALSE
    if kind == "timestamp_value":
        return _tagged.pack(_INTEGER, timestamp_micros(value.timestamp_value) + _SIGN)
    return _encode_rarer(kind, value, default)


def _encode_rarer(kind: str | None, value: protobufs.Value, default: keys.Partition) -> bytes:
    match kind:
        case "null_value":
            return NULL
        case "double_value":
            return _DOUBLE + encode_double(value.double_value)
        case "blob_value":
            return _STRING + keys.encode_text(value.blob_value)
        case "geo_point_value":
            point = value.geo_point_value
            return _GEO + encode_double(point.latitude) + encode_double(point.longitude)
        case "key_value":
            return _KEY + _encode_reference(value.key_value, default)
        case _:
            raise TypeError(f"{kind} has no place in the order of values")


def timestamp_micros(timestamp: protobufs.Timestamp) -> int:
    """Return whole microseconds since 1970, rounded down."""
    return timestamp.seconds * 1_000_000 + timestamp.nanos // 1000


def encode_double(number: float) -> bytes:
    """Encode a double in 8 bytes that sort in numeric order: -0.0 before 0.0, NaN last."""
    if math.isnan(number):
        return b"\xff" * 8
    bits = _unsigned.unpack(_float64.pack(number))[0]
    return _unsigned.pack(_ALL - bits if bits & _SIGN else bits | _SIGN)


def decode_double(encoded: bytes, position: int) -> float:
    bits = _unsigned.unpack_from(encoded, position)[0]
    if bits == _ALL:
        return math.nan
    number: float = _float64.unpack(_unsigned.pack(bits - _SIGN if bits & _SIGN else _ALL - bits))[
        0
    ]
    return number


def _encode_reference(key: protobufs.Key, default: keys.Partition) -> bytes:
    given = key.partition_id
    if given.project_id:
        partition = keys.Partition(given.project_id, given.database_id, given.namespace_id)
    else:
        partition = keys.Partition(default.project, default.database, given.namespace_id)
    return keys.encode(partition, key)


def split(encoded: bytes, descending: tuple[bool, ...]) -> list[bytes]:
    """Split an index entry into one encoded value for each direction, plus the remaining bytes."""
    parts = []
    position = 0
    flipped = complement(encoded) if any(descending) else encoded
    for is_descending in descending:
        end = _end_of(flipped if is_descending else encoded, position)
        parts.append(encoded[position:end])
        position = end
    parts.append(encoded[position:])
    return parts


_SIZES = {NULL: 1, _INTEGER: 9, _FALSE: 1, _TRUE: 1, _DOUBLE: 9, _GEO: 17}


def _end_of(encoded: bytes, position: int) -> int:
    tag = encoded[position : position + 1]
    if tag == _STRING:
        return encoded.index(b"\x00\x01", position) + 2
    if tag == _KEY:
        position += 1
        for _ in range(3):
            position = encoded.index(b"\x00\x01", position) + 2
        return keys.path_ends(encoded, position)[-1] + 1
    return position + _SIZES[tag]


def number(encoded: bytes) -> int | float | None:
    """Return the number in an encoded value (microseconds for a timestamp), or None."""
    if encoded[:1] == _INTEGER:
        return keys.decode_int64(encoded, 1)
    return decode_double(encoded, 1) if encoded[:1] == _DOUBLE else None


def from_number(number: float | None) -> protobufs.Value:
    """Return a number as a value; None becomes a null value."""
    if number is None:
        return protobufs.Value(null_value=0)
    if isinstance(number, int):
        return protobufs.Value(integer_value=number)
    return protobufs.Value(double_value=number)


def project(encoded: bytes) -> protobufs.Value:
    """Convert an encoded value to the value that a projection query returns.

    Index entries do not distinguish timestamps from integers, so a timestamp is returned as integer
    microseconds. Index entries also do not distinguish byte strings from strings, so bytes that are
    valid UTF-8 are returned as a string.
    """
    value = protobufs.Value(meaning=PROJECTED)
    tag = encoded[:1]
    if tag == NULL:
        value.null_value = 0
    elif tag == _INTEGER:
        value.integer_value = keys.decode_int64(encoded, 1)
    elif tag in (_FALSE, _TRUE):
        value.boolean_value = tag == _TRUE
    elif tag == _STRING:
        _project_text(keys.decode_text(encoded, 1)[0], value)
    else:
        _project_rarer(tag, encoded, value)
    return value


def _project_text(text: bytes, value: protobufs.Value) -> None:
    try:
        value.string_value = text.decode()
    except UnicodeDecodeError:
        value.blob_value = text


def _project_rarer(tag: bytes, encoded: bytes, value: protobufs.Value) -> None:
    if tag == _DOUBLE:
        value.double_value = decode_double(encoded, 1)
    elif tag == _GEO:
        value.geo_point_value.latitude = decode_double(encoded, 1)
        value.geo_point_value.longitude = decode_double(encoded, 9)
    else:
        partition, path = keys.decode(encoded[1:])
        value.key_value.MergeFromString(keys.key_bytes(partition, path))
