"""Hosts are mapped to the origin with the same paths; doubtful hosts are explained instead."""

import pytest

from comments.transfer.proposals import foreign_hosts
from comments.transfer.proposals.imported_pages import ImportedPage

BLOG = ("https://blog.example",)


def pages(*addresses: str) -> list[ImportedPage]:
    return [ImportedPage(each, each, 2) for each in addresses]


def proposed(
    *addresses: str, origins: tuple[str, ...] = BLOG, others: tuple[str, ...] = ()
) -> dict[str, str]:
    return dict(foreign_hosts.propose(pages(*addresses), origins, others))


def test_a_host_with_the_paths_of_an_origin_is_mapped_to_it() -> None:
    assert proposed("localhost:4000/a", "localhost:4000/c", "blog.example/a") == {
        "localhost:4000=blog.example": (
            "localhost:4000 (2 pages, 4 comments): 1 of 2 paths also on blog.example"
        )
    }
    origins = ("https://x.example", *BLOG)
    assert "old.example=blog.example" in proposed(
        "old.example/a", "blog.example/a", origins=origins
    )


def test_pages_without_comments_count_as_paths_of_an_origin() -> None:
    assert "old.example=blog.example" in proposed("old.example/a", others=("blog.example/a",))


@pytest.mark.parametrize(
    ("old", "new", "mapping"),
    [
        (["/blog/a", "/blog/b"], ["/a", "/b"], "old.example/blog=blog.example"),
        (["/a", "/b"], ["/posts/a", "/posts/b"], "old.example=blog.example/posts"),
        (["/u/blog/a", "/u/blog/b"], ["/a", "/c", "/b"], "old.example/u/blog=blog.example"),
        (["/blog/a", "/blog/b"], ["/blog/a", "/a", "/b"], "old.example/blog=blog.example"),
        (["/blog/a", "/blog/b"], ["/blog/a", "/blog/c"], "old.example=blog.example"),
    ],
)
def test_the_beginning_of_paths_is_mapped_too(old: list[str], new: list[str], mapping: str) -> None:
    addresses = [f"old.example{path}" for path in old] + [f"blog.example{path}" for path in new]
    assert list(proposed(*addresses)) == [mapping]


def test_the_main_host_is_mapped_if_the_file_has_no_page_of_the_only_origin() -> None:
    addresses = ["old.example/a", "old.example/b", "localhost/b", "127.0.0.1:80/c"]
    found = list(foreign_hosts.propose(pages(*addresses), BLOG))
    assert [each.mapping for each in found] == [
        "old.example=blog.example",
        "127.0.0.1:80=blog.example",
        "localhost=blog.example",
    ]
    assert found[0].reason == (
        "old.example (2 pages, 4 comments): probably the former address, as the file has no page "
        "of blog.example"
    )
    assert "1 of 1 path also on old.example" in found[2].reason
    assert proposed("localhost:4000/a") == {
        "localhost:4000=blog.example": (
            "localhost:4000 (1 page, 2 comments) looks like a test copy of your website"
        )
    }


def test_a_host_that_differs_by_www_is_mapped() -> None:
    assert "www.blog.example=blog.example" in proposed("www.blog.example/a", "blog.example/b")
    www = ("https://www.blog.example", "https://x.example")
    assert "blog.example=www.blog.example" in proposed("blog.example/a", origins=www)


@pytest.mark.parametrize(
    "host",
    ["localhost:4000", "192.168.0.7", "[::1]:80", "blog.test", "staging.blog.example:81"],
)
def test_a_copy_for_tests_is_mapped_to_the_only_origin(host: str) -> None:
    ((mapping, reason),) = proposed(f"{host}/a", "blog.example/b").items()
    assert mapping == f"{host}=blog.example"
    assert reason == f"{host} (1 page, 2 comments) looks like a test copy of your website"
    several = (*BLOG, "https://x.example")
    assert "" in proposed(f"{host}/a", "blog.example/b", origins=several)


def test_an_origin_for_test_pages_changes_no_proposal() -> None:
    addresses = ("localhost:4000/a", "localhost:4000/b", "www.blog.example/b", "blog.example/c")
    alone = proposed(*addresses)
    assert alone.keys() == {"localhost:4000=blog.example", "www.blog.example=blog.example"}
    for local in ("http://localhost:8000", "http://localhost:4000", "http://192.168.0.7"):
        assert proposed(*addresses, origins=(local, *BLOG)) == alone
    assert "old.example=blog.example" in proposed("old.example/a", origins=(*BLOG, local))


def test_a_site_on_local_hosts_only_has_these_origins() -> None:
    only = ("http://localhost:8000",)
    assert "old.example=localhost:8000" in proposed("old.example/a", origins=only)
    assert proposed("localhost:8000/a", origins=only) == {}


@pytest.mark.parametrize(
    "host",
    [
        "webcache.googleusercontent.com",
        "blog-example.translate.goog",
        "web.archive.org",
        "blog-example.cdn.ampproject.org",
    ],
)
def test_copies_are_never_mapped(host: str) -> None:
    ((mapping, reason),) = proposed(f"{host}/a", "blog.example/a").items()
    assert (mapping, reason) == (
        "",
        f"{host} (1 page, 2 comments): copies of pages by a search engine, translator or archive",
    )
    assert proposed(f"{host}/a") == {"": reason}


def test_a_host_without_known_paths_is_explained() -> None:
    assert "" in proposed("staging.example/a", "blog.example/b")
    ((mapping, reason),) = proposed("old.example/a", "blog.example/b").items()
    assert (mapping, reason) == (
        "", "old.example (1 page, 2 comments): no path of this host is also on blog.example: /a"
    )  # fmt: skip
    several = (*BLOG, "https://x.example")
    ((mapping, reason),) = proposed(*(f"old.example/{n}" for n in "abcde"), origins=several).items()
    assert mapping == ""
    assert reason.endswith(
        "several origins, and no path of this host is on one of them: /a, /b, /c and 2 more"
    )


def test_no_host_is_foreign_to_a_site_without_origins() -> None:
    """The site of a new service has none, and is where new owners try an import."""
    assert list(foreign_hosts.propose(pages("a.example/a", "b.example/b"), ())) == []


def test_pages_that_a_mapping_moved_are_not_proposed_again() -> None:
    assert list(foreign_hosts.propose([ImportedPage("a.example/a", "b.example/a", 1)], BLOG)) == []
