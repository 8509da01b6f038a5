"""Setting out for a provider and coming back, for every page that signs somebody in by one.

Owns the cookie by which a browser is known between the two, `__Host-flatthread-journey`. It is
`SameSite=Lax`, because the way back is a link from the provider; it says nothing of anybody, and
opens nothing by itself. A browser keeps one for several windows.

Who sets out is shown a page that goes on by itself. A redirect would not do: `form-action 'self'`
holds for where a form's answer leads, too.
"""

from datetime import UTC, datetime

import flask

from comments.accounts.oidc import login_flow, oidc_client, providers
from comments.events import message_sender
from comments.web.admin import signed_in
from comments.web.http import context

COOKIE = "__Host-flatthread-journey"


def peer(provider: providers.Provider) -> oidc_client.OidcClient:
    """A provider, as this service speaks to it."""
    out = message_sender.OUTBOUND.get()
    return login_flow.client(provider, context.settings(), out)


def cookie() -> str:
    """What the browser is known by, if by anything."""
    return flask.request.cookies.get(COOKIE, "")


def depart(goal: login_flow.Goal, provider: providers.Provider) -> flask.Response:
    """The page that leads to a provider.

    Raises:
        errors.TooMany, errors.Conflict, errors.Unreachable, openid.NotBelieved: see `login_flow`.
    """
    settings = context.settings()
    who = login_flow.Browser(context.network(), cookie())
    way = login_flow.begin(goal, who, peer(provider), secret=settings.secret, now=datetime.now(UTC))
    response = signed_in.page("admin/going.html", title=provider.title, address=way.address)
    response.set_cookie(
        COOKIE, way.browser, secure=True, httponly=True, samesite="Lax", path="/",
        max_age=int(login_flow.TERM.total_seconds()),
    )  # fmt: skip
    return response
