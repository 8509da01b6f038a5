"""Rendering one Markdown text causes limited work, measured in calls and never in seconds.

MARKUP_EXAMPLES sets the number of texts that the fuzzer tries (default 12).
"""

import os
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st

from comments import errors
from comments.domain.text import cleaning, rendering, sanitizing
from tests.support.people import api_requests

# Limit on the Python and C function calls that rendering a body makes; 1.4 million took 169 ms.
MOST_CALLS = 400_000
EXAMPLES = int(os.environ.get("MARKUP_EXAMPLES", "12"))
LONGEST = cleaning.MAX_BODY
# Each of these shapes was once the slowest to render: unclosed brackets, marks, quotes, links,
# lists and tables.
SLOW = (
    "[^" * 999 + "_*" * 4_000,
    "[__" * 1_000 + "**__" * 1_700,
    "  [^>" * 999,
    "![1. ``" * 999,
    "[a](" * 1_000 + "_*" * 3_000,
    "_*" * 5_000,
    "> " * 18 + "[a]: b\n" * 999,
    "<http://a.b>[^" * 714,
    "<http://a.b>" * 833,
    "- a\n" * 2_000,
    "|a\n|-\n" * 1_000,
    "* * *\n`|a|b|\n|-|-|\n[" * 500,
    '<a@b.cc>[*a*](b)[a](b"' * 454,
    '&nbsp;[a](b"&#65;' * 588,
    "".join(
        "<http://" + "".join(chr(0x4E00 + place * 60 + i) for i in range(60)) + ">\n"
        for place in range(140)
    ),
    "http://a.b/)" * 833,
    "www.a.b " * 1_250,
    "".join(f"http://{chr(0x4E00 + place) * 20}.b " for place in range(333)),
    "![http://a.b](http://c.d)" * 400,
    # The parser pads each row to the width of the header.
    "a|" * 600 + "\n" + "-|" * 600 + "\n" + "x\n" * 1_990,
)
# HTML in the Markdown of other systems, whose texts may be longer.
SLOW_HTML = tuple(
    (piece * sanitizing.MAX_HTML)[: sanitizing.MAX_HTML]
    for piece in ("<a ", "x <!--", "<a x='", "<p>\n\n", "</", "<a b=c\n", "<![CDATA[ ", "x <?")
)
PIECES = (
    "_", "*", "**", "~~", "`", "``", "[", "](", "]", "![", "[^", "(", ")", "<", ">", "&amp;", "\\",
    "\n", "\n\n", " ", "a", "- ", "> ", "1. ", "|", "|-\n", "# ", "```\n", "    ", "<http://a.b>",
    "[a]: b\n", "* * *\n", "===\n", "---\n", "[a](http://b.c)", '[a](b"', "|a|b|\n|-|-|\n",
    "a|" * 99 + "\n" + "-|" * 99 + "\n", "http://a.b ", "http://", "www.", "http://a.b/(", "http://a.b/)",
    "www.\u4e00\u4e01.\u4e02 ",
)  # fmt: skip


def counted(
    source: str, render: Callable[[str], str | None] = rendering.render_markdown
) -> tuple[str, int]:
    """Return the body's HTML or the refusal's code, and the number of calls."""
    number = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal number
        number += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        outcome = render(source) or ""
    except errors.BadInput as error:
        outcome = error.code
    finally:
        sys.setprofile(None)
    return outcome, number


@pytest.mark.parametrize("body", SLOW, ids=lambda body: repr(body[:16]))
def test_the_slowest_bodies_take_bounded_work(body: str) -> None:
    assert len(body) <= LONGEST
    outcome, number = counted(body)
    assert number < MOST_CALLS, outcome[:40]


@pytest.mark.parametrize("body", SLOW_HTML, ids=lambda body: repr(body[:16]))
def test_the_slowest_mixed_bodies_take_bounded_work(body: str) -> None:
    outcome, number = counted(body, rendering.with_html)
    assert number < 2 * MOST_CALLS, outcome[:40]


def test_a_link_definition_is_not_expanded_to_megabytes() -> None:
    for length in (10, 100, 1_000, 6_000):
        body = f"[a]: http://a.b/{'y' * length}\n\n" + "[a]" * 900
        outcome, _ = counted(body[:LONGEST])
        assert len(outcome) < 600_000


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join),
            st.sampled_from((1, 10, 100, 300, 700, 999, 2_000)),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_no_body_takes_more(parts: list[tuple[str, int]]) -> None:
    source = "".join(piece * times for piece, times in parts)[:LONGEST]
    try:
        source = cleaning.clean_body(source)
    except errors.BadInput:
        return  # Refused before rendering
    assert counted(source)[1] < MOST_CALLS


@pytest.mark.parametrize(
    "body",
    [
        "Lorem ipsum dolor sit amet, it's well-known - consectetur. " * 169,
        "A line of a poem\n" * 500,
        "- an item of a list\n" * 400,
        "**bold** and *other* words, with [a link](https://example.org/path) " * 100,
        "```\n" + "if (a[i] != b[j]) { x->y *= 2; }\n" * 280 + "```",
        "| a | b |\n|-|-|\n" + "| 1 | 2 |\n" * 400,
        "> quoted text of somebody else\n" * 300,
        "https://example.org/a?b=c&d=e " * 300,
    ],
    ids=lambda body: repr(body[:16]),
)
def test_ordinary_texts_are_far_from_the_limit(body: str) -> None:
    assert rendering.render_markdown(cleaning.clean_body(body))


@pytest.mark.slow
def test_the_limit_is_exact_and_depends_on_the_text_alone() -> None:
    """A text at the limit is always accepted; the same text plus one mark is always refused."""

    def work(number: int) -> int:
        return rendering.parse("*a" * number)[1]

    low, high = 1, 5_000
    while high - low > 1:
        middle = (low + high) // 2
        try:
            work(middle)
            low = middle
        except errors.BadInput:
            high = middle
    assert work(low) <= rendering.MAX_WORK < work(low) + 100
    for _ in range(2):
        work(low)
        with pytest.raises(errors.BadInput, match="too-much-markup") as caught:
            work(high)
        assert (caught.value.field, caught.value.code) == ("body", "too-much-markup")


def test_a_preview_a_post_and_an_edit_refuse_the_same_text(client: FlaskClient) -> None:
    made = api_requests.post(client)
    one, preview = f"{api_requests.ONE}{made['comment']['id']}", "/api/v1/sites/demo/preview"
    ways: list[Callable[[str], object]] = [
        lambda body: client.post(preview, json={"body": body}),
        lambda body: client.post(api_requests.THREAD, json={"name": "Ann", "body": body}),
        lambda body: client.patch(one, json={"body": body}, headers=api_requests.bearer(made)),
    ]
    for send in ways:
        assert api_requests.refused(send(SLOW[0]), 400, "body") == "too-much-markup"  # type: ignore[arg-type]
    assert api_requests.listed(client) == ["<p>Hello</p>\n"]


def test_imported_html_has_no_such_limit() -> None:
    """Imports contain HTML that other systems rendered long ago."""
    assert sanitizing.sanitise_html("<p>" + "<em>_*</em>[^" * 1_900 + "</p>")
