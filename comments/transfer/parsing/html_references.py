"""Correct references in HTML, such as &#55357;, that name no character (pure).

Some exporters write a character outside the basic plane, such as an emoji, as two references to the
halves of its UTF-16 form. Browsers and XML parsers accept neither such halves nor control
characters.
"""

import re
from collections.abc import Callable

from comments.transfer.parsing import record_fields

PAIRS = "characters written as references to two halves (such as &#55357;&#56832;), joined"
CONTROL = "references to control characters (such as &#8;), removed"

_REFERENCE = re.compile("&#(?:[xX]([0-9A-Fa-f]{1,8})|([0-9]{1,8}));?")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")
_CONTROLS = frozenset(range(0x20)) - {0x09, 0x0A, 0x0D}
_MARK = "\ud800"  # Replaces control characters; `join_halves` has already replaced all halves.
_HALVES = range(0xD800, 0xE000)


def repair(text: str) -> tuple[str, list[str]]:
    """Join references to halves, and remove references to control characters.

    Return the text and a remark for each correction.
    """
    whole, remarks = join_halves(text)
    marked = _replace(whole, _CONTROLS.__contains__, lambda _: _MARK)
    return marked.replace(_MARK, ""), remarks + [CONTROL] * marked.count(_MARK)


def join_halves(text: str) -> tuple[str, list[str]]:
    """Join references to halves; a half without its partner becomes U+FFFD."""
    halves = _replace(text, _HALVES.__contains__, chr)
    if halves == text:
        return text, []
    whole, pairs = _PAIR.subn(_character, halves)
    whole, others = _HALF.subn("\ufffd", whole)
    return whole, [PAIRS] * pairs + [record_fields.HALVES] * others


def _replace(text: str, is_wrong: Callable[[int], bool], replace: Callable[[int], str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        code = int(match[1], 16) if match[1] else int(match[2])
        return replace(code) if is_wrong(code) else match[0]

    return _REFERENCE.sub(replacement, text) if "&#" in text else text


def _character(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")
