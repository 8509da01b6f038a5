"""Convert HTML from other systems to the HTML of comments, and count the changes (pure).

The sanitizer alone would remove an image, a video or a frame without a trace. Here, each of these
becomes a link to the same address, and an image gets a mark (`sanitizing.IMAGE_MARK`). An image,
video or frame within a link becomes the text of that link. Headings above the highest level of
comments become headings of that level. A block that comments cannot contain, such as `<div>`,
begins and ends a line; the sanitizer would join its text with the text around it.

A first cleaner keeps all these elements, so this module looks for tags only in the cleaner's
regular output, never in the source. The sanitizer then checks the result like any other HTML.
"""

import re
from collections.abc import Iterator

import msgspec
import nh3

from comments.domain.text import sanitizing

# Elements that show content from another address, and the attribute that contains this address.
_EMBEDS = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "object": "data",
    "source": "src",
    "video": "src",
}
_HIGH_HEADINGS = frozenset({"h1", "h2"})
_HIGHEST = "h3"  # Headings of comments are below those of the surrounding page.
# Blocks that comments cannot contain.
_OTHER_BLOCKS = frozenset({
    "address", "article", "aside", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "legend", "main", "nav", "section",
    "summary",
})  # fmt: skip
_BOUNDARY = "div"  # Temporarily marks where any of these blocks starts or ends
_REMOVED = re.compile(rf"<(?:{'|'.join(sanitizing.WITHOUT_TEXT)})\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(r' ([a-z-]+)="([^"]*)"')


class ConvertedHtml(msgspec.Struct, frozen=True):
    """Sanitized HTML, and how often something in its source was replaced or removed.

    `unlinked` counts links that became text because they have no address on the web.
    """

    html: str
    images: int
    embeds: int
    unlinked: int
    removed: int


def convert(source: str) -> ConvertedHtml:
    """Convert and sanitize a body that another system supplied as HTML.

    Raises:
        errors.BadInput: the body exceeds a limit or is not text.
    """
    sanitizing.check(source)
    conversion = _Conversion()
    html = sanitizing.TAG.sub(conversion.replacement, _KEEPER.clean(source))
    if f"<{_BOUNDARY}>" in html:
        html = "".join(_lines(html))
    return ConvertedHtml(
        sanitizing.sanitize_checked(html),
        conversion.images,
        conversion.embeds,
        conversion.unlinked,
        len(_REMOVED.findall(source)),
    )


class _Conversion:
    """Replaces the tags of one text, in their order."""

    def __init__(self) -> None:
        self.images = self.embeds = self.unlinked = 0
        self._links: list[bool] = []  # For each open link, whether it has an address
        self._last = ""

    def replacement(self, tag: re.Match[str]) -> str:
        slash, name, written = tag.groups()
        # The values are already escaped, and must stay escaped.
        attributes = dict(_ATTRIBUTE.findall(written))
        if name == "a":
            return self._link(tag[0], is_end=bool(slash), is_alive="href" in attributes)
        if name == "img":
            self.images += 1
            url = attributes.get("src", "")
            mark = f' {sanitizing.IMAGE_MARK}=""'
            return self._anchor(url, attributes.get("alt", "").strip(), mark)
        if name in _HIGH_HEADINGS:
            return f"<{slash}{_HIGHEST}>"
        if name in _OTHER_BLOCKS:
            return f"<{_BOUNDARY}>"
        if name in _EMBEDS:
            return "" if slash else self._media(attributes.get(_EMBEDS[name], ""), attributes)
        return tag[0]

    def _link(self, tag: str, *, is_end: bool, is_alive: bool) -> str:
        if is_end and self._links:
            self._links.pop()
        elif not is_end:
            self._links.append(is_alive)
            self.unlinked += not is_alive
        return tag

    def _media(self, url: str, attributes: dict[str, str]) -> str:
        # In old snippets, an object and the embed within it name the same address.
        if not url or url == self._last:
            return ""
        self._last = url
        self.embeds += 1
        return self._anchor(url, attributes.get("title", "").strip())

    def _anchor(self, url: str, text: str, mark: str = "") -> str:
        if not url or any(self._links):
            return text or url
        return f'<a href="{url}"{mark}>{text or url}</a>'


def _lines(html: str) -> Iterator[str]:
    """Yield HTML with a line break at each boundary between two texts; drop other boundaries."""
    is_begun = is_ended = False  # Does the current line have text, and does a boundary end it?
    end = 0
    for tag in sanitizing.TAG.finditer(html):
        text, end, name = html[end : tag.start()], tag.end(), tag[2]
        if text.strip():
            yield from ("<br>",) if is_ended else ()
            is_begun, is_ended = True, False
        yield text
        if name == _BOUNDARY:
            is_ended = is_begun
            continue
        if name not in sanitizing.INLINE:
            is_begun = is_ended = False
        elif is_ended and not tag[1]:
            yield "<br>"
            is_begun = is_ended = False
        yield tag[0]
    yield from ("<br>",) if is_ended and html[end:].strip() else ()
    yield html[end:]


def _keep_attribute(_tag: str, attribute: str, value: str) -> str | None:
    if attribute not in {"href", "src", "data"}:
        return value
    # Pages with https may name an address without its scheme.
    url = f"https:{value}" if value.startswith("//") else value
    return url if sanitizing.is_web_url(url) else None


_KEEPER = nh3.Cleaner(
    tags=sanitizing.TAGS | _HIGH_HEADINGS | _OTHER_BLOCKS | set(_EMBEDS) | {"img"},
    clean_content_tags=sanitizing.WITHOUT_TEXT,
    attributes={
        **sanitizing.ATTRIBUTES,
        **{name: {source, "title"} for name, source in _EMBEDS.items()},
        "img": {"src", "alt"},
        "*": set(),
    },
    attribute_filter=_keep_attribute,
    link_rel=None,
    url_schemes={"http", "https"},
    url_relative="pass_through",
)
