"""Render prose without markup: paragraphs of letters, digits and punctuation (pure).

Most comments contain no markup. The parser and the sanitizer take ten times as long for such
comments as this module does.

This module does not render a text that the parser or the sanitizer could change or refuse, so the
HTML is the same with and without this module.
"""

import re

# The parser's work on each character and line is bounded. A text of this length never exceeds the
# limit of the parser (`rendering.MAX_WORK`), even if each character may begin markup.
LONGEST = 2_000
_BLANK_LINES = re.compile("\n\n+")
# Possible markup: a character of markup, the beginning of a bare link, a space that ends a line, or
# a line that begins with anything but a letter, such as a list item.
_SPECIAL = re.compile(
    "[^\\w\n ,.;:?!'\"()/%\u2013\u2014\u2026\u2018\u2019\u201c\u201d-]|_"
    "|//|[Ww]{3}\\.| $|^[^\\w\n]|^\\d",
    re.MULTILINE,
)


def render(source: str) -> str | None:
    """Return the HTML of a text without markup, or None if the text may contain markup."""
    if len(source) > LONGEST or _SPECIAL.search(source):
        return None
    return "".join(
        f"<p>{paragraph}</p>\n" for paragraph in _BLANK_LINES.split(source.strip("\n")) if paragraph
    )
