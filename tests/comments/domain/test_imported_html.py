"""An import counts what comments cannot contain, and turns it into links or text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.text import imported_html, sanitizing
from tests.support.html import safe_html

REL = 'rel="nofollow ugc noopener"'
IMAGE = f'<a href="https://i.example/a.png" data-ft-image="" {REL}>'
FILM = f'<a href="https://v.example/1" {REL}>'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('a<img src="https://i.example/a.png" alt="<i> cat">b', f"a{IMAGE}&lt;i&gt; cat</a>b"),
        ("<img src=//i.example/a.png>", f"{IMAGE}https://i.example/a.png</a>"),
        ('<img alt=":)">', ":)"),
        ("<img src=/a.png alt=cat>", "cat"),
        ("<img src=javascript:x alt=cat>", "cat"),
        ("<img src=https://ok@i.example/a.png alt=cat>", "cat"),
        ("<a href=https://v.example/1><img src=https://i.example alt=cat></a>", f"{FILM}cat</a>"),
        ("<a href=mailto:a@b><img src=https://i.example/a.png alt=cat></a>", f"{IMAGE}cat</a>"),
    ],
)
def test_an_image_becomes_a_link_or_its_description(source: str, expected: str) -> None:
    found = imported_html.convert(source)
    assert (found.html, found.images, found.embeds) == (expected, 1, 0)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<iframe src="//v.example/1" title="A film">old</iframe>', f"{FILM}A film</a>old"),
        ("<video><source src=https://v.example/1>no</video>", f"{FILM}https://v.example/1</a>no"),
        (
            "<object data=https://v.example/1><embed src=https://v.example/1></object>",
            f"{FILM}https://v.example/1</a>",
        ),
        ("<audio src=https://v.example/1 title=Song></audio>", f"{FILM}Song</a>"),
    ],
)
def test_media_and_frames_become_one_link(source: str, expected: str) -> None:
    found = imported_html.convert(source)
    assert (found.html, found.images, found.embeds) == (expected, 0, 1)


@pytest.mark.parametrize("href", ["mailto:ann@x.example", "tel:+1", "/about", "ftp://x.example/"])
def test_a_link_that_is_not_to_the_web_becomes_text(href: str) -> None:
    found = imported_html.convert(f"<p>Write <a href='{href}'>to <b>me</b></a>.</p>")
    assert (found.html, found.unlinked) == ("<p>Write to <b>me</b>.</p>", 1)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<h1 id=x onclick=y>Big</h1>text", "<h3>Big</h3>text"),
        ("<H2>Two <b>words</b></H2><h3>3</h3>", "<h3>Two <b>words</b></h3><h3>3</h3>"),
        ("<h4>4</h4><h5>5</h5><h6>6</h6>", "<h4>4</h4><h5>5</h5><h6>6</h6>"),
        ("<h1>open<h2>next", "<h3>open</h3><h3>next</h3>"),
        ("a</h1>b", "ab"),
        ("<h7>7</h7>", "7"),
    ],
)
def test_a_heading_stays_a_heading(source: str, expected: str) -> None:
    assert imported_html.convert(source).html == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<div>a</div><div>b</div>c", "a<br>b<br>c"),
        ("<div><div>a</div>\n<section>b</section></div>", "a\n<br>b"),
        ("<div><p>a</p></div><p>b</p>", "<p>a</p><p>b</p>"),
        ("a<div class=x><b>b</b></div><i>c</i>", "a<br><b>b</b><br><i>c</i>"),
        ("<b>a<div>b</div></b>c", "<b>a<br>b</b><br>c"),
        ("<dl><dt>a</dt><dd>b</dd></dl>", "a<br>b"),
        ("<details><summary>a</summary>b</details>", "a<br>b"),
        ("<ul><li><div>a</div></li><li>b</li></ul>", "<ul><li>a</li><li>b</li></ul>"),
        ("<div></div><div> </div>", " "),
        ("a<br><div>b</div>", "a<br>b"),
        ("<center>a<img src=https://i.example/a.png alt=i></center>b", f"a{IMAGE}i</a><br>b"),
    ],
)
def test_a_block_that_comments_cannot_contain_has_lines_of_its_own(
    source: str, expected: str
) -> None:
    assert imported_html.convert(source).html == expected


BLOCKS = st.sampled_from(["div", "p", "section", "h1", "h5", "dt", "blockquote", "center", "li"])


@given(st.lists(st.tuples(BLOCKS, st.integers(0, 2), st.sampled_from(["", "b", "em"])), max_size=8))
def test_texts_of_different_blocks_are_not_joined(blocks: list[tuple[str, int, str]]) -> None:
    source = ""
    for number, (name, ends, inline) in enumerate(blocks):
        word = f"<{inline}>w{number}</{inline}>" if inline else f"w{number}"
        source += f"<{name}>{word}" + f"</{name}>" * ends
    html = imported_html.convert(source).html
    assert sanitizing.plain_text(html).split() == [f"w{number}" for number in range(len(blocks))]


def test_what_has_no_text_is_removed_and_counted() -> None:
    found = imported_html.convert("a<SCRIPT>b</SCRIPT><svg><text>c</text></svg><style>d</style>e")
    assert (found.html, found.removed) == ("ae", 3)


def test_html_without_such_elements_is_only_sanitized() -> None:
    source = "<p>a <a href='https://x.example'>b</a><br><b>c</b><form>d</form></p>"
    expected = imported_html.ConvertedHtml(sanitizing.sanitise_html(source), 0, 0, 0, 0)
    assert imported_html.convert(source) == expected


@pytest.mark.parametrize("source", ["\x00", "<b>" * 4_001, "x" * 100_001, "<blockquote>" * 201])
def test_html_above_its_limits_is_refused(source: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        imported_html.convert(source)
    assert caught.value.field == "body"


@pytest.mark.parametrize("attack", safe_html.ATTACKS)
def test_converted_attacks_are_harmless(attack: str) -> None:
    safe_html.assert_safe(imported_html.convert(attack).html)


PIECES = (
    "<img src=https://i.example alt='<a title='>", "<img src='//x\"y' alt=\"'>\">", "<img alt=x>",
    "<iframe src=https://v.example>", "</iframe>", "<object data=https://v.example>", "</object>",
    "<video>", "</video>", "<source src=https://v.example>", "<embed src=javascript:x>",
    "<a href=https://x.example>", "<a href=mailto:x>", "</a>", "<table><td>", "</table>", "<p>",
    "<svg>", "<math>", "<style>", "</style>", "<template>", "<!--", "-->", "<title>", "<pre>\n",
    "x", "&lt;", "<", '"', "'",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_any_converted_html_is_harmless(source: str) -> None:
    safe_html.assert_safe(imported_html.convert(source).html)
