"""The WSGI environ (PEP 3333) of a request (pure)."""

import io
import sys
import urllib.parse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

    from server.connections import Connection

_OWN = {"CONTENT-TYPE": "CONTENT_TYPE", "CONTENT-LENGTH": "CONTENT_LENGTH"}


def environ(connection: "Connection", workers: int) -> "WSGIEnvironment":
    """Build the environ of the request of a connection, including its body."""
    request = connection.request
    # A server answers in its own version (RFC 9110, section 2.5), and this one knows no HTTP/1.2.
    major, minor = min(request.version, (1, 1))
    found: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": urllib.parse.unquote_to_bytes(request.path).decode("latin-1"),
        "QUERY_STRING": request.query,
        "RAW_URI": request.uri,
        "SERVER_PROTOCOL": f"HTTP/{major}.{minor}",
        "SERVER_SOFTWARE": "gunicorn",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(connection.body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": workers > 1,
        "wsgi.run_once": False,
    }
    found |= _ends(connection)
    for name, value in request.headers:
        key = _OWN.get(name) or "HTTP_" + name.replace("-", "_")
        found[key] = f"{found[key]},{value}" if key in found else value
    return found


def _ends(connection: "Connection") -> dict[str, str]:
    """Return the addresses of both ends. A Unix socket has none."""
    client, address = connection.client, connection.address
    if isinstance(client, str) or isinstance(address, str):
        return {"REMOTE_ADDR": "", "SERVER_NAME": "localhost", "SERVER_PORT": "80"}
    return {
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "SERVER_NAME": address[0],
        "SERVER_PORT": str(address[1]),
    }
