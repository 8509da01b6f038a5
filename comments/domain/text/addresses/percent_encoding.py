"""The canonical percent-encoding of the paths and queries of addresses (pure).

- Percent sequences of unreserved characters are decoded, and all other characters that need
  encoding are in upper-case hex. Text outside ASCII is converted to NFC before it is encoded. `%2F`
  remains different from `/`, and `%252F` from both.
- Encoded control characters, and encoded bytes that are not UTF-8, stay encoded: `%0A`, `%E9`. A
  `%` that begins no percent sequence is a plain character, as in browsers, so `100%` is `100%25`.

Decoded text would be easier to read, but normalizing it (NFC) can absorb a neighboring character:
`%2C` followed by a combining cedilla would change with each normalization.

Thread ids are stored in this form, so changing it would separate every page from its comments.
"""

import re
import unicodedata
from urllib.parse import quote_from_bytes, unquote_to_bytes

STRAY = re.compile(r"%(?![0-9A-Fa-f]{2})")  # A percent sign that begins no percent sequence.
UNRESERVED = "-._~"
RAW_IN_PATH = UNRESERVED + "!$&'()*+,;=:@/"
RAW_IN_QUERY = RAW_IN_PATH + "?"
_SEQUENCE = re.compile("%[0-9A-Fa-f]{2}")
_ENCODED_ASCII = re.compile("(%[0-7][0-9A-F])")
# Decodes each byte that is not part of UTF-8 to a lone surrogate, which NFC does not change.
_BYTES = "surrogateescape"


def valid(url: str) -> str:
    """Encode the percent signs that begin no percent sequence; to browsers, they are text."""
    return STRAY.sub("%25", url)


def canonical(raw: str, raw_ascii: str) -> str:
    """Normalize percent-encoding: decode unreserved characters and text, encode the rest.

    An encoded reserved character stays encoded and separates the text around it, so NFC never joins
    a combining mark to that character. Bytes that are not UTF-8 separate text too.
    """
    sequences = encode(valid(raw), raw_ascii + "%")
    parts = _ENCODED_ASCII.split(_SEQUENCE.sub(_in_one_form, sequences))
    parts[::2] = [_canonical_text(part, raw_ascii) for part in parts[::2]]
    return "".join(parts)


def _in_one_form(sequence: re.Match[str]) -> str:
    character = chr(int(sequence[0][1:], 16))
    if character.isascii() and (character.isalnum() or character in UNRESERVED):
        return character
    return sequence[0].upper()


def _canonical_text(part: str, raw_ascii: str) -> str:
    text = unquote_to_bytes(part).decode(errors=_BYTES)
    return encode(unicodedata.normalize("NFC", text), raw_ascii)


def encode(text: str, raw_ascii: str) -> str:
    """Encode all characters but letters, digits, and those in `raw_ascii`."""
    return quote_from_bytes(text.encode(errors=_BYTES), safe=raw_ascii)
