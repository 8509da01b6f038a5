"""Each page has one canonical thread id, and no two pages share an id."""

import dataclasses
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids

SITE = records.Site(id="s", origins=(), digits="AB", width=2, query_keys=("p",))
BLOG = records.Site(id="s", origins=("http://blog.example", "https://docs"), digits="AB", width=2)
E_ACUTE = "e\u0301"


def page(path: str) -> str:
    return thread_ids.canonical_page("https://blog.example" + path)


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("", "/"),
        ("/", "/"),
        ("//", "/"),
        ("/a", "/a"),
        ("/a/", "/a"),
        ("/a//", "/a"),
        ("/A", "/A"),
        ("/a?utm", "/a"),
        ("/a#x", "/a"),
        ("/a#%", "/a"),
        ("/a?q=100%", "/a"),
        ("?utm", "/"),
        ("/%61", "/a"),
        ("/%7Ebob", "/~bob"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%252Fb", "/a%252Fb"),
        ("//a", "//a"),
        ("/..", "/"),
        ("/a/../b", "/b"),
        ("/a/%2E%2e/b", "/b"),
        ("/a/b/..", "/a"),
        ("/a b", "/a%20b"),
        ('/a"<>', "/a%22%3C%3E"),
        ("/caf\u00e9", "/caf%C3%A9"),
        ("/cafe\u0301", "/caf%C3%A9"),
        ("/cafe%cc%81", "/caf%C3%A9"),
        ("/%2C%CC%A7", "/%2C%CC%A7"),
        ("/__x__", "/__x__"),
        # What is not UTF-8 stays as it is encoded, as do control characters.
        ("/caf%e9", "/caf%E9"),
        ("/%d6%d0", "/%D6%D0"),
        ("/%e6%97", "/%E6%97"),
        ("/%e6%97/%a5", "/%E6%97/%A5"),
        ("/%ed%a0%80", "/%ED%A0%80"),
        ("/%e6%97\u00e9%cc%81", "/%E6%97%C3%A9%CC%81"),
        ("/%C2%85", "/%C2%85"),
        ("/%EF%BF%BD", "/%EF%BF%BD"),
        ("/%00%0a%0D%7f", "/%00%0A%0D%7F"),
        # A stray percent sign is a plain character.
        ("/100%", "/100%25"),
        ("/100%25", "/100%25"),
        ("/a%zz", "/a%25zz"),
        ("/%%41", "/%25A"),
        ("/%4%31", "/%2541"),
        ("/%4", "/%254"),
        ("/a?q=\ufffd", "/a"),
    ],
)
def test_a_page_is_its_host_and_normalized_path(path: str, canonical: str) -> None:
    assert page(path) == "blog.example" + canonical


