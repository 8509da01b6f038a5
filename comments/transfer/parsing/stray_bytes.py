"""Decode UTF-8 text with a few stray bytes of a single-byte encoding (pure).

Old systems copied texts between encodings, so exports in UTF-8 can contain an "é" as one byte. A
single byte that is not UTF-8, between characters that are, is read as Windows-1252. Two such bytes
in a row may be one character of GBK or Shift-JIS, so nothing is guessed about them.
"""

import re

from comments import errors

CORRECTION = "bytes that are not UTF-8, read as Windows-1252"
_ADVICE = "convert the file to UTF-8, for example with `iconv -f {} -t UTF-8`"
REFUSAL = f"the text is not UTF-8; {_ADVICE.format('GBK')}"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# `surrogateescape` decodes the invalid byte 0x80 to U+DC80, and so on.
FOUND = re.compile("[\udc80-\udcff]+")
_OFFSET = 0xDC00


def decode(file: str, number: int, data: bytes, unit: str = "line") -> tuple[str, int]:
    """Decode a line or field; return its text and the number of stray bytes.

    Raises:
        errors.BadImport: the bytes are not UTF-8, even with stray bytes.
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
    """Replace the stray bytes in a text that was decoded with `surrogateescape`; count them.

    Raises:
        ValueError: the text has bytes that are not stray bytes.
    """
    return FOUND.subn(_cp1252_character, text)


def _cp1252_character(match: re.Match[str]) -> str:
    if len(match[0]) > 1:
        raise ValueError(match[0])
    return bytes([ord(match[0]) - _OFFSET]).decode("cp1252")
