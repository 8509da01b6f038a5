"""An HTTP/1.1 server: sockets, bodies, and checks of the sender.

The server builds on the standard library's HTTP server, which starts in milliseconds, uses one
thread per connection, and is not safe when untrusted clients can connect. This module keeps
untrusted clients out. The server listens only on loopback addresses, unless the user has chosen a
different address for the API (`shared_port`). The remaining risk is a browser, through which any
web page could send requests. The following checks refuse such requests:

- The Host header reveals a page whose own host name resolves to 127.0.0.1 (DNS rebinding).
- Origin or Sec-Fetch-Site, which scripts cannot set, reveals a page of a different origin. Programs
  such as curl send neither header. If the server accepts every Host, it refuses requests with
  Origin or Sec-Fetch-Site.

Responses contain no CORS header, so pages of other origins cannot read the responses. If a
request's body was not read to its end, the connection is closed, because the rest of the body must
not be parsed as a new request.
"""

from __future__ import annotations

import contextlib
import http.server
import io
import logging
import re
import socket
import socketserver
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, BinaryIO

HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
TEXT = "text/plain; charset=utf-8"
_IDLE_SECONDS = 60.0
_MAX_CHUNK_LINE = 1024
_MAX_DRAINED = 64 * 1024 * 1024
_DRAIN_STEP = 64 * 1024
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_logger = logging.getLogger(__name__)


