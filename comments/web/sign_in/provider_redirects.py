"""The redirect to a provider, and the cookie that recognizes the browser when it returns.

The cookie `__Host-flatthread-journey` (with the port, see `signed_in`) must be `SameSite=Lax`,
because the browser returns by a navigation from the provider's site. The cookie identifies no
person and grants no access by itself. All windows of a browser share the cookie.

The redirect is a page with a refresh to the provider's address. Browsers would block an HTTP
redirect, because the policy `form-action 'self'` also applies to redirects after a form is sent.
"""

import flask

from comments.accounts.oidc import login_flow, oidc_client, providers
from comments.events import message_sender
from comments.web.http import context
from comments.web.sign_in import signed_in

COOKIE = "__Host-flatthread-journey"


def client_of(provider: providers.Provider) -> oidc_client.OidcClient:
    """Return a client for a provider."""
    out = message_sender.OUTBOUND.get()
    return login_flow.client(provider, context.settings(), out)


def cookie() -> str:
    """Return the value of the browser's cookie, or ""."""
    return flask.request.cookies.get(signed_in.cookie_name(COOKIE), "")


def redirect_to_provider(goal: login_flow.Goal, provider: providers.Provider) -> flask.Response:
    """Respond with the page that redirects the browser to a provider.

    Raises:
        errors.TooMany, errors.Conflict, errors.Unreachable, openid.NotBelieved: see `login_flow`.
    """
    settings = context.settings()
    who = login_flow.Browser(context.network(), cookie())
    way = login_flow.begin(
        goal, who, client_of(provider), secret=settings.secret, now=context.now()
    )
    response = signed_in.page("admin/going.html", title=provider.title, address=way.address)
    response.set_cookie(
        signed_in.cookie_name(COOKIE), way.browser, secure=True, httponly=True, samesite="Lax",
        path="/", max_age=int(login_flow.TERM.total_seconds()),
    )  # fmt: skip
    return response