@pytest.mark.parametrize("path", ["/\x00", "/\r", "/\x7f", "/\x85", "/\udcff", "/\\a"])
def test_an_ambiguous_path_is_refused(path: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        page(path)
    assert caught.value.field == "page"


def test_paths_of_possibly_different_pages_stay_distinct() -> None:
    paths = ["/a", "/A", "//a", "/a%2Fb", "/a/b", "/a%252Fb", "/a+b", "/a%20b", "/a%2Bb", "/a;b"]
    paths += ["/caf%E9", "/caf%C3%A9", "/cafe", "/%EF%BF%BD", "/%E6%97", "/%E6", "/%0A", "/%250A"]
    assert len({page(path) for path in paths}) == len(paths)


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("Blog.EXAMPLE", "blog.example"),
        ("blog.example.", "blog.example"),
        ("blog.example:443", "blog.example"),
        ("blog.example:0443", "blog.example"),
        ("blog.example:", "blog.example"),
        ("blog.example:80", "blog.example:80"),
        ("blog.example:8443", "blog.example:8443"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("B\u00dcCHER.example", "xn--bcher-kva.example"),
        ("fa\u00df.example", "xn--fa-hia.example"),
        ("\uff42log\u3002example", "blog.example"),
        ("a_b.example", "a_b.example"),
        ("localhost:4000", "localhost:4000"),
        ("192.0.2.1", "192.0.2.1"),
        ("[2001:DB8::1]:8080", "[2001:db8::1]:8080"),
        ("[2001:db8:0:0:0:0:0:1]", "[2001:db8::1]"),
    ],
)
def test_a_host_is_normalized_as_browsers_do(host: str, canonical: str) -> None:
    assert thread_ids.canonical_page(f"https://{host}/a") == canonical + "/a"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/a",
        "//blog.example/a",
        "https:blog.example",
        "https:/blog.example",
        "https:///blog.example",
        "https://",
        "https://?a",
        "ftp://blog.example/",
        "javascript:alert(1)",
        " https://blog.example/",
        "https://blog.example/ ",
        "ht\ttps://blog.example/",
        "https://blog.example/\n",
        "https://user@blog.example/",
        "https://user:pass@blog.example/",
        "https://blog.example\\@evil.example/",
        "https:\\\\blog.example/",
        "https://blog.ex%61mple/",
        "https://blog example/",
        "https://blog..example/",
        "https://-blog.example/",
        "https://.",
        "https://blog.example:99999/",
        "https://blog.example:0/",
        "https://blog.example:4x/",
        "https://127.1/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://127.0.0.01/",
        "https://[::1/",
        "https://[1:2]/",
        "https://[fe80::1%25eth0]/",
        "https://" + "a." * 127 + "example/",
        "https://" + "\u00fc" * 254 + "/",
        "https://\u00fc\u00ad\u200d.example/",
        "https://blog.example/\ud800",
        "https://blog.example/a\ufffd",
        "https://blog.example/" + "a" * 2000,
    ],
)
def test_a_url_without_a_plain_http_host_is_refused(url: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        thread_ids.canonical_page(url)
    assert caught.value.field == "page"


def test_the_scheme_does_not_distinguish_pages() -> None:
    assert thread_ids.canonical_page("http://x.example:80/a") == "x.example/a"
    assert thread_ids.canonical_page("http://x.example:443/a") == "x.example:443/a"


def test_only_the_sites_query_keys_are_kept_and_sorted() -> None:
    url = "https://x.example/?utm=1&q=%7e&%70=2&p=1&q&caf%C3%A9=%c3%a9#p=9"
    kept = thread_ids.canonical_page(url, query_keys=("q", "p", "caf\u00e9"))
    assert kept == "x.example/?caf%C3%A9=%C3%A9&p=2&p=1&q=~&q"


@pytest.mark.parametrize(
    "keys",
    [
        [""],
        [" "],
        ["a b"],
        ["p=7"],
        ["a&b"],
        ["?p"],
        ["p#"],
        ["p\n"],
        ["p\x00"],
        ["\ud800"],
        ["x" * (thread_ids.MAX_QUERY_KEY + 1)],
        [str(number) for number in range(thread_ids.MAX_QUERY_KEYS + 1)],
    ],
)
def test_an_invalid_query_key_is_refused(keys: list[str]) -> None:
    with pytest.raises(errors.BadInput) as refused:
        thread_ids.checked_query_keys(keys)
    assert refused.value.field == "query_keys"


def test_a_query_key_may_have_any_letters_and_is_stored_once() -> None:
    keys = ["p", "id[]", "caf\u00e9", "p", "x" * thread_ids.MAX_QUERY_KEY]
    assert thread_ids.checked_query_keys(keys) == tuple(dict.fromkeys(keys))


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("p=%ff", "p=%FF"),
        ("p=100%", "p=100%25"),
        ("p=a%0ab", "p=a%0Ab"),
        ("100%=1", "100%25=1"),
        ("100%25=1", "100%25=1"),
        ("%ff=1&p=2", "p=2"),
    ],
)
def test_a_kept_key_may_have_any_value_that_browsers_accept(query: str, kept: str) -> None:
    url = f"https://x.example/?{query}"
    assert thread_ids.canonical_page(url, query_keys=("p", "100%")) == f"x.example/?{kept}"


def test_an_incorrectly_decoded_value_of_a_kept_key_is_refused() -> None:
    with pytest.raises(errors.BadInput):
        thread_ids.canonical_page("https://x.example/?p=\ufffd", query_keys=("p",))


