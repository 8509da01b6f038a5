"""By what somebody is known again who has a new token: the network and the mailbox.

A ban may hold marks of both, and each post is compared with them. A mark is a keyed digest that
also covers the site: it names nobody without the service's secret. With a guest's comment the mark
of its network is kept sealed, so nobody can tell from the store which comments are of one network;
it is opened when a moderator bans its author, and is erased with the comment, or after
`retention.TERM`.

A network is what limits call one (`client_networks.of`): an IPv4 address, or an IPv6 /64. This
machine and unknown networks have no mark: banning one would ban everybody behind a proxy that is
not set up.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from comments import errors
from comments.domain.crypto import client_networks, encryption, keyed_hashes, secret_rotation
from comments.domain.text import mail_addresses

_PURPOSE = "network of a comment"


class Marks(NamedTuple):
    """The marks of a caller; of each as many as there are accepted secrets."""

    networks: tuple[str, ...] = ()
    mailboxes: tuple[str, ...] = ()


def of(site: str, network: str, addresses: Iterable[str], secret: str) -> Marks:
    """The marks of a network ("" for none) and of mail addresses on a site."""
    accepted = secret_rotation.accepted(secret)
    known = [_network(site, network, each) for each in accepted]
    boxes = [mailbox(site, address, each) for address in addresses if address for each in accepted]
    return Marks(tuple(mark for mark in known if mark), tuple(boxes))


def mailbox(site: str, address: str, secret: str) -> str:
    """The mark of the mailbox of an address, whatever stands behind its "+"."""
    digest = keyed_hashes.keyed(secret, "banned mailbox", site, mail_addresses.mailbox(address))
    return keyed_hashes.text(digest)


def kept(site: str, network: str, secret: str, *, now: datetime) -> str:
    """The mark of a network as a comment's row holds it: sealed, "" for none."""
    mark = _network(site, network, secret)
    return encryption.seal(mark, _PURPOSE, secret, now=now) if mark else ""


def opened(stored: str, secret: str, *, now: datetime) -> str:
    """The mark that a comment's row holds; "" for none, and where the secret is another one."""
    try:
        return encryption.unseal(stored, _PURPOSE, secret, now=now) if stored else ""
    except errors.BadLink:
        return ""


def _network(site: str, network: str, secret: str) -> str:
    if not network or client_networks.is_inside(network) or network == client_networks.of("::1"):
        return ""
    return client_networks.digest(secret, f"ban {site}", network)
