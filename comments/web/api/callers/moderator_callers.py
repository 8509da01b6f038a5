"""The caller of the moderators' calls: a moderator with the token of a moderation session.

The page of the thread gets the token from the service's own window (`moderation_window_page`). Only
routes of blueprints from this module accept the token, and they accept no other.

A token is valid only for its own site, while the site's option `moderation` is on. If a request has
an `Origin` header, as all such requests of browsers from other origins do, it must be the origin
for which the token was granted. Every call looks up the session, so a call that arrives after the
end of a session is refused. A call that is running at that moment may still complete.
"""

import re
from datetime import UTC, datetime

import flask

from comments import errors
from comments.accounts import moderation_sessions
from comments.domain import records
from comments.sites import site_settings
from comments.web.api.callers import api_callers
from comments.web.http import context, cors, problems

_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(m\.[A-Za-z0-9._-]{1,100})")
_BEGINNING = "moderator.begin_moderation"  # The only call that needs no session.


def blueprint(name: str) -> flask.Blueprint:
    """Return a blueprint for calls of moderators, which check the session before each view."""
    made = flask.Blueprint(name, __name__, url_prefix="/api/v1")
    made.before_request(_admit)
    made.after_request(_vary)
    return made


def current() -> moderation_sessions.ModerationSession:
    """Return the caller's session, which `blueprint` has checked."""
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
    """Answer preflights; refuse requests of unregistered origins and requests without a session."""
    flask.g.is_personal = True
    path = flask.request.view_args or {}
    if "site_id" in path:
        site: records.Site | None = site_settings.current(path["site_id"])
    else:
        site = api_callers.site_of_comment(path["comment_id"])
    if flask.request.method == "OPTIONS":
        return cors.preflight(site)
    if site is None:
        # Only a caller with a valid token may learn that there is no such comment.
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
    """Make every answer, including refusals, vary by the token."""
    response.vary.add("Authorization")
    return response


def _session() -> moderation_sessions.ModerationSession:
    if "Authorization" not in flask.request.headers:
        raise problems.Unauthenticated("no-token")
    secret, now = context.settings().secret, datetime.now(UTC)
    session = moderation_sessions.find(token(), secret, now=now)
    if session is None:
        raise problems.Unauthenticated("token-expired")
    return session
