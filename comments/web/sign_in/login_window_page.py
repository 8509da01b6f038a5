"""The pop-up window in which a reader signs in through a provider, and the return from providers.

The widget opens the window on this service's origin, where the service's cookies are first-party.
The widget passes the origin of its page and a challenge (`popup_exchange`). The window names the
site and continues only when the reader presses a button, so no page can identify a reader without
the reader's consent. After the provider has identified the reader, the window sends a code to the
page that opened the window. The window does not accept messages.

The code is sent only to the exact origin that opened the window, which must be one of the site's
origins. Unlike the service's other pages, these pages keep the connection to their opener: they set
the Cross-Origin-Opener-Policy `unsafe-none`. If a provider's page cuts the connection to the
opener, the reader types the code.
"""

from datetime import datetime

import flask

from comments.accounts.oidc import linking, login_flow, oidc_client, popup_exchange, providers
from comments.sites import site_settings
from comments.web.http import context
from comments.web.http.decode import forms, query_strings
from comments.web.sign_in import (
    moderation_window_page,
    provider_login,
    provider_redirects,
    signed_in,
    windows,
)

blueprint = windows.blueprint("windows", "/sign-in")


@blueprint.get("/sites/<site:site_id>")
def show(site_id: str) -> flask.Response:
    """Show a button for each provider of a site."""
    asked = query_strings.read(windows.WindowQuery)
    site = windows.site_of(site_id, asked)
    offered = providers.of_site(site.id)
    return signed_in.page("admin/window.html", site=site, asked=asked, providers=offered)


@blueprint.post("/sites/<site:site_id>")
@signed_in.open_to_all
def choose(site_id: str) -> flask.Response:
    """Send the reader to the chosen provider."""
    sent = forms.read(windows.WindowProvider)
    site = windows.site_of(site_id, sent)
    provider = providers.by_name(sent.provider, providers.of_site(site.id))
    goal = login_flow.Goal(
        login_flow.LoginPurpose.READER,
        provider.name,
        site=site.id,
        origin=sent.origin,
        challenge=sent.challenge,
    )
    return provider_redirects.redirect_to_provider(goal, provider)


@blueprint.get("/return")
def come_back() -> flask.Response:
    """Accept a provider's response, which arrives as a query."""
    answer = query_strings.pairs(flask.request.query_string)
    secret, now = context.settings().secret, context.now()
    state = answer.get("state", "")
    journey, asked = login_flow.end(state, provider_redirects.cookie(), secret=secret, now=now)
    goal = journey.goal
    is_reader = goal.aim is login_flow.LoginPurpose.READER
    offered = providers.of_site(goal.site) if is_reader else providers.of_console()
    provider = providers.by_name(goal.provider, offered)
    person = provider_redirects.client_of(provider).identify(answer, asked, secret=secret, now=now)
    if is_reader:
        return _hand_over(goal, person, now)
    if goal.aim is login_flow.LoginPurpose.MODERATE:
        come = linking.sign_in(person, signed_in.cause(), browser=goal.session)
        return moderation_window_page.arrive(goal, come)
    return provider_login.arrive(goal, person)


def _hand_over(
    goal: login_flow.Goal, person: oidc_client.ProviderUser, now: datetime
) -> flask.Response:
    """Respond with a page that sends the code to the page from which the reader came."""
    # The origin may have been removed from the site since the login flow started.
    windows.check_origin(site_settings.get(goal.site), goal.origin)
    code = popup_exchange.issue(
        person, goal.site, goal.challenge, secret=context.settings().secret, now=now
    )
    return signed_in.page("admin/handed.html", code=code, origin=goal.origin)
