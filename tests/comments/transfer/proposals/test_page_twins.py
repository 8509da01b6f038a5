"""Several addresses of one page are mapped to the plain one."""

import pytest

from comments.transfer.proposals import page_twins
from comments.transfer.proposals.imported_pages import ImportedPage


def proposed(*addresses: str) -> list[str]:
    found = page_twins.propose(ImportedPage(each, each, 1) for each in addresses)
    return [each.mapping for each in found]


@pytest.mark.parametrize(
    ("addresses", "mappings"),
    [
        (["h.example/a/index.html", "h.example/a"], ["h.example/a/index.html=h.example/a"]),
        (["h.example/index.php", "h.example/"], ["h.example/index.php=h.example/"]),
        (
            ["h.example/Index.htm?p=1", "h.example/?p=1", "h.example/?p=2"],
            ["h.example/Index.htm?p=1=h.example/?p=1"],
        ),
        (["h.example//a//b", "h.example/a/b"], ["h.example//a//b=h.example/a/b"]),
        (["h.example//a"], ["h.example//a=h.example/a"]),
        (["h.example/a/", "h.example/a"], ["h.example/a=h.example/a/"]),
        (["h.example/a?utm_source=x&id=1"], ["h.example/a?utm_source=x&id=1=h.example/a?id=1"]),
        (
            ["h.example/a?ref=x", "h.example/a?fbclid=y", "h.example/a"],
            ["h.example/a?fbclid=y=h.example/a", "h.example/a?ref=x=h.example/a"],
        ),
        (
            ["h.example/a/index.html", "h.example/a/index.php"],
            ["h.example/a/index.html=h.example/a/index.php"],
        ),
        (["h.example/a/index.html"], []),
        (["h.example/a/index.html", "h.example/b", "x.example/a"], []),
        (["h.example/a", "h.example/A", "h.example/a/myindex.html", "h.example/a?id=1"], []),
    ],
)
def test_an_address_is_mapped_to_the_plain_address_of_its_page(
    addresses: list[str], mappings: list[str]
) -> None:
    assert proposed(*addresses) == mappings


def test_of_two_plain_addresses_the_one_with_more_comments_is_kept() -> None:
    pages = [
        ImportedPage(f"h.example/a{end}", f"h.example/a{end}", n) for end, n in (("", 5), ("/", 4))
    ]
    assert [each.mapping for each in page_twins.propose(pages)] == ["h.example/a/=h.example/a"]


def test_the_address_in_the_file_is_mapped_to_where_its_host_moves() -> None:
    pages = [
        ImportedPage("old.example/a/index.html", "blog.example/a/index.html", 1),
        ImportedPage("localhost/a", "localhost/a", 1),
    ]
    found = page_twins.propose(pages, lambda thread: thread.replace("localhost", "blog.example"))
    assert [each.mapping for each in found] == ["old.example/a/index.html=blog.example/a"]