class BadRequest(Exception):
    """An invalid request; contains the HTTP status of the answer."""

    def __init__(self, message: str, status: int = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class ConnectionDropped(Exception):
    """Closes the connection without an answer, as if the network had failed."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. The handler reads the body as it arrives."""

    method: str
    path: str
    query: Mapping[str, str]
    content_type: str
    body: BinaryIO

    def read(self, most: int) -> bytes:
        """Read and return the whole body.

        Raises:
            BadRequest: The body has more than `most` bytes.
        """
        content = self.body.read(most + 1)
        if len(content) > most:
            raise BadRequest(
                f"The body has more than {most} bytes.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            )
        return content


@dataclass(frozen=True, slots=True)
class Response:
    """A response: bytes, or parts that are sent as they are produced."""

    content: bytes | Iterator[bytes]
    status: int = HTTPStatus.OK
    content_type: str = TEXT
    after: Callable[[], None] | None = None  # Runs after the response has been sent


Handler = Callable[[Request], Response]


@dataclass(frozen=True, slots=True)
class Site:
    """A function that answers requests, and the host names under which clients reach it.

    With `hosts` None, every Host header is accepted, but no request from a browser.
    """

    handle: Handler
    hosts: frozenset[str] | None = HOSTS


class Body(io.RawIOBase):
    """A request's body, with a Content-Length or in chunks."""

    def __init__(self, source: BinaryIO, length: int | None) -> None:
        self._source = source
        self._is_chunked = length is None
        self._left = length or 0  # Remaining bytes of the body or of the current chunk
        self.is_at_end = length == 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the base class accepts any buffer
        """Read available bytes into the buffer; return their number."""
        if self._is_chunked and not self._left and not self.is_at_end:
            self._next_chunk()
        if self.is_at_end:
            return 0
        part = self._source.read(min(len(buffer), self._left))
        if not part:
            raise BadRequest("The body is shorter than its Content-Length.")
        buffer[: len(part)] = part
        self._left -= len(part)
        if self._is_chunked and not self._left:
            self._line()
        self.is_at_end = not self._is_chunked and not self._left
        return len(part)

    def _next_chunk(self) -> None:
        size = _CHUNK_SIZE.fullmatch(self._line())
        if size is None:
            raise BadRequest("The body is not in chunks, although Transfer-Encoding says so.")
        self._left = int(size[1], 16)
        if self._left:
            return
        while self._line() not in (b"\r\n", b"\n", b""):  # Skip the trailers
            pass
        self.is_at_end = True

    def _line(self) -> bytes:
        return self._source.readline(_MAX_CHUNK_LINE)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "emulator"
    sys_version = ""
    timeout = _IDLE_SECONDS
    site: Site

    def _do(self) -> None:
        try:
            body = self._body()
        except BadRequest as error:
            self.close_connection = True
            self._send(Response(error.message.encode() + b"\n", error.status))
            return
        try:
            self._check_sender()
            response = self.site.handle(self._request(body))
        except BadRequest as error:
            response = Response(error.message.encode() + b"\n", error.status)
        except ConnectionDropped:
            self.close_connection = True
            return
        except Exception as fault:
            _logger.exception("%s %s failed", self.command, self.path)
            text = f"The emulator failed: {fault!r}\n".encode()
            response = Response(text, HTTPStatus.INTERNAL_SERVER_ERROR)
        self._drain(body)
        self._send(response)
        if response.after is not None:
            response.after()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _do  # noqa: N815 - the base class looks for these

    def _body(self) -> Body:
        lengths = self.headers.get_all("Content-Length", [])
        encodings = self.headers.get_all("Transfer-Encoding", [])
        if encodings:
            # A request with both headers is an attempt at request smuggling.
            if lengths or [encoding.lower() for encoding in encodings] != ["chunked"]:
                raise BadRequest("The body's length is not clear.")
            return Body(self.rfile, None)  # type: ignore[arg-type]  # the stubs expect a reader of bytes
        if not lengths:
            return Body(self.rfile, 0)  # type: ignore[arg-type]  # as above
        if len(lengths) > 1 or not re.fullmatch(r"[0-9]{1,15}", lengths[0]):
            raise BadRequest("The body's length is not clear.")
        return Body(self.rfile, int(lengths[0]))  # type: ignore[arg-type]  # as above

    def _drain(self, body: Body) -> None:
        """Read the rest of the body, up to a limit.

        A client that is still sending does not read the response.
        """
        left = _MAX_DRAINED
        with contextlib.suppress(BadRequest, OSError):
            while not body.is_at_end and left > 0:
                left -= len(body.read(_DRAIN_STEP) or b"")
        if not body.is_at_end:
            self.close_connection = True

    def _check_sender(self) -> None:
        hosts = self.headers.get_all("Host", [])
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if self.site.hosts is None:
            if "Origin" in self.headers or "Sec-Fetch-Site" in self.headers:
                raise BadRequest("Browsers cannot call the API.", HTTPStatus.FORBIDDEN)
            return
        if re.sub(r":[0-9]+$", "", host) not in self.site.hosts:
            raise BadRequest("Use the host localhost or 127.0.0.1.", HTTPStatus.FORBIDDEN)
        if self.command in ("GET", "HEAD"):
            return
        origin = self.headers.get("Origin", f"http://{host}")
        site = self.headers.get("Sec-Fetch-Site", "none")
        if origin.lower() != f"http://{host}" or site not in ("none", "same-origin"):
            raise BadRequest("Pages of other origins cannot post here.", HTTPStatus.FORBIDDEN)

    def _request(self, body: Body) -> Request:
        parts = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
        return Request(
            method="GET" if self.command == "HEAD" else self.command,
            path=urllib.parse.unquote(parts.path),
            query=dict(query),
            content_type=self.headers.get_content_type() if "Content-Type" in self.headers else "",
            body=io.BufferedReader(body),
        )

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        for name, text in _HEADERS.items():
            self.send_header(name, text)
        self.send_header("Content-Type", response.content_type)
        if self.close_connection:
            self.send_header("Connection", "close")
        if isinstance(response.content, bytes):
            self.send_header("Content-Length", str(len(response.content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(response.content)
            self.wfile.flush()
            return
        self._send_parts(response.content)

    def _send_parts(self, parts: Iterator[bytes]) -> None:
        """Send chunks.

        If a response fails midway, its last chunk is missing, so no client accepts the response.
        """
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            for part in parts:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except Exception:
            _logger.exception("%s %s failed", self.command, self.path)
            self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name in the base class
        _logger.debug(format, *arguments)


class Server(http.server.ThreadingHTTPServer):
    """Listens at one address and serves each connection in a thread of its own."""

    daemon_threads = True
    block_on_close = False  # Do not wait for idle keep-alive connections
    request_queue_size = 128

    def __init__(self, family: socket.AddressFamily, address: Any, site: Site) -> None:
        self.address_family = family
        super().__init__(address, type("Handler", (_Handler,), {"site": site}))

    def server_bind(self) -> None:
        """Bind without looking up this machine's host name, which can take seconds."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - required by the base class
        """Log client disconnections only at debug level."""
        _logger.debug("The connection from %s failed: %r", client_address, sys.exception())


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A running server."""

    servers: Sequence[Server]
    port: int

    def stop(self) -> None:
        """Stop accepting requests."""
        for server in self.servers:
            server.shutdown()
            server.server_close()


def start(handle: Handler, port: int) -> HttpServer:
    """Listen on both loopback addresses; port 0 picks a free port.

    Raises:
        OSError: The port is not available.
    """
    site = Site(handle)
    try:
        first = Server(socket.AF_INET, ("127.0.0.1", port), site)
    except (OSError, OverflowError) as error:
        raise OSError(f"cannot listen on 127.0.0.1:{port}: {error}") from error
    servers = [first]
    # The IPv6 address is optional: the machine may lack IPv6, or another program may use the port
    # on ::1.
    with contextlib.suppress(OSError):
        servers.append(Server(socket.AF_INET6, ("::1", first.server_port), site))
    return serve(servers)


def serve(servers: Sequence[Server]) -> HttpServer:
    """Start serving at all addresses of one port."""
    for server in servers:
        threading.Thread(
            target=server.serve_forever, args=(0.05,), name="http server", daemon=True
        ).start()
    return HttpServer(servers, servers[0].server_port)
