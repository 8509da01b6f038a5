"""Cleaning of entered text: names, titles, websites, mail addresses, bodies (pure).

A text is accepted whole or refused, never truncated, because truncation can split a character.
Invisible characters (controls, bidi overrides) may be removed from names and bodies; characters
that would change the meaning for a reader are refused.

A guest's name must not appear to speak for the site, so it must not be a role word, alone or
combined with the site's name. Names are compared by their skeletons, from which case, marks, blanks
and punctuation are dropped. Letters that look alike become one letter (UTS #39, as implemented by
the library `disarm`), and so do digits that replace letters. A name that merely contains such a
word, or that belongs to another person, is allowed: readers can distinguish authors by the kind
that the server shows with every name (`presentation.AuthorKind`).

The library `disarm` was preferred to `confusable-homoglyphs` (data from 2024, without small
capitals and boxed letters) and `confusables` (2021, 3.4 MB, which converts one character at a
time). Importing `disarm` takes 0.2 s and 5 MB, so the import happens only at the first name that is
not plain ASCII.
"""

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable

from comments import errors
from comments.domain.text import host_names

# In characters. The limit is about three printed pages; the rendering time grows with the length of
# the body (docs/settings.md).
MAX_BODY = 10_000
# In characters. The limit is longer than real names but short enough for one line on a phone.
MAX_NAME = 80
# In characters. A Datastore index accepts at most 1,500 bytes.
MAX_WEBSITE = 500
_MAX_TITLE = 500
_MAX_EMAIL = 254  # RFC 5321: the limit for an address in a mail's envelope.
# The maximum number of marks on one letter. Living scripts use up to four; more would cover the
# neighboring lines.
MAX_MARKS = 8
# The maximum number of opening brackets, each of which may start a link, and of lines, each of
# which may start a block. `rendering` limits all other Markdown that is slow to parse. With both
# limits, the slowest body takes 50 ms.
MAX_BRACKETS = 1_000
MAX_LINES = 2_000

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
REFUSED = re.compile("[\x00\ud800-\udfff]")
# Invisible controls, and bidi characters that reorder the text around them. Direction marks
# (U+200E, U+200F, U+061C) stay, because right-to-left text needs them.
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
    # Invisible characters and characters that reorder text; browsers encode them, such as
    # %E2%80%AE.
    r"[\s\\<>\"'`]"
    r"|[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)

# The reserved words in the widget's languages (so far, only English).
WORDS = (
    "admin", "administrator", "author", "mod", "moderator", "operator", "owner", "staff",
    "support", "sysadmin", "system", "webmaster",
)  # fmt: skip
_LINKS = ("", "of", "at", "the", "ofthe", "from", "for")
_SHORTEST_SITE = 2  # Minimum number of characters in a site's name.
_LEET = str.maketrans("4@831|!i05$7", "aabellllosst")
# Pairs of letters that look like one letter, applied after all other replacements.
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
# Regional indicators form flags; a browser without flags shows them as letters.
_FLAGS = {0x1F1E6 + place: letter for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
_WORD = re.compile(r"[a-z0-9]+")


def clean_body(raw: str) -> str:
    """Clean a body for storage: convert line ends to line feeds and remove invisible characters.

    Raises:
        errors.BadInput: the body is blank, exceeds a limit, or contains NUL or lone surrogates.
    """
    refuse("body", raw, REFUSED)
    if len(raw) > MAX_BODY:
        raise errors.BadInput("body", "too-long", limit=MAX_BODY)
    text = DROPPED.sub("", raw.replace("\r\n", "\n").replace("\r", "\n"))
    if not _shows(text):
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
    if speaks_for_site(name, site):
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
    if not _shows(name):
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
    """Check a website for storage.

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


def speaks_for_site(name: str, site: Iterable[str] = ()) -> bool:
    """Return whether a name is a role word, alone or next to the site's name.

    `site` contains the site's names: its id and the hosts of its pages.
    """
    found = skeleton(name.replace(" @ ", " at "))
    if found in _skeletons():
        return True
    before, after = _beside_sites()
    return any(
        (found.endswith(each) and found.removesuffix(each) in before)
        or (found.startswith(each) and found.removeprefix(each) in after)
        for each in _site_skeletons(tuple(site))
    )


def skeleton(name: str) -> str:
    """Reduce a name to what readers recognize, without case, marks, look-alikes or separators."""
    plain = name.lower() if name.isascii() else _folded(name)
    shown = "".join(c for c in plain.translate(_LEET) if c.isalnum())
    for pair, letter in _PAIRS:
        shown = shown.replace(pair, letter)
    return shown


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


def _shows(text: str) -> bool:
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


def _names(text: str) -> set[str]:
    """Return the names that a host name or an id contains.

    The names are the whole text, the text without `www`, and the labels that people say.
    """
    labels = _WORD.findall(text.lower().removeprefix("www."))
    return {text, "".join(labels), "".join(labels[:-1]), *labels[:-1][-1:], *labels[:1]}


def _folded(name: str) -> str:
    """Reduce a text to plain letters: without case and marks, and with one of each look-alike."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    plain = "".join(c for c in folded.translate(_FLAGS) if unicodedata.category(c)[0] != "M")
    if plain.isascii():
        return plain
    return unicodedata.normalize("NFKD", _likeness(plain)).casefold()


def _likeness(text: str) -> str:
    import disarm  # noqa: PLC0415 - see above

    return disarm.skeleton_key(text, digit_policy="tr39")


@functools.lru_cache(1_000)
def _site_skeletons(site: tuple[str, ...]) -> frozenset[str]:
    """Return the skeletons of a site's names. Shorter names would match too many people's names."""
    called = {skeleton(each) for text in site for each in _names(text)}
    return frozenset(each for each in called if len(each) >= _SHORTEST_SITE)


@functools.cache
def _beside_sites() -> tuple[frozenset[str], frozenset[str]]:
    """Return what a role's name puts before a site's name, and what it puts after."""
    pairs = tuple(itertools.product(_skeletons(), _LINKS))
    return frozenset(f"{role}{link}" for role, link in pairs), frozenset(
        f"{link}{role}" for role, link in pairs
    )


@functools.cache
def _skeletons() -> frozenset[str]:
    return frozenset(skeleton(f"{word}{end}") for word in WORDS for end in ("", "s"))
