"""CORS: which pages may call the API from a browser.

Every page may read public data: `*`, without credentials. Only pages of the site's registered
origins, compared exactly, and the service's own pages may write or read personal data. The API has
no cookies, so these checks do not protect a session; they keep other pages from posting in their
visitors' names. Only registered origins are reflected, and `null` is never one.
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
# Seconds. Long enough for a visit, short enough that a removed origin loses access soon.
_MAX_AGE = "600"
_ELSEWHERE = {"cross-site", "same-site"}


def personal(view: Callable[[str], flask.Response]) -> Callable[[str], flask.Response]:
    """Refuse reads of personal data from pages of other origins, as writes are refused.

    The view takes the id of a site.
    """

    @functools.wraps(view)
    def checked(site_id: str) -> flask.Response:
        check(site_settings.get(site_id))
        return view(site_id)

    checked.is_personal = True  # type: ignore[attr-defined]
    return checked


def is_personal() -> bool:
    """Tell whether the current request reads personal data."""
    view = flask.current_app.view_functions.get(flask.request.endpoint or "")
    return bool(getattr(view, "is_personal", False))


def check(site: records.Site) -> None:
    """Refuse a call from a page that belongs neither to the site nor to this service.

    Store the origin for `add`, so that the page can read the answer even if it becomes an error.

    Raises:
        errors.Forbidden: the Origin is not registered, or the browser says that the call comes from
            another site but sends no Origin.
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
    """Answer a browser's preflight request."""
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
    """Add the CORS headers to an answer of the API (an `after_request` of the application)."""
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
    """Tell whether the page is one of this service.

    Behind a proxy that terminates TLS, the service may not know its own scheme. Sec-Fetch-Site then
    decides, which no page can forge.
    """
    # The Host header as sent: Flask's parsed host fails on names that it cannot decode.
    own = f"{flask.request.scheme}://{flask.request.host}"
    return origin == own or flask.request.headers.get("Sec-Fetch-Site") == "same-origin"
