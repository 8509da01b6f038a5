"""What a request runs with: the application's settings and store, its time, and where it is from.

Settings and store are kept once per application; threads share them, so nothing of a request is
ever kept there. What a client says of its own address counts for nothing: on App Engine a header
of App Engine names it, elsewhere the peer of the connection does, or, behind `TRUSTED_PROXIES`
proxies of ours, the address that the first of those has seen.
"""

import functools
import logging
from datetime import UTC, datetime
from typing import cast

import flask
import msgspec

from comments import config
from comments.domain import classifier_verdicts, records
from comments.domain.crypto import client_networks
from comments.sites.site_request import SiteRequest
from comments.store import connection

_NAME = "flatthread"
SITE = "flatthread.site"  # of a request's environment: the site that it is to, which has the costs
_log = logging.getLogger("flatthread")
_LONGEST_BROWSER = 300  # characters


class Context(msgspec.Struct, frozen=True):
    """What `app.create_app` was given."""

    settings: config.Settings
    store: connection.Store


def keep(app: flask.Flask, context: Context) -> None:
    """Give an application its context."""
    app.extensions[_NAME] = context


def of(app: flask.Flask) -> Context:
    """The context of an application."""
    return cast(Context, app.extensions[_NAME])


def settings() -> config.Settings:
    """The settings of the current application."""
    return of(flask.current_app).settings


def request_to(site: records.Site) -> SiteRequest:
    """The current request, which is to a website."""
    network = network_of(settings(), flask.request)
    sender = classifier_verdicts.Sender(network, _browser(flask.request))
    return SiteRequest(site, settings(), datetime.now(UTC), sender)


def network() -> str:
    """The network of whoever sent the current request."""
    return network_of(settings(), flask.request)


def network_of(settings: config.Settings, request: flask.Request) -> str:
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
