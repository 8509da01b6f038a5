"""Sanitize HTML: keep what is on an allow-list, and reduce everything else to its text (pure).

HTML from Markdown and from other systems passes through this module once, when a body is written.

Invariant: The HTML contains only the tags and attributes of the lists below, and stays the same
when it is parsed and serialized again, so no browser can interpret it differently
(test_sanitizing.py::test_imported_html_keeps_only_allowed_elements).

Wide code blocks and tables scroll, so they can be focused with the keyboard.

`SANITISER` is stored with the HTML of imports. Raise both `SANITISER` and `rendering.RENDERER` with
every change to the output, so that stored HTML is rendered again (`upkeep/migrations/rerendering`).
"""

import html
import html.parser
import re

import nh3

from comments import errors
from comments.domain.text import cleaning

SANITISER = "html-5"

# The maximum number of characters of HTML in one imported comment.
MAX_HTML = 100_000
# The maximum number of tags in one imported comment, because the time for nested lists grows with
# the square of the number of tags.
MAX_TAGS = 4_000
# The maximum nesting of elements in one imported comment. Browsers flatten elements that are nested
# more than 512 levels deep.
MAX_DEPTH = 200
# The maximum bytes of sanitized HTML. The HTML and its source must together fit into one Datastore
# entity (1 MiB).
MAX_SANITISED = 600_000
# The maximum number of rounds until sanitized HTML no longer changes when it is parsed; two are
# enough for HTML that browsers write.
MAX_ROUNDS = 5

_EMPHASIS = {"b", "del", "em", "i", "ins", "q", "s", "strong", "sub", "sup", "u"}
_PHRASES = {"a", "abbr", "code", "kbd", "samp", "var"}
_BLOCKS = {"blockquote", "br", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}
INLINE = frozenset(_EMPHASIS | _PHRASES)
TAGS = INLINE | _BLOCKS | _TABLES
# The attribute of a link that stands for an image.
IMAGE_MARK = "data-ft-image"
_SCROLLED = frozenset({"tabindex"})
ATTRIBUTES = {
    "a": frozenset({"href", "title", IMAGE_MARK}),
    "abbr": frozenset({"title"}),
    "pre": _SCROLLED,
    "table": _SCROLLED,
    "td": frozenset({"align"}),
    "th": frozenset({"align"}),
}
LINK_REL = "nofollow ugc noopener"

# Elements whose content is not text.
WITHOUT_TEXT = {"script", "style", "template", "noscript", "math", "svg"}
# A tag in the sanitizer's format: in lower case, with all values in double quotes.
TAG = re.compile(r'<(/?)([a-z][a-z0-9]*)((?: [a-z-]+="[^"]*")*)>')
_ALIGNMENTS = {"left", "center", "right"}
_VOID = {"br", "hr"}


def sanitise_html(source: str) -> str:
    """Sanitize a body that another system supplied as HTML.

    Raises:
        errors.BadInput: the body exceeds a limit or is not text.
    """
    check(source)
    return sanitize_checked(source)


def check(source: str) -> None:
    """Check HTML before it is parsed.

    Raises:
        errors.BadInput: the HTML exceeds a limit or is not text.
    """
    cleaning.refuse("body", source, cleaning.REFUSED)
    if len(source) > MAX_HTML:
        raise errors.BadInput("body", "too-long", limit=MAX_HTML)
    if source.count("<") > MAX_TAGS:
        raise errors.BadInput("body", "too-much-markup")


def sanitize_checked(source: str) -> str:
    """Sanitize HTML and check the result.

    Raises:
        errors.BadInput: the result exceeds a limit.
    """
    cleaned = safe(source)
    if len(cleaned.encode()) > MAX_SANITISED or _depth(cleaned) > MAX_DEPTH:
        raise errors.BadInput("body", "too-much-markup")
    return cleaned


def plain_text(source: str) -> str:
    """Extract the text from HTML, one line per block, for excerpts, titles and mail."""
    parser = _TextOf()
    parser.feed(sanitise_html(source))
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
    return "\n".join(line for line in lines if line)


def is_web_url(text: str) -> bool:
    """Return whether a link may lead to a URL: absolute http(s) that all browsers read alike."""
    return cleaning.WEB_URL.fullmatch(text) is not None


def _keep_attribute(tag: str, attribute: str, value: str) -> str | None:
    if (tag, attribute) == ("a", "href") and not is_web_url(value):
        return None
    if attribute == "align" and value not in _ALIGNMENTS:
        return None
    return "" if attribute == IMAGE_MARK else value


def safe(source: str) -> str:
    """Sanitize HTML until parsing the result no longer changes it.

    Removing tags can join parts that a parser separates again, for example a `<p>` in a removed
    button in a `<p>`. Attackers bypass sanitizers with HTML that changes when it is parsed.
    """
    for _ in range(MAX_ROUNDS):
        cleaned = without_dead_links(cleaning.DROPPED.sub("", _CLEANER.clean(source)))
        if cleaned == source:
            return cleaned
        source = cleaned
    return _CLEANER.clean(html.escape(source, quote=False))


def without_dead_links(cleaned: str) -> str:
    """Reduce links without a target to their content.

    The title of such a link is removed too, because it may contain the address that was refused.
    """
    is_alive: list[bool] = []  # One per open link, because a table in a link may contain links

    def replacement(tag: re.Match[str]) -> str:
        slash, name, attributes = tag.groups()
        if name != "a":
            return tag[0]
        if not slash:
            is_alive.append(' href="' in attributes)
            return tag[0] if is_alive[-1] else ""
        return tag[0] if is_alive.pop() else ""

    return TAG.sub(replacement, cleaned)


def _depth(cleaned: str) -> int:
    """Return the depth to which the elements of sanitized HTML are nested."""
    depth = deepest = 0
    for slash, tag, _ in TAG.findall(cleaned):
        if tag not in _VOID:
            depth += -1 if slash else 1
            deepest = max(deepest, depth)
    return deepest


class _TextOf(html.parser.HTMLParser):
    """Collects text, with a line end at the start and end of each block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(
        self,
        tag: str,
        attrs: list[tuple[str, str | None]],  # noqa: ARG002 - the signature of the base class
    ) -> None:
        if tag in _BLOCKS or tag in _TABLES:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.handle_starttag(tag, [])

    def handle_data(self, data: str) -> None:
        self.parts.append(data.replace("\n", " "))


_CLEANER = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags={*WITHOUT_TEXT, "iframe"},
    # Without an entry for "*", the cleaner keeps `lang` and `title` of every element.
    attributes={**ATTRIBUTES, "*": frozenset()},
    attribute_filter=_keep_attribute,
    set_tag_attribute_values={"pre": {"tabindex": "0"}, "table": {"tabindex": "0"}},
    link_rel=LINK_REL,
    url_schemes={"http", "https"},
    url_relative="deny",
)
