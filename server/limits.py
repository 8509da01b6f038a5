"""How long the server waits for a client, and how much it keeps for one (pure).

The defaults suit a server that anybody can reach. Readers on slow lines stay welcome: 8 KiB/s is
less than an old mobile network gives.
"""

import dataclasses
import ipaddress
from typing import Any

_SITE_BITS = 64  # of an IPv6 address: one customer has at least that many addresses


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, bytes and connections; each counts for one process.

    Attributes:
        head: seconds from a request's first byte, or a new connection, to the end of its head.
        body: seconds for a body, besides those that what has come takes at `rate`.
        answer: seconds in which a client must take some of its answer; all of it may take so many,
            besides those that what was taken takes at `rate`.
        linger: seconds in which a refused client may still send, so that it can read why.
        rate: bytes per second.
        largest_head: bytes of a request line and its headers.
        largest_body: bytes of a body that are kept. The application refuses longer ones.
        unsent: bytes of answers that wait for their clients, of all connections together; what
            several answers share counts once.
        connections: open at once.
        per_peer: open at once for one address; 0 for any number.
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
        """These limits with others among them."""
        return dataclasses.replace(self, **others)


def peer(address: str) -> str:
    """Whom connections are counted for: an IPv4 address or the /64 of an IPv6 address.

    "" where nothing is counted: for this machine's own programs, a proxy among them, and for what
    is no address.
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
