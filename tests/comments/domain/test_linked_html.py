"""Addresses that are typed in HTML become links; nothing else changes."""

import hypothesis
import pytest
from hypothesis import strategies as st

from comments.domain.text import linked_html, sanitizing


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("no link", "no link"),
        (
            "see http://a.example/b.",
            'see <a href="http://a.example/b">http://a.example/b</a>.',
        ),
        ("<p>www.a.example</p>", '<p><a href="https://www.a.example">www.a.example</a></p>'),
        (
            "https://a.example/?b=1&amp;c=2 & d",
            '<a href="https://a.example/?b=1&amp;c=2">https://a.example/?b=1&amp;c=2</a> &amp; d',
        ),
        ("&lt;http://a.example&gt;", '&lt;<a href="http://a.example">http://a.example</a>&gt;'),
        # These are links or code already.
        ('<a href="http://a.example">http://a.example</a>',) * 2,
        ("<code>http://a.example</code>",) * 2,
        ("<PRE>http://a.example\n<b>http://a.example</b></PRE>",) * 2,
        ('<img alt="http://a.example" src="http://a.example/b.png">',) * 2,
        ("<!-- http://a.example -->",) * 2,
        # Without an end, a link extends to the end of the text.
        ("<a>http://a.example",) * 2,
        (
            "</a><abbr>http://a.example</abbr>",
            '</a><abbr><a href="http://a.example">http://a.example</a></abbr>',
        ),
        # Addresses that could deceive a reader stay text, and so does text that is not changed.
        ("http://bank.example@evil.example/",) * 2,
        ("a < b & c > d &copy; &#8217;",) * 2,
    ],
)
def test_each_typed_address_becomes_a_link(source: str, expected: str) -> None:
    assert linked_html.with_links(source) == expected


_PIECES = [
    "http://a.example/b?c=1&d",
    "www.b.example",
    "<a href='http://c.example'>",
    "</a>",
    "<code>",
    "</code>",
    "<b>",
    "</b>",
    "&amp;",
    "&lt;",
    "< ",
    " >",
    '"',
    " ",
    "é",
    "javascript:alert(1)",
]


@hypothesis.given(st.lists(st.sampled_from(_PIECES)).map("".join))
def test_readers_see_the_same_text_and_a_second_pass_changes_nothing(source: str) -> None:
    linked = linked_html.with_links(source)
    assert linked_html.with_links(linked) == linked
    assert _text(linked) == _text(source)


def _text(source: str) -> str:
    return sanitizing.plain_text(sanitizing.sanitise_html(source))
