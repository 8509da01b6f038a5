"""Markdown from strangers is rendered safely and with bounded work."""

import itertools
import re
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.text import cleaning, rendering, sanitizing
from tests.support.html import safe_html


@pytest.mark.parametrize("attack", safe_html.ATTACKS)
def test_html_in_markdown_is_text(attack: str) -> None:
    dom = safe_html.assert_safe(rendering.render_markdown(attack))
    assert {tag for tag, _ in dom.nodes} <= {"p", "pre", "code", "a"}
    # An address in the text is a link, like every typed address.
    assert all(str(found["href"]) in attack for tag, found in dom.nodes if tag == "a")


@pytest.mark.parametrize(
    "source",
    [
        "[x](javascript:alert(1))",
        "[x](java&#x0a;script:alert(1))",
        "[x](JAVASCRIPT&colon;alert(1))",
        "[x][r]\n\n[r]: javascript:alert(1)",
        "<javascript:alert(1)>",
        "<data:text/html,x>",
        "![x](javascript:alert(1))",
        "[x](//evil.example)",
        "[x](https:evil.example)",
        "[x](https://ok@evil.example/)",
        "[x](/admin)",
        "[x](data:image/png;base64,AAAA)",
        "[x](vbscript:x)",
    ],
)
def test_a_link_that_is_not_to_the_web_has_no_target(source: str) -> None:
    dom = safe_html.assert_safe(rendering.render_markdown(source))
    assert not any("href" in attributes or "src" in attributes for _, attributes in dom.nodes)


def test_encoded_characters_do_not_reorder_text() -> None:
    for render in (rendering.render_markdown, sanitizing.sanitise_html):
        assert "a b" in render("a &#x202e;&#x2066;b&#7;")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("![a *cat* \\* &amp; c](https://i.example/a.png)", "a cat * & c"),
        ("![](https://i.example/a.png)", "https://i.example/a.png"),
        ("![cat][one]\n\n[one]: https://i.example/a.png", "cat"),
        (
            "![a [dog](https://d.example) ![b](https://e.example)](https://i.example/a.png)",
            "a dog b",
        ),
        ("![two\nlines](https://i.example/a.png)", "two lines"),
    ],
)
def test_an_image_becomes_a_link_with_its_description(source: str, shown: str) -> None:
    dom = safe_html.assert_safe(rendering.render_markdown(source))
    assert [tag for tag, _ in dom.nodes] == ["p", "a"]
    assert dom.nodes[1][1]["href"] == "https://i.example/a.png"
    assert "data-ft-image" in dom.nodes[1][1]
    assert dom.text.strip() == shown


def test_an_image_in_a_link_is_the_text_of_that_link() -> None:
    source = "[a ![cat](https://i.example/a.png) b](https://x.example) ![c](https://i.example)"
    dom = safe_html.assert_safe(rendering.render_markdown(source))
    assert [found.get("href") for _, found in dom.nodes] == [
        None, "https://x.example", "https://i.example"
    ]  # fmt: skip
    assert ["data-ft-image" in found for _, found in dom.nodes] == [False, False, True]
    assert dom.text == "a cat b c\n"


@pytest.mark.parametrize("url", ["/a.png", "//i.example/a.png", "data:image/png;base64,AAAA"])
def test_an_image_that_is_not_on_the_web_is_its_description(url: str) -> None:
    assert rendering.render_markdown(f"![cat]({url})") == "<p>cat</p>\n"


@pytest.mark.parametrize(
    ("source", "links"),
    [
        ("*https://x.example/a*b*, www.x.example", ["https://x.example/a*b", "www.x.example"]),
        ("see\nhttps://x.example/_a_/b\nand", ["https://x.example/_a_/b"]),
        ("|a|b|\n|-|-|\n|https://x.example/a|b|", ["https://x.example/a"]),
        ("[https://x.example/a](https://y.example)", ["https://x.example/a"]),
        ("[a https://x.example/b][c", ["https://x.example/b"]),
        ("<https://xn--80ak6aa92e.com/%41>", ["https://xn--80ak6aa92e.com/%41"]),
        ("`https://x.example` and\n\n    https://x.example", []),
        ("h\\ttps://x.example https\\://x.example https:&#47;/x.example", []),
        ("![https://x.example](/a)", []),
    ],
)
def test_a_bare_address_is_a_link_that_shows_it(source: str, links: list[str]) -> None:
    rendered = rendering.render_markdown(source)
    safe_html.assert_safe(rendered)
    assert re.findall("<a .*?>(.*?)</a>", rendered) == links


def test_cells_are_aligned_as_their_column() -> None:
    source = "|a|b|c|d|\n|:-|:-:|-:|-|\n|1|2|3|4|"
    dom = safe_html.assert_safe(rendering.render_markdown(source))
    cells = [found.get("align") for tag, found in dom.nodes if tag in {"th", "td"}]
    assert cells == ["left", "center", "right", None] * 2


def test_code_and_tables_can_be_focused() -> None:
    dom = safe_html.assert_safe(rendering.render_markdown("```\na\n```\n\n    b\n\n|c|\n|-|\n"))
    found = [tag for tag, attributes in dom.nodes if attributes.get("tabindex") == "0"]
    assert found == ["pre", "pre", "table"]


