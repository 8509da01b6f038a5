"""The network somebody calls from, as far as limits need it (pure).

Owns what counts as one network: an IPv4 address, or the /64 of an IPv6 address, because whoever has
one address of a /64 has all of them. An address is personal data: it is never stored, only
`digest`, a keyed hash that also covers what the limit is about. So nobody without the secret can
tell whose it is, and nobody at all can tell from the store that two limits are of one network.
"""

import ipaddress

from comments import digests

UNKNOWN = "unknown"
_PREFIX = 64  # bits of an IPv6 address that a provider gives to one customer


def of(address: str) -> str:
    """The network of an address. What is no address is one network, so it escapes no limit."""
    try:
        found = ipaddress.ip_address(_without_port(address.strip()).partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _PREFIX), strict=False))


def is_inside(network: str) -> bool:
    """Whether a network is this machine, or nothing that is known."""
    return network == UNKNOWN or ipaddress.ip_network(network).is_loopback


def _without_port(address: str) -> str:
    """An address without its port: some proxies write `192.0.2.1:80` or `[2001:db8::1]:80`."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def digest(secret: str, what: str, network: str) -> str:
    """The keyed hash of a network for one limit, in 26 characters; `what` names the limit."""
    return digests.text(digests.keyed(secret, "network", what, network))
