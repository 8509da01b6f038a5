"""Rendering of a body to HTML when it is written: Markdown, then the sanitizer (pure).

A preview uses the same function.

Invariants:

1. The HTML contains only the tags and attributes in the lists below. Parsing and serializing the
   HTML gives the same HTML again, so no browser can interpret it differently.
2. The time to render a body of maximum size is bounded.

`RENDERER` and `SANITISER` are stored with the HTML that they produced. Increase both with every
change to the output, so that stored HTML can be rendered again.

The dialect is CommonMark with tables and strikethrough, but without HTML and images. The parser can
take hundreds of times as long for a text of 10,000 characters as for prose of that length, for
example if thousands of brackets and emphasis marks never close. The parser therefore counts its
work and stops above `MAX_WORK`. The count depends only on the text, never on the clock, so a
refused text is refused every time: in a preview, a post and an edit alike.

One unit of work takes about 0.4 microseconds on a processor of 2024:

    HOP       each character or element that is skipped in search of the end of a link's text; if
              brackets never close, the number of hops grows with the square of their number
    TOKEN     each token, which has to be rendered and sanitized
    STEP      each attempt to find an inline element or a block, successful or not
    LINE      each line of a paragraph, once per surrounding quote or list, because a block may
              begin at any line
    AUTOLINK  each "<" that may begin a link
    BRACKET   each "[" that may begin a link, whose address may be as long as the text
    LINK      each link, because its address is parsed several times
    SHOWN     each character in a link's address and title; a thousand links may share a definition
    HOST      each non-ASCII character in a link's host name, which is converted to Punycode
    ADDRESS   every two characters of a possible address after a "](" that does not end a link

Prose of maximum length takes about 12,000 units.
"""

import html
import html.parser
import re
import threading
from collections.abc import MutableMapping

import markdown_it
import nh3
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from comments import errors
from comments.domain.text import cleaning

RENDERER = "markdown-2"
SANITISER = "html-3"

# The maximum number of characters of HTML in one imported comment.
MAX_HTML = 100_000
# The maximum number of tags in one imported comment: the time for nested lists grows with the
# square of their number.
MAX_TAGS = 4_000
# The maximum nesting of elements in one imported comment. Browsers flatten anything deeper than
# 512.
MAX_DEPTH = 200
# The maximum bytes of sanitized HTML, which must fit into a Datastore entity (1 MiB) with its
# source.
MAX_SANITISED = 600_000
# The maximum number of rounds until sanitized HTML parses to itself; two are enough for HTML that
# browsers write.
MAX_ROUNDS = 5

_EMPHASIS = {"b", "del", "em", "i", "ins", "q", "s", "strong", "sub", "sup", "u"}
_PHRASES = {"a", "abbr", "code", "kbd", "samp", "var"}
_BLOCKS = {"blockquote", "br", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}
TAGS = frozenset(_EMPHASIS | _PHRASES | _BLOCKS | _TABLES)
ATTRIBUTES = {"a": frozenset({"href", "title"}), "abbr": frozenset({"title"})}
LINK_REL = "nofollow ugc noopener"


_TAG = re.compile("<(/?)([a-z0-9]+)")
# The cleaner adds `rel` to every link, but HTML allows it only on links with a target. A link
# without a target would show nothing but its title, which may contain the address that was meant to
# be hidden.
_TARGETLESS = re.compile(rf'<a(?: title="[^"]*")? rel="{LINK_REL}">')
_VOID = {"br", "hr"}
MAX_WORK = 130_000
HOP, TOKEN, STEP, LINE, LINK = 2, 8, 16, 20, 96
AUTOLINK, BRACKET, ADDRESS = 48, 80, 1
SHOWN, HOST = 3, 30
_TRIES = {"<": AUTOLINK, "[": BRACKET}
_NAME = re.compile(r"(?://|mailto:)([^/?#]*)")
# The work spent on the current text in this thread, for parser calls that receive no state.
_parsing = threading.local()
_UNSPACED = re.compile(r"[^\x00-\x20\x7f]*")
# The maximum nesting of blocks. Markdown drops anything deeper, so deeper bodies are refused.
MAX_NESTING = 20
_WORK, _COUNTED = "work", "tokens of blocks that are counted"


def render_markdown(source: str) -> str:
    """Render a body from CommonMark with tables and strikethrough, without HTML and images.

    Headings start at the third level, below the headings of the surrounding page.

    Raises:
        errors.BadInput: blocks are nested too deeply to be shown whole, or the markup takes too
            much work.
    """
    cleaning.refuse("body", source, cleaning.REFUSED)
    return _sanitise(_rendered(source))


def sanitise_html(source: str) -> str:
    """Sanitize a body that another system supplied as HTML.

    Raises:
        errors.BadInput: the body exceeds a limit or is not text.
    """
    cleaning.refuse("body", source, cleaning.REFUSED)
    if len(source) > MAX_HTML:
        raise errors.BadInput("body", "too-long", limit=MAX_HTML)
    if source.count("<") > MAX_TAGS:
        raise errors.BadInput("body", "too-much-markup")
    cleaned = _sanitise(source)
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


def _is_web_url(text: str) -> bool:
    return cleaning.WEB_URL.fullmatch(text) is not None


