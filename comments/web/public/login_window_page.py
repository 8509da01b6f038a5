"""The window in which a reader signs in through a provider; and where everybody comes back to.

The widget opens it on our own origin, where our cookies are first-party ones, and names its page's
origin and a challenge (`popup_exchange`). The window says which site it is for and goes on by a
button only: no page finds out by itself who its reader is. Back from the provider it tells a code
to the page that opened it: to that exact origin, which is one of the site's, and to nobody else. It
listens to nothing.

These are the only pages of ours that keep the window that opened them (no
Cross-Origin-Opener-Policy). Where that is lost on the way, as providers may have it, the reader
types the code.
"""

from datetime import UTC, datetime

import flask

from comments import errors
from comments.accounts.oidc import login_flow, oidc_client, popup_exchange, providers
from comments.domain import records
from comments.sites import site_settings
from comments.web.admin import provider_login, signed_in
from comments.web.http import context, request_shapes
from comments.web.http.decode import forms, query_strings
from comments.web.public import provider_redirects

blueprint = flask.Blueprint("windows", __name__, url_prefix="/sign-in")


class _Asked(request_shapes.NoQuery, frozen=True):
    """Which page opened the window, and the challenge of its verifier."""

    origin: request_shapes.Typed
    challenge: request_shapes.Typed


class _Chosen(_Asked, frozen=True):
    """The same, and a provider by name."""

    provider: request_shapes.Typed


@blueprint.after_request
def _keep_opener(response: flask.Response) -> flask.Response:
    response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return response


# What is registered last runs first: the headers above are the last word.
signed_in.guard(blueprint)


@blueprint.get("/sites/<site:site_id>")
def show(site_id: str) -> flask.Response:
    """The providers of a site, a button for each."""
    asked = query_strings.read(_Asked)
    site = _site(site_id, asked)
    found = providers.of_site(site.id)
    return signed_in.page("admin/window.html", site=site, asked=asked, providers=found)


@blueprint.post("/sites/<site:site_id>")
@signed_in.open_to_all
def choose(site_id: str) -> flask.Response:
    """Set out for one of them."""
    sent = forms.read(_Chosen)
    site = _site(site_id, sent)
    provider = providers.chosen(sent.provider, providers.of_site(site.id))
    goal = login_flow.Goal(
        login_flow.Purpose.READER,
        provider.name,
        site=site.id,
        origin=sent.origin,
        challenge=sent.challenge,
    )
    return provider_redirects.depart(goal, provider)


@blueprint.get("/return")
def come_back() -> flask.Response:
    """What a provider sends browsers to, with its answer."""
    answer = query_strings.pairs(flask.request.query_string)
    secret, now = context.settings().secret, datetime.now(UTC)
    state = answer.get("state", "")
    journey, asked = login_flow.end(state, provider_redirects.cookie(), secret=secret, now=now)
    goal = journey.goal
    is_reader = goal.aim is login_flow.Purpose.READER
    offered = providers.of_site(goal.site) if is_reader else providers.of_desk()
    provider = providers.chosen(goal.provider, offered)
    person = provider_redirects.peer(provider).identify(answer, asked, secret=secret, now=now)
    return _hand_over(goal, person, now) if is_reader else provider_login.arrive(goal, person)


def _hand_over(goal: login_flow.Goal, person: oidc_client.Person, now: datetime) -> flask.Response:
    """The page that tells the code to the page that the reader came from."""
    # An origin that was withdrawn meanwhile is told nothing.
    _check_origin(site_settings.get(goal.site), goal.origin)
    code = popup_exchange.issue(
        person, goal.site, goal.challenge, secret=context.settings().secret, now=now
    )
    return signed_in.page("admin/handed.html", code=code, origin=goal.origin)


def _site(site_id: str, asked: _Asked) -> records.Site:
    site = site_settings.get(site_id)
    _check_origin(site, asked.origin)
    popup_exchange.checked_challenge(asked.challenge)
    return site


def _check_origin(site: records.Site, origin: str) -> None:
    if origin == "null" or origin not in site.origins:
        raise errors.Forbidden(
            f"pages of this origin are not of site {site.id}", code="origin-not-allowed"
        )
