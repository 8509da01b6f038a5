"""HTML from strangers is reduced to an allow-list, and its text is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.text import rendering, sanitizing
from tests.support.html import safe_html


@pytest.mark.parametrize("attack", safe_html.ATTACKS)
def test_imported_html_keeps_only_allowed_elements(attack: str) -> None:
    safe_html.assert_safe(sanitizing.sanitise_html(attack))


@pytest.mark.parametrize("href", ["mailto:ann@x.example", "tel:+1", "/about", "ftp://x.example/"])
def test_a_removed_link_keeps_its_text_alone(href: str) -> None:
    source = f"<p>Write <a href='{href}' title='{href}'>to <b>me</b></a>.</p>"
    assert sanitizing.sanitise_html(source) == "<p>Write to <b>me</b>.</p>"
    assert rendering.render_markdown(f"[me]({href} 'to me')") == "<p>me</p>\n"


def test_a_removed_link_around_other_links_leaves_them() -> None:
    inner = '<table><tr><td><a href="https://x.example">x</a></table>'
    for target, kept in (("/about", ["https://x.example"]), ("https://y.example", None)):
        dom = safe_html.assert_safe(sanitizing.sanitise_html(f"<a href={target}>a{inner}b</a>c"))
        found = [attributes["href"] for tag, attributes in dom.nodes if tag == "a"]
        assert found == (kept or ["https://y.example", "https://x.example"])
        assert dom.text == "axbc"


@pytest.mark.parametrize("source", ["<pre tabindex=7>x</pre>", "<table><tr><td>x</table>"])
def test_what_scrolls_can_be_focused(source: str) -> None:
    dom = safe_html.assert_safe(sanitizing.sanitise_html(source))
    assert dom.nodes[0][1] == {"tabindex": "0"}


def test_cells_keep_their_alignment_and_nothing_else() -> None:
    source = "<table><tr><th align=right style=x>a<td align=justify>b<td align=center>c</table>"
    dom = safe_html.assert_safe(sanitizing.sanitise_html(source))
    cells = [attributes for tag, attributes in dom.nodes if tag in {"th", "td"}]
    assert cells == [{"align": "right"}, {}, {"align": "center"}]


def test_the_mark_of_an_image_has_no_value() -> None:
    source = '<a data-ft-image="x&quot; onerror=y" href="https://x.example">x</a>'
    dom = safe_html.assert_safe(sanitizing.sanitise_html(source))
    assert dom.nodes[0][1]["data-ft-image"] == ""


def test_allowed_html_is_kept() -> None:
    source = '<p>a<br>b <a href="http://x.example/?a=1&amp;b=2">x</a></p><blockquote>q</blockquote>'
    dom = safe_html.assert_safe(sanitizing.sanitise_html(source))
    assert [tag for tag, _ in dom.nodes] == ["p", "br", "a", "blockquote"]
    assert dom.nodes[2][1]["href"] == "http://x.example/?a=1&b=2"


def test_html_that_never_settles_becomes_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizing, "MAX_ROUNDS", 0)
    assert sanitizing.sanitise_html("<b>x</b>") == "&lt;b&gt;x&lt;/b&gt;"


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
    safe_html.assert_safe(sanitizing.sanitise_html(source))


def test_deep_html_is_refused() -> None:
    assert sanitizing.sanitise_html("<ul><li>" * 100 + "<br>")
    for piece in ("<ul><li>", "<b><i>", "<blockquote><p>"):
        with pytest.raises(errors.BadInput):
            sanitizing.sanitise_html(piece * (sanitizing.MAX_TAGS // 2))


def test_plain_text_is_the_text_that_readers_see() -> None:
    source = "<p>a &amp; <b>b</b>\n c</p><ul><li>x<li>y</ul>d<br>e<script>no</script>&lt;i&gt;"
    assert sanitizing.plain_text(source) == "a & b c\nx\ny\nd\ne<i>"


GROWING = "".join(f"<b id={n}>" for n in range(1_000)) + "<p>x" * 1_000


@pytest.mark.parametrize(
    "source",
    ["a\x00", "\ud800", "x" * 100_001, "<b>" * 4_001, "<blockquote>" * 201, GROWING],
)
def test_html_above_its_limits_is_refused(source: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        sanitizing.sanitise_html(source)
    assert caught.value.field == "body"
