"""Mappings move pages by host, by path and one by one, in whole segments and in any order."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.ids import thread_ids
from comments.transfer.checking import page_mapping


def mapped(url: str, *mappings: str, origins: tuple[str, ...] = ()) -> str:
    return page_mapping.PageMapping(mappings, origins).apply(url).url


@pytest.mark.parametrize(
    ("mapping", "old", "new"),
    [
        ("old.example=blog.example", "http://old.example/a/?p=1", "http://blog.example/a/?p=1"),
        ("old.example=blog.example", "http://OLD.example:80", "http://blog.example/"),
        ("old.example=https://blog.example", "http://old.example/a#top", "https://blog.example/a"),
        ("http://localhost:4000/=blog.example", "http://localhost:4000/a", "http://blog.example/a"),
        ("old.example=blog.example/archive", "http://old.example/a", "http://blog.example/archive/a"),
        ("/blog=/posts", "https://any.example/blog/a", "https://any.example/posts/a"),
        ("/blog=/posts", "https://any.example/blog/", "https://any.example/posts/"),
        ("/blog=/", "https://any.example/blog", "https://any.example/"),
        ("/blog=/", "https://any.example/blog/a", "https://any.example/a"),
        ("/=/blog", "https://any.example/a", "https://any.example/blog/a"),
        ("/blog=blog.example", "http://any.example/blog/a", "http://blog.example/a"),
        (
            "old.example/blog=blog.example/articles",
            "http://old.example/blog/2020/a",
            "http://blog.example/articles/2020/a",
        ),
        (
            "https://old.example/?p=7=https://blog.example/roses",
            "http://old.example/?p=7&utm_source=x",
            "https://blog.example/roses",
        ),
        ("/?p=7=/?id=8", "http://any.example/?p=7", "http://any.example/?id=8"),
        ("/about=/?p=2", "http://any.example/about/", "http://any.example/?p=2"),
        ("/caf%C3%A9=/bar", "http://any.example/caf\u00e9/a", "http://any.example/bar/a"),
        ("//link/=/link/", "https://any.example//link/", "https://any.example/link/"),
        ("//index.html=/", "https://any.example//index.html", "https://any.example/"),
        ("//old.example/a=//blog.example/b", "http://old.example/a", "http://blog.example/b"),
        ("/caf%e9=/b", "https://any.example/caf%E9/a", "https://any.example/b/a"),
        ("/100%=/b%0a", "https://any.example/100%25", "https://any.example/b%0A"),
        ("/?%e9=%ff=/b", "https://any.example/?%E9=%FF", "https://any.example/b"),
        ("/a=/a/", "https://any.example/a", "https://any.example/a/"),
        ("/a/=/a", "https://any.example/a/", "https://any.example/a"),
    ],
)  # fmt: skip
def test_a_mapping_moves_the_pages_that_it_names(mapping: str, old: str, new: str) -> None:
    assert page_mapping.PageMapping([mapping]).apply(old) == page_mapping.MappedPage(
        new, (mapping,)
    )


@pytest.mark.parametrize(
    ("mapping", "url"),
    [
        ("old.example=blog.example", "http://www.old.example/a"),
        ("old.example=blog.example", "http://old.example:8080/a"),
        ("/blog=/posts", "https://any.example/blogger/a"),
        ("/blog=/posts", "https://any.example/a/blog"),
        ("/blog=/posts", "https://any.example/Blog"),
        ("/?p=7=/roses", "https://any.example/?p=70"),
        ("/?p=7=/roses", "https://any.example/a?p=7"),
        ("/a=/b", "mailto:ada@any.example"),
        ("/a=/b", "https://any.example/a\\b"),
        ("/a=/b", ""),
    ],
)
def test_other_pages_stay_where_they_are(mapping: str, url: str) -> None:
    assert page_mapping.PageMapping([mapping]).apply(url) == page_mapping.MappedPage(url)


def test_the_longest_match_applies() -> None:
    mappings = ["/a=/1", "/a/b=/2", "old.example/a=x.example/3", "/a/b?p=1=/4"]
    assert mapped("http://old.example/a/b/c", *mappings) == "http://old.example/2/c"
    assert mapped("http://old.example/a/c", *mappings) == "http://x.example/3/c"
    assert mapped("http://any.example/a/c", *mappings) == "http://any.example/1/c"
    assert mapped("http://old.example/a/b?p=1", *mappings) == "http://old.example/4"
    pages = ["/?p=1=/one", "/?p=1&q=2=/both"]
    assert mapped("http://any.example/?q=2&p=1", *pages) == "http://any.example/both"


def test_a_host_and_a_path_can_have_a_mapping_each() -> None:
    both = ["old.example=blog.example", "/blog=/posts"]
    assert page_mapping.PageMapping(both).apply("http://old.example/blog/a") == (
        "http://blog.example/posts/a",
        tuple(both),
    )
    assert mapped("http://old.example/a", *both) == "http://blog.example/a"
    elsewhere = ["old.example=blog.example", "/blog=x.example"]
    assert mapped("http://old.example/blog/a", *elsewhere) == "http://x.example/a"


def test_a_result_is_not_mapped_again() -> None:
    swap = ["a.example=b.example", "b.example=a.example", "/x=/y", "/y=/x"]
    assert mapped("http://a.example/x", *swap) == "http://b.example/y"
    assert mapped("http://b.example/y", *swap) == "http://a.example/x"


def test_a_page_that_moves_to_an_origin_takes_its_scheme() -> None:
    origins = ("https://blog.example", "http://blog.example:8080")
    url = "http://localhost:4000/a"
    assert mapped(url, "localhost:4000=blog.example", origins=origins) == "https://blog.example/a"
    assert (
        mapped(url, "localhost:4000=blog.example:8080", origins=origins)
        == "http://blog.example:8080/a"
    )


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        ("old.example", "it has no =. Write OLD=NEW"),
        ("=", "is neither a host, a path nor an address"),
        ("old.example=", "'' is neither"),
        ("blog=/posts", "'blog' is neither a host, a path nor an address. Begin a path with /"),
        ("old.example=/posts", "the new one does not. Add the new host"),
        ("old.example=https://OLD.example/", "both addresses are the same page"),
        (
            "old..example=blog.example",
            "not an address: page does not contain a valid host name.",
        ),
        ("/a=/b#c", "remove the # and what follows from '/b#c'"),
        ("ftp://old.example=blog.example", "'ftp://old.example' is neither"),
        ("http://u:p@old.example=blog.example", "is not an address"),
        ("/a\x1b=/b", "'/a\ufffd' is not an address"),
        ("a.example/?p=b.example/?x=c.example", "more than one = can be the middle"),
    ],
)
def test_a_bad_mapping_is_refused_by_name(mapping: str, reason: str) -> None:
    with pytest.raises(errors.ImportRefused) as caught:
        page_mapping.PageMapping(["/x=/y", mapping])
    shown = mapping.replace("\x1b", "\ufffd")
    assert caught.value.message.startswith(f"The mapping '{shown}' is not valid: ")
    assert reason in caught.value.message


def test_the_middle_of_an_ambiguous_mapping_is_before_a_scheme() -> None:
    mapping = "a.example/?p=b.example/?x=https://c.example/d"
    assert mapped("http://a.example/?p=b.example/?x", mapping) == "https://c.example/d"


def test_two_mappings_of_the_same_pages_are_refused() -> None:
    for first, second in [
        ("old.example=a.example", "http://OLD.example/=b.example"),
        ("/a=/b", "/a/=/c"),
        ("/?p=1&q=2=/a", "/?q=2&p=1=/b"),
    ]:
        with pytest.raises(errors.ImportRefused, match="map the same pages") as caught:
            page_mapping.PageMapping([first, second])
        assert f"The mappings '{second}' and '{first}'" in caught.value.message
    assert page_mapping.PageMapping(["/a=/b", "/a=/b"]).texts == ("/a=/b",)


def test_mappings_are_bounded() -> None:
    many = [f"/{number}=/x{number}" for number in range(page_mapping.MOST + 1)]
    with pytest.raises(errors.ImportRefused, match=r"more than 1,000 mappings"):
        page_mapping.PageMapping(many)
    with pytest.raises(errors.ImportRefused, match=r"more than 200,000 characters"):
        page_mapping.PageMapping([f"{'x' * page_mapping.LONGEST}=/a"])


HOSTS = ["a.example", "b.example", "c.example:81"]
SEGMENTS = ["a", "b", "ab", "c"]


class Rule(NamedTuple):
    """A rule for the model: a host ("" for any) and a path, old and new."""

    old_host: str
    old: tuple[str, ...]
    new_host: str
    new: tuple[str, ...]

    def __str__(self) -> str:
        old = "/".join((self.old_host, *self.old)) or "/"
        return f"{old}={'/'.join((self.new_host, *self.new)) or '/'}"


def _paths() -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(SEGMENTS), max_size=3).map(tuple)


@st.composite
def rules(draw: st.DrawFn) -> list[Rule]:
    """Draw rules with different old places."""
    found: dict[tuple[str, tuple[str, ...]], Rule] = {}
    for _ in range(draw(st.integers(1, 6))):
        old_host, old = draw(st.sampled_from(["", *HOSTS])), draw(_paths())
        hosts = HOSTS if old_host else ["", *HOSTS]
        rule = Rule(old_host, old, draw(st.sampled_from(hosts)), draw(_paths()))
        if rule[:2] != rule[2:]:
            found.setdefault((old_host, old), rule)
    return list(found.values())


def by_definition(host: str, path: tuple[str, ...], given: list[Rule]) -> str:
    """Return the new page as the invariants define it, by trying every rule."""
    of_host = [r for r in given if r.old_host == host and not r.old and not r.new]
    of_path = sorted(
        (
            rule
            for rule in given
            if rule not in of_host
            and rule.old_host in {"", host}
            and path[: len(rule.old)] == rule.old
            and not (rule.old_host and not rule.old and not rule.new)
        ),
        key=lambda rule: (len(rule.old), rule.old_host),
    )
    new_host, new_path = of_host[0].new_host if of_host else host, path
    if of_path:
        best = of_path[-1]
        new_host = best.new_host or new_host
        new_path = best.new + path[len(best.old) :]
    return f"{new_host}/{'/'.join(new_path)}"


@given(rules(), st.sampled_from(HOSTS), _paths(), st.randoms())
def test_any_mappings_apply_as_defined_in_any_order(
    given_rules: list[Rule], host: str, path: tuple[str, ...], random: object
) -> None:
    texts = [str(rule) for rule in given_rules]
    url = f"http://{host}/{'/'.join(path)}"
    expected = by_definition(host, path, given_rules)
    assert thread_ids.canonical_page(mapped(url, *texts)) == expected
    random.shuffle(texts)  # type: ignore[attr-defined]
    assert thread_ids.canonical_page(mapped(url, *texts)) == expected


@given(rules(), st.text(max_size=40))
def test_any_address_is_mapped_to_a_page_or_stays(given_rules: list[Rule], tail: str) -> None:
    mapping = page_mapping.PageMapping([str(rule) for rule in given_rules])
    url = f"http://a.example/{tail}"
    found = mapping.apply(url)
    if found.by:
        thread_ids.canonical_page(found.url)
    else:
        assert found.url == url


@given(st.text(max_size=60))
def test_any_text_is_a_mapping_or_is_refused(text: str) -> None:
    try:
        mapping = page_mapping.PageMapping([text])
    except errors.ImportRefused as error:
        refusal = error.message
        assert refusal.isprintable()
    else:
        assert mapping.texts == (text,)
