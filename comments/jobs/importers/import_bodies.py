"""Convert the texts of an export to stored texts, according to their markup (pure)."""

import html

import msgspec

from comments.domain.text import imported_html, rendering, sanitizing
from comments.jobs.importers.import_source import Markup


class ConvertedBody(msgspec.Struct, frozen=True):
    """A text to store, its HTML, the renderer that made it, and what was replaced or removed.

    `images`, `embeds`, `unlinked` and `removed` count as in `imported_html`; they are 0 for texts
    that are not HTML.
    """

    body: str
    html: str
    renderer: str
    images: int = 0
    embeds: int = 0
    unlinked: int = 0
    removed: int = 0


def convert(body: str, markup: Markup) -> ConvertedBody:
    """Convert a text. Plain text keeps its paragraphs and line breaks.

    Raises:
        errors.BadInput: the text exceeds a limit or is not text.
    """
    if markup is Markup.MARKDOWN:
        sanitizing.check(body)
        return ConvertedBody(body, rendering.render_markdown(body), rendering.RENDERER)
    if markup is Markup.PLAIN:
        body = _with_paragraphs(body)
    found = imported_html.convert(body)
    return ConvertedBody(
        body,
        found.html,
        sanitizing.SANITISER,
        found.images,
        found.embeds,
        found.unlinked,
        found.removed,
    )


def _with_paragraphs(text: str) -> str:
    """Return plain text as HTML."""
    lines = html.escape(text, quote=False).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n".join("<p>" + "<br>\n".join(each) + "</p>" for each in paragraphs if each)
