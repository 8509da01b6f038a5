"""Run loopback servers for outgoing requests: a well-behaved HTTP(S) server and a raw TCP peer."""

import contextlib
import dataclasses
import http.server
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping

import trustme

from comments.events import safe_http

NAME = "hooks.example"
LOOPBACK = "127.0.0.1"
AUTHORITY = trustme.CA()


@dataclasses.dataclass
class Heard:
    """A received request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclasses.dataclass
class Receiver:
    """A server that answers each request with `status` and records it.

    The server calls `then` with the recorded request before it sends the answer.
    """

    port: int
    status: int = 200
    answer: bytes = b"ok"
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    heard: list[Heard] = dataclasses.field(default_factory=list)
    then: Callable[[Heard], None] = lambda _: None

    @property
    def url(self) -> str:
        """Return the server's URL with a host name, for a client that may connect to the server."""
        return f"http://{NAME}:{self.port}/in"

    @property
    def ids(self) -> list[str]:
        """The ids of the received messages."""
        return [each.headers["webhook-id"] for each in self.heard]


@contextlib.contextmanager
def receiver(
    *, certificate: str | None = None, authority: trustme.CA = AUTHORITY
) -> Iterator[Receiver]:
    """Run an HTTP server, or an HTTPS server if `certificate` names a host."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told.heard.append(Heard(self.command, self.path, dict(self.headers), body))
            told.then(told.heard[-1])
            self.send_response(told.status)
            for name, value in {"Content-Length": str(len(told.answer)), **told.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            # The client may have closed the connection after it read enough.
            with contextlib.suppress(OSError):
                self.wfile.write(told.answer)

        do_GET = do_POST = _handle  # noqa: N815 - http.server defines the names

        def log_message(self, *_: object) -> None:
            """Write nothing to the log."""

    server = http.server.ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.handle_error = lambda *_: None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(certificate).configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    told = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def peer(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """Run a TCP peer that calls `talk` with each connection; yield its port."""
    over = threading.Event()
    threads = []

    def serve() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listening.accept()
                threads.append(threading.Thread(target=converse, args=(connection,)))
                threads[-1].start()

    def converse(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            talk(connection, over)

    with socket.create_server((LOOPBACK, 0)) as listening:
        threads.append(threading.Thread(target=serve))
        threads[0].start()
        try:
            yield listening.getsockname()[1]
        finally:
            over.set()
            with contextlib.suppress(OSError), socket.create_connection(listening.getsockname()):
                pass
            for thread in threads:
                thread.join()


@contextlib.contextmanager
def unused_port() -> Iterator[int]:
    """Yield a port at which every connection is refused, because nobody listens there.

    A bound socket keeps the port, so no other program can listen there meanwhile.
    """
    with socket.socket() as held:
        held.bind((LOOPBACK, 0))
        yield held.getsockname()[1]


def client(
    *ports: int, limits: safe_http.RequestLimits | None = None, **more: object
) -> safe_http.HttpClient:
    """Return a client that resolves every host name to loopback and may connect to these ports."""
    # Without the system's authorities, which take longer to load than most tests.
    context = ssl.create_default_context(cadata=AUTHORITY.cert_pem.bytes().decode())
    options = {"resolver": lambda _host: [LOOPBACK], "context": context} | more
    return safe_http.HttpClient(limits, loopback_ports=frozenset(ports), **options)  # type: ignore[arg-type]
