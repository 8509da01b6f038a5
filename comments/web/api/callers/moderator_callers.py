"""Recognize moderators who call the API with the token of a moderation session.

The page of the thread gets the token from a window of the service (`moderation_window_page`). Only
the routes of blueprints from this module accept the token, and those routes accept no other token.

A token is valid only for its own site, while the site's option `moderation` is on. If a request has
an `Origin` header, it must be the origin for which the token was granted. Browsers always send this
header with such requests from other origins. Every call looks up the session, so calls that arrive
after the end of the session are refused. A call that is already running when the session ends may
still complete.
"""

import re

import flask

from comments import errors
from comments.accounts import moderation_sessions
from comments.domain import records
from comments.sites import site_settings
from comments.web.api.callers import api_callers
from comments.web.http import context, cors, problems

_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(m\.[A-Za-z0-9._-]{1,100})")
_BEGINNING = "moderator.begin_moderation"  # The only call that needs no session: it begins one


def blueprint(name: str) -> flask.Blueprint:
    """Return a blueprint for moderators' calls that checks the session before each view."""
    made = flask.Blueprint(name, __name__, url_prefix="/api/v1")
    made.before_request(_admit)
    made.after_request(_vary)
    return made


def current() -> moderation_sessions.ModerationSession:
    """Return the caller's session, which `blueprint` has already checked."""
    session: moderation_sessions.ModerationSession = flask.g.moderator
    return session


def token() -> str:
    """Return the token of the request.

    Raises:
        problems.Unauthenticated: the header is malformed.
    """
    match = _BEARER.fullmatch(flask.request.headers["Authorization"])
    if match is None:
        raise problems.Unauthenticated
    return match[1]


def _admit() -> flask.Response | None:
    """Answer preflights.

    Refuse requests from unregistered origins, and requests without a session.
    """
    flask.g.is_personal = True
    path = flask.request.view_args or {}
    if "site_id" in path:
        site: records.Site | None = site_settings.current(path["site_id"])
    else:
        site = api_callers.site_of_comment(path["comment_id"])
    if flask.request.method == "OPTIONS":
        return cors.preflight(site)
    if site is None:
        # Only callers with a valid token may learn that the comment does not exist.
        _session()
        raise errors.NotFound("comment", path["comment_id"])
    flask.request.environ[context.SITE] = site.id
    cors.check(site)
    flask.g.asked = context.request_to(site)
    if not site.options.moderation:
        raise errors.Forbidden("moderation-off", site=site.id)
    if flask.request.endpoint != _BEGINNING:
        flask.g.moderator = _session_on(site)
    return None


def _session_on(site: records.Site) -> moderation_sessions.ModerationSession:
    session = _session()
    if session.site != site.id:
        raise problems.Unauthenticated("token-of-other-site")
    if flask.request.headers.get("Origin") not in {None, session.origin}:
        raise errors.Forbidden("origin-not-allowed", site=site.id)
    return session


def _vary(response: flask.Response) -> flask.Response:
    """Make all responses, including refusals, vary by the token."""
    response.vary.add("Authorization")
    return response


def _session() -> moderation_sessions.ModerationSession:
    if "Authorization" not in flask.request.headers:
        raise problems.Unauthenticated("no-token")
    secret, now = context.settings().secret, context.now()
    session = moderation_sessions.find(token(), secret, now=now)
    if session is None:
        raise problems.Unauthenticated("token-expired")
    return session
