"""Content codings: which one a client wants, and bytes in it.

Owns the choice between plain bytes and gzip. An answer in another coding is another representation
and has a tag of its own. The same bytes are always compressed alike, so processes agree on both.
No brotli: it would be a dependency, for a sixth of what gzip already takes away.
"""

import enum
import zlib
from collections.abc import Sequence

import msgspec
from werkzeug.datastructures import Accept

# Beyond it a page of 200 comments shrinks by 1 % more and takes half as long again.
_LEVEL = 5
_GZIP_FRAME = 16 + zlib.MAX_WBITS
_GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # RFC 1952: deflate, no name, no time, no system
_LAST_BLOCK = b"\x03\x00"  # RFC 1951: an empty block that says it is the last
_POLYNOMIAL = 0xEDB88320  # of gzip's CRC, its bits in gzip's order


class Coding(enum.StrEnum):
    """How the bytes of an answer are coded. The values are those of Content-Encoding."""

    IDENTITY = "identity"
    GZIP = "gzip"


def preferred(accepted: Accept) -> Coding:
    """The coding for a client's Accept-Encoding; identity if it refuses everything.

    A coding counts at the best q-value that names it; identity is fine where nothing is said of it.
    """
    gzip = accepted.quality("gzip")
    is_said = accepted.find("identity") >= 0
    if gzip > 0 and (not is_said or gzip >= accepted.quality("identity")):
        return Coding.GZIP
    return Coding.IDENTITY


def encode(data: bytes, coding: Coding) -> bytes:
    """The bytes in a coding."""
    if coding is Coding.IDENTITY:
        return data
    # Without a time or a name in its frame: the same bytes give the same bytes.
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_FRAME)
    return packer.compress(data) + packer.flush()


class Part(msgspec.Struct, frozen=True):
    """Some bytes in a coding, to be joined with others: how many they were, and their CRC."""

    data: bytes
    size: int
    crc: int


def part(data: bytes, coding: Coding) -> Part:
    """Bytes as a part of an answer. The same bytes are the same part, whatever stands before."""
    if coding is Coding.IDENTITY:
        return Part(data, len(data), 0)
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    # A flush ends on a whole byte; a packer of its own refers to nothing before it.
    packed = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    return Part(packed, len(data), zlib.crc32(data))


def joined(parts: Sequence[Part], coding: Coding) -> tuple[bytes, ...]:
    """Parts as one answer, in the order in which it is sent. No byte is packed or copied again."""
    data = tuple(part.data for part in parts)
    if coding is Coding.IDENTITY:
        return data
    size, crc = 0, 0
    for each in parts:
        size += each.size
        crc = _product(crc, _shift(each.size)) ^ each.crc
    frame = crc.to_bytes(4, "little") + (size % 2**32).to_bytes(4, "little")
    return (_GZIP_HEAD, *data, _LAST_BLOCK + frame)


def _shift(count: int) -> int:
    """What a CRC is multiplied by when `count` bytes follow: x to 8 * count, modulo the polynomial.

    A CRC is a remainder of polynomials over two elements; its highest bit is that of x to 0.
    """
    power, square = 1 << 31, 1 << 23  # x to 0, and x to 8
    while count:
        if count & 1:
            power = _product(power, square)
        square = _product(square, square)
        count >>= 1
    return power


def _product(one: int, other: int) -> int:
    found = 0
    while one:
        if one & 1 << 31:
            found ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return found


def tag(content: str, coding: Coding) -> str:
    """The entity tag of a content in a coding."""
    return content if coding is Coding.IDENTITY else f"{content}-{coding}"
