"""CORS: decide which pages may call the API from a browser.

Any page may read public data: the API allows the origin `*`, without credentials. Only pages of
this service and of the site's registered origins may write, or may read personal data. Origins are
compared exactly. The API uses no cookies, so these checks do not protect a session. The checks
prevent other pages from posting on behalf of their visitors. Responses name only registered
origins, and `null` is never registered.
"""

import contextlib
import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import flask

from comments import errors
from comments.domain import records
from comments.domain.text.addresses import host_names
from comments.sites import site_aliases, site_settings, site_setup
from comments.web.http import context

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

API = "/api/"
# Lets pages of any origin read refusals that are sent before the application runs and contain only
# a reason. Otherwise, the widget could not distinguish such a refusal from a failed connection.
REFUSED = {"Access-Control-Allow-Origin": "*"}
_READS = {"GET", "HEAD"}
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_HEADERS = "Content-Type, Authorization, Idempotency-Key, If-Match"
_EXPOSED = "Age, Date, ETag, Idempotent-Replayed, Link, Location, Retry-After"
# Seconds; long enough for a visit, and short enough that a removed origin soon loses access.
_MAX_AGE = "600"
_ELSEWHERE = {"cross-site", "same-site"}
# The path that the widget requests when it shows a thread.
_LISTING = re.compile(r"/api/v1/sites/([a-z0-9-]{1,63})/comments")


def personal(view: Callable[[str], flask.Response]) -> Callable[[str], flask.Response]:
    """Decorate a view that returns personal data, so that pages of other origins cannot read it.

    The view's only argument is the site's id.
    """

    @functools.wraps(view)
    def view_after_check(site_id: str) -> flask.Response:
        check(site_settings.get(site_id))
        return view(site_id)

    view_after_check.is_personal = True  # type: ignore[attr-defined]
    return view_after_check


def is_personal() -> bool:
    """Return whether the current request reads personal data."""
    view = flask.current_app.view_functions.get(flask.request.endpoint or "")
    return bool(flask.g.get("is_personal") or getattr(view, "is_personal", False))


def check(site: records.Site) -> None:
    """Refuse a call from a page that belongs neither to the site nor to this service.

    Store the origin for `headers`, so that the page can read the response even if it is an error.

    Raises:
        errors.Forbidden: the Origin is not registered, or the request has no Origin although the
            browser marked it as coming from another site.
    """
    request = context.request()
    origin = request.headers.get("Origin")
    if origin is None:
        if request.headers.get("Sec-Fetch-Site") in _ELSEWHERE:
            raise errors.Forbidden("origin-missing")
        return
    if _is_own(origin, request):
        return
    if not _is_registered(origin, site):
        raise errors.Forbidden("origin-not-allowed", site=site.id)
    flask.g.cors_origin = origin


def is_on_own_page(site: records.Site) -> bool:
    """Return whether a GET comes from a page of the site or, without an origin, of this service."""
    return flask.request.headers.get("Origin") in {None, *site.origins}


def is_test_page(site: records.Site, thread: str) -> bool:
    """Return whether a page on a local host names a thread of a website on public hosts.

    Such a page is not the thread's own page, so its title and categories may differ.
    """
    host = flask.request.headers.get("Origin", "").partition("://")[2]
    if not host or not host_names.is_local(host) or thread.startswith(f"{host}/"):
        return False
    hosts = (origin.partition("://")[2] for origin in site.origins)
    return not all(map(host_names.is_local, hosts))


def note_page(environ: "WSGIEnvironment") -> None:
    """Record the origin of a page that requested the comments of a website."""
    origin = environ.get("HTTP_ORIGIN")
    if not origin or environ["REQUEST_METHOD"] != "GET":
        return
    match = _LISTING.fullmatch(environ.get("PATH_INFO", ""))
    # If a browser sends an Origin for a page of this service, it also says that the origin is the
    # same.
    if not match or environ.get("HTTP_SEC_FETCH_SITE") == "same-origin":
        return
    with contextlib.suppress(errors.FlatthreadError):  # The response is already complete.
        if site_id := site_aliases.known_id(match[1]):
            site_setup.note(site_settings.get(site_id), origin, now=context.now())


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


def headers(method: str) -> dict[str, str]:
    """Return the CORS headers for the API's response to a request with this method."""
    is_public = method in _READS and not is_personal()
    allowed = "*" if is_public else flask.g.get("cors_origin")
    if not allowed:
        return {}
    return {"Access-Control-Allow-Origin": allowed, "Access-Control-Expose-Headers": _EXPOSED}


def _is_registered(origin: str, site: records.Site) -> bool:
    return origin != "null" and origin in site.origins


def _is_own(origin: str, request: flask.Request) -> bool:
    """Return whether the calling page belongs to this service.

    Behind a proxy that terminates TLS, the service may not know its own scheme. Then Sec-Fetch-Site
    decides, because no page can forge that header.
    """
    # The Host header is used as the client sent it, because Flask's URL properties fail on names
    # that they cannot decode.
    own = f"{request.scheme}://{request.host}"
    return origin == own or request.headers.get("Sec-Fetch-Site") == "same-origin"
