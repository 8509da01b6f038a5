"""Decode UTF-8 text with a few stray bytes of a single-byte encoding (pure).

Old systems copied texts between encodings, so a UTF-8 export can contain an "é" that is encoded as
one byte. A single byte that is not valid UTF-8 is read as Windows-1252 if the characters before and
after it are valid. Two such bytes in a row may be one character of GBK or Shift-JIS, so they are
not interpreted.
"""

import re

from comments import errors

CORRECTION = "bytes that are not UTF-8, read as Windows-1252"
_ADVICE = "convert the file to UTF-8, for example with `iconv -f {} -t UTF-8`"
REFUSAL = f"the text is not UTF-8; {_ADVICE.format('GBK')}"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# `surrogateescape` decodes the invalid byte 0x80 as U+DC80, 0x81 as U+DC81, and so on.
FOUND = re.compile("[\udc80-\udcff]+")
_OFFSET = 0xDC00


def decode(file: str, number: int, data: bytes, unit: str = "line") -> tuple[str, int]:
    """Decode a line or field; return its text and the number of stray bytes.

    Raises:
        errors.BadImport: the bytes are not UTF-8, even if stray bytes are corrected.
    """
    try:
        return data.decode(), 0
    except UnicodeDecodeError:
        pass
    if data.startswith(_UTF_16):
        message = f"the text is UTF-16; {_ADVICE.format('UTF-16')}"
        raise errors.BadImport(file, number, message, unit)
    try:
        return repair(data.decode(errors="surrogateescape"))
    except ValueError as error:
        raise errors.BadImport(file, number, REFUSAL, unit) from error


def repair(text: str) -> tuple[str, int]:
    """Replace the stray bytes in a text decoded with `surrogateescape`, and count them.

    Raises:
        ValueError: the text has invalid bytes that are not stray bytes.
    """
    return FOUND.subn(_cp1252_character, text)


def _cp1252_character(match: re.Match[str]) -> str:
    if len(match[0]) > 1:
        raise ValueError(match[0])
    return bytes([ord(match[0]) - _OFFSET]).decode("cp1252")
