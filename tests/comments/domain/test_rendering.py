"""Markdown and HTML from strangers are rendered safely and with bounded work."""

import html.parser
import itertools
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.text import cleaning, rendering

Node = tuple[str, dict[str, str | None]]


class Dom(html.parser.HTMLParser):
    """A parsed document: its elements with their attributes, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.nodes.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]


def assert_safe(source: str) -> Dom:
    """Check that HTML has only allowed elements, attributes and links and is already sanitized."""
    dom = Dom(source)
    for tag, attributes in dom.nodes:
        assert tag in rendering.TAGS
        allowed = rendering.ATTRIBUTES.get(tag, frozenset())
        assert attributes.keys() <= allowed | ({"rel"} if tag == "a" else set())
        assert attributes.get("rel", rendering.LINK_REL) == rendering.LINK_REL
        assert ("rel" in attributes) == ("href" in attributes)
        assert (attributes.get("href") or "https://x").lower().startswith(("http://", "https://"))
    assert rendering.sanitise_html(source) == source
    return dom


ATTACKS = [
    "<img src=\"1'onerror='x'a='\">",
    "<details open ontoggle=alert(1)>x</details>",
    "<svg/onload=alert(1)>",
    "<p onclick=alert(1) style='position:fixed' class=admin id=login>x</p>",
    "<style>*{display:none}</style><form action=//evil><input name=password></form>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href='javascript:alert(1)'>x</a><a href=' javascript:alert(1)'>x</a>",
    "<a href='java\tscript:alert(1)'>x</a><a href='\x01javascript:alert(1)'>x</a>",
    "<a href='JaVaScRiPt:alert(1)'>x</a><a href='data:text/html,x'>x</a>",
    "<a href='//evil.example'>x</a><a href='https:evil.example'>x</a><a href='/admin'>x</a>",
    "<a href='https://ok.example\\@evil.example'>x</a><a href='https://ok@evil.example'>x</a>",
    "<a href=javascript&colon;alert(1)>x</a><a href=java&#x0a;script:alert(1)>x</a>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img onerror=x&gt;'>",
    "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>",
    "<math><annotation-xml encoding='text/html'><style><img src=x onerror=x></style>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<template><img src=x onerror=x></template>",
    "<p>a<button><p>b<button><p>c",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=x>",
    "<a href='http://x.example'><table><a href='http://y.example'>y</table>",
    "<b><p>x</b>y</p><table><tr><b>foster<td>x",
    "<pre>\n\n\nx</pre><pre>\n<b>\nx",
    "<!-- <img src=x onerror=x> --><![CDATA[<img>]]><?php x ?><!DOCTYPE html>",
    "<plaintext><b>x",
    "<xmp><img src=x></xmp>",
    "<textarea></textarea><b>",
    "<title><b>x</title>",
    "<a title='\"><img src=x onerror=x>' href=http://x.example rel=opener target=_blank>x</a>",
    "<abbr title='<a rel='>nofollow ugc noopener<b title='><img src=x onerror=x>'>z</b></abbr>",
    "<b title=x lang=en>x</b><p lang=x title=y>z</p>",
    "<abbr title='<a rel='><i>nofollow ugc noopener</i><abbr title='><img src=x>'>z</abbr>",
    "<abbr title='<a title='>x</abbr><a title='y' rel=x>y</a><abbr title=' rel='>z</abbr>",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_imported_html_keeps_only_allowed_elements(attack: str) -> None:
    assert_safe(rendering.sanitise_html(attack))


@pytest.mark.parametrize("attack", ATTACKS)
def test_html_in_markdown_is_text(attack: str) -> None:
    dom = assert_safe(rendering.render_markdown(attack))
    assert {tag for tag, _ in dom.nodes} <= {"p", "pre", "code"}


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
    dom = assert_safe(rendering.render_markdown(source))
    assert not any("href" in attributes or "src" in attributes for _, attributes in dom.nodes)


@pytest.mark.parametrize("href", ["mailto:ann@x.example", "tel:+1", "/about", "ftp://x.example/"])
def test_a_removed_link_keeps_its_text_alone(href: str) -> None:
    source = f"<p>Write <a href='{href}' title='{href}'>to <b>me</b></a>.</p>"
    assert rendering.sanitise_html(source) == "<p>Write <a>to <b>me</b></a>.</p>"
    assert rendering.render_markdown(f"[me]({href} 'to me')") == "<p><a>me</a></p>\n"


def test_encoded_characters_do_not_reorder_text() -> None:
    for render in (rendering.render_markdown, rendering.sanitise_html):
        assert "a b" in render("a &#x202e;&#x2066;b&#7;")


def test_an_image_becomes_a_link() -> None:
    dom = assert_safe(rendering.render_markdown("![pic](https://x.example/a.png)"))
    assert [tag for tag, _ in dom.nodes] == ["p", "a"]


def test_markdown_becomes_html() -> None:
    source = "# One\n\n*a* **b** ~~c~~ `d`\n\n> q\n\n1. x\n\n| h |\n|---|\n| 1 |\n"
    dom = assert_safe(rendering.render_markdown(source))
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
    dom = assert_safe(rendering.render_markdown("# a\n## b\n### c\n##### d\n###### e\nf\n==="))
    assert [tag for tag, _ in dom.nodes] == ["h3", "h4", "h5", "h6", "h6", "h3"]


def test_links_have_rel_nofollow() -> None:
    dom = assert_safe(rendering.render_markdown("[it's](https://x.example/it's?a=1&b=2 'title')"))
    href = "https://x.example/it's?a=1&b=2"
    expected = {"href": href, "title": "title", "rel": "nofollow ugc noopener"}
    assert dom.nodes[1] == ("a", expected)


def test_allowed_html_is_kept() -> None:
    source = '<p>a<br>b <a href="http://x.example/?a=1&amp;b=2">x</a></p><blockquote>q</blockquote>'
    dom = assert_safe(rendering.sanitise_html(source))
    assert [tag for tag, _ in dom.nodes] == ["p", "br", "a", "blockquote"]
    assert dom.nodes[2][1]["href"] == "http://x.example/?a=1&b=2"


def test_html_that_never_settles_becomes_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "MAX_ROUNDS", 0)
    assert rendering.sanitise_html("<b>x</b>") == "&lt;b&gt;x&lt;/b&gt;"


@given(st.text())
def test_any_markdown_renders_safely_or_is_refused(source: str) -> None:
    try:
        rendered = rendering.render_markdown(source)
    except errors.BadInput as error:
        assert error.field == "body"  # noqa: PT017 - both outcomes are valid
        return
    assert_safe(rendered)


PIECES = st.sampled_from(
    [
        "<p>",
        "</p>",
        "<b>",
        "</b>",
        "<a href=http://x.example>",
        "</a>",
        "<table>",
        "<td>",
        "<tr>",
        "<svg>",
        "</svg>",
        "<math>",
        "<style>",
        "</style>",
        "<button>",
        "<form>",
        "<ul>",
        "<li>",
        "<pre>\n",
        "\n",
        "<select>",
        "<option>",
        "<h3>",
        "</h3>",
        "<!--",
        "-->",
        "<title>",
        "x",
        "&",
        "<template>",
        "</template>",
        "<textarea>",
        "<i>",
        "<nobr>",
        "</table>",
        "'",
        '"',
        "&lt;",
        "<",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_html_is_sanitised_to_a_fixpoint(source: str) -> None:
    assert_safe(rendering.sanitise_html(source))


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
    for size in (cleaning.MAX_BODY // 4, cleaning.MAX_BODY // 2, cleaning.MAX_BODY):
        source = (piece * cleaning.MAX_BODY)[:size]
        costs.append(
            work(lambda source=source: rendering.render_markdown(cleaning.clean_body(source)))  # type: ignore[misc]
        )
    for smaller, larger in itertools.pairwise(costs):
        # If a shape is refused at one length, it is also refused at every greater length.
        assert smaller is not None or larger is None
        if smaller is not None and larger is not None:
            assert larger < 2.2 * smaller
    # The most expensive shape caused 660,000 calls when this test was written.
    assert max(cost or 0 for cost in costs) < 1_000_000


def test_deep_html_is_refused() -> None:
    assert rendering.sanitise_html("<ul><li>" * 100 + "<br>")
    for piece in ("<ul><li>", "<b><i>", "<blockquote><p>"):
        with pytest.raises(errors.BadInput):
            rendering.sanitise_html(piece * (rendering.MAX_TAGS // 2))


def test_blocks_nested_too_deeply_are_refused_not_lost() -> None:
    deepest = rendering.MAX_NESTING - 2
    assert "end" in Dom(rendering.render_markdown(">" * deepest + " end")).text
    for source in (">" * (deepest + 1) + " end", "- " * (deepest // 2 + 1) + "end"):
        with pytest.raises(errors.BadInput) as caught:
            rendering.render_markdown(source)
        assert caught.value.field == "body"


def test_plain_text_is_the_text_that_readers_see() -> None:
    source = "<p>a &amp; <b>b</b>\n c</p><ul><li>x<li>y</ul>d<br>e<script>no</script>&lt;i&gt;"
    assert rendering.plain_text(source) == "a & b c\nx\ny\nd\ne<i>"


GROWING = "".join(f"<b id={n}>" for n in range(1_000)) + "<p>x" * 1_000


@pytest.mark.parametrize(
    "source",
    ["a\x00", "\ud800", "x" * 100_001, "<b>" * 4_001, "<blockquote>" * 201, GROWING],
)
def test_html_above_its_limits_is_refused(source: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        rendering.sanitise_html(source)
    assert caught.value.field == "body"
