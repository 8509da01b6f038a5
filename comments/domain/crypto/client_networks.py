"""Client networks: identify a caller's network for rate limits (pure).

This module defines what counts as one network: an IPv4 address, or the /64 of an IPv6 address,
because one customer controls a whole /64. An address is personal data and is never stored. Only
`digest` is stored, a keyed hash that also covers the subject of the limit. Without the secret, the
digest does not identify the network. Digests for different limits differ, so the store does not
reveal that two limits belong to the same network.

A provider can give one customer 256 or 65,536 of these /64s. Each limit on an IPv6 network is
therefore also enforced on the surrounding /56 and /48, where the limit is multiplied by the factors
in `WIDER`.
"""

import ipaddress

from comments.domain.crypto import keyed_hashes

UNKNOWN = "unknown"
_LOOPBACK_V6 = "::/64"
_PREFIX = 64  # Number of bits in the IPv6 prefix that a provider gives to one customer.
# The prefixes that surround a /64, and the factors by which their limits are larger. A household
# often gets a /56 and a company a /48; some providers put many customers into a /48.
WIDER = ((56, 4), (48, 16))
_AREA_V4, _AREA_V6 = 16, 32  # Prefix lengths in bits; roughly the range of one provider.


def of(address: str) -> str:
    """Return an address's network.

    All malformed addresses count as one network, so a malformed address does not evade a limit.
    """
    try:
        ip = ipaddress.ip_address(_without_port(address.strip()).partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, _PREFIX), strict=False))


def around(network: str) -> tuple[tuple[str, int], ...]:
    """Return the wider networks that contain a network, each with the factor of its limit.

    An IPv4 address has no wider networks, because an attacker pays for each address.
    """
    parsed = _parse(network)
    if not isinstance(parsed, ipaddress.IPv6Network):
        return ()
    return tuple((str(parsed.supernet(new_prefix=bits)), factor) for bits, factor in WIDER)


def area(network: str) -> str:
    """Return the /16 of an IPv4 network or the /32 of an IPv6 network."""
    parsed = _parse(network)
    if parsed is None:
        return network
    bits = _AREA_V4 if parsed.version == 4 else _AREA_V6  # noqa: PLR2004 - the IP version
    return str(parsed.supernet(new_prefix=bits))


def _parse(network: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(network)
    except ValueError:
        return None


def is_inside(network: str) -> bool:
    """Return whether a network is the local machine or unknown."""
    return network in {UNKNOWN, _LOOPBACK_V6} or network.startswith("127.")


def _without_port(address: str) -> str:
    """Remove the port that some proxies add: `192.0.2.1:80` or `[2001:db8::1]:80`."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def digest(secret: str, what: str, network: str) -> str:
    """Return a network's keyed hash of 26 characters for the limit that `what` names."""
    return keyed_hashes.text(keyed_hashes.keyed_digest(secret, "network", what, network))
