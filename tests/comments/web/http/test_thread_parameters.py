"""A query names one thread and at most one page number, or is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids
from comments.web.http.decode import query_strings, thread_parameters

SITE = records.Site(id="s", origins=(), digits="AB", width=2, query_keys=("p",))
AWKWARD = st.sampled_from(["/", "..", "%", "%2F", "%c3%a9", "e\u0301", "?", "p=", "&", "#", "+"])
PATHS = st.lists(AWKWARD | st.text(max_size=3), max_size=12).map("".join)


def _thread(query: bytes) -> str:
    return thread_parameters.thread(query_strings.pairs(query, {"thread", "page"}), SITE)


@pytest.mark.parametrize(
    ("query", "thread"),
    [
        (b"thread=/a", "/a"),
        (b"thread=/a/", "/a/"),
        (b"thread=/A", "/A"),
        (b"thread=/a?utm", "/a?utm"),
        (b"thread=/a%23x", "/a#x"),
        (b"thread=/%61", "/a"),
        (b"thread=/%2561", "/%61"),
        (b"thread=a%2Fb", "a/b"),
        (b"thread=a%252Fb", "a%2Fb"),
        (b"thread=//a", "//a"),
        (b"thread=..", ".."),
        (b"thread=__x__", "__x__"),
        (b"thread=caf%C3%A9", "caf\u00e9"),
        (b"thread=cafe%CC%81", "caf\u00e9"),
        (b"thread=a+b", "a b"),
        (b"thread=a%2Bb", "a+b"),
        (b"order=a&thread=x&limit=1", "x"),
        (b"th%72ead=x", "x"),
        (b"page=https://blog.example/a%3Fp=1%26q=2", "blog.example/a?p=1"),
        (b"thread=" + b"a" * 1501, "a" * 1501),
        (b"thread=" + b"a" * 2000, "a" * 2000),
    ],
)
def test_a_raw_query_names_one_thread(query: bytes, thread: str) -> None:
    assert _thread(query) == thread


@pytest.mark.parametrize(
    "query",
    [
        b"",
        b"limit=1",
        b"thread=",
        b"thread",
        b"thread=+",
        b"thread=%00",
        b"thread=%0A",
        b"thread=%7F",
        b"thread=%C2%85",
        b"thread=%ff",
        b"thread=\xff",
        b"thread=%ED%A0%80",
        b"thread=%EF%BF%BD",
        b"thread=100%",
        b"thread=%zz",
        b"thread=" + b"a" * 2001,
        b"thread=" + b"%C3%A9" * 1001,
        b"thread=a&thread=a",
        b"thread=a&th%72ead=b",
        b"thread=a&page=https://blog.example/",
        b"page=https://blog.example/&page=https://blog.example/",
        b"page=",
        b"page=/a",
    ],
)
def test_a_query_that_names_no_thread_or_two_is_refused(query: bytes) -> None:
    with pytest.raises(errors.BadInput) as caught:
        _thread(query)
    assert caught.value.field in {"thread", "page"}


@given(st.binary() | PATHS.map(lambda path: b"page=https://a.example/" + path.encode()))
def test_any_query_gives_a_thread_or_bad_input(query: bytes) -> None:
    try:
        thread = _thread(query)
    except errors.BadInput:
        return
    assert thread_ids.canonical_id(thread) == thread


@pytest.mark.parametrize(
    ("query", "rest", "number"),
    [
        (b"thread=a&page=2", b"thread=a", "2"),
        (b"page=2&thread=a", b"thread=a", "2"),
        (b"p%61ge=%32&thread=a", b"thread=a", "2"),
        (b"page=https://a.example/2&page=-3", b"page=https://a.example/2", "-3"),
        (b"thread=a&page=x", b"thread=a", "x"),
        (b"thread=a&page=", b"thread=a", ""),
        (b"thread=a&page=https://a.example/", b"thread=a&page=https://a.example/", None),
        (b"page=a.example", b"page=a.example", None),
        (b"page=https://a.example/&limit=2", b"page=https://a.example/&limit=2", None),
        (b"", b"", None),
    ],
)
def test_the_number_of_a_page_is_split_from_the_thread(
    query: bytes, rest: bytes, number: str | None
) -> None:
    assert thread_parameters.split_page_number(query) == (rest, number)


@pytest.mark.parametrize("query", [b"thread=a&page=1&page=2", b"thread=a&page=%ff"])
def test_two_page_numbers_or_undecodable_ones_are_refused(query: bytes) -> None:
    with pytest.raises(errors.BadInput) as caught:
        thread_parameters.split_page_number(query)
    assert caught.value.field == "page"
