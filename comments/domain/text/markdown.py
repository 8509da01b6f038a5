"""Markdown: the parser, and how much work one text may cause (pure).

Owns the dialect (CommonMark with tables and strikethrough, without HTML and images) and the bound
of the work. A text of 10,000 characters can take the parser hundreds of times as long as prose
does, for example thousands of brackets and emphasis marks that never close. So the parser counts
what it does, and stops above `MAX_WORK`. The count depends on the text alone, never on the clock: a
text that is refused is refused every time, in a preview, a post and an edit alike.

One unit of work is about 0.4 microseconds of a processor of 2024:

    HOP       each character or element that is skipped in search of the end of a link's text: for
              brackets that never close, the number of hops grows with the square of their number
    TOKEN     each token that was made: it has to be rendered and sanitised
    STEP      each try to find an inline element or a block, failed or not
    LINE      each line of a paragraph, in every quote or list around it: any block may end it there
    AUTOLINK  each "<" that may begin a link
    BRACKET   each "[" that may begin a link: its address may be as long as the text
    LINK      each link, whose address is parsed several times
    SHOWN     each character of its address and title: one definition may serve a thousand links
    HOST      each character beyond ASCII in the name of its host, which becomes Punycode
    ADDRESS   every two characters that may be the address behind a "](" which makes no link

Prose of the greatest length takes about 12,000 units.
"""

import re
import threading
from collections.abc import MutableMapping

import markdown_it
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from comments import errors

MAX_WORK = 130_000
HOP, TOKEN, STEP, LINE, LINK = 2, 8, 16, 20, 96
AUTOLINK, BRACKET, ADDRESS = 48, 80, 1
SHOWN, HOST = 3, 30
_TRIES = {"<": AUTOLINK, "[": BRACKET}
_NAME = re.compile(r"(?://|mailto:)([^/?#]*)")
# What this thread's text took so far, where the parser hands no state on.
_parsing = threading.local()
_UNSPACED = re.compile(r"[^\x00-\x20\x7f]*")
# Blocks within blocks. Markdown drops what stands deeper, so deeper bodies are refused.
MAX_NESTING = 20
_WORK, _COUNTED = "work", "tokens of blocks that are counted"


def render(source: str) -> str:
    """Return the HTML of a text, not sanitised. Headings start at the third level.

    Raises:
        errors.BadInput: the text takes too much work, or its blocks are nested too deeply.
    """
    tokens = parse(source)[0]
    if any(token.nesting == 1 and token.level >= MAX_NESTING - 1 for token in tokens):
        raise errors.BadInput("body", "is nested too deeply")
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    return str(_PARSER.renderer.render(tokens, _PARSER.options, {}))


def parse(source: str) -> tuple[list[Token], int]:
    """Return the tokens of a text, and the work that they took.

    Raises:
        errors.BadInput: it takes more than `MAX_WORK`.
    """
    spent: dict[str, int] = {_WORK: 0, _COUNTED: 0}
    _parsing.spent = spent
    return _PARSER.parse(source, spent), spent[_WORK]


def _spend(state: StateBlock | StateCore | StateInline, units: int) -> None:
    _add(state.env, units)


def _add(spent: MutableMapping[str, int], units: int) -> None:
    spent[_WORK] += units
    if spent[_WORK] > MAX_WORK:
        raise errors.BadInput(
            "body",
            "has too much markup; use less formatting, or put code between lines of ```",
            code="too-much-markup",
        )


def _inline_made(state: StateInline) -> None:
    links = [token for token in state.tokens if token.type == "link_open"]
    shown = sum(len(str(value)) for token in links for value in token.attrs.values())
    _spend(state, TOKEN * len(state.tokens) + LINK * len(links) + SHOWN * shown)


def _blocks_made(state: StateBlock | StateCore) -> None:
    made = len(state.tokens) - state.env[_COUNTED]
    state.env[_COUNTED] += made
    _spend(state, TOKEN * made)


class _Markdown(markdown_it.MarkdownIt):
    """The parser, which also counts the names of hosts that it has to translate."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the parser's name
        found = _NAME.search(url)
        strange = sum(not character.isascii() for character in found[1]) if found else 0
        _add(_parsing.spent, HOST * strange)
        return super().normalizeLink(url)


class _Inline(ParserInline):
    """The inline parser, which also counts what it skips."""

    def skipToken(self, state: StateInline) -> None:  # noqa: N802 - the parser's name
        _spend(state, HOP)
        super().skipToken(state)


# The parser tries its rules in order, so a first rule that never matches counts the tries.
def _try_inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    del silent
    _spend(state, _TRIES.get(state.src[state.pos], STEP))
    if state.src.startswith("](", state.pos):
        # It was no link, or this would not be tried. Until that was known, the parser read on to a
        # blank or to 32 more brackets.
        found = _UNSPACED.match(state.src, state.pos + 2)
        _spend(state, ADDRESS * len(found[0]) // 2 if found else 0)
    return False


def _try_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - same
    del start, end
    _spend(state, LINE if silent else STEP)
    # A table asks here before each row. Short rows are filled up to the width of its head, so the
    # tokens cannot wait for its end: 10,000 characters make 200,000.
    _blocks_made(state)
    return False


def _parser() -> markdown_it.MarkdownIt:
    parser = _Markdown()
    parser.inline = _Inline()
    parser.configure("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"]).disable("image")
    parser.inline.ruler.before("text", _WORK, _try_inline)
    # Before the delimiters are paired, which takes time too.
    parser.inline.ruler2.before("balance_pairs", _WORK, _inline_made)
    ends = ["paragraph", "reference", "blockquote", "list", "table"]
    parser.block.ruler.before("table", _WORK, _try_block, {"alt": ends})
    parser.core.ruler.after("block", _WORK, _blocks_made)
    # The rules are compiled on first use, and not safely so: two threads must not be the first.
    parser.render("*a*", {_WORK: 0, _COUNTED: 0})
    return parser


_PARSER = _parser()
