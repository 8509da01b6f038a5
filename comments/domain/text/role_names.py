"""Names that speak for the site: role words, alone or with the site's name (pure).

Owns which words are refused as a guest's name, and when a name only looks like one of them. Names
are compared by a skeleton: case, marks, blanks and punctuation are dropped, letters that look alike
become one (UTS #39, by the library `disarm`), and so do digits that stand for letters. A name that
merely contains such a word, or that is another person's, is a name: the defence against those is
the mark that the server puts beside every author (`presentation.Kind`).

`disarm` was chosen over `confusable-homoglyphs` (data of 2024; it knows no small capitals and no
boxed letters) and `confusables` (2021, 3.4 MB, one character at a time). It takes 0.2 s and 5 MB to
import, so it is imported for the first name that is not plain ASCII.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable

# In the languages of the widget, which are English so far.
WORDS = (
    "admin", "administrator", "author", "mod", "moderator", "operator", "owner", "staff",
    "support", "sysadmin", "system", "webmaster",
)  # fmt: skip
_LINKS = ("", "of", "at", "the", "ofthe", "from", "for")
_SHORTEST_SITE = 2  # characters of a site's name
_LEET = str.maketrans("4@831|!i05$7", "aabellllosst")
# Letters that two others look like, when all of the above is one.
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
# What flags are made of; a browser without flags shows them as letters.
_FLAGS = {0x1F1E6 + place: letter for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
_WORD = re.compile(r"[a-z0-9]+")


def speaks_for_site(name: str, site: Iterable[str] = ()) -> bool:
    """Whether a name is a role word, or one with the site's name before or after it.

    `site` is what the site is called: its id, and the hosts of its pages.
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


def _names(text: str) -> set[str]:
    """What a host or an id is called: whole, without `www`, and the label that people say."""
    labels = _WORD.findall(text.lower().removeprefix("www."))
    return {text, "".join(labels), "".join(labels[:-1]), *labels[:-1][-1:], *labels[:1]}


def skeleton(name: str) -> str:
    """What is left of a name once case, marks, look-alikes and everything between are gone."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    plain = "".join(c for c in folded.translate(_FLAGS) if unicodedata.category(c)[0] != "M")
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", _likeness(plain)).casefold()
    shown = "".join(c for c in plain.translate(_LEET) if c.isalnum())
    for pair, letter in _PAIRS:
        shown = shown.replace(pair, letter)
    return shown


def _likeness(text: str) -> str:
    import disarm  # noqa: PLC0415 - see above

    return disarm.skeleton_key(text, digit_policy="tr39")


@functools.cache
def _skeletons() -> frozenset[str]:
    return frozenset(skeleton(f"{word}{end}") for word in WORDS for end in ("", "s"))
