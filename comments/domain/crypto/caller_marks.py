"""Caller marks, by which a ban recognizes the network or mailbox of a caller despite a new token.

A ban can contain marks of both kinds, and each new post is compared with them. A mark is a keyed
digest that also covers the site, so without the service's secret it identifies nobody. A guest's
comment stores the mark of the guest's network encrypted, so the store does not reveal which
comments came from the same network. The mark is decrypted when a moderator bans the author. The
mark is erased with the comment, or after `retention.TERM`.

Networks are the same as for rate limits (`client_networks.of`): an IPv4 address or an IPv6 /64. The
local machine and unknown networks have no mark, because banning them would ban everyone behind an
unconfigured proxy.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from comments import errors
from comments.domain.crypto import client_networks, encryption, keyed_hashes, secret_rotation
from comments.domain.text.addresses import mail_addresses

_PURPOSE = "network of a comment"


class Marks(NamedTuple):
    """The marks of a caller's network and mailboxes, under each accepted secret."""

    networks: tuple[str, ...] = ()
    mailboxes: tuple[str, ...] = ()


def of(site: str, network: str, addresses: Iterable[str], secret: str) -> Marks:
    """Return the marks of a network ("" if there is none) and of e-mail addresses on a site."""
    accepted = secret_rotation.accepted_secrets(secret)
    known = [_network(site, network, key) for key in accepted]
    boxes = [mailbox(site, address, key) for address in addresses if address for key in accepted]
    return Marks(tuple(mark for mark in known if mark), tuple(boxes))


def mailbox(site: str, address: str, secret: str) -> str:
    """Return the mark of an address's mailbox, ignoring a "+" and the text after it."""
    digest = keyed_hashes.keyed_digest(
        secret, "banned mailbox", site, mail_addresses.mailbox(address)
    )
    return keyed_hashes.text(digest)


def seal_mark(site: str, network: str, secret: str, *, now: datetime) -> str:
    """Return a network's mark as stored in a comment's row: encrypted, or "" for no network."""
    mark = _network(site, network, secret)
    return encryption.seal(mark, _PURPOSE, secret, now=now) if mark else ""


def open_mark(stored: str, secret: str, *, now: datetime) -> str:
    """Decrypt the mark in a comment's row; return "" if there is none or the secret differs."""
    try:
        return encryption.unseal(stored, _PURPOSE, secret, now=now) if stored else ""
    except errors.BadLink:
        return ""


def _network(site: str, network: str, secret: str) -> str:
    if not network or client_networks.is_inside(network):
        return ""
    return client_networks.digest(secret, f"ban {site}", network)
