"""Prose without markup is rendered as by the parser and the sanitizer."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comments.domain.text import plain_prose, rendering

# Single characters, and strings that begin markup in some place.
_PIECES = [
    *"aZ\u00e99\u00b2\u00bd\u0416\u0639\uac00\u6f22\u0663\u017f \n.,;:?!'\"()/%-\u2013\u2014\u2026",
    *"\u2018\u2019\u201c\u201d_*`~[]<>&\\#+=|@^{}\t\r\f\v\u00a0\u2028\u3164\u0301\ufeff",
    "\n\n", "  \n", "\n    ", "---", "===", "1. ", "1) ", "- ", "http:", "//", "https://a.example",
    "www.", "Www.a.example", "ftp://", "word ", "&amp;", "a\n", "a\n\n", "| a |\n| - |", "[a]: b",
]  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join) | st.text(max_size=50))
@settings(max_examples=300)
@example("")
@example("\n")
@example("a\n---")
@example("Some words,\nand more:\n\n\nsaid \"Ann\" (or 'Bob')!\n")
def test_prose_is_rendered_as_by_the_parser(source: str) -> None:
    found = plain_prose.render(source)
    if found is not None:
        assert found == rendering.with_markup(source)


@given(
    st.lists(
        st.sampled_from(
            ["a", "\u00e9", "\u0416", "9", " b", "\nc", "\n\nd", ", a", ": a", "!", "(", '"', "-"]
        ),
        min_size=1,
        max_size=60,
    ).map(lambda parts: "A" + "".join(parts) + "z"),
)
def test_sentences_need_no_parser(source: str) -> None:
    assert plain_prose.render(source) == rendering.with_markup(source)
    assert rendering.render_markdown(source) == rendering.with_markup(source)


@pytest.mark.parametrize("unit", ["!", "a\n", "a\n\n", "a:", "-", '"', "a!\n", "%"])
def test_no_prose_takes_the_parser_more_than_its_limit(unit: str) -> None:
    source = ("a" + unit * plain_prose.LONGEST)[: plain_prose.LONGEST]
    assert plain_prose.render(source) == rendering.with_markup(source)
    assert plain_prose.render(source + "a") is None


@pytest.mark.parametrize("source", ["www.a.example", "a\n1. b", "a  \nb", "a_b", "*a*", "a\n- b"])
def test_markup_is_left_to_the_parser(source: str) -> None:
    assert plain_prose.render(source) is None
