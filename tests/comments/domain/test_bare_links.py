"""A web address in a text is a link from its first to its last character, if it is safe."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from comments.domain.text import bare_links, cleaning, rendering
from tests.support.html import html_reader

START = re.compile(bare_links.START)


def found(text: str) -> list[str]:
    """Return the links of a text, as a parser that knows no other markup finds them."""
    links, place = [], 0
    while match := START.search(text, place):
        head = bare_links.HEAD.match(text, match.start())
        end = bare_links.end_of(head) if head else 0
        if end:
            links.append(text[match.start() : end])
        place = end or match.end()
    return links


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("see https://x.example.", "https://x.example"),
        ("https://x.example/a, b", "https://x.example/a"),
        ("HTTP://X.example/?q=1&r=2#s!", "HTTP://X.example/?q=1&r=2#s"),
        ("(https://x.example/a)", "https://x.example/a"),
        ("https://x.example/a_(b), c", "https://x.example/a_(b)"),
        ("[see https://x.example/[1]]", "https://x.example/[1]"),
        ("https://x.example/a](b)", "https://x.example/a"),
        ("https://x.example/(", "https://x.example/"),
        ("<b>https://x.example/</b>", "https://x.example/"),
        ('"https://x.example/a"', "https://x.example/a"),
        ("\u201chttps://x.example/a\u201d", "https://x.example/a"),
        ("https://x.example/a\u2026", "https://x.example/a"),
        ("**https://x.example/a**", "https://x.example/a"),
        ("https://x.example/a*b*c", "https://x.example/a*b*c"),
        ("https://x.example/_a_/b", "https://x.example/_a_/b"),
        ("https://x.example: it", "https://x.example"),
        ("https://x.example:8080/a", "https://x.example:8080/a"),
        ("https://127.0.0.1/a", "https://127.0.0.1/a"),
        ("https://x.example,https://y.example", "https://x.example"),
        ("www.x.dev/a?", "www.x.dev/a"),
        ("Www.X.example", "Www.X.example"),
        ("\u8a73\u3057\u304f\u306fhttps://x.example/a\u3002\u6b21", "https://x.example/a"),
        ("https://b\xfccher.example/\xfc", "https://b\xfccher.example/\xfc"),
        ("https://x.example/a\u200b\u202eb", "https://x.example/a"),
    ],
)
def test_a_link_ends_where_its_writer_means(text: str, link: str) -> None:
    assert found(text)[0] == link


@pytest.mark.parametrize(
    "text",
    [
        "https://", "https:x.example", "http:/x.example", "ftp://x.example", "www.", "www.x",
        "x.example", "ann@x.example", "mailto:ann@x.example", "javascript:alert(1)",
        "//x.example/a", "xhttps://x.example", "ann@www.x.example", "a.www.x.example",
        "https://localhost/", "https://x/", "https://[::1]/",
        # What follows the host may make it a user's name.
        "https://x.example@y.example/", "https://ann:pw@y.example", "https://x.example:80@y.example",
        "https://x.example:pw@y.example", "https://x.example\\@y.example", "https://x.example%2F@y",
        # Hosts and ports that do not exist, and hosts that imitate another.
        "https://1.2.3.4.5/", "https://-x.example/", "https://x.example:99999/", "https://a.__",
        f"https://{'a' * 64}.example/", "https://\u0430pple.com/", "www.\u0430pple.com",
    ],
)  # fmt: skip
def test_what_is_no_safe_web_address_stays_text(text: str) -> None:
    assert found(text) == []
    assert html_reader.Elements(rendering.render_markdown(text)).elements == [("p", {})]


@pytest.mark.parametrize(
    ("shown", "url"),
    [
        ("http://x.example/a", "http://x.example/a"),
        ("www.x.example/a", "https://www.x.example/a"),
        ("https://B\xdcCHER.example:80/\xdc", "https://xn--bcher-kva.example:80/\xdc"),
    ],
)
def test_a_link_leads_to_its_text(shown: str, url: str) -> None:
    assert bare_links.address(shown) == url


PIECES = ("https://", "www.", "x.example", "a.b", "/", "(", ")", "[", "]", "@", ":", ".", "\\", "_",
          "\u0430", "\u3002", " ", "*", "%", "?", "#", "80", "-", "\u202e", "'")  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("https://a.__")
def test_every_link_is_an_address_that_browsers_read_alike(text: str) -> None:
    for link in found(text):
        match = cleaning.WEB_URL.fullmatch(bare_links.address(link))
        assert match is not None
        assert "." in match["host"]
        assert not any(each in link for each in ' <>"\u202e')
        assert link[-1] not in ".,:;!?'*_~(["
        # Nothing that follows makes the host a user's name.
        rest = text[text.index(link) + len(link) :]
        assert not rest.startswith(("@", "%", "\\")) or match[0].count("/") > 2
