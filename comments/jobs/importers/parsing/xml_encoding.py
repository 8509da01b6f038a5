"""Check the declared encoding of an XML file and give advice on unsupported encodings (pure).

The parser itself decodes UTF-8, UTF-16, ISO-8859-1 and ASCII. For any other name, the parser asks
Python for a table of 256 characters, so an encoding works only if each byte is one character. For
all other encodings, Python either raises its own errors (utf-7, shift_jis, unknown names) or makes
a table that misreads the text (hz, unicode_escape). `refusal` detects these encodings from the
declaration, before any text is read.
"""

import codecs

_OF_THE_PARSER = {"utf-8", "utf-16", "utf-16le", "utf-16be", "us-ascii", "iso-8859-1"}
_UTF_8 = {"utf-8", "utf-8-sig"}
_ASCII = "".join(map(chr, range(128)))
# These encodings decode a backslash together with the characters after it, so no table can
# represent them.
_ESCAPES = {"unicode-escape", "raw-unicode-escape"}
_SHOWN = 40  # Maximum number of characters of a name in an error message.
_ADVICE = (
    'convert the file to UTF-8 and set encoding="UTF-8" in its first line '
    '(see "Encodings" in docs/importing.md)'
)


def refusal(declared: str) -> str | None:
    """Return why a declared encoding is not supported and what to do; None if it is supported."""
    if declared.lower() in _OF_THE_PARSER:
        return None
    try:
        codec = codecs.lookup(declared)
    except (LookupError, ValueError):
        return f'the encoding "{declared[:_SHOWN]}" is unknown: {_ADVICE}'
    if codec.name not in _ESCAPES and _has_a_table(codec.name):
        return None
    return f'the encoding "{declared[:_SHOWN]}" is not supported: {_ADVICE}'


def advice(declared: str) -> str:
    """Return advice for a file with bytes that are invalid in its declared encoding.

    `declared` is "" if the file declares no encoding.
    """
    name = declared or "UTF-8"
    return f"if the text is not {name}, {_ADVICE}"


def is_utf_8(declared: str) -> bool:
    """Return whether a declared encoding is UTF-8, perhaps under a name that is not standard."""
    try:
        return codecs.lookup(declared).name in _UTF_8
    except (LookupError, ValueError):
        return False


def _has_a_table(name: str) -> bool:
    """Return whether an encoding maps each byte to one character and leaves ASCII unchanged."""
    try:
        table = bytes(range(256)).decode(name, "replace")
    except (LookupError, ValueError):
        return False
    return len(table) == len(range(256)) and table.startswith(_ASCII)
