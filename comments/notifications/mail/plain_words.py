"""Make people's text safe for mail: no hidden characters, links or encoded words (pure).

Mail programs turn text that looks like a link into a link, and they decode RFC 2047 encoded words
wherever they find them. A stranger's text must become neither a link nor an encoded word. The rest
of the text stays as typed.

To detect links, this module removes invisible characters and then checks both the text and its NFKC
form, because mail programs and browsers treat U+FE52 or U+2024 as a dot. Joiners and variation
selectors stay only directly next to characters whose shape they change, because Persian and Indic
words are misspelled without them, and emoji fall apart. Next to other characters, joiners and
variation selectors would only make two equal names differ. The result of `line` contains no `=`
next to `?`, not even with spaces in between. It therefore stays plain text, no matter how often a
program decodes it. `words` and `line` are both idempotent.
"""

import re
import unicodedata

MAX_LINE = 200  # Maximum number of characters in a line
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
_INVISIBLE = (
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# Letters, marks and digits of scripts that join letters or stack them: Arabic to Myanmar, Khmer,
# Mongolian, and their later blocks.
_JOINING = (
    "\u0620-\u0669\u066e-\u06d3\u06d5-\u0963\u0966-\u109f\u1780-\u17b3\u17b6-\u17d3\u1810-\u18af"
    "\u1900-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
)
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Signs outside `_PICTURES` that have an emoji form.
_EMOJI_SIGNS = "\xa9\xae\u203c\u2049\u2122\u2139\u3030\u303d\u3297\u3299"
_SHAPING = "|".join(
    (
        f"(?<=[{_JOINING}])[\u200c\u200d]",
        rf"(?<=[^\W_\u115f\u1160\u3164\uffa0])\u200c(?=[{_JOINING}])",  # A suffix of a Latin word.
        f"(?:(?<=[{_PICTURES}])|(?<=[{_PICTURES}]\ufe0f))\u200d(?=[{_PICTURES}])",
        f"(?<=[{_PICTURES}{_EMOJI_SIGNS}])[\ufe0e\ufe0f]",
        "(?<=[0-9#*])\ufe0f(?=\u20e3)",  # Keycaps.
        # Flags of regions.
        "(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f",
        f"(?<=[{_HAN}])[\ufe00-\ufe02\U000e0100-\U000e01ef]",
        "(?<=[\u1820-\u18aa])[\u180b-\u180f]",
    )
)
_ANY_INVISIBLE = re.compile(_INVISIBLE)
_SHAPING_OR_INVISIBLE = re.compile(f"({_SHAPING})|{_INVISIBLE}")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SIGNS = re.compile("[=? ]+")  # Characters at which an encoded word may begin or end.


def words(text: str) -> str:
    """Remove hidden characters from a text of several lines, and replace links with `[link]`."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    shown = _CONTROL.sub(" ", _without_hidden(lines))
    # Check each word separately, because one expression for a word that contains a link takes
    # quadratic time.
    return _WORD.sub(lambda word: LINK if _is_link(word[0]) else word[0], shown)


def line(text: str) -> str:
    """Return a text as one line of at most `MAX_LINE` characters, for a header or a sentence."""
    safe = _SIGNS.sub(_without_mark, " ".join(words(text).split()))
    # The cut may leave a joiner without its second character.
    return _without_hidden(" ".join(safe.split())[:MAX_LINE]).rstrip()


def _without_hidden(text: str) -> str:
    """Remove all invisible characters except those that change a neighboring character's shape."""
    return _SHAPING_OR_INVISIBLE.sub(r"\1", text)


def _without_mark(signs: re.Match[str]) -> str:
    """Remove `=` from a run of signs that also contains `?`."""
    return signs[0].replace("=", "") if "?" in signs[0] else signs[0]


def _is_link(word: str) -> bool:
    plain = _ANY_INVISIBLE.sub("", word)
    normal = _ANY_INVISIBLE.sub("", unicodedata.normalize("NFKC", plain))
    # A combining mark between a letter and a dot must not hide the link.
    bare = "".join(letter for letter in normal if unicodedata.category(letter)[0] != "M")
    return any(_LINK.search(form) for form in (plain, normal, bare))
