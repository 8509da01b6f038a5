"""Cleaning of entered text: names, titles, websites, mail addresses, bodies (pure).

Text is accepted whole or refused, never truncated, because a cut can split a character. Names and
bodies may lose invisible characters (controls, bidi overrides); characters that would change the
meaning for a reader are refused.

A guest's name must not speak for the site: no role word, alone or with the site's name. Names are
compared by a skeleton: case, marks, blanks and punctuation are dropped, letters that look alike
become one (UTS #39, by the library `disarm`), and so do digits that replace letters. A name that
merely contains such a word, or that is another person's, is allowed: readers can tell them apart by
the mark that the server puts beside every author (`presentation.AuthorKind`).

`disarm` was chosen over `confusable-homoglyphs` (data of 2024; it knows no small capitals and no
boxed letters) and `confusables` (2021, 3.4 MB, one character at a time). It takes 0.2 s and 5 MB to
import, so it is imported for the first name that is not plain ASCII.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable

from comments import errors
from comments.domain.text import host_names

# Characters. About three printed pages; the rendering time grows with it (docs/settings.md).
MAX_BODY = 10_000
# Characters. Longer than real names, short enough for one line on a phone.
MAX_NAME = 80
# Characters. A Datastore index takes 1,500 bytes.
MAX_WEBSITE = 500
_MAX_TITLE = 500
_MAX_EMAIL = 254  # RFC 5321: the limit of an address in a mail's envelope
# Marks on one letter. Living scripts use up to four; a pile of them covers the lines around it.
MAX_MARKS = 8
# Opening brackets, each of which may start a link, and lines, each of which may start a block.
# `rendering` limits everything else that is slow in Markdown. With both, the slowest body takes
# 50 ms.
MAX_BRACKETS = 1_000
MAX_LINES = 2_000

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
REFUSED = re.compile("[\x00\ud800-\udfff]")
# Invisible controls, and the bidi characters that reorder the text around them. Direction marks
# (U+200E, U+200F, U+061C) stay, because right-to-left text needs them.
DROPPED = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]")
# Letters and symbols by category that are invisible: fillers of Hangul and Braille.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# Absolute http(s) with a host that every parser reads alike: no user information, no encoding.
WEB_URL = re.compile(
    r"(?P<scheme>(?i:https?))://(?P<host>[^\s\\/?#@:%<>\"'`\[\]{}|^]+|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?:[/?#][^\x00-\x1f\x7f-\x9f]*)?"
)
# Characters that open an attribute or a tag in a carelessly built page.
_UNSAFE_IN_URL = re.compile(
    # Also invisible characters, and those that reorder text: browsers write them as %E2%80%AE.
    r"[\s\\<>\"'`]"
    r"|[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)

# In the languages of the widget: so far, English only.
WORDS = (
    "admin", "administrator", "author", "mod", "moderator", "operator", "owner", "staff",
    "support", "sysadmin", "system", "webmaster",
)  # fmt: skip
_LINKS = ("", "of", "at", "the", "ofthe", "from", "for")
_SHORTEST_SITE = 2  # characters of a site's name
_LEET = str.maketrans("4@831|!i05$7", "aabellllosst")
# Pairs of letters that look like one letter, after all of the above.
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
# Regional indicators, which make up flags; a browser without flags shows them as letters.
_FLAGS = {0x1F1E6 + place: letter for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
_WORD = re.compile(r"[a-z0-9]+")


def clean_body(raw: str) -> str:
    """Clean a body for storage: line ends become line feeds, invisible characters are removed.

    Raises:
        errors.BadInput: the body is blank, above a limit, or contains NUL or lone surrogates.
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
        errors.BadInput: `tidy_name` refuses it, or it speaks for the site.
    """
    name = tidy_name(raw)
    if speaks_for_site(name, site):
        raise errors.BadInput("name", "reserved-name")
    return name


def tidy_name(raw: str) -> str:
    """Clean a name without the reserved-name rule, for names from elsewhere (imports).

    Runs of white space become one space; bidi overrides are removed.

    Raises:
        errors.BadInput: the name is empty or invisible, is above a limit, or contains control
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

    It may be empty.

    Raises:
        errors.BadInput: it is too long, or contains control characters.
    """
    return DROPPED.sub("", _line("title", raw, _MAX_TITLE))


def clean_email(raw: str) -> str:
    """Clean a mail address that is entered with a comment; it may be empty.

    Raises:
        errors.BadInput: it is not one plain address.
    """
    text = _line("email", raw, _MAX_EMAIL).strip()
    local, at, domain = text.partition("@")
    plain = text.isascii() and not any(c in text for c in ' ",;:<>()[]\\')
    if text and not (plain and at and local and "." in domain and "@" not in domain):
        raise errors.BadInput("email", "not-an-email")
    return text


def clean_website(raw: str) -> str:
    """Check a website for storage: empty, or an absolute http(s) URL, which is not changed.

    Raises:
        errors.BadInput: it is anything else, including URLs that browsers would repair.
    """
    if raw:
        _check_website(raw)
    return raw


def is_website(stored: str) -> bool:
    """Whether a stored website may be a link: older releases accepted more hosts and ports."""
    try:
        _check_website(stored)
    except errors.BadInput:
        return False
    return True


def speaks_for_site(name: str, site: Iterable[str] = ()) -> bool:
    """Whether a name is a role word, or one with the site's name before or after it.

    `site` contains the names of the site: its id, and the hosts of its pages.
    """
    found = skeleton(name.replace(" @ ", " at "))
    if found in _skeletons():
        return True
    called = {skeleton(each) for text in site for each in _names(text)} - {""}
    return any(
        found in {f"{role}{link}{each}", f"{each}{link}{role}"}
        for each in called
        if len(each) >= _SHORTEST_SITE
        for role in _skeletons()
        for link in _LINKS
    )


def skeleton(name: str) -> str:
    """Reduce a name to what readers recognize: no case, marks, look-alikes or separators."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    plain = "".join(c for c in folded.translate(_FLAGS) if unicodedata.category(c)[0] != "M")
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", _likeness(plain)).casefold()
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
    """Check one line of printable text, which is refused rather than truncated."""
    if len(raw) > limit:
        raise errors.BadInput(field, "too-long", limit=limit)
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in raw):  # noqa: PLR2004
        raise errors.BadInput(field, "bad-characters")
    return raw


def refuse(field: str, text: str, pattern: re.Pattern[str]) -> None:
    """Raise errors.BadInput if a text matches a pattern anywhere."""
    if pattern.search(text):
        raise errors.BadInput(field, "bad-characters")


def _shows(text: str) -> bool:
    """Whether a reader would see anything: a letter, number, punctuation mark or symbol."""
    return any(unicodedata.category(c)[0] in "LNPS" and c not in _BLANK for c in text)


def _refuse_piled_marks(field: str, text: str) -> None:
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
    """Return the names of a host or an id: whole, without `www`, and the label that people say."""
    labels = _WORD.findall(text.lower().removeprefix("www."))
    return {text, "".join(labels), "".join(labels[:-1]), *labels[:-1][-1:], *labels[:1]}


def _likeness(text: str) -> str:
    import disarm  # noqa: PLC0415 - see above

    return disarm.skeleton_key(text, digit_policy="tr39")


@functools.cache
def _skeletons() -> frozenset[str]:
    return frozenset(skeleton(f"{word}{end}") for word in WORDS for end in ("", "s"))
