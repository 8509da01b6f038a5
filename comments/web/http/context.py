"""The context of a request: the application's settings and store, and the sender's network.

Each application has one settings object and one store. All threads share these objects, so they
contain no data about requests.

The client address that this module uses cannot be forged. On App Engine, the address is in a header
that App Engine sets. On other platforms, the address is the peer of the connection; behind
`TRUSTED_PROXIES` proxies, it is the address that the outermost trusted proxy saw.
"""

import functools
import logging
from datetime import UTC, datetime
from typing import cast

import flask
import msgspec

from comments import config
from comments.domain import records
from comments.domain.crypto import client_networks
from comments.domain.moderation import classifier_verdicts
from comments.limits.site_request import SiteRequest
from comments.store import connection

_NAME = "flatthread"
SITE = "flatthread.site"  # Key in the WSGI environment for the site whose budget the request uses.
_log = logging.getLogger("flatthread")
_LONGEST_BROWSER = 300  # Maximum number of characters.


class Context(msgspec.Struct, frozen=True):
    """The arguments of `app.create_app`."""

    settings: config.Settings
    store: connection.Store


def keep(app: flask.Flask, context: Context) -> None:
    app.extensions[_NAME] = context


def of(app: flask.Flask) -> Context:
    return cast(Context, app.extensions[_NAME])


def settings() -> config.Settings:
    """Return the settings of the current application."""
    return of(flask.current_app).settings


def request() -> flask.Request:
    """Return the current request itself.

    Flask's proxy for the request would take three calls each time it is used.
    """
    return flask.globals.request_ctx.request


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def service_url() -> str:
    """Return the address of this service, without a final slash.

    If PUBLIC_URL is not set, this is the address in the current request. Anybody can forge that
    address, so it may appear only in the response to the same request.
    """
    return settings().public_url or flask.request.host_url.rstrip("/")


def request_to(site: records.Site) -> SiteRequest:
    """Return the current request with its site, settings, time and sender."""
    asked, own = request(), settings()
    browser = asked.headers.get("User-Agent", "")[:_LONGEST_BROWSER]
    sender = classifier_verdicts.Sender(
        network_of(own, asked), browser if browser.isprintable() else ""
    )
    return SiteRequest(site, own, now(), sender)


def network() -> str:
    """Return the network from which the current request came."""
    return network_of(settings(), flask.request)


def network_of(settings: config.Settings, request: flask.Request) -> str:
    """Return the network from which a request came. Unknown addresses all share one network."""
    if settings.on_app_engine:
        return client_networks.of(request.headers.get("X-Appengine-User-IP", ""))
    # Each proxy appends the address that it saw. Therefore only the last entries, which our proxies
    # appended, can be trusted.
    peer = request.remote_addr or ""
    seen = ",".join(request.headers.getlist("X-Forwarded-For")).split(",")
    if (
        seen != [""]
        and not settings.trusted_proxies
        and client_networks.is_inside(client_networks.of(peer))
    ):
        _warn()
    chain = [*(address.strip() for address in seen if address.strip()), peer]
    return client_networks.of(chain[max(0, len(chain) - 1 - settings.trusted_proxies)])


@functools.cache
def _warn() -> None:
    """Warn once per process that all callers appear to share one network."""
    _log.warning(
        "requests come through a proxy, but TRUSTED_PROXIES is 0: all callers share one network"
    )
