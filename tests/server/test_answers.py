"""Test server.answers: an application's result becomes at most one response."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from server import answers


class Body(list):
    """A response body in chunks; the server must call its `close` method."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def sent(
    body: Iterable[bytes],
    headers: Sequence[tuple[str, ...]] = (),
    status: str = "200 OK",
    method: str = "GET",
    *,
    may_keep: bool = True,
) -> tuple[object, ...]:
    def application(_environ: Any, start_response: Any) -> Any:
        start_response(status, list(headers))
        return body

    environ = {"REQUEST_METHOD": method, "SERVER_PROTOCOL": "HTTP/1.1"}
    parts, is_kept = answers.answer(application, environ, lambda: may_keep)
    head, _, rest = b"".join(parts).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    names = [line.partition(":")[0] for line in lines[1:]]
    assert names[:2] == ["Date", "Connection"]
    return lines[0], lines[3:], rest, is_kept


def test_a_response_without_a_length_gets_one() -> None:
    body = Body([b"ab", b"", b"c"])
    assert sent(body) == ("HTTP/1.1 200 OK", ["Content-Length: 3"], b"abc", True)
    assert body.is_closed


@pytest.mark.parametrize(
    ("length", "rest"), [("2", b"ab"), ("5", b"abc")], ids=["shorter", "longer"]
)
def test_a_response_with_a_wrong_length_ends_its_connection(length: str, rest: bytes) -> None:
    _, lines, found, is_kept = sent([b"abc"], [("Content-Length", length)])
    assert (lines, found, is_kept) == ([f"Content-Length: {length}"], rest, False)


@pytest.mark.parametrize(
    ("method", "status", "lines"),
    [
        ("HEAD", "200 OK", ["Content-Length: 3"]),
        ("GET", "304 NOT MODIFIED", ["Content-Length: 3"]),
        ("GET", "204 NO CONTENT", []),
    ],
)
def test_a_bodiless_response_is_sent_without_a_body(
    method: str, status: str, lines: list[str]
) -> None:
    found = sent([b"abc"], [("Content-Length", "3")], status, method)
    assert found == (f"HTTP/1.1 {status}", lines, b"", True)


def test_an_application_cannot_set_the_servers_headers() -> None:
    headers = [("Connection", "upgrade"), ("Server", "x"), ("date", "y"), ("X-A", " b ")]
    assert sent([], headers)[1] == ["X-A: b", "Content-Length: 0"]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        ("200 OK\r\nX: y", []),
        ("OK", []),
        ("200 OK", [("X", "a\r\nY: b")]),
        ("200 OK", [("X", "a\nY: b")]),
        ("200 OK", [("X", "a\x00")]),
        ("200 OK", [("X\r\nY", "a")]),
        ("200 OK", [("", "a")]),
        ("200 OK", [("X", "\u20ac")]),
    ],
)
def test_an_ambiguous_head_is_not_sent(status: str, headers: list[tuple[str, ...]]) -> None:
    body = Body()
    with pytest.raises(answers.BadAnswer):
        sent(body, headers, status)


def test_a_wsgi_violation_raises_an_error() -> None:
    def twice(_environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        start_response("200 OK", [])
        return []

    environ = {"REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.1"}
    for application in (twice, lambda _environ, _start: [b"x"]):
        with pytest.raises(answers.BadAnswer):
            answers.answer(application, environ, lambda: True)


def test_an_error_can_replace_a_response_and_write_precedes_the_body() -> None:
    def application(_environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("X", "y")])
        write = start_response("500 Oh", [], (ValueError, ValueError(), None))
        write(b"a")
        return [b"b"]

    environ = {"REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.0"}
    parts, is_kept = answers.answer(application, environ, lambda: False)
    assert b"".join(parts).startswith(b"HTTP/1.0 500 Oh\r\n")
    assert b"".join(parts).endswith(b"Connection: close\r\nContent-Length: 2\r\n\r\nab")
    assert not is_kept
