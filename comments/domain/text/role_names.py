"""Role names: names with which a guest would appear to speak for the site (pure).

A guest's name must not appear to speak for the site, so it must not be a role word, alone or
combined with the site's name. Names are compared by their skeletons, from which case, marks, blanks
and punctuation are dropped. Letters that look alike are replaced by one of them (UTS #39, as
implemented by the library `disarm`), and digits that replace letters are treated in the same way.
UTS #39 knows only some look-alikes, so in a name that mixes Latin letters with other letters, each
letter that is not in UTS #39 stands for any letter. A name that merely contains a role word, or
that belongs to another person, is allowed: readers can distinguish authors by the kind that the
server shows with every name (`presentation.AuthorKind`).

The library `disarm` was chosen over `confusable-homoglyphs` (data from 2024, without small capitals
and boxed letters) and `confusables` (2021, 3.4 MB, which converts one character at a time).
Importing `disarm` takes 0.2 s and 5 MB, so the import happens only at the first name that is not
plain ASCII.
"""

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable

# The role words in the widget's languages, and the words for administrators and moderators in a few
# more languages. Words that are also given names are left out, such as the Arabic word for an
# owner.
WORDS = (
    "admin", "administrator", "author", "mod", "moderator", "operator", "owner", "staff",
    "support", "sysadmin", "system", "webmaster",
    # German
    "administratorin", "autor", "autorin", "betreiber", "betreiberin", "inhaber", "inhaberin",
    "mitarbeiter", "mitarbeiterin", "moderatorin",
    # French
    "administrateur", "administratrice", "assistance", "auteur", "autrice", "modérateur",
    "modératrice", "modo", "propriétaire", "système", "webmestre", "équipe",
    # Italian, Spanish and Portuguese, Turkish
    "amministratore", "amministratrice", "moderatore", "moderatrice", "administrador",
    "administradora", "moderador", "moderadora", "yönetici", "moderatör",
)  # fmt: skip
_OTHER_SCRIPTS = (
    # Arabic
    "أدمن", "مدير", "المدير", "المشرف", "المسؤول", "الإدارة", "المالك", "الدعم", "المؤلف",
    # Japanese
    "管理者", "管理人", "アドミン", "モデレーター", "モデレータ", "運営", "運営者", "オーナー",
    "作者", "スタッフ", "サポート", "システム",
    # Chinese, Korean, Russian
    "管理员", "管理員", "版主", "站长", "站長", "관리자", "운영자", "админ",
    "администратор", "модератор",
)  # fmt: skip
# The minimum length of a skeleton in which letters stand for any letter; shorter ones match
# people's names.
_SHORTEST_MIXED = 5
_LINKS = ("", "of", "at", "the", "ofthe", "from", "for", "von", "vom", "de", "du", "の")
_SHORTEST_SITE = 2  # Minimum number of characters in a site's name.
_LEET = str.maketrans("4@831|!i05$7", "aabellllosst")
# Pairs of letters that look like one letter, applied after all other replacements.
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
# Regional indicators form flags; a browser without flags shows them as letters.
_FLAGS = {0x1F1E6 + place: letter for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
_WORD = re.compile(r"[a-z0-9]+")


def speaks_for_site(name: str, site: Iterable[str] = ()) -> bool:
    """Return whether a name is a role word, alone or next to the site's name.

    `site` contains the site's names: its id and the hosts of its pages.
    """
    shape = skeleton(name.replace(" @ ", " at "))
    # For an ASCII name, skip the role words in other scripts, because their skeletons need the
    # library.
    words = WORDS if shape.isascii() else (*WORDS, *_OTHER_SCRIPTS)
    if _is_like_one(shape, _skeletons(words)):
        return True
    before, after = _beside_sites(words)
    return any(
        (shape.endswith(own) and _is_like_one(shape.removesuffix(own), before))
        or (shape.startswith(own) and _is_like_one(shape.removeprefix(own), after))
        for own in _site_skeletons(tuple(site))
    )


def _is_like_one(found: str, claims: frozenset[str]) -> bool:
    """Return whether a skeleton is one of the given skeletons.

    In a mostly Latin skeleton, each other letter stands for any letter.
    """
    latin = sum(c.isascii() for c in found)
    is_mixed = len(found) >= _SHORTEST_MIXED and len(found) <= 2 * latin < 2 * len(found)
    if not is_mixed:
        return found in claims
    return any(
        len(claim) == len(found)
        and all(
            seen == wanted or not seen.isascii() for seen, wanted in zip(found, claim, strict=True)
        )
        for claim in claims
    )


def skeleton(name: str) -> str:
    """Reduce a name to what readers recognize, without case, marks, look-alikes or separators."""
    plain = name.lower() if name.isascii() else _plain_letters(name)
    shown = "".join(c for c in plain.translate(_LEET) if c.isalnum())
    for pair, letter in _PAIRS:
        shown = shown.replace(pair, letter)
    return shown


def _names(text: str) -> set[str]:
    """Return the names that a host name or an id contains.

    The names are the whole text, the text without `www`, and the labels that people say.
    """
    labels = _WORD.findall(text.lower().removeprefix("www."))
    return {text, "".join(labels), "".join(labels[:-1]), *labels[:-1][-1:], *labels[:1]}


def _plain_letters(name: str) -> str:
    """Reduce a text to plain letters: drop case and marks, and unify look-alikes."""
    # Replace look-alikes before lowering the case, because the small form of a letter may look
    # different.
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name)).translate(_FLAGS)
    plain = "".join(c for c in parts if unicodedata.category(c)[0] != "M")
    if plain.isascii():
        return plain.lower()
    return unicodedata.normalize("NFKD", _likeness(plain)).casefold()


def _likeness(text: str) -> str:
    import disarm  # noqa: PLC0415 - see above

    return disarm.skeleton_key(text, digit_policy="tr39")


@functools.lru_cache(1_000)
def _site_skeletons(site: tuple[str, ...]) -> frozenset[str]:
    """Return the skeletons of a site's names. Leave out short ones, which match people's names."""
    called = {skeleton(name) for text in site for name in _names(text)}
    return frozenset(shape for shape in called if len(shape) >= _SHORTEST_SITE)


@functools.cache
def _beside_sites(words: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a role's name can put before a site's name, and what it can put after it."""
    pairs = tuple(itertools.product(_skeletons(words), _LINKS))
    return frozenset(f"{role}{link}" for role, link in pairs), frozenset(
        f"{link}{role}" for role, link in pairs
    )


@functools.cache
def _skeletons(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(skeleton(f"{word}{end}") for word in words for end in ("", "s"))
