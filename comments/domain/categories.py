"""Categories of threads: the canonical form of their names and their maximum number (pure).

A site files its pages under categories ("News", "How to"). A thread can have several categories,
and each of its comments counts in all of them. Names that look alike must denote the same category;
otherwise the counts would be split. The canonical form is therefore in lower case, replaces
compatibility characters with their plain equivalents, and reduces each run of white space to one
space. A name begins with a letter or a digit, so no spreadsheet interprets it as a formula, and
contains no "/", which separates the parts of key names.

The canonical form is stored in the keys of counters, so it must never change.
"""

import re
import unicodedata
from collections.abc import Iterable

from comments import errors

MOST = 5  # The maximum per thread, because each comment writes counter rows for every category.
MOST_OF_SITE = 200
LONGEST = 50  # characters

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_BESIDE_LETTERS = frozenset(" -_.,:&+'")
# Invisible characters that Unicode classifies as letters: the Hangul fillers.
_BLANK = frozenset("\u115f\u1160")
_ROUNDS = 4


def canonical(raw: str) -> str:
    """Return the canonical form of a category name.

    Raises:
        errors.BadInput: the name is empty, is longer than 50 characters, does not begin with a
            letter or a digit, or contains characters that are not part of words.
    """
    if len(raw) > 4 * LONGEST:
        raise errors.BadInput("categories", "item-too-long", limit=LONGEST)
    if _CONTROL.search(raw):
        raise errors.BadInput("categories", "bad-category")
    text = _folded(raw)
    if not text:
        raise errors.BadInput("categories", "bad-category")
    if len(text) > LONGEST:
        raise errors.BadInput("categories", "item-too-long", limit=LONGEST)
    if not _is_word(text[0]):
        raise errors.BadInput("categories", "bad-category")
    if not all(_is_part(character) for character in text):
        raise errors.BadInput("categories", "bad-category")
    return text


def canonical_set(names: Iterable[str], most: int = MOST) -> tuple[str, ...]:
    """Return the canonical forms of several names, sorted and without duplicates.

    Raises:
        errors.BadInput: a name is invalid, or there are more than `most` names.
    """
    found = tuple(sorted({canonical(name) for name in names}))
    if len(found) > most:
        raise errors.BadInput("categories", "too-many-items", limit=most)
    return found


def _folded(text: str) -> str:
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