@pytest.mark.parametrize(
    ("link", "page"),
    [
        ("https://x.example/a", "x.example/a"),
        ("/a/", "blog.example/a"),
        ("/caf%e9?q=1", "blog.example/caf%E9"),
        ("//x.example/a", "x.example/a"),
        ("//X.example:80", "x.example/"),
        ("//localhost:4000/a", "localhost:4000/a"),
        ("//[::1]/a", "[::1]/a"),
        ("//docs/a", "docs/a"),
        ("//link/", "blog.example//link"),
        ("//2020/01/a.b", "blog.example//2020/01/a.b"),
        ("//index.html", "blog.example//index.html"),
        ("///a", "blog.example///a"),
        ("//", "blog.example/"),
    ],
)
def test_a_link_without_a_scheme_leads_to_a_page(link: str, page: str) -> None:
    assert thread_ids.page_id(link, BLOG) == page


def test_a_combining_mark_after_the_sign_does_not_eat_the_key() -> None:
    url = "https://x.example/?p=%CC%B8"
    assert thread_ids.canonical_page(url, query_keys=("p",)) == "x.example/?p=%CC%B8"


def test_a_site_may_keep_trailing_slashes() -> None:
    def keeping(url: str) -> str:
        return thread_ids.canonical_page(url, keep_trailing_slash=True)

    assert keeping("https://x.example/a/") == "x.example/a/"
    assert keeping("https://x.example/a") == "x.example/a"
    assert keeping("https://x.example") == "x.example/"


def test_an_explicit_id_is_kept_in_nfc() -> None:
    assert thread_ids.canonical_id("caf" + E_ACUTE) == "caf\u00e9"
    assert thread_ids.canonical_id("%2F ") == "%2F "


