"""Query strings are decoded from bytes, and refusals name the parameter."""

import flask
import msgspec
import pytest

from comments import errors
from comments.domain import records
from comments.reading import thread_pages
from comments.web.api import comment_shapes
from comments.web.http.decode import parameters, query_strings

SITE = records.Site("demo", (), "AB", 2)
ID = "a" * 26


def read(query: str) -> tuple[str, comment_shapes.ListQuery]:
    with flask.Flask("test").test_request_context(f"/?{query}"):
        return query_strings.read_thread(comment_shapes.ListQuery, SITE)


def test_a_query_has_defaults() -> None:
    thread, query = read("thread=a%20b+c")
    assert thread == "a b c"
    assert (query.order, query.limit) == (msgspec.UNSET, 50)


def test_a_query_is_read_completely() -> None:
    thread, query = read(f"order=newest&limit=200&cursor=x.y&parent=root&around={ID}&thread=t&")
    assert thread == "t"
    assert query == comment_shapes.ListQuery(
        thread_pages.ListingOrder.NEWEST, 200, "x.y", "root", ID
    )


def test_a_page_names_a_thread() -> None:
    assert read("page=https%3A%2F%2FBlog.example%2Fa%2F%23top")[0] == "blog.example/a"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *(
            (f"thread=t&limit={limit}", "limit")
            for limit in (
                "-1",
                "0",
                "201",
                "1000000000",
                "1e1",
                "5.0",
                "+5",
                "05",
                "",
                "x",
                "%D9%A1",
            )
        ),
        ("thread=t&limit=1&limit=1", "limit"),
        ("thread=t&limit=1&l%69mit=1", "limit"),
        ("thread=t&order=worst", "order"),
        ("thread=t&cursor=", "cursor"),
        ("thread=t&cursor=%00", "cursor"),
        ("thread=t&cursor=%ff", "cursor"),
        ("thread=t&cursor=%0a", "cursor"),
        ("thread=t&cursor=%zz", "cursor"),
        ("thread=t&parent=1", "parent"),
        ("thread=t&parent=root%0A", "parent"),
        ("thread=t&around=root", "around"),
        ("thread=t&sort=old", "sort"),
        ("thread=t&%ff=1", "query"),
        ("limit=5", "thread"),
        ("thread=", "thread"),
        ("thread=%ff", "thread"),
        ("thread=%00", "thread"),
        ("thread=a&thread=a", "thread"),
        ("thread=a&page=https://b.example/", "page"),
        ("page=/a", "page"),
    ],
)
def test_an_invalid_query_is_refused_by_parameter(query: str, field: str) -> None:
    with pytest.raises(errors.BadInput) as refusal:
        read(query)
    assert refusal.value.field == field


def test_a_call_without_a_thread_refuses_one() -> None:
    with flask.Flask("test").test_request_context("/?thread=t"):
        with pytest.raises(errors.BadInput) as refusal:
            query_strings.read(parameters.NoQuery)
        assert refusal.value.field == "thread"