def _keep_attribute(tag: str, attribute: str, value: str) -> str | None:
    if (tag, attribute) == ("a", "href") and not _is_web_url(value):
        return None
    return value


def _sanitise(source: str) -> str:
    """Sanitize until the result parses to itself.

    Removing tags can join parts that a parser separates again (such as a `<p>` in a removed button
    in a `<p>`). Attackers bypass sanitizers with HTML that changes when it is parsed.
    """
    for _ in range(MAX_ROUNDS):
        cleaned = _TARGETLESS.sub("<a>", cleaning.DROPPED.sub("", _CLEANER.clean(source)))
        if cleaned == source:
            return cleaned
        source = cleaned
    return _CLEANER.clean(html.escape(source, quote=False))


def _depth(cleaned: str) -> int:
    """Return the depth to which the elements of sanitized HTML are nested."""
    depth = deepest = 0
    for slash, tag in _TAG.findall(cleaned):
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


def _rendered(source: str) -> str:
    """Render a text to unsanitized HTML. Headings start at the third level.

    Raises:
        errors.BadInput: the text takes too much work, or its blocks are nested too deeply.
    """
    tokens = parse(source)[0]
    if any(token.nesting == 1 and token.level >= MAX_NESTING - 1 for token in tokens):
        raise errors.BadInput("body", "too-much-markup")
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    return str(_PARSER.renderer.render(tokens, _PARSER.options, {}))


def parse(source: str) -> tuple[list[Token], int]:
    """Return a text's tokens, and the work that parsing took.

    Raises:
        errors.BadInput: parsing takes more than `MAX_WORK`.
    """
    spent: dict[str, int] = {_WORK: 0, _COUNTED: 0}
    _parsing.spent = spent
    return _PARSER.parse(source, spent), spent[_WORK]


def _spend(state: StateBlock | StateCore | StateInline, units: int) -> None:
    _add(state.env, units)


def _add(spent: MutableMapping[str, int], units: int) -> None:
    spent[_WORK] += units
    if spent[_WORK] > MAX_WORK:
        raise errors.BadInput("body", "too-much-markup")


def _inline_made(state: StateInline) -> None:
    links = [token for token in state.tokens if token.type == "link_open"]
    shown = sum(len(str(value)) for token in links for value in token.attrs.values())
    _spend(state, TOKEN * len(state.tokens) + LINK * len(links) + SHOWN * shown)


def _blocks_made(state: StateBlock | StateCore) -> None:
    made = len(state.tokens) - state.env[_COUNTED]
    state.env[_COUNTED] += made
    _spend(state, TOKEN * made)


class _Markdown(markdown_it.MarkdownIt):
    """The parser, which also counts the non-ASCII characters in the host names that it converts."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the parser's name
        found = _NAME.search(url)
        strange = sum(not character.isascii() for character in found[1]) if found else 0
        _add(_parsing.spent, HOST * strange)
        return super().normalizeLink(url)


class _Inline(ParserInline):
    """The inline parser, which also counts the characters and elements that it skips."""

    def skipToken(self, state: StateInline) -> None:  # noqa: N802 - the parser's name
        _spend(state, HOP)
        super().skipToken(state)


# The parser tries its rules in order, so a first rule that never matches can count the attempts.
def _try_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    del silent
    _spend(state, _TRIES.get(state.src[state.pos], STEP))
    if state.src.startswith("](", state.pos):
        # The parser tries this rule only because the text was not a link. To determine that, the
        # parser read on to a blank or to 32 more brackets.
        found = _UNSPACED.match(state.src, state.pos + 2)
        _spend(state, ADDRESS * len(found[0]) // 2 if found else 0)
    return False


def _try_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - same
    del start, end
    _spend(state, LINE if silent else STEP)
    # A table calls this rule before each row. Short rows are filled up to the width of the table's
    # head, so counting tokens cannot wait for the end of the table: 10,000 characters make 200,000
    # tokens.
    _blocks_made(state)
    return False


def _parser() -> markdown_it.MarkdownIt:
    parser = _Markdown()
    parser.inline = _Inline()
    parser.configure("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"]).disable("image")
    parser.inline.ruler.before("text", _WORK, _try_inline)
    # This check comes before the pairing of delimiters, which also takes time.
    parser.inline.ruler2.before("balance_pairs", _WORK, _inline_made)
    ends = ["paragraph", "reference", "blockquote", "list", "table"]
    parser.block.ruler.before("table", _WORK, _try_block, {"alt": ends})
    parser.core.ruler.after("block", _WORK, _blocks_made)
    # The rules are compiled on first use, which is not thread-safe, so this call compiles them
    # before other threads can use the parser.
    parser.render("*a*", {_WORK: 0, _COUNTED: 0})
    return parser


_PARSER = _parser()
_CLEANER = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags={"script", "style", "template", "noscript", "iframe", "math", "svg"},
    # Without an entry for "*", the cleaner keeps `lang` and `title` of every element.
    attributes={**ATTRIBUTES, "*": frozenset()},
    attribute_filter=_keep_attribute,
    link_rel=LINK_REL,
    url_schemes={"http", "https"},
    url_relative="deny",
)
