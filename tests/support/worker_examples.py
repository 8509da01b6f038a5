"""Requests, applications and clients for tests of a worker."""

import socket
import threading
from typing import Any

from server import limits
from server.connections import _AT_ONCE
from tests.support import worker_process

HELLO = b"GET /a%20b?c=d HTTP/1.1\r\nHost: h\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
POST = b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b"
CHUNKED = b"POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


class Echo:
    """An application that echoes each request in its response and remembers the request."""

    def __init__(self) -> None:
        self.asked = []

    def __call__(self, environ: Any, start_response: Any) -> Any:
        body = environ["wsgi.input"].read()
        self.asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], body))
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [environ["PATH_INFO"].encode(), b" ", body]


class Gate:
    """An application that does not respond until the test opens the gate."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()

    def __call__(self, _environ: Any, start_response: Any) -> list[bytes]:
        self.entered.release()
        assert self.opened.wait(worker_process.PATIENCE)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]


def large(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", str(8_000_000))])
    return [b"x" * 4_000_000, b"y" * 4_000_000]  # New objects for each request


def quick(**others: Any) -> Any:
    """Limits that soon disconnect slow clients but no other clients."""
    return limits.Limits(**{"head": 0.6, "body": 0.6, "answer": 0.6, "linger": 0.2} | others)


def is_reset(connection: socket.socket) -> bool:
    """Send a byte; return whether the server has closed the connection.

    The reset that the server sends when it closes can be outside the client's full window; in that
    case, the kernel ignores the reset. A closed connection answers each byte with a new reset.
    """
    try:
        connection.send(b"G")
    except OSError:
        return True
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0


def answered(slow: Any) -> Any:
    """Return the body that a client receives if it does not start reading before this call."""
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    return worker_process.answer(slow)[1]


def reads_nothing(served: Any, request: bytes) -> Any:
    """Return a client that sends a request and reads nothing."""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    slow.settimeout(worker_process.PATIENCE)
    slow.connect(served.address)
    slow.sendall(request)
    return slow


def leave(connection: socket.socket, data: bytes) -> None:
    """Send data and reset the connection."""
    connection.sendall(data)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    connection.close()


def wait_until_taken(served: Any, connection: Any) -> None:
    """Wait until the worker has read the first bytes of a connection."""
    name = connection.getsockname()

    def is_taken() -> Any:
        return any(
            each.client == name and each._head for each in list(served.worker.connections.open)
        )

    worker_process.wait_until(is_taken)
