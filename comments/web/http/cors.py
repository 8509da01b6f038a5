"""Which websites' pages may call the API from a browser.

Anyone may read what is public: `*`, without credentials. Writing, and reading what is
`personal_data`, is for the pages of the site itself: its registered origins, compared exactly, and
the service's own. There are no cookies, so this is no protection of a signed-in user; it keeps a
page elsewhere from posting in its visitors' names. An origin is never reflected that is not
registered, and `null` never is one.
"""

import functools
from collections.abc import Callable

import flask

from comments import errors
from comments.domain import records
from comments.sites import site_settings

_READS = {"GET", "HEAD"}
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_HEADERS = "Content-Type, Authorization, Idempotency-Key, If-Match"
_EXPOSED = "ETag, Idempotent-Replayed, Location, Retry-After"
# Seconds. Long enough for a visit, short enough that a withdrawn origin is out soon.
_MAX_AGE = "600"
_ELSEWHERE = {"cross-site", "same-site"}


def personal(view: Callable[[str], flask.Response]) -> Callable[[str], flask.Response]:
    """Refuse pages elsewhere what is read by one person only, as they may not write.

    The view takes the id of a site.
    """

    @functools.wraps(view)
    def checked(site_id: str) -> flask.Response:
        check(site_settings.get(site_id))
        return view(site_id)

    checked.is_personal = True  # type: ignore[attr-defined]
    return checked


def is_personal() -> bool:
    """Whether the current request asks for what is for one person's eyes."""
    view = flask.current_app.view_functions.get(flask.request.endpoint or "")
    return bool(getattr(view, "is_personal", False))


def check(site: records.Site) -> None:
    """Refuse a call from a page that is neither the site's nor ours.

    Remembers for `add` whom the answer may be shown to, also if it turns into an error later.

    Raises:
        errors.Forbidden: the Origin is not registered, or the browser says that the page is
            elsewhere and names no Origin.
    """
    origin = flask.request.headers.get("Origin")
    if origin is None:
        if flask.request.headers.get("Sec-Fetch-Site") in _ELSEWHERE:
            raise errors.Forbidden("origin-missing")
        return
    if _is_own(origin):
        return
    if not _is_registered(origin, site):
        raise errors.Forbidden("origin-not-allowed", site=site.id)
    flask.g.cors_origin = origin


def preflight(site: records.Site | None) -> flask.Response:
    """The answer to a browser that asks before it calls."""
    response = flask.Response(status=204)
    del response.headers["Content-Type"]
    origin = flask.request.headers.get("Origin", "")
    if site is not None and _is_registered(origin, site):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Allow-Methods"] = _METHODS
        response.headers["Access-Control-Allow-Headers"] = _HEADERS
        response.headers["Access-Control-Max-Age"] = _MAX_AGE
    return response


def add(response: flask.Response) -> flask.Response:
    """Say who may see an answer of the API (an `after_request` of the application)."""
    if flask.request.path.startswith("/api/"):
        is_public = flask.request.method in _READS and not is_personal()
        allowed = "*" if is_public else flask.g.get("cors_origin")
        if allowed:
            response.headers["Access-Control-Allow-Origin"] = allowed
            response.headers["Access-Control-Expose-Headers"] = _EXPOSED
    return response


def _is_registered(origin: str, site: records.Site) -> bool:
    return origin != "null" and origin in site.origins


def _is_own(origin: str) -> bool:
    """Whether the page is one of this service.

    Behind a proxy that ends TLS we may not know our own scheme; the browser's own word, which no
    page can forge, then says so.
    """
    # As it was sent: the framework reads a host's name, and fails where that cannot be read.
    own = f"{flask.request.scheme}://{flask.request.host}"
    return origin == own or flask.request.headers.get("Sec-Fetch-Site") == "same-origin"
