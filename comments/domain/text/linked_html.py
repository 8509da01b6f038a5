"""Turn web addresses that are typed in HTML without markup into links (pure).

Some systems store the HTML that people typed, and add such links only for display. Addresses are
found as in Markdown (`bare_links`).

Text in a link, in code and in preformatted text does not change. The result is only as safe as its
source, so the result must be sanitized too.
"""

import collections
import html
import re

from comments.domain.text import bare_links

_TAG = re.compile(r"(<(?:/?[A-Za-z]|!)[^<>]*>)")
_UNLINKED = re.compile(r"<(/?)(a|code|pre)\b", re.IGNORECASE)


def with_links(source: str) -> str:
    """Return HTML in which each address in the text is a link."""
    open_elements: collections.Counter[str] = collections.Counter()
    pieces: list[str] = []
    for number, piece in enumerate(_TAG.split(source)):
        is_tag = number % 2
        if is_tag:
            _count(open_elements, piece)
        pieces.append(piece if is_tag or open_elements.total() else _link(piece))
    return "".join(pieces)


def _count(open_elements: collections.Counter[str], tag: str) -> None:
    """Count the open elements whose text gets no links."""
    match = _UNLINKED.match(tag)
    if match is None:
        return
    slash, name = match[1], match[2].lower()
    if not slash:
        open_elements[name] += 1
    elif open_elements[name]:
        open_elements[name] -= 1


def _link(piece: str) -> str:
    """Add links to a piece of text that may contain HTML entities."""
    text = html.unescape(piece)
    parts: list[str] = []
    done = place = 0
    while head := bare_links.HEAD.search(text, place):
        place = bare_links.end_of(head)
        if not place:
            place = head.end()
            continue
        shown = text[head.start() : place]
        parts.append(html.escape(text[done : head.start()], quote=False))
        address = html.escape(bare_links.address(shown))
        parts.append(f'<a href="{address}">{html.escape(shown, quote=False)}</a>')
        done = place
    if not parts:
        return piece
    parts.append(html.escape(text[done:], quote=False))
    return "".join(parts)
