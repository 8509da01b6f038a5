"""Categories of threads: the canonical form of their names and their maximum number (pure).

A site files its pages under categories ("News", "How to"). Categories may be nested: a name is a
path of up to three parts, such as "sport/football/women". A thread can have several categories.
Each of its comments counts once in each of these categories, and once in each category above them.
The numbers of a subtree are therefore the numbers of its topmost category, and an author counts
there once, regardless of how many of its subcategories they wrote in.

Names that look alike must denote the same category; otherwise the counts would be split. The
canonical form of a part is therefore in lower case, replaces compatibility characters with their
plain equivalents, and reduces each run of white space to one space. A part begins with a letter or
a digit, so no spreadsheet interprets a name as a formula. A part contains no control characters,
because key names use one in place of "/" (`counter_rows`).

The canonical form is stored in the keys of counters, so it must never change.

A *category term* finds pages and comments by their categories: a category finds everything in it
and below it, and "*/" with one part finds everything whose path has this part at any level.
`Thread.category_terms` and `Comment.category_terms` store all terms that find the row.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterable

from comments import errors

# The maximum per thread, because each comment writes counter rows for every category and for the
# categories above it.
MOST = 5
MOST_OF_SITE = 200
DEEPEST = 3  # Maximum number of parts of a name
LONGEST = 50  # Maximum number of characters of a part

ANYWHERE = "*/"  # The beginning of a term that finds a part at any level of a path.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_BESIDE_LETTERS = frozenset(" -_.,:&+'")
# Invisible characters that Unicode classifies as letters: the Hangul fillers.
_BLANK = frozenset("\u115f\u1160")
_ROUNDS = 4


def canonical(raw: str) -> str:
    """Return the canonical form of a category name.

    Raises:
        errors.BadInput: the name has more than three parts, or a part is empty, is longer than 50
            characters, does not begin with a letter or a digit, or contains characters that are not
            part of words.
    """
    parts = raw.split("/", DEEPEST)
    if len(parts) > DEEPEST:
        raise errors.BadInput("categories", "category-too-deep", limit=DEEPEST)
    return "/".join(map(_canonical_part, parts))


def with_ancestors(names: Iterable[str]) -> tuple[str, ...]:
    """Return canonical names and the names of all categories above them, each once."""
    return tuple(dict.fromkeys(path for name in names for path in lineage(name)))


def lineage(name: str) -> Iterable[str]:
    """Return the categories above a canonical name, topmost first, and then the name itself."""
    return itertools.accumulate(name.split("/"), "{}/{}".format)


def terms(names: Iterable[str]) -> list[str]:
    """Return the terms that find canonical names: at most two for each part of a name."""
    paths = with_ancestors(names)
    parts = dict.fromkeys(ANYWHERE + path.rpartition("/")[2] for path in paths)
    return [*paths, *parts]


def canonical_term(raw: str) -> str:
    """Return the canonical form of a term: "sport", "sport/football", "*/football" or "".

    Raises:
        errors.BadInput: the term's category or part is invalid, or a part contains "/".
    """
    part = raw.removeprefix(ANYWHERE)
    try:
        if part == raw:
            return canonical(raw) if raw else ""
        return ANYWHERE + _canonical_part(part)
    except errors.BadInput as error:
        raise error.about("category") from error


def canonical_set(names: Iterable[str], most: int = MOST) -> tuple[str, ...]:
    """Return the canonical forms of several names, sorted and without duplicates.

    Raises:
        errors.BadInput: a name is invalid, or there are more than `most` names.
    """
    paths = tuple(sorted({canonical(name) for name in names}))
    if len(paths) > most:
        raise errors.BadInput("categories", "too-many-items", limit=most)
    return paths


def _canonical_part(raw: str) -> str:
    if len(raw) > 4 * LONGEST:
        raise errors.BadInput("categories", "item-too-long", limit=LONGEST)
    if _CONTROL.search(raw):
        raise errors.BadInput("categories", "bad-category")
    text = _without_case(raw)
    if not text:
        raise errors.BadInput("categories", "bad-category")
    if len(text) > LONGEST:
        raise errors.BadInput("categories", "item-too-long", limit=LONGEST)
    if not _is_word(text[0]):
        raise errors.BadInput("categories", "bad-category")
    if not all(_is_part(character) for character in text):
        raise errors.BadInput("categories", "bad-category")
    return text


def _without_case(text: str) -> str:
    for _ in range(_ROUNDS):
        # Folding can produce letters that fold again; a few rounds are enough for all of Unicode.
        before = text
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        text = " ".join(text.split())
        if text == before:
            break
    return text


def _is_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN" and character not in _BLANK


def _is_part(character: str) -> bool:
    is_mark = unicodedata.category(character)[0] == "M"
    return is_mark or _is_word(character) or character in _BESIDE_LETTERS
