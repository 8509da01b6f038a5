"""Content codings: choose gzip or plain bytes, compress, and join compressed parts.

Each coding of a response is a separate representation with its own ETag. Compression is
deterministic, so all processes send the same bytes. Brotli is not supported: it would require a
dependency, and would save only a sixth more bytes than gzip does.
"""

import enum
import zlib
from collections.abc import Sequence

import msgspec
from werkzeug.datastructures import Accept

# A higher level makes a page of 200 comments 1% smaller but takes 50% longer.
_LEVEL = 5
_SMALLEST = 9
_GZIP_FRAME = 16 + zlib.MAX_WBITS
_GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # RFC 1952: deflate, without name, time or system
_LAST_BLOCK = b"\x03\x00"  # RFC 1951: an empty final block.
_POLYNOMIAL = 0xEDB88320  # The polynomial of gzip's CRC-32, in gzip's bit order.


class Coding(enum.StrEnum):
    """The coding of a response, as named in Content-Encoding."""

    IDENTITY = "identity"
    GZIP = "gzip"


def preferred_coding(accepted: Accept) -> Coding:
    """Return the coding for a client's Accept-Encoding; identity if the header excludes all.

    If the header names a coding more than once, the highest q-value counts. Identity is acceptable
    unless the header excludes it.
    """
    gzip = accepted.quality("gzip")
    is_named = accepted.find("identity") >= 0
    if gzip > 0 and (not is_named or gzip >= accepted.quality("identity")):
        return Coding.GZIP
    return Coding.IDENTITY


def encode(data: bytes, coding: Coding) -> bytes:
    return _encode(data, coding, _LEVEL)


def encode_once(data: bytes, coding: Coding) -> bytes:
    """Encode data that is sent many times, such as a file, as small as possible."""
    return _encode(data, coding, _SMALLEST)


def _encode(data: bytes, coding: Coding, level: int) -> bytes:
    if coding is Coding.IDENTITY:
        return data
    # Zlib writes a gzip header without a time or file name, so equal input gives equal output.
    packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP_FRAME)
    return packer.compress(data) + packer.flush()


class EncodedPart(msgspec.Struct, frozen=True):
    """An encoded part of a response, with the size and CRC of its plain bytes."""

    data: bytes
    size: int
    crc: int


def encode_part(data: bytes, coding: Coding) -> EncodedPart:
    """Encode bytes as a part of a response that does not depend on the parts before it."""
    if coding is Coding.IDENTITY:
        return EncodedPart(data, len(data), 0)
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    # A sync flush ends at a byte boundary, and a new compressor never refers to earlier parts.
    packed = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    return EncodedPart(packed, len(data), zlib.crc32(data))


def join(parts: Sequence[EncodedPart], coding: Coding) -> tuple[bytes, ...]:
    """Join parts into one response without compressing or copying them again."""
    data = tuple(part.data for part in parts)
    if coding is Coding.IDENTITY:
        return data
    size, crc = 0, 0
    for piece in parts:
        size += piece.size
        crc = _product(crc, _shift(piece.size)) ^ piece.crc
    frame = crc.to_bytes(4, "little") + (size % 2**32).to_bytes(4, "little")
    return (_GZIP_HEAD, *data, _LAST_BLOCK + frame)


def _shift(count: int) -> int:
    """Return the factor that advances a CRC by `count` bytes.

    The factor is x^(8 * count) modulo the CRC's polynomial over GF(2). The highest bit of a CRC is
    the coefficient of x^0.
    """
    power, square = 1 << 31, 1 << 23  # The powers x^0 and x^8.
    while count:
        if count & 1:
            power = _product(power, square)
        square = _product(square, square)
        count >>= 1
    return power


def _product(one: int, other: int) -> int:
    product = 0
    while one:
        if one & 1 << 31:
            product ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product


def tag(content: str, coding: Coding) -> str:
    """Return the ETag of content in this coding; `content` is the tag of the plain content."""
    return content if coding is Coding.IDENTITY else f"{content}-{coding}"
