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
    found = answers.run(application, environ, lambda: may_keep)
    assert found.head.endswith(b"\r\n\r\n")
    lines = found.head.decode("latin-1").split("\r\n")[:-2]
    names = [line.partition(":")[0] for line in lines[1:]]
    assert names[-2:] == ["Date", "Connection"]
    return lines[0], lines[1:-2], b"".join(found.parts), found.is_kept


def test_a_response_without_a_length_gets_one() -> None:
    body = Body([b"ab", b"", b"c"])
    assert sent(body) == ("HTTP/1.1 200 OK", ["Content-Length: 3"], b"abc", True)
    assert body.is_closed


@pytest.mark.parametrize("length", ["2", "5", "03", "3, 3", ""])
def test_a_response_with_a_wrong_length_is_not_sent(length: str) -> None:
    with pytest.raises(answers.BadAnswer):
        sent([b"abc"], [("Content-Length", length)])


@pytest.mark.parametrize(
    ("method", "status", "lines"),
    [
        ("HEAD", "200 OK", ["Content-Length: 3"]),
        ("GET", "304 NOT MODIFIED", ["Content-Length: 3"]),
    ],
)
def test_a_bodiless_response_is_sent_without_a_body(
    method: str, status: str, lines: list[str]
) -> None:
    found = sent([b"abc"], [("Content-Length", "3")], status, method)
    assert found == (f"HTTP/1.1 {status}", lines, b"", True)


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


def test_an_application_must_call_start_response() -> None:
    environ = {"REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.1"}
    with pytest.raises(answers.BadAnswer):
        answers.run(lambda _environ, _start: [b"x"], environ, lambda: True)


def test_an_error_can_replace_a_response_and_write_precedes_the_body() -> None:
    def application(_environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("X", "y")])
        write = start_response("500 Oh", [], (ValueError, ValueError(), None))
        write(b"a")
        return [b"b"]

    environ = {"REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.0"}
    found = answers.run(application, environ, lambda: False)
    assert found.head.startswith(b"HTTP/1.0 500 Oh\r\nContent-Length: 2\r\n")
    assert found.head.endswith(b"\r\nConnection: close\r\n\r\n")
    assert (b"".join(found.parts), found.is_kept) == (b"ab", False)
