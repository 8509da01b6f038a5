"""Avatars: an author's initials and a color that depends on the name (pure).

The widget draws the same avatars (`widget/source/reader/comments/avatar.js`), so an author looks
the same on a page with and without JavaScript. No picture is loaded, because a request for it would
tell another server who reads the page.
"""

import re
import unicodedata

COLORS = 24  # 12 hues in two shades each
_MODULUS = 9973
# The characters that JavaScript's \s matches, and those that separate the words of user names.
_BETWEEN = re.compile("[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff._-]+")
# This is not a pattern, because compiling a pattern for these ranges would add 2 ms to each start.
_WIDE = (
    ("\u1100", "\u11ff"),
    ("\u3040", "\u30ff"),
    ("\u3400", "\u9fff"),
    ("\uac00", "\ud7af"),
    ("\uf900", "\ufaff"),
)


def color_of(name: str) -> tuple[int, int]:
    """Return the number of a name's hue (from 0 to 11), and the number of its shade (0 or 1)."""
    total = 0
    for character in name:
        total = (total * 31 + ord(character)) % _MODULUS
    shade, hue = divmod(total % COLORS, COLORS // 2)
    return hue, shade


def initials_of(name: str) -> str:
    """Return the first letters of the first and the last word, in upper case.

    If a name begins with a Chinese, Japanese or Korean character, only this character is returned,
    because two of these wide characters do not fit.
    """
    letters = [letter for word in _BETWEEN.split(name) if (letter := _first_letter(word))]
    if letters and any(first <= letters[0][0] <= last for first, last in _WIDE):
        return letters[0]
    return "".join([*letters[:1], *letters[1:][-1:]]).upper()


def _first_letter(word: str) -> str:
    """Return the first letter or digit of a word with its combining marks, or ""."""
    for place, character in enumerate(word):
        if unicodedata.category(character)[0] in "LN":
            end = place + 1
            while end < len(word) and unicodedata.category(word[end])[0] == "M":
                end += 1
            return word[place:end]
    return ""
