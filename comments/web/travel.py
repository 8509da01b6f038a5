"""Setting out for a provider and coming back, for every page that signs somebody in by one.

Owns the cookie by which a browser is known between the two, `__Host-flatthread-journey`. It is
`SameSite=Lax`, because the way back is a link from the provider; it says nothing of anybody, and
opens nothing by itself. A browser keeps one for several windows.

Who sets out is shown a page that goes on by itself. A redirect would not do: `form-action 'self'`
holds for where a form's answer leads, too.
"""

from datetime import UTC, datetime

import flask

from comments import datastore, outbound, sending
from comments.accounts import journeys, openid, providers
from comments.web import callers, context, networks

COOKIE = "__Host-flatthread-journey"


def peer(provider: providers.Provider) -> openid.Peer:
    """A provider, as this service speaks to it."""
    out = datastore.kept(sending.OUTBOUND, outbound.Client)
    return journeys.peer(provider, context.settings(), out)


def cookie() -> str:
    """What the browser is known by, if by anything."""
    return flask.request.cookies.get(COOKIE, "")


def depart(goal: journeys.Goal, provider: providers.Provider) -> flask.Response:
    """The page that leads to a provider.

    Raises:
        errors.TooMany, errors.Conflict, errors.Unreachable, openid.NotBelieved: see `journeys`.
    """
    settings = context.settings()
    who = journeys.Traveller(networks.of_request(settings, flask.request), cookie())
    way = journeys.begin(goal, who, peer(provider), secret=settings.secret, now=datetime.now(UTC))
    response = callers.page("admin/going.html", title=provider.title, address=way.address)
    response.set_cookie(
        COOKIE, way.browser, secure=True, httponly=True, samesite="Lax", path="/",
        max_age=int(journeys.TERM.total_seconds()),
    )  # fmt: skip
    return response