@pytest.mark.parametrize("raw", ["", " ", "a\ud800", "a\x00", "a\x9f", "\ufffd", "a" * 2001])
def test_an_unreadable_explicit_id_is_refused(raw: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        thread_ids.canonical_id(raw)
    assert caught.value.field == "thread"


# The escapes are a combining acute, a combining slash, and three characters that NFC converts to
# ASCII.
AWKWARD = st.sampled_from(
    [
        "/",
        "//",
        "..",
        ".",
        "%2e",
        "%2F",
        "%25",
        "%41",
        "%C3%A9",
        "%E9",
        "%e6%97",
        "%A5",
        "%0a",
        "%",
        "%4",
        "%cc%81",
        "%CC%A7",
        "%2C",
        "=",
        "&",
        "p",
        "?",
        "#",
        "e",
        ",",
        ";",
        "+",
        "<",
    ]
) | st.sampled_from("=&?#e,;+< \u0301\u0338\u212a\u037e\u1fef")
PATHS = st.lists(AWKWARD | st.text(max_size=3), max_size=12).map("".join)
HOSTS = st.sampled_from(["a.example", "A.example:80", "\u00fc.example:8080", "[::1]"]) | st.text(
    min_size=1, max_size=8
)


@given(
    scheme=st.sampled_from(["http", "HTTPS"]),
    host=HOSTS | HOSTS.map("www.www.{}".format),
    path=PATHS | PATHS.map("{}/amp//amp/".format),
    flags=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_a_canonical_page_is_its_own_canonical_form(
    scheme: str, host: str, path: str, flags: list[bool]
) -> None:
    rules: Any = dict(zip(thread_ids.RULES, [("p",), *flags], strict=True))
    try:
        once = thread_ids.canonical_page(f"{scheme}://{host}/{path}", **rules)
    except errors.BadInput:
        return
    assert once.isascii()
    assert thread_ids.canonical_id(once) == once
    assert thread_ids.canonical_page(f"{scheme}://{once}", **rules) == once


@dataclasses.dataclass(frozen=True)
class Page:
    """What identifies a page, and how one of its addresses is written."""

    host: str
    folders: tuple[str, ...]
    slash: bool
    number: str
    www: bool
    amp: bool
    scheme: str
    noise: str

    @property
    def address(self) -> str:
        host = f"www.{self.host}" if self.www else self.host
        path = "".join(f"/{name}" for name in (*self.folders, *["amp"] * self.amp))
        slash = "/" * (self.slash or not path)
        return f"{self.scheme}://{host}{path}{slash}?{self.noise}&p={self.number}"

    def identity(self, rules: dict[str, Any]) -> tuple[object, ...]:
        """Return what tells pages apart under these rules; equal for equal pages."""
        is_root = not (self.folders or (self.amp and not rules["ignore_amp"]))
        return (
            self.host, self.folders,
            self.slash and rules["keep_trailing_slash"] and not is_root,
            self.number if rules["query_keys"] else "",
            self.www and not rules["ignore_www"],
            self.amp and not rules["ignore_amp"],
        )  # fmt: skip


PAGES = st.builds(
    Page,
    host=st.sampled_from(["a.example", "b.example", "wwwa.example", "ww.example"]),
    folders=st.lists(st.sampled_from(["a", "amps", "www.a"]), max_size=2).map(tuple),
    slash=st.booleans(), number=st.sampled_from("12"), www=st.booleans(), amp=st.booleans(),
    scheme=st.sampled_from(["http", "https"]), noise=st.sampled_from(["", "amp", "amp=1", "x=2"]),
)  # fmt: skip


@given(
    one=PAGES,
    other=PAGES,
    keys=st.sampled_from([(), ("p",)]),
    flags=st.lists(st.booleans(), min_size=3, max_size=3),
    changed=st.sets(st.sampled_from(["slash", "www", "amp", "scheme", "noise"])),
)
def test_exactly_equal_addresses_under_a_sites_rules_lead_to_one_page(
    one: Page, other: Page, keys: tuple[str, ...], flags: list[bool], changed: set[str]
) -> None:
    rules: Any = dict(zip(thread_ids.RULES, [keys, *flags], strict=True))
    similar = dataclasses.replace(one, **{name: getattr(other, name) for name in changed})
    for page in (other, similar):
        ids = [thread_ids.canonical_page(each.address, **rules) for each in (one, page)]
        assert (ids[0] == ids[1]) == (one.identity(rules) == page.identity(rules))


def test_only_www_and_amp_are_ignored() -> None:
    def page(url: str) -> str:
        return thread_ids.canonical_page(url, ignore_www=True, ignore_amp=True)

    assert page("https://www.a.example:8443/x/amp/?amp=1") == "a.example:8443/x"
    assert page("https://a.example/amp") == "a.example/"
    assert page("https://www.example/amphibian/amp.html") == "www.example/amphibian/amp.html"
    assert page("https://www2.a.example/amp/x") == "www2.a.example/amp/x"


@given(st.text())
def test_a_canonical_id_is_its_own_canonical_form(raw: str) -> None:
    try:
        once = thread_ids.canonical_id(raw)
    except errors.BadInput:
        return
    assert thread_ids.canonical_id(once) == once == unicodedata.normalize("NFC", raw)


@pytest.mark.parametrize(
    ("url", "thread", "shown"),
    [
        ("https://blog.example/a", "blog.example/a", "https://blog.example/a"),
        ("https://blog.example/a?s=me#c", "blog.example/a", "https://blog.example/a"),
        ("HTTP://Blog.example/a/?s=me", "blog.example/a", "HTTP://Blog.example/a/"),
        ("https://blog.example/a?s=me&p=1", "blog.example/a?p=1", "https://blog.example/a?p=1"),
        # With an explicit id, the URL stays as it is, because the service does not know which query
        # parameters identify the page.
        ("https://blog.example/a?s=1#c", "post 1", "https://blog.example/a?s=1"),
        ("https://blog.example/a?p=2", "blog.example/a?p=1", "https://blog.example/a?p=2"),
    ],
)
def test_the_shown_url_of_a_page_has_only_its_identifying_query(
    url: str, thread: str, shown: str
) -> None:
    assert thread_ids.page_url(url, thread, SITE) == shown


@given(st.text(alphabet="ap=&%4/.", max_size=12), st.text(alphabet="p=&s1;", max_size=12))
def test_a_shown_url_names_the_same_page(path: str, query: str) -> None:
    url = f"https://blog.example/{path}?{query}#there"
    try:
        thread = thread_ids.canonical_page(url, query_keys=("p",))
    except errors.BadInput:
        return
    shown = thread_ids.page_url(url, thread, SITE)
    assert thread_ids.canonical_page(shown, query_keys=("p",)) == thread
    assert thread_ids.page_url(shown, thread, SITE) == shown
    assert "s" not in shown.partition("?")[2].partition("=")[0]


def test_an_invalid_page_is_refused_by_its_field() -> None:
    with pytest.raises(errors.BadInput, match="url: not-a-url"):
        thread_ids.page_url("javascript:alert(1)", "a", SITE)