@pytest.mark.parametrize("text", ["[ ] open", "[x] done", ":smile: :+1:", "a -- b... (c)"])
def test_there_are_no_task_lists_no_emoji_names_and_no_replaced_punctuation(text: str) -> None:
    assert rendering.render_markdown(f"- {text}") == f"<ul>\n<li>{text}</li>\n</ul>\n"


def test_markdown_becomes_html() -> None:
    source = "# One\n\n*a* **b** ~~c~~ `d`\n\n> q\n\n1. x\n\n| h |\n|---|\n| 1 |\n"
    dom = safe_html.assert_safe(rendering.render_markdown(source))
    assert [tag for tag, _ in dom.nodes] == (
        [
            "h3",
            "p",
            "em",
            "strong",
            "s",
            "code",
            "blockquote",
            "p",
            "ol",
            "li",
            "table",
            "thead",
            "tr",
            "th",
            "tbody",
            "tr",
            "td",
        ]
    )


def test_headings_are_lowered_below_those_of_the_page() -> None:
    dom = safe_html.assert_safe(
        rendering.render_markdown("# a\n## b\n### c\n##### d\n###### e\nf\n===")
    )
    assert [tag for tag, _ in dom.nodes] == ["h3", "h4", "h5", "h6", "h6", "h3"]


def test_links_have_rel_nofollow() -> None:
    dom = safe_html.assert_safe(
        rendering.render_markdown("[it's](https://x.example/it's?a=1&b=2 'title')")
    )
    href = "https://x.example/it's?a=1&b=2"
    expected = {"href": href, "title": "title", "rel": "nofollow ugc noopener"}
    assert dom.nodes[1] == ("a", expected)


@given(st.text())
def test_any_markdown_renders_safely_or_is_refused(source: str) -> None:
    try:
        rendered = rendering.render_markdown(source)
    except errors.BadInput as error:
        assert error.field == "body"  # noqa: PT017 - both outcomes are valid
        return
    safe_html.assert_safe(rendered)


PIECES = (
    "https://", "www.", "x.example/", "!", "[", "](", ")", "]", "[a]: ", "\n", "\n\n", "|",
    "|-|-|\n", ":-:", "<", ">", "`", "*", "_", "~~", "\\", "&lt;", "@", '"', " ", "\u0430",
    "data:image/png,", "mailto:", "    ", "- ", "> ", "a",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_markup_renders_safely(source: str) -> None:
    safe_html.assert_safe(rendering.render_markdown(source))


# Texts of these shapes have made Markdown renderers slow or recurse too deeply.
SLOW = {
    "brackets": "[",
    "images": "![",
    "links": "[a](",
    "link in link": "[a](<b",
    "references": "[a][b",
    "definitions": "[a]: x\n",
    "emphasis": "*a ",
    "mixed emphasis": "*a_ ",
    "strong": "**a",
    "strike": "~~a ",
    "stars": "*",
    "quotes": ">",
    "quoted lines": "> a\n",
    "lists": "1. ",
    "bullets": "- a\n",
    "ticks": "`a``",
    "entities": "&#x1;",
    "tags": "<a ",
    "autolinks": "<http:",
    "comments": "<!--",
    "pipes": "|",
    "rows": "a|b\n-|-\n",
    "headings": "a\n-\n",
    "lines": "a\n",
    "paragraphs": "a\n\n",
    "backslashes": "\\",
    "brackets and stars": "[*",
    "closing": "a]",
    "parentheses": "[a](((",
    "fences": "```\n",
    "tabs": "\t",
    "wide": "\U0001f600",
    "bare links": "http://a.b ",
    "bare links in brackets": "http://a.b/(",
    "bare links that end": "http://a.b/)",
    "bare links without a host": "http://",
    "bare links in labels": "[http://a.b/",
    "bare links of other scripts": "www.\u4e00\u4e01.\u4e02 ",
    "images in images": "![a](http://b.c",
}


def work(render: Callable[[], object]) -> int | None:
    """Return the number of function calls that rendering makes, which is the same on every machine.

    Return None if the text is refused.
    """
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        render()
    except errors.BadInput as error:
        sys.setprofile(before)
        assert error.field == "body"  # noqa: PT017 - both outcomes are valid
        return None
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("shape", SLOW, ids=SLOW.keys())
def test_the_work_of_a_body_grows_with_its_size_and_is_bounded(shape: str) -> None:
    piece = SLOW[shape]
    costs = []
    for size in (cleaning.MAX_BODY // 4, cleaning.MAX_BODY):
        source = (piece * cleaning.MAX_BODY)[:size]
        costs.append(
            work(lambda source=source: rendering.render_markdown(cleaning.clean_body(source)))  # type: ignore[misc]
        )
    for smaller, larger in itertools.pairwise(costs):
        # If a shape is refused at one length, it is also refused at every greater length.
        assert smaller is not None or larger is None
        if smaller is not None and larger is not None:
            assert larger < 4.8 * smaller
    # The most expensive shape caused 660,000 calls when this test was written.
    assert max(cost or 0 for cost in costs) < 1_000_000


def test_blocks_nested_too_deeply_are_refused_not_lost() -> None:
    deepest = rendering.MAX_NESTING - 2
    assert "end" in safe_html.Dom(rendering.render_markdown(">" * deepest + " end")).text
    for source in (">" * (deepest + 1) + " end", "- " * (deepest // 2 + 1) + "end"):
        with pytest.raises(errors.BadInput) as caught:
            rendering.render_markdown(source)
        assert caught.value.field == "body"
