"""Texts of each markup become stored texts with HTML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.text import rendering, sanitizing
from comments.transfer.checking import import_bodies
from comments.transfer.import_source import Markup
from tests.support.html import safe_html

PIECES = (
    "a", " ", "\n", "\n\n", "*", "**", "`", "```\n", "- ", "> ", "# ", "|", "|-\n", "    ", "&amp;",
    "[a](http://b.c)", "![a](http://b.c)", "http://a.b", "\\", "<", ">", "<b>", "</b>", "<p>",
    "<!--", "-->", "<br>", "<img src='http://b.c'>", "<http://b.c>",
)  # fmt: skip


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
        ("a\rb", "<p>a<br>\nb</p>\n"),
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


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_mixed_text_becomes_html_only_if_markdown_would_differ(body: str) -> None:
    found = import_bodies.convert(body, Markup.MIXED)
    markdown = import_bodies.convert(body, Markup.MARKDOWN)
    if found.renderer == rendering.RENDERER:
        assert found == markdown
        tokens = rendering._parse(rendering._HTML_PARSER, body)[0]
        with_html = rendering._html(rendering._HTML_PARSER, tokens)
        assert sanitizing.safe(with_html) == found.html
    else:
        assert "\n" in body or "<" in body
    safe_html.assert_safe(found.html)


@pytest.mark.parametrize("attack", safe_html.ATTACKS)
def test_html_in_mixed_text_is_safe(attack: str) -> None:
    for body in (attack, f"**a**\n{attack}\n\n- b"):
        safe_html.assert_safe(import_bodies.convert(body, Markup.MIXED).html)


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
