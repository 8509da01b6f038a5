"""Run a WSGI application (PEP 3333) and build its whole answer before sending a byte of it.

If an application fails at any point, the server can still answer with an error, because it has not
sent anything yet.

The server never sends an application's header that contains a line break or another control
character. The declared length always equals the length of the body.
"""

import email.utils
import functools
import io
import re
import sys
import time
import urllib.parse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment
    from gunicorn.asgi.parser import PythonProtocol  # type: ignore[import-untyped]

_OWN = {"CONTENT_TYPE", "CONTENT_LENGTH"}
_HEAD = re.compile(
    r"[0-9]{3}(?: [ \t\x21-\x7e\x80-\xff]*)?\r\n"
    r"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [ \t\x21-\x7e\x80-\xff]*\r\n)*"
)


class Answer(NamedTuple):
    """A whole answer, and whether another request may follow on its connection (`is_kept`)."""

    head: bytes
    parts: Sequence[bytes]
    is_kept: bool


class BadAnswer(Exception):
    """The application's answer cannot be sent."""


def environ(
    request: "PythonProtocol", body: bytes | bytearray, client: Any, address: Any
) -> "WSGIEnvironment":
    """Build the environ of a request that came from `client` to `address`.

    Headers with which a proxy describes a request have no effect in this module, no matter who
    sends them. The application decides whether to trust these headers.
    """
    path, query = _target(request.path.decode("latin-1"))
    variables: dict[str, Any] = {
        "REQUEST_METHOD": request.method.decode("latin-1"),
        "SCRIPT_NAME": "",
        "PATH_INFO": urllib.parse.unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": "HTTP/{}.{}".format(*request.http_version),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    # A Unix socket has no addresses.
    host, port = address[:2] if isinstance(address, tuple) else ("localhost", 80)
    variables["SERVER_NAME"], variables["SERVER_PORT"] = host, str(port)
    variables["REMOTE_ADDR"] = client[0] if isinstance(client, tuple) else ""
    for name, value in request.headers:
        if b"_" in name:  # The name would equal one with a hyphen, which proxies may set.
            continue
        key = name.decode("latin-1").upper().replace("-", "_")
        key = key if key in _OWN else f"HTTP_{key}"
        text = value.decode("latin-1")
        variables[key] = f"{variables[key]},{text}" if key in variables else text
    return variables


def run(
    application: "WSGIApplication", asked: "WSGIEnvironment", may_keep: Callable[[], bool]
) -> Answer:
    """Run the application and return its answer.

    `may_keep` is called after the application has answered, and returns whether to keep the
    connection.

    Raises:
        BadAnswer: The application's answer cannot be sent.
    """
    started: list[Any] = []
    body: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Any:
        started[:] = status, headers
        return body.append

    chunks = application(asked, start_response)
    try:
        body.extend(chunks)
    finally:
        if hasattr(chunks, "close"):
            chunks.close()
    if not started:
        raise BadAnswer("start_response was not called")
    status, headers = started
    has_body = asked["REQUEST_METHOD"] != "HEAD" and not status.startswith(("1", "204", "304"))
    lines = _lines(status, headers, sum(map(len, body)) if has_body else None)
    is_kept = may_keep()
    head = (
        f"{asked['SERVER_PROTOCOL']} {lines}Date: {_date(int(time.time()))}\r\n"
        f"Connection: {'keep-alive' if is_kept else 'close'}\r\n\r\n"
    )
    return Answer(head.encode("latin-1"), body if has_body else (), is_kept)


def _lines(status: str, headers: list[tuple[str, str]], length: int | None) -> str:
    """Return the status and the headers, including the body's length if there is a body."""
    lines = f"{status}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
    # A header with a line break would add a line.
    if not _HEAD.fullmatch(lines) or lines.count("\n") > len(headers) + 1:
        raise BadAnswer("the status or a header is malformed")
    if length is None:
        return lines
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    if not lengths:
        return f"{lines}Content-Length: {length}\r\n"
    if lengths != [str(length)]:
        raise BadAnswer("the length is wrong")
    return lines


def _target(target: str) -> tuple[str, str]:
    path, _, query = target.partition("?")
    if not path.startswith("/"):  # The target is in absolute form: http://host/path
        path = "/" + path.partition("://")[2].partition("/")[2]
    return path, query


@functools.lru_cache(1)
def _date(now: int) -> str:
    return email.utils.formatdate(now, usegmt=True)
