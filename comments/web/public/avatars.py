"""Avatars: an author's initials and a color that depends on the name (pure).

The widget draws the same avatars (`widget/source/avatar.js`), so an author looks the same on a page
with and without JavaScript. No picture is loaded, because a request to another server would tell it
who reads the page.
"""

import re
import unicodedata

HUES = 12
_MODULUS = 9973
# The white space of JavaScript's \s, and the characters that separate the words of user names.
_BETWEEN = re.compile("[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff._-]+")


def hue_of(name: str) -> int:
    """Return the number of a name's color, from 0 to 11."""
    total = 0
    for character in name:
        total = (total * 31 + ord(character)) % _MODULUS
    return total % HUES


def initials_of(name: str) -> str:
    """Return the first letters of the first and the last word, in upper case."""
    letters = [letter for word in _BETWEEN.split(name) if (letter := _first_letter(word))]
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
