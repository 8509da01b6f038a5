"""One port for gRPC and HTTP, so that a single address serves every client.

Owns the listening sockets. A connection that begins with the preface of HTTP/2 belongs to gRPC; its
bytes are passed unchanged to gRPC's own port on the loopback address. Any other connection speaks
HTTP/1.1 and is served by this module.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import threading
from typing import Any

from datastore_emulator.server import http_server

_PREFACE = b"PRI"  # No HTTP/1.1 method begins with these bytes.
_PATIENCE, _ENDLESS = struct.pack("ll", 60, 0), struct.pack("ll", 0, 0)  # As struct timeval
_CHUNK = 256 * 1024
_ATTEMPTS = 20  # Attempts to find a port that is free at every address.
_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # No such address, for example without IPv6.


class _Server(http_server.Server):
    """Listens at one address."""

    def __init__(
        self, family: socket.AddressFamily, address: Any, site: http_server.Site, backend: int
    ) -> None:
        self._backend = backend
        super().__init__(family, address, site)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection, in a thread of its own."""
        if _is_grpc(request):
            self._pass_on(request)
        else:
            super().finish_request(request, client_address)

    def _pass_on(self, client: socket.socket) -> None:
        with contextlib.closing(socket.create_connection(("127.0.0.1", self._backend))) as backend:
            for peer in (client, backend):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_pump, args=(backend, client), daemon=True)
            back.start()
            _pump(client, backend)
            back.join()


def _is_grpc(client: socket.socket) -> bool:
    """Peek at a connection's first bytes without consuming them."""
    # The kernel waits until all three bytes have arrived. With a timeout set in Python, the call
    # would return after the first byte.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PATIENCE)
    first = client.recv(len(_PREFACE), socket.MSG_PEEK | socket.MSG_WAITALL)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _ENDLESS)
    return first == _PREFACE


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until one of the two connections ends, then end both."""
    buffer = memoryview(bytearray(_CHUNK))
    with contextlib.suppress(OSError):
        while size := source.recv_into(buffer):
            target.sendall(buffer[:size])
    for peer in (source, target):
        with contextlib.suppress(OSError):
            peer.shutdown(socket.SHUT_RDWR)


def start(host: str, port: int, site: http_server.Site, backend: int) -> http_server.HttpServer:
    """Listen on the same port at every address of a host; port 0 picks a free port.

    Each address gets its own socket: a client may connect to any of the addresses, and must not
    reach another program at one of them. With port 0, the function tries again if another program
    already uses the picked port at one of the addresses.

    Args:
        host: The name or address to listen on.
        port: The port to listen on.
        site: Answers HTTP.
        backend: gRPC's port on 127.0.0.1.

    Raises:
        OSError: The address is not available.
    """
    attempts = 1 if port else _ATTEMPTS
    while True:
        attempts -= 1
        try:
            return http_server.serve(_bind(host, port, site, backend))
        except OSError as error:
            if not attempts or error.errno != errno.EADDRINUSE:
                reason = error.strerror or error
                raise OSError(f"cannot listen on {host}:{port}: {reason}") from error


def _bind(host: str, port: int, site: http_server.Site, backend: int) -> list[http_server.Server]:
    addresses = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    servers: list[http_server.Server] = []
    with contextlib.ExitStack() as bound:
        for family, _, _, _, address in addresses:
            number = servers[0].server_port if servers else port
            try:
                server = _Server(family, (address[0], number, *address[2:]), site, backend)
            except OSError as error:
                if error.errno in _ABSENT:
                    continue
                reason = "is in use" if error.errno == errno.EADDRINUSE else f"refuses: {error}"
                raise OSError(error.errno, f"{address[0]} {reason}") from error
            bound.callback(server.server_close)
            servers.append(server)
        bound.pop_all()
    if not servers:
        raise OSError("this machine lacks the address")
    return servers
