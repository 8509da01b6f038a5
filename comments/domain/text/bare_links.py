"""Find where a web address that is typed without markup begins and ends (pure).

A link begins with `http://`, `https://` or `www.` and has a host with a dot. Punctuation at the end
of an address belongs to the sentence, and so does an unmatched closing bracket. An address that
could deceive a reader stays text: an address with user information, or an address whose host
`host_names` refuses because it is impossible or mixes scripts in one word.

`linkify-it-py` is the usual choice with markdown-it, but its time grows with the square of the
number of brackets: a body can contain enough of them to take a quarter of a second. It also does
not know `www.example.dev`, and it links `example.com`, `localhost` and hosts of mixed scripts.

The time to find the end of a link is proportional to the number of characters read. A failed
attempt reads no further than the host.
"""

import re

from comments import errors
from comments.domain.text import cleaning
from comments.domain.text.addresses import host_names

# Where a link may begin: not within a word, another address or a mail address.
START = r"(?<![A-Za-z0-9_@/.+-])(?:[Hh][Tt][Tt][Pp][Ss]?://|[Ww][Ww][Ww]\.)"
# Characters that end a typed address: spaces, control characters, invisible characters, quotes, and
# Chinese and Japanese punctuation, which follows an address without a space.
_ENDS = (
    r"\s\x00-\x1f\x7f-\x9f<>\"`\\|{}^"
    "\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\u201c\u201d\u201e\u00ab\u00bb"
    "\u3000-\u3003\u3008-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_LABEL = rf"[^{_ENDS}!-,./:;=?@\[\]~]+"
# The beginning of a possible link, up to the end of its host and port.
HEAD = re.compile(rf"{START}{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}}(?![0-9]))?")
# A part of an address, with the bracket that follows it, if any.
_PARTS = re.compile(rf"[^{_ENDS}()\[\]]*([()\[\]]?)")
_OPENED = {")": "(", "]": "["}
_AFTER_SENTENCE = ".,:;!?'*_~([\u2026\u2019\u060c\u061b\u061f\u06d4\u0964"
_SHORTEST = {"h": 2, "w": 3}  # Minimum number of labels of a host


def end_of(head: re.Match[str]) -> int:
    """Return the end of the link that begins with this match of `HEAD`, or 0 if it is no link."""
    text = head.string
    follows = text[head.end() : head.end() + 2]
    # A password, a user name or an encoded host may follow.
    if follows[:1] in {"@", "%", "\\"} or (follows[:1] == ":" and follows[1:].isalnum()):
        return 0
    has_path = follows[:1] in {"/", "?", "#"}
    if not _has_host(head[0] if has_path else head[0].rstrip(_AFTER_SENTENCE)):
        return 0
    end = _end_of(text, head.end()) if has_path else head.end()
    return head.start() + len(text[head.start() : end].rstrip(_AFTER_SENTENCE))


def address(shown: str) -> str:
    """Return the URL for a link's text: add https to `www.`, and convert the host to ASCII."""
    url = _with_scheme(shown)
    match = cleaning.WEB_URL.fullmatch(url)
    if match is None or match["host"].isascii():
        return url
    start, end = match.span("host")
    return f"{url[:start]}{host_names.canonical(match['host'], 'body')}{url[end:]}"


def _with_scheme(shown: str) -> str:
    return shown if shown[0] in "Hh" else f"https://{shown}"


def _has_host(shown: str) -> bool:
    match = cleaning.WEB_URL.fullmatch(_with_scheme(shown))
    if match is None or len(match["host"].split(".")) < _SHORTEST[shown[0].lower()]:
        return False
    try:
        host_names.check_scripts(match["host"], "body")
        host_names.canonical(match["host"], "body")
        host_names.port(match["scheme"].lower(), match["port"] or "", "body")
    except errors.BadInput:
        return False
    return True


def _end_of(text: str, start: int) -> int:
    """Return where an address ends: at a character of `_ENDS` or an unmatched closing bracket."""
    opened = {"(": 0, "[": 0}
    for part in _PARTS.finditer(text, start):
        bracket = part[1]
        if bracket in opened:
            opened[bracket] += 1
        elif bracket in _OPENED and opened[_OPENED[bracket]]:
            opened[_OPENED[bracket]] -= 1
        else:
            return part.start(1)
    return len(text)
