"""Make people's text safe for mail: no invisible characters, links or encoded words (pure).

Mail programs turn text that looks like a link into a link, and decode RFC 2047 encoded words
wherever these occur. A stranger's text must not become either.

Invariants:

1. Links are detected in the text itself and in its NFKC form, because mail programs and browsers
   treat U+FE52 or U+2024 as a dot.
2. The result of `line` is in NFKC and contains no control characters, no line breaks, and no `=`
   next to `?`, not even with spaces in between. The result stays plain text, no matter how often a
   program decodes it.
3. Both functions are idempotent.
"""

import re
import unicodedata

MAX_LINE = 200  # characters
LINK = "[link]"
# Full stops that NFKC does not change, and that people and programs read as a dot.
_DOT = ".\u0589\u0701\u0702\u3002\ua4f8\ua60e\U00010a50"
# Arrows, symbols and emoji, which some registries allow in host names that browsers open.
_PICTURES = "\u2190-\u2bff\U0001f000-\U0001faff"
# The pattern matches a scheme, a network path (web or Windows), a host name, an IPv4 address or a
# mail address.
_LINK = re.compile(
    rf"://|//[\w\[]|\\\\\w|[\w{_PICTURES}][{_DOT}][^\W\d_]{{2}}|\d\.\d+\.\d+\.\d|@"
    r"|\b(?i:https?|ftp|file|mailto|tel|sms|javascript|data):"
)
_WORD = re.compile(r"\S+")
# Fillers, joiners, direction marks, bidi overrides and isolates, variation selectors, and tags.
_INVISIBLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SIGNS = re.compile("[=? ]+")  # Characters at which an encoded word may begin or end.


def words(text: str) -> str:
    """Remove invisible characters from a text of several lines, and replace links with `[link]`."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    # Remove invisible characters first, so that they cannot hide a link.
    shown = _CONTROL.sub(" ", _INVISIBLE.sub("", lines))
    # Check each word separately, because one expression for a word that contains a link takes
    # quadratic time.
    return _WORD.sub(lambda word: LINK if _is_link(word[0]) else word[0], shown)


def line(text: str) -> str:
    """Return a text as one line of at most `MAX_LINE` characters, for a header or a sentence."""
    # Clean the text twice, because NFKC turns other characters into spaces or invisible characters
    # (U+FFA0 becomes U+1160).
    plain = words(unicodedata.normalize("NFKC", words(text)))
    safe = _SIGNS.sub(_without_mark, " ".join(plain.split()))
    return " ".join(safe.split())[:MAX_LINE].rstrip()


def _without_mark(signs: re.Match[str]) -> str:
    """Remove `=` from a run of signs that also contains `?`."""
    return signs[0].replace("=", "") if "?" in signs[0] else signs[0]


def _is_link(word: str) -> bool:
    normal = unicodedata.normalize("NFKC", word)
    # A combining mark between a letter and a dot must not hide the link.
    bare = "".join(each for each in normal if unicodedata.category(each)[0] != "M")
    return any(_LINK.search(form) for form in (word, normal, bare))
