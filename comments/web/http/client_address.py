"""Which network a request comes from, for limits that a script must not get around.

What a client says of himself counts for nothing: on App Engine its own header names him, elsewhere
the peer of the connection, or, behind `TRUSTED_PROXIES` proxies of ours, the address that the first
of those has seen.
"""

import functools
import logging

import flask

from comments import config
from comments.domain import classifier_verdicts
from comments.domain.crypto import client_networks

_log = logging.getLogger("flatthread")
_LONGEST_BROWSER = 300  # characters


def of_request(settings: config.Settings, request: flask.Request) -> str:
    """The network of whoever sent a request; one for all whose address is not known."""
    if settings.on_app_engine:
        return client_networks.of(request.headers.get("X-Appengine-User-IP", ""))
    # Proxies append what they have seen, so only the last of them are theirs.
    seen = ",".join(request.headers.getlist("X-Forwarded-For")).split(",")
    if (
        seen != [""]
        and not settings.trusted_proxies
        and client_networks.is_inside(client_networks.of(_peer(request)))
    ):
        _warn()
    chain = [*(each.strip() for each in seen if each.strip()), _peer(request)]
    return client_networks.of(chain[max(0, len(chain) - 1 - settings.trusted_proxies)])


def sender(settings: config.Settings, request: flask.Request) -> classifier_verdicts.Sender:
    """Where a text comes from: the network, and the browser as it calls itself."""
    return classifier_verdicts.Sender(of_request(settings, request), _browser(request))


def _browser(request: flask.Request) -> str:
    said = request.headers.get("User-Agent", "")[:_LONGEST_BROWSER]
    return said if said.isprintable() else ""


def _peer(request: flask.Request) -> str:
    return request.remote_addr or ""


@functools.cache
def _warn() -> None:
    """Say once that everybody seems to call from one network."""
    _log.warning(
        "requests come through a proxy, and TRUSTED_PROXIES is 0: all callers are one network"
    )
