"""Answers to malformed requests (pure).

Owns the status for each error of gunicorn's parser. A settings file may give refusals another body
and other headers, to match its application.
"""

import json

from gunicorn.asgi import parser  # type: ignore[import-untyped]

TIMEOUT = 408
REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
}
_STATUSES: dict[type[Exception], int] = {
    parser.LimitRequestLine: 414,
    parser.LimitRequestHeaders: 431,
    parser.UnsupportedTransferCoding: 501,
}
_HEADERS = {
    "Content-Type": "application/problem+json",
    "Cache-Control": "no-store",
    # A page's script may read why its request was refused; the answer contains nothing else.
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
}


def status_of(error: Exception) -> int:
    """Return the status for a request that was refused with this error."""
    return _STATUSES.get(type(error), 400)


def problem(status: int) -> tuple[dict[str, str], bytes]:
    """Return a refusal's headers and its body, a problem document (RFC 9457)."""
    reason = REASONS[status]
    document = {
        "title": reason, "status": status, "code": f"http-{status}", "detail": reason.lower(),
    }  # fmt: skip
    return _HEADERS, json.dumps(document).encode()


def message(status: int, headers: dict[str, str], body: bytes) -> bytes:
    """Return the whole answer; the connection closes after it."""
    fields = {"Connection": "close", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} {REASONS[status]}\r\n{lines}\r\n".encode("latin-1") + body
