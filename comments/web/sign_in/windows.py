"""Code that is shared by the windows that pages of a site open to sign people in.

A window shows a code and sends it only to the exact origin that opened the window, which must be
one of the site's origins. Unlike other pages for staff, a window therefore stays connected to its
opener.
"""

import flask

from comments import errors
from comments.accounts.links import window_codes
from comments.domain import records
from comments.sites import site_settings
from comments.web.http.decode import parameters
from comments.web.sign_in import signed_in


class WindowQuery(parameters.Request, frozen=True):
    """The origin of the page that opened a window, and the challenge of the page's verifier."""

    origin: parameters.Typed
    challenge: parameters.Typed


class WindowProvider(WindowQuery, frozen=True):
    """The values of `WindowQuery`, and the name of the provider that the person chose."""

    provider: parameters.Typed


def blueprint(name: str, path: str) -> flask.Blueprint:
    """Create a blueprint for the windows below a path."""
    made = flask.Blueprint(name, __name__, url_prefix=path)
    # Functions run in reverse order of registration, so this one overrides the guard's header.
    made.after_request(_keep_opener)
    signed_in.protect(made)
    return made


def site_of(site_id: str, asked: WindowQuery) -> records.Site:
    """Return the site of a window; check the origin and the challenge that opened the window."""
    site = site_settings.get(site_id)
    check_origin(site, asked.origin)
    window_codes.check_challenge(asked.challenge)
    return site


def check_origin(site: records.Site, origin: str) -> None:
    """Raise errors.Forbidden unless the origin is one of the site's."""
    if origin == "null" or origin not in site.origins:
        raise errors.Forbidden("origin-not-allowed", site=site.id)


def _keep_opener(response: flask.Response) -> flask.Response:
    response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return response
