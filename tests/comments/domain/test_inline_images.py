"""Images of listed origins are shown within their links, and no other images."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain.text import imported_html, inline_images, rendering, sanitizing
from tests.support.html import html_reader

LISTED = ("https://img.example", "https://cdn.example:8443", "https://xn--bcher-kva.example")


def images(source: str, origins: tuple[str, ...] = LISTED) -> list[dict[str, str | None]]:
    found = html_reader.Elements(inline_images.show_images(source, origins)).elements
    return [attributes for name, attributes in found if name == "img"]


@pytest.mark.parametrize(
    "url",
    [
        "https://img.example/cat.png",
        "https://img.example/a/b?c=d&e=f#g",
        "HTTPS://IMG.Example/cat.png",
        "https://img.example:443/cat.png",
        "https://img.example",
        "https://cdn.example:8443/cat.png",
        "https://bücher.example/cat.png",
        "https://xn--bcher-kva.example/cat.png",
    ],
)
def test_an_image_of_a_listed_origin_is_shown(url: str) -> None:
    (image,) = images(rendering.render_markdown(f'![A "cat" & <co>](<{url}>)'))
    assert (image["src"] or "").lower().startswith("https://")
    assert image["alt"] == 'A "cat" & <co>'
    assert image["referrerpolicy"] == "no-referrer"
    assert (image["loading"], image["decoding"]) == ("lazy", "async")


@pytest.mark.parametrize(
    "url",
    [
        "https://img.example.evil.test/cat.png",
        "https://evil.test/img.example/cat.png",
        "https://img.example@evil.test/cat.png",
        "https://me@img.example/cat.png",
        "https://notimg.example/cat.png",
        "https://sub.img.example/cat.png",
        "https://img.example:444/cat.png",
        "https://cdn.example/cat.png",
        "http://img.example/cat.png",
        "https://img.example:99999/cat.png",
        "https://bucher.example/cat.png",
        "https://\u0456mg.example/cat.png",
        "//img.example/cat.png",
        "/cat.png",
        "data:image/png;base64,AAAA",
    ],
)
def test_no_other_image_is_shown(url: str) -> None:
    source = rendering.render_markdown(f"![cat](<{url}>)")
    assert inline_images.show_images(source, LISTED) == source


def test_a_link_to_an_image_stays_a_link() -> None:
    source = rendering.render_markdown("[cat](https://img.example/cat.png) https://img.example/x")
    assert inline_images.show_images(source, LISTED) == source


def test_an_image_keeps_its_link_and_its_title() -> None:
    source = rendering.render_markdown('![cat](https://img.example/cat.png "My cat")')
    (link, image) = (
        each
        for each in html_reader.Elements(inline_images.show_images(source, LISTED)).elements
        if each[0] in {"a", "img"}
    )
    assert link[1]["href"] == image[1]["src"] == "https://img.example/cat.png"
    assert link[1]["title"] == "My cat"
    assert link[1]["rel"] == sanitizing.LINK_REL


def test_without_listed_origins_nothing_changes() -> None:
    source = rendering.render_markdown("![cat](https://img.example/cat.png)")
    assert inline_images.show_images(source, ()) is source


def test_an_imported_image_is_shown_like_any_other() -> None:
    html = imported_html.convert('<img src="https://img.example/a.png" alt="&quot;a&quot;">').html
    (image,) = images(html)
    assert (image["src"], image["alt"]) == ("https://img.example/a.png", '"a"')


PIECES = st.sampled_from([
    "<a data-ft-image href=https://img.example/x>", '<a href="https://img.example/x">', "</a>",
    "<img src=https://img.example/x alt=", "<b>", "</b>", "<table>", "<td>", "'", '"', "&quot;",
    "&lt;img src=x onerror=alert(1)&gt;", ">", "text", " ", "<!--", "-->", "<svg>",
])  # fmt: skip


@given(st.lists(PIECES, max_size=20).map("".join))
def test_only_images_are_added(pieces: str) -> None:
    """All other elements and attributes stay the same, and no description ends its attribute."""
    source = imported_html.convert(pieces).html
    after = html_reader.Elements(inline_images.show_images(source, LISTED)).elements
    others = [each for each in after if each[0] != "img"]
    assert others == html_reader.Elements(source).elements
    for name, attributes in after:
        if name == "img":
            assert attributes.keys() == {
                "class", "alt", "loading", "decoding", "referrerpolicy", "src",
            }  # fmt: skip
            assert (attributes["src"] or "").startswith("https://img.example/")
