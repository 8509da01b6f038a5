"""A link to a thread's page stays on the site; without an address, the thread's id may name it."""

import pytest

from comments.domain import records
from comments.threads import thread_info

SITE = records.Site("blog", ("https://blog.example", "http://localhost:8000"), "", 2)


@pytest.mark.parametrize(
    ("url", "thread", "expected"),
    [
        ("https://blog.example/a", "blog.example/b", "https://blog.example/a"),
        ("http://blog.example/a", "b", "https://blog.example/a"),
        ("https://blog.example/100%", "blog.example/100%25", "https://blog.example/100%25"),
        ("", "blog.example/caf%E9", "https://blog.example/caf%E9"),
        ("", "blog.example/a?p=1", "https://blog.example/a?p=1"),
        ("https://evil.example/a", "blog.example/a", "https://blog.example/a"),
        ("", "localhost:8000/a", "http://localhost:8000/a"),
        ("", "blog.example", "https://blog.example"),
        ("", "blog.example.evil.example/a", ""),
        ("", "blog.example@evil.example/a", ""),
        ("", "//blog.example/a", ""),
        ("", "an id", ""),
    ],
)
def test_a_page_s_address_is_on_the_site_or_unknown(url: str, thread: str, expected: str) -> None:
    assert thread_info.page_address(url, thread, SITE) == expected
