"""Categories of threads: one canonical form of their names, and how many there may be (pure).

A site files its pages under categories ("News", "How to"); a thread may carry some of them, and
comments are counted by them. Two names that read alike must be one category, or the counts of one
are split: the canonical form is in lower case, compatible letters are one, and runs of blanks are
one space. It begins with a letter or a digit, so that no spreadsheet takes it for a formula, and
holds no "/", which joins the names of keys.

The form is stored in the keys of counters, so it is for ever.
"""

import re
import unicodedata
from collections.abc import Iterable

from comments import errors

MOST = 5  # of one thread: each costs rows of counters with every comment
MOST_OF_SITE = 200
LONGEST = 50  # characters

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_BESIDE_LETTERS = frozenset(" -_.,:&+'")
# Letters by category that show nothing: the fillers of Hangul.
_BLANK = frozenset("\u115f\u1160")
_ROUNDS = 4


def canonical(raw: str) -> str:
    """The canonical form of a category's name.

    Raises:
        errors.BadInput: it is empty, longer than 50 characters, begins with something else than a
            letter or a digit, or holds characters that are no part of words.
    """
    if len(raw) > 4 * LONGEST:
        raise errors.BadInput("categories", f"a name is longer than {LONGEST} characters")
    if _CONTROL.search(raw):
        raise errors.BadInput("categories", "a name holds control characters")
    text = _folded(raw)
    if not text:
        raise errors.BadInput("categories", "a name is empty")
    if len(text) > LONGEST:
        raise errors.BadInput("categories", f"a name is longer than {LONGEST} characters")
    if not _is_word(text[0]):
        raise errors.BadInput("categories", "a name begins with a letter or a digit")
    if not all(_is_part(character) for character in text):
        raise errors.BadInput(
            "categories", "a name holds letters, digits, spaces and -_.,:&+' only"
        )
    return text


def canonical_set(names: Iterable[str], most: int = MOST) -> tuple[str, ...]:
    """The canonical forms of several names, each once, in order.

    Raises:
        errors.BadInput: one of them is refused, or there are more than `most`.
    """
    found = tuple(sorted({canonical(name) for name in names}))
    if len(found) > most:
        raise errors.BadInput("categories", f"more than {most}")
    return found


def _folded(text: str) -> str:
    for _ in range(_ROUNDS):
        # Folding one form may give letters that fold again; a few rounds end it for all of Unicode.
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
