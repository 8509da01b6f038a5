"""Run a gunicorn worker inside this process and serve an application over real sockets."""

import contextlib
import logging
import os
import socket
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gunicorn.config import Config  # type: ignore[import-untyped]

from server import limits, worker

PATIENCE = 60.0  # Seconds, because the machine may be busy
_Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Served:
    """A running worker and its address."""

    def __init__(self, listener: socket.socket, one: worker.Worker) -> None:
        self.worker = one
        self._listener = listener
        self.address = listener.getsockname()
        self._thread = threading.Thread(target=one.run)

    def start(self) -> None:
        self._thread.start()

    def connect(self) -> socket.socket:
        """Return a new connection."""
        made = socket.socket(self._listener.family)
        made.settimeout(PATIENCE)
        made.connect(self.address)
        return made

    def ask(self, data: bytes) -> bytes:
        """Send bytes; return all bytes that are received until the connection ends."""
        with self.connect() as connection:
            connection.sendall(data)
            return rest(connection)

    def stop(self) -> None:
        """Stop the worker as SIGTERM does; wait until it ends."""
        self.tell()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def tell(self) -> None:
        """Stop the worker as SIGTERM does, without waiting."""
        self.worker.handle_exit(15, None)


def rest(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65_536):
            found += data
    return found


def answer(connection: socket.socket) -> tuple[bytes, bytes]:
    """Read one response: its head and a body of the announced length."""
    found = b""
    while b"\r\n\r\n" not in found:
        data = connection.recv(1)
        assert data, found
        found += data
    length = next(
        int(line.split(b":")[1])
        for line in found.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    return found, body


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for a condition; fail if it does not become true."""
    pause, end = threading.Event(), time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        pause.wait(0.005)


@contextlib.contextmanager
def serving(
    application: _Application,
    *,
    bounds: limits.Limits | None = None,
    listener: socket.socket | None = None,
    start: bool = True,
    age: int = 1,
    **settings: Any,
) -> Iterator[Served]:
    """Serve an application until the block ends."""
    cfg = Config()
    for name, value in {"threads": 2, "graceful_timeout": 10, **settings}.items():
        cfg.set(name, value)
    listener = listener or socket.create_server(("127.0.0.1", 0), backlog=256)
    loaded = types.SimpleNamespace(wsgi=lambda: application)
    log = logging.getLogger("gunicorn.error")
    one = worker.Worker(age, os.getppid(), [listener], loaded, 30, cfg, log)
    one.limits = bounds or limits.Limits()
    one.PIPE = os.pipe()
    for end in one.PIPE:
        os.set_blocking(end, False)
    one.load_wsgi()
    served = Served(listener, one)
    if start:
        served.start()
    try:
        yield served
    finally:
        served.stop()
        one.tmp.close()
        for end in one.PIPE:
            os.close(end)
