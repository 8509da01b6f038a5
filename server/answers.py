"""Run a WSGI application and build its whole answer before sending a byte of it.

Owns the bytes of an answer. If an application fails at any point, the server can still answer with
an error, because it has not sent anything yet.

Invariants:

1. The server never sends an application's header that contains a line break or another control
   character.
2. The declared length equals the length of the body, or the connection closes after the body.
"""

import email.utils
import re
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

Parts = list[bytes]
_Headers = list[tuple[str, str]]
_Error = tuple[type[BaseException], BaseException, "TracebackType"] | tuple[None, None, None]
_STATUS = re.compile(r"[0-9]{3}(?: [ \t\x21-\x7e\x80-\xff]*)?")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[ \t\x21-\x7e\x80-\xff]*")
# The server itself sets or drops these headers (RFC 9110, section 7.6.1), and Date and Server.
_DROPPED = frozenset(
    {
        "connection", "date", "keep-alive", "proxy-authenticate", "proxy-authorization", "server",
        "te", "trailers", "transfer-encoding", "upgrade",
    }
)  # fmt: skip


class BadAnswer(Exception):
    """The application's answer cannot be sent."""


class _Started:
    """The application's status and headers, and the bytes that it writes before its body."""

    def __init__(self) -> None:
        self.status = ""
        self.headers: _Headers = []
        self.written: Parts = []

    def start(self, status: str, headers: _Headers, error: _Error | None = None) -> Any:
        """Accept status and headers, as a WSGI `start_response`.

        If an error occurs, a later call may replace them.
        """
        if self.status and error is None:
            raise BadAnswer("start_response was called twice")
        if not _STATUS.fullmatch(status):
            raise BadAnswer("the status is malformed")
        self.status, self.headers = status, headers
        return self.written.append


def answer(
    application: "WSGIApplication", environ: "WSGIEnvironment", may_keep: Callable[[], bool]
) -> tuple[Parts, bool]:
    """Run the application; return the answer's bytes and whether the connection may stay open.

    `may_keep` is called after the application has answered and returns whether to keep the
    connection.

    Raises:
        BadAnswer: the application answered something that cannot be sent.
    """
    started = _Started()
    chunks = application(environ, started.start)
    body = _whole(chunks, started)
    if not started.status:
        raise BadAnswer("start_response was not called")
    lines, told = _lines(started.headers)
    is_kept = may_keep()
    if not _has_body(environ["REQUEST_METHOD"], started.status):
        body = []
        if started.status.startswith(("1", "204")):
            lines = [line for line in lines if not line.lower().startswith("content-length:")]
    elif told is None:
        lines.append(f"Content-Length: {sum(map(len, body))}\r\n")
    elif told != sum(map(len, body)):
        body, is_kept = [b"".join(body)[:told]], False
    head = (
        f"{environ['SERVER_PROTOCOL']} {started.status}\r\nDate: {_date(int(time.time()))}\r\n"
        f"Connection: {'keep-alive' if is_kept else 'close'}\r\n{''.join(lines)}\r\n"
    )
    return [head.encode("latin-1"), *body], is_kept


def _whole(chunks: Iterable[bytes], started: _Started) -> Parts:
    try:
        body = list(chunks)
    finally:
        if hasattr(chunks, "close"):
            chunks.close()
    return started.written + body if started.written else body


def _lines(headers: _Headers) -> tuple[list[str], int | None]:
    """Return the header lines to send, and the length that they declare."""
    lines, told = [], None
    for name, value in headers:
        lowered = name.lower()
        if lowered in _DROPPED:
            continue
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadAnswer("a header is malformed")
        if lowered == "content-length":
            told = int(value)
        lines.append(f"{name}: {value.strip()}\r\n")
    return lines, told


def _has_body(method: str, status: str) -> bool:
    return method != "HEAD" and not status.startswith(("1", "204", "304"))


_dates: dict[int, str] = {}


def _date(now: int) -> str:
    """Format the time for HTTP. Cached, because many answers are sent in the same second."""
    found = _dates.get(now)
    if found is None:
        found = email.utils.formatdate(now, usegmt=True)
        _dates.clear()
        _dates[now] = found
    return found
