"""Test the origin of an address as people type it, and the id that is proposed for it."""

import pytest

from comments import errors
from comments.domain.ids import site_ids
from comments.domain.text.addresses import web_origins


@pytest.mark.parametrize(
    ("typed", "origin"),
    [
        ("blog.example", "https://blog.example"),
        (" Blog.Example/post/1?a=b#c ", "https://blog.example"),
        ("https://www.blog.example/?next=http://other.example", "https://www.blog.example"),
        ("blog.example/?next=http://other.example", "https://blog.example"),
        ("HTTP://blog.example:80/", "http://blog.example"),
        ("blog.example:8443", "https://blog.example:8443"),
        ("müller.example", "https://xn--mller-kva.example"),
        ("localhost:1313/post", "http://localhost:1313"),
        ("192.168.1.5", "http://192.168.1.5"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("localhost", "http://localhost"),
        ("http://wiki", "http://wiki"),
        ("wiki:8000", "http://wiki:8000"),
    ],
)
def test_an_address_has_the_origin_that_browsers_send(typed: str, origin: str) -> None:
    assert web_origins.of_address(typed) == origin


@pytest.mark.parametrize(
    "typed",
    ["", "https://", "a b", "wiki", "wiki/page", "ftp://blog.example", "me@blog.example",
     "blog.example:x", "[::1", "javascript:alert(1)", "https://blog.example;", "//", "*.example"],
)  # fmt: skip
def test_another_text_is_refused_by_field(typed: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        web_origins.of_address(typed, "page")
    assert (refused.value.field, refused.value.code) == ("page", "not-a-url")


@pytest.mark.parametrize(
    ("host", "proposed"),
    [
        ("www.blog.example", "blog-2"),
        ("jane.pages.example", "jane"),
        ("a_b.example", "a-b"),
        ("[fe80::1]", "blog-2"),
        ("127.0.0.1", "blog-2"),
        ("360.example", "360"),
        ("_.example", "blog-2"),
        (f"{'x' * 63}.example", "x" * 59),
    ],
)
def test_an_id_is_proposed_from_the_host(host: str, proposed: str) -> None:
    assert site_ids.check(site_ids.guess(host, {"blog"})) == proposed
