"""Rendering of a body to HTML when it is written: Markdown, then the sanitizer (pure).

Previews are rendered in the same way.

`RENDERER`, the version of this function, is stored with the HTML. Raise `RENDERER` with every
change to the output, so that stored HTML is rendered again (`upkeep/migrations/rerendering`).

The dialect is CommonMark with tables, strikethrough and bare links (`bare_links`), without HTML. An
image becomes a link with `sanitizing.IMAGE_MARK`, because the site may change at any time which
images are shown inline (`inline_images`). Texts from other systems can be in a second dialect, in
which HTML and line breaks are kept (`with_html`).

The parser can take hundreds of times as long for a text of 10,000 characters as for prose of that
length, for example if thousands of brackets and emphasis marks never close. The parser therefore
counts its work and stops above `MAX_WORK`. The count depends only on the text, never on the clock,
so a refused text is refused every time: in a preview, a post and an edit alike.

One unit of work takes about 0.4 microseconds on a processor of 2024:

    HOP       each character or element that is skipped in search of the end of a link's text; if
              brackets never close, the number of hops grows with the square of their number
    TOKEN     each token, which has to be rendered and sanitized
    STEP      each attempt to find an inline element or a block, successful or not
    LINE      each line of a paragraph, once per surrounding quote or list, because a block may
              begin at any line
    AUTOLINK  each "<", "http://" or "www." that may begin a link
    BRACKET   each "[" or "![" that may begin a link, whose address may be as long as the text
    LINK      each link, because its address is parsed several times
    SHOWN     each character in a link's address and title; a thousand links may share a definition
    HOST      each non-ASCII character in a link's host name, which is converted to Punycode;
              twice in a bare link, whose scripts are checked too
    ADDRESS   every two characters of a possible address after a "](" that does not end a link

Prose of maximum length takes about 12,000 units.
"""

import re
import threading
from collections.abc import Iterator, MutableMapping, Sequence

import markdown_it
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from comments import errors
from comments.domain.text import bare_links, cleaning, plain_prose, sanitizing

RENDERER = "markdown-3"

_ALIGNED = re.compile("text-align:(left|center|right)")
MAX_WORK = 130_000
HOP, TOKEN, STEP, LINE, LINK = 2, 8, 16, 20, 96
AUTOLINK, BRACKET, ADDRESS = 48, 80, 1
SHOWN, HOST = 3, 30
_TRIES = {"<": AUTOLINK, "[": BRACKET}
_NAME = re.compile(r"(?://|mailto:)([^/?#]*)")
# The work spent on the current text in this thread, for parser calls that receive no state.
_parsing = threading.local()
_UNSPACED = re.compile(r"[^\x00-\x20\x7f]*")
# Where plain text may end and the parser looks for markup, including the beginnings of bare links.
_TEXT_ENDS = re.compile(f"{ParserInline().terminator_re.pattern}|{bare_links.START}")
# The maximum nesting of blocks. Markdown drops blocks that are nested more deeply, so bodies that
# contain such blocks are refused.
MAX_NESTING = 20
_ONLY_WITH_HTML = {"html_block", "html_inline", "softbreak"}
_WORK, _COUNTED = "work", "tokens of blocks that are counted"


def render_markdown(source: str) -> str:
    """Render a body in CommonMark with tables, strikethrough and bare links, but without HTML.

    Headings start at the third level, below the headings of the surrounding page.

    Raises:
        errors.BadInput: blocks are nested too deeply to be shown whole, or the markup takes too
            much work.
    """
    prose = plain_prose.render(source)
    return with_markup(source) if prose is None else prose


def with_markup(source: str) -> str:
    """Render a body that may contain markup; see `render_markdown`."""
    cleaning.refuse("body", source, cleaning.REFUSED)
    return sanitizing.safe(_html(_PARSER, parse(source)[0]))


def with_html(source: str) -> str | None:
    """Render Markdown in which HTML and line breaks are kept, to unsanitized HTML.

    Returns None if the text has no HTML and no line that continues a paragraph, because
    `render_markdown` then gives the same result.

    Raises:
        errors.BadInput: see `render_markdown`.
    """
    tokens = _parse(_HTML_PARSER, source)[0]
    types = {part.type for token in tokens for part in (token, *(token.children or ()))}
    return None if types.isdisjoint(_ONLY_WITH_HTML) else _html(_HTML_PARSER, tokens)


def _html(parser: markdown_it.MarkdownIt, tokens: list[Token]) -> str:
    if any(token.nesting == 1 and token.level >= MAX_NESTING - 1 for token in tokens):
        raise errors.BadInput("body", "too-much-markup")
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
        elif match := _ALIGNED.fullmatch(str(token.attrs.pop("style", ""))):
            token.attrs["align"] = match[1]
        elif token.children:
            token.children = list(_without_images(token.children))
    return str(parser.renderer.render(tokens, parser.options, {}))


def _without_images(children: Sequence[Token]) -> Iterator[Token]:
    """Replace the images among inline tokens by links, and images within a link by their text."""
    is_in_link = False
    for child in children:
        if child.type in {"link_open", "link_close"}:
            is_in_link = child.nesting == 1
        if child.type != "image":
            yield child
            continue
        url = str(child.attrs["src"])
        text = Token("text", "", 0, content=" ".join(_alt(child.children).split()) or url)
        if is_in_link or not sanitizing.is_web_url(url):
            yield text
            continue
        attributes = {name: value for name, value in child.attrs.items() if name == "title"}
        yield Token(
            "link_open", "a", 1, attrs={sanitizing.IMAGE_MARK: "", "href": url, **attributes}
        )
        yield text
        yield Token("link_close", "a", -1)


