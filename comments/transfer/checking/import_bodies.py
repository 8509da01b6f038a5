"""Convert the texts of an export to stored texts, according to their markup (pure)."""

import html

import msgspec

from comments.domain.text import imported_html, rendering, sanitizing
from comments.transfer.import_source import Markup

# If mixed text contains one of these, its HTML can differ from that of Markdown.
_MIXED = ("<", "\n", "\r")


class ConvertedBody(imported_html.ConvertedHtml, frozen=True):
    """A text to store, with its HTML and the renderer that made it."""

    body: str
    renderer: str


def convert(body: str, markup: Markup) -> ConvertedBody:
    """Convert a text. Plain text keeps its paragraphs and line breaks.

    Mixed text becomes HTML if Markdown would show it differently; otherwise it stays Markdown.

    Raises:
        errors.BadInput: the text exceeds a limit or is not text.
    """
    if markup is Markup.HTML:
        return _as_html(body)
    if markup is Markup.PLAIN:
        return _as_html(_with_paragraphs(body))
    sanitizing.check(body)
    if markup is Markup.MIXED and any(mark in body for mark in _MIXED):
        rendered = rendering.with_html(body)
        if rendered is not None:
            return _as_html(rendered)
    rendered = rendering.render_markdown(body)
    return ConvertedBody(rendered, 0, 0, 0, 0, body, rendering.RENDERER)


def _as_html(body: str) -> ConvertedBody:
    converted = imported_html.convert(body)
    values = msgspec.structs.asdict(converted)
    return ConvertedBody(**values, body=body, renderer=sanitizing.SANITISER)


def _with_paragraphs(text: str) -> str:
    """Return plain text as HTML."""
    lines = html.escape(text, quote=False).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n".join(
        "<p>" + "<br>\n".join(paragraph) + "</p>" for paragraph in paragraphs if paragraph
    )
