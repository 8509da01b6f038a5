"""Cut a client's connection, for fault plans.

Owns the search for the socket of a named peer. A gRPC server can refuse a call but cannot go
silent, so the effect of a dead network must be simulated at the socket, below gRPC. `shutdown` ends
the connection but keeps the descriptor for gRPC, which notices the end and closes the descriptor.
"""

import contextlib
import errno
import os
import socket
import stat
import urllib.parse
from pathlib import Path


def cut(peer: str) -> None:
    """Cut the connection of a peer, given its gRPC name, e.g. `ipv6:%5B::1%5D:50000`."""
    host, _, port = urllib.parse.unquote(peer.partition(":")[2]).rpartition(":")
    for descriptor in _descriptors():
        with contextlib.suppress(OSError), _copy(descriptor) as copy:
            address, number = copy.getpeername()[:2]
            # For an IPv4 address, gRPC's socket serves both protocols and reports an IPv6 form of
            # the peer's address.
            if (address.removeprefix("::ffff:"), number) == (host.strip("[]"), int(port)):
                copy.shutdown(socket.SHUT_RDWR)


def _descriptors() -> list[int]:
    return [int(path.name) for path in Path("/dev/fd").iterdir()]


def _copy(descriptor: int) -> socket.socket:
    # Copy only sockets: closing a copy of the data file's descriptor would drop SQLite's locks on
    # the file.
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    return socket.socket(fileno=os.dup(descriptor))
