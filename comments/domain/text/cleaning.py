"""Cleaning of entered text: names, titles, websites, mail addresses, bodies (pure).

A text is accepted whole or refused, never truncated, because truncation can split a character.
Invisible characters (controls, bidi overrides) may be removed from names and bodies; characters
that would change the meaning for a reader are refused.
"""

import re
import unicodedata
from collections.abc import Iterable

from comments import errors
from comments.domain.text import role_names
from comments.domain.text.addresses import host_names

# In characters. The limit is about three printed pages; the rendering time grows with the length of
# the body (docs/settings.md).
MAX_BODY = 10_000
# In characters. The limit is longer than real names but short enough for one line on a phone.
MAX_NAME = 80
# In characters. A Datastore index accepts at most 1,500 bytes.
MAX_WEBSITE = 500
_MAX_TITLE = 500
_MAX_EMAIL = 254  # RFC 5321: the limit for an address in a mail's envelope.
# The maximum number of marks on one letter. Scripts in use today need up to four; more marks would
# cover the neighboring lines.
MAX_MARKS = 8
# The maximum number of opening brackets and of lines. Each bracket may start a link, and each line
# may start a block. `rendering` limits all other Markdown that is slow to parse. With both limits,
# the slowest body takes 50 ms.
MAX_BRACKETS = 1_000
MAX_LINES = 2_000

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
REFUSED = re.compile("[\x00\ud800-\udfff]")
# Invisible controls, and bidi characters that reorder the text around them. Direction marks
# (U+200E, U+200F, U+061C) are not included, because right-to-left text needs them.
DROPPED = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]")
# Invisible characters that Unicode classifies as letters or symbols: fillers of Hangul and Braille.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# Absolute http(s) URLs whose host every parser reads alike, without user information or encoding.
WEB_URL = re.compile(
    r"(?P<scheme>(?i:https?))://(?P<host>[^\s\\/?#@:%<>\"'`\[\]{}|^]+|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?:[/?#][^\x00-\x1f\x7f-\x9f]*)?"
)
# Characters that could break out of an attribute or open a tag in a carelessly built page.
_UNSAFE_IN_URL = re.compile(
    # Invisible characters and characters that reorder text, which browsers percent-encode, for
    # example as %E2%80%AE.
    r"[\s\\<>\"'`]"
    r"|[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def clean_body(raw: str) -> str:
    """Clean a body for storage: convert line ends to line feeds and remove invisible characters.

    Raises:
        errors.BadInput: the body is blank, exceeds a limit, or contains NUL or lone surrogates.
    """
    refuse("body", raw, REFUSED)
    if len(raw) > MAX_BODY:
        raise errors.BadInput("body", "too-long", limit=MAX_BODY)
    text = DROPPED.sub("", raw.replace("\r\n", "\n").replace("\r", "\n"))
    if not _is_visible(text):
        raise errors.BadInput("body", "required")
    _refuse_piled_marks("body", text)
    if text.count("[") > MAX_BRACKETS:
        raise errors.BadInput("body", "too-many-brackets", limit=MAX_BRACKETS)
    if text.count("\n") > MAX_LINES:
        raise errors.BadInput("body", "too-many-lines", limit=MAX_LINES)
    return text


def clean_name(raw: str, site: Iterable[str] = ()) -> str:
    """Clean a guest's name for storage. `site` contains the names of the site.

    Raises:
        errors.BadInput: `tidy_name` refuses the name, or the name appears to speak for the site.
    """
    name = tidy_name(raw)
    if role_names.speaks_for_site(name, site):
        raise errors.BadInput("name", "reserved-name")
    return name


def tidy_name(raw: str) -> str:
    """Clean a name from another system (imports).

    The rule for reserved names does not apply.

    Runs of white space become one space; bidi overrides are removed.

    Raises:
        errors.BadInput: the name is empty or invisible, exceeds a limit, or contains control
            characters or lone surrogates.
    """
    refuse("name", raw, REFUSED)
    refuse("name", raw.strip(), _CONTROL)
    name = " ".join(unicodedata.normalize("NFC", DROPPED.sub("", raw)).split())
    if not _is_visible(name):
        raise errors.BadInput("name", "required")
    if len(name) > MAX_NAME:
        raise errors.BadInput("name", "too-long", limit=MAX_NAME)
    _refuse_piled_marks("name", name)
    return name


def clean_title(raw: str) -> str:
    """Clean a thread's title for storage: remove invisible and reordering characters.

    A title may be empty.

    Raises:
        errors.BadInput: the title is too long or contains control characters.
    """
    return DROPPED.sub("", _line("title", raw, _MAX_TITLE))


def clean_email(raw: str) -> str:
    """Clean a mail address that was entered with a comment; it may be empty.

    Raises:
        errors.BadInput: the text is not one plain address.
    """
    text = _line("email", raw, _MAX_EMAIL).strip()
    local, at, domain = text.partition("@")
    plain = text.isascii() and not any(c in text for c in ' ",;:<>()[]\\')
    if text and not (plain and at and local and "." in domain and "@" not in domain):
        raise errors.BadInput("email", "not-an-email")
    return text


def clean_website(raw: str) -> str:
    """Check an author's website for storage.

    The text must be empty or an absolute http(s) URL, and is returned unchanged.

    Raises:
        errors.BadInput: the text is neither empty nor such a URL, or browsers would repair it.
    """
    if raw:
        _check_website(raw)
    return raw


def is_website(stored: str) -> bool:
    """Return whether a stored website may be shown as a link.

    Older releases accepted more hosts and ports.
    """
    try:
        _check_website(stored)
    except errors.BadInput:
        return False
    return True


def _check_website(url: str) -> None:
    refuse("website", url, REFUSED)
    if len(url) > MAX_WEBSITE:
        raise errors.BadInput("website", "too-long", limit=MAX_WEBSITE)
    match = WEB_URL.fullmatch(url)
    if match is None or _UNSAFE_IN_URL.search(url):
        raise errors.BadInput("website", "not-a-url")
    host_names.canonical(match["host"], "website")
    host_names.check_scripts(match["host"], "website")
    host_names.port(match["scheme"].lower(), match["port"] or "", "website")


def _line(field: str, raw: str, limit: int) -> str:
    """Check that a text is a printable line within the limit, and return it unchanged."""
    if len(raw) > limit:
        raise errors.BadInput(field, "too-long", limit=limit)
    if raw.isascii() and raw.isprintable():
        return raw
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in raw):  # noqa: PLR2004
        raise errors.BadInput(field, "bad-characters")
    return raw


def refuse(field: str, text: str, pattern: re.Pattern[str]) -> None:
    """Raise errors.BadInput if any part of a text matches a pattern."""
    if pattern.search(text):
        raise errors.BadInput(field, "bad-characters")


def _is_visible(text: str) -> bool:
    """Return whether a reader would see a letter, number, punctuation mark or symbol."""
    return any(unicodedata.category(c)[0] in "LNPS" and c not in _BLANK for c in text)


def _refuse_piled_marks(field: str, text: str) -> None:
    if text.isascii():
        return  # ASCII has no marks.
    pile = 0
    for character in text:
        kind = unicodedata.category(character)
        if kind[0] == "M":
            pile += 1
        elif kind != "Cf":
            pile = 0
        if pile > MAX_MARKS:
            raise errors.BadInput(field, "too-many-marks", limit=MAX_MARKS)
