"""Limits: how long the server waits for a client, and how much memory it spends on one (pure).

The defaults suit a public server. They admit readers with slow connections: even an old mobile
network is faster than 8 KiB/s.
"""

import dataclasses
import ipaddress
from typing import Any

_SITE_BITS = 64  # Length of an IPv6 prefix; one customer has at least a /64


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, bytes and connections, per process.

    Attributes:
        head: seconds from a request's first byte, or from a new connection, to the end of the head.
        body: seconds for a body, in addition to the time that its bytes take at `rate`.
        answer: seconds within which a client must accept 256 KiB of its answer, or the rest.
        linger: seconds for which a refused client may still send, so that it can read the reason.
        rate: bytes per second.
        largest_head: bytes of a request line and its headers.
        largest_body: bytes of a body that the server keeps. The application refuses longer bodies.
        unsent: bytes of answers that wait for their clients, over all connections; bytes shared by
            several answers count once.
        connections: maximum number open at once.
        per_peer: maximum number open at once for one address; 0 for no limit.
    """

    head: float = 10.0
    body: float = 20.0
    answer: float = 30.0
    linger: float = 2.0
    rate: int = 8 * 1024
    largest_head: int = 32 * 1024
    largest_body: int = 1024 * 1024
    unsent: int = 64 * 1024 * 1024
    connections: int = 1_000
    per_peer: int = 0

    def but(self, **others: Any) -> "Limits":
        """Return a copy with some limits replaced."""
        return dataclasses.replace(self, **others)


def peer(address: str) -> str:
    """Return the client that a connection counts toward: an IPv4 address or an IPv6 address's /64.

    Return "" for uncounted connections: those from programs on this machine, including a proxy, and
    those without a valid address.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    if parsed.is_loopback:
        return ""
    if parsed.version == ipaddress.IPV4LENGTH // 8:
        return str(parsed)
    return str(ipaddress.ip_network((parsed, _SITE_BITS), strict=False))
