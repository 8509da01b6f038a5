"""Texts of each markup become stored texts with HTML."""

import pytest

from comments import errors
from comments.domain.text import rendering, sanitizing
from comments.jobs.importers import import_bodies
from comments.jobs.importers.import_source import Markup


def test_html_keeps_its_source_and_is_sanitized() -> None:
    found = import_bodies.convert("<p onclick=x>a <b>b</b><script>c</script></p>", Markup.HTML)
    assert found.html == "<p>a <b>b</b></p>"
    assert found.body.startswith("<p onclick")
    assert (found.renderer, found.removed) == (sanitizing.SANITISER, 1)


def test_markdown_is_rendered_as_in_new_comments() -> None:
    found = import_bodies.convert("a **b** <i>", Markup.MARKDOWN)
    assert found.html == rendering.render_markdown("a **b** <i>")
    assert (found.body, found.renderer) == ("a **b** <i>", rendering.RENDERER)


@pytest.mark.parametrize("body", ["a **b**\n\n- c\n- d\n", "a < b &lt; c", "```\nx\ny\n```", "# a"])
def test_mixed_text_that_looks_the_same_as_markdown_stays_markdown(body: str) -> None:
    assert import_bodies.convert(body, Markup.MIXED) == import_bodies.convert(body, Markup.MARKDOWN)


@pytest.mark.parametrize(
    ("body", "html"),
    [
        ("a\nb", "<p>a<br>\nb</p>\n"),
        ("# a\n*b* <u>c</u>", "<h3>a</h3>\n<p><em>b</em> <u>c</u></p>\n"),
        ("<p>a *b*</p>\n\n*c*", "<p>a *b*</p>\n<p><em>c</em></p>\n"),
        ("a<script>b</script>", "<p>a</p>\n"),
        (
            "<p><a href='http://a.example'>*b* <img alt=c></a></p>",
            '<p><a href="http://a.example" rel="nofollow ugc noopener">*b* c</a></p>',
        ),
    ],
)
def test_mixed_text_with_html_or_lines_becomes_html(body: str, html: str) -> None:
    found = import_bodies.convert(body, Markup.MIXED)
    assert (found.html, found.renderer) == (html, sanitizing.SANITISER)
    # The stored HTML can be sanitized again.
    assert import_bodies.convert(found.body, Markup.HTML).html == html


def test_mixed_text_may_have_more_tags_than_markdown() -> None:
    body = "<p>" + "<b>a</b> " * 1_900 + "</p>"
    with pytest.raises(errors.BadInput):
        import_bodies.convert(body, Markup.MARKDOWN)
    assert import_bodies.convert(body, Markup.MIXED).html.count("<b>a</b>") == 1_900


def test_plain_text_keeps_paragraphs_line_breaks_and_signs() -> None:
    found = import_bodies.convert("a < b\r\nand *c*\n\n \n&amp;", Markup.PLAIN)
    assert found.html == "<p>a &lt; b<br>\nand *c*</p>\n<p>&amp;amp;</p>"
    assert found.renderer == sanitizing.SANITISER


@pytest.mark.parametrize("markup", Markup)
def test_an_empty_text_stays_empty(markup: Markup) -> None:
    assert import_bodies.convert("", markup).html == ""


@pytest.mark.parametrize("markup", Markup)
def test_a_text_that_is_too_long_is_refused(markup: Markup) -> None:
    with pytest.raises(errors.BadInput):
        import_bodies.convert("x" * 1_000_001, markup)