def _alt(tokens: Sequence[Token] | None) -> str:
    """Return the text of an image's description, without markup."""
    return "".join(
        " " if token.type.endswith("break") else token.content or _alt(token.children)
        for token in tokens or ()
    )


def parse(source: str) -> tuple[list[Token], int]:
    """Return a text's tokens, and the work that parsing took.

    Raises:
        errors.BadInput: parsing takes more than `MAX_WORK`.
    """
    return _parse(_PARSER, source)


def _parse(parser: markdown_it.MarkdownIt, source: str) -> tuple[list[Token], int]:
    spent: dict[str, int] = {_WORK: 0, _COUNTED: 0}
    _parsing.spent = spent
    return parser.parse(source, spent), spent[_WORK]


def _spend(state: StateBlock | StateCore | StateInline, units: int) -> None:
    _add(state.env, units)


def _add(spent: MutableMapping[str, int], units: int) -> None:
    spent[_WORK] += units
    if spent[_WORK] > MAX_WORK:
        raise errors.BadInput("body", "too-much-markup")


def _inline_made(state: StateInline) -> None:
    links = [token for token in state.tokens if token.type in {"link_open", "image"}]
    shown = sum(len(str(value)) for token in links for value in token.attrs.values())
    _spend(state, TOKEN * len(state.tokens) + LINK * len(links) + SHOWN * shown)


def _blocks_made(state: StateBlock | StateCore) -> None:
    made = len(state.tokens) - state.env[_COUNTED]
    state.env[_COUNTED] += made
    _spend(state, TOKEN * made)


class _Markdown(markdown_it.MarkdownIt):
    """The parser, which also counts the non-ASCII characters in the host names that it converts."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the parser's name
        match = _NAME.search(url)
        strange = sum(not character.isascii() for character in match[1]) if match else 0
        _add(_parsing.spent, HOST * strange)
        return super().normalizeLink(url)

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - same
        # Keep the host as it was typed, because decoded Punycode may look like the name of another
        # host.
        return link


class _Inline(ParserInline):
    """The inline parser, which also counts the characters and elements that it skips."""

    def skipToken(self, state: StateInline) -> None:  # noqa: N802 - the parser's name
        _spend(state, HOP)
        super().skipToken(state)


def _try_bare_link(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    head = None if state.linkLevel else bare_links.HEAD.match(state.src, state.pos)
    if head is None:
        return False
    _spend(state, AUTOLINK + 2 * HOST * sum(not character.isascii() for character in head[0]))
    end = bare_links.end_of(head)
    if not end:
        return False
    shown = state.src[head.start() : end]
    _spend(state, len(shown) // 2)
    if not silent:
        url = state.md.normalizeLink(bare_links.address(shown))
        state.push("link_open", "a", 1).attrs = {"href": url}
        state.push("text", "", 0).content = shown
        state.push("link_close", "a", -1)
    state.pos = end
    return True


# The parser tries its rules in order, so a first rule that never matches can count all attempts.
def _try_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    del silent
    tried = "[" if state.src.startswith("![", state.pos) else state.src[state.pos]
    _spend(state, _TRIES.get(tried, STEP))
    if state.src.startswith("](", state.pos):
        # The parser tries this rule only after it found that the text was not a link. To find this
        # out, the parser read on to a blank or to 32 more brackets.
        match = _UNSPACED.match(state.src, state.pos + 2)
        _spend(state, ADDRESS * len(match[0]) // 2 if match else 0)
    return False


def _try_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - same
    del start, end
    _spend(state, LINE if silent else STEP)
    # A table calls this rule before each row. Short rows are filled up to the width of the table's
    # head, so 10,000 characters can make 200,000 tokens. The tokens must therefore be counted
    # before the table ends.
    _blocks_made(state)
    return False


def _parser(*, is_html: bool) -> markdown_it.MarkdownIt:
    parser = _Markdown()
    parser.inline = _Inline()
    options: dict[str, bool | int] = {"html": is_html, "breaks": is_html}
    parser.configure("commonmark", {**options, "maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    parser.inline.terminator_re = _TEXT_ENDS
    parser.inline.ruler.before("text", "bare_link", _try_bare_link)
    parser.inline.ruler.before("bare_link", _WORK, _try_inline)
    # Check the work before the delimiters are paired, because pairing also takes time.
    parser.inline.ruler2.before("balance_pairs", _WORK, _inline_made)
    ends = ["paragraph", "reference", "blockquote", "list", "table"]
    parser.block.ruler.before("table", _WORK, _try_block, {"alt": ends})
    parser.core.ruler.after("block", _WORK, _blocks_made)
    # The rules are compiled on first use, which is not thread-safe, so this call compiles them
    # before other threads can use the parser.
    parser.render("*a*", {_WORK: 0, _COUNTED: 0})
    return parser


_PARSER = _parser(is_html=False)
_HTML_PARSER = _parser(is_html=True)
