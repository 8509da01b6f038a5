"""Security headers for every response, including errors, 304, preflights and files.

Headers that a view sets itself are not replaced. There are four kinds of responses:

- The API returns JSON, which any site may read but not show in a frame.
- Any site may load the widget's files.
- Other sites may not show the service's own pages in a frame.
- Pages of the site may show its threads in a frame.
"""

import re
from collections.abc import Iterable

import flask

from comments import config
from comments.web.http import context, cors

_WIDGET = "/widget/"
# Responses are classified by path, because some have no view: those for unknown paths, and those
# for methods that are not allowed.
_STAFF = re.compile("/admin(?:/|$)")

_EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Permissions-Policy": (
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"
    ),
}
# These headers are for responses that are not pages, in case a browser shows one as a document.
_INERT = "default-src 'none'; frame-ancestors 'none'; sandbox"
# Inline scripts and styles are forbidden; the demo page and the widget load theirs from files.
_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types flatthread"
)
# The page of all examples shows each example in a frame.
FRAMING = f"{_PAGE}; frame-src 'self'"
FRAMED_BY_OURSELVES = _PAGE.replace("frame-ancestors 'none'", "frame-ancestors 'self'")
# A page with a thread runs no script. The page's JSON-LD is a data block, which browsers do not
# execute.
_FRAMED = (
    "default-src 'none'; style-src 'self'; img-src {}; base-uri 'none'; form-action {}; "
    "frame-ancestors {}"
)
# One year, for this host only, because the service does not know whether other hosts support HTTPS.
_HTTPS_ONLY = "max-age=31536000"
# Matches only origins that cannot break the policy's syntax. A semicolon would end the directive,
# and a space would end the value.
_ORIGIN = re.compile(r"https?://[A-Za-z0-9._-]+(?::[0-9]+)?|https?://\[[0-9a-f:.]+\](?::[0-9]+)?")


def framing_policy(origins: Iterable[str], images: Iterable[str], *, has_form: bool) -> str:
    """Return the policy for a page without scripts that only pages of `origins` may frame.

    The page may show images of the origins in `images`.
    """
    return _FRAMED.format(
        " ".join(["'self'", *_safe(images)]),
        "'self'" if has_form else "'none'",
        " ".join(_safe(origins)) or "'none'",
    )


def _safe(origins: Iterable[str]) -> list[str]:
    return [origin for origin in origins if _ORIGIN.fullmatch(origin)]


def add(response: flask.Response) -> flask.Response:
    """Add the missing headers, and the CORS headers, to a response (an `after_request`)."""
    request = context.request()
    path, is_read = request.path, request.method in {"GET", "HEAD"}
    is_page, is_of_api = response.mimetype == "text/html", path.startswith(cors.API)
    is_public = is_of_api and is_read and not response.cache_control.private
    headers = {
        **_EVERYWHERE,
        "Content-Security-Policy": _PAGE if is_page else _INERT,
        "Cross-Origin-Resource-Policy": (
            "cross-origin" if is_public or path.startswith(_WIDGET) else "same-origin"
        ),
        # The default policy also keeps caches from storing errors.
        "Cache-Control": "no-store",
    }
    if _is_reached_by_https(context.settings()):
        headers["Strict-Transport-Security"] = _HTTPS_ONLY
    if is_of_api:
        headers["X-Robots-Tag"] = "noindex"
        varies = response.headers.get("Vary")
        response.headers["Vary"] = f"{varies}, Origin" if varies else "Origin"
        headers |= cors.headers(request.method)
    if _STAFF.match(path):
        headers["X-Robots-Tag"] = "noindex"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
    set_by_view = {name.lower() for name, _ in response.headers}
    for name, value in headers.items():
        if name.lower() not in set_by_view:
            response.headers.add(name, value)
    return response


def server_headers() -> dict[str, str]:
    """Return the headers for responses that the HTTP server itself sends to malformed requests."""
    return {
        **_EVERYWHERE,
        "Content-Security-Policy": _INERT,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def gate_headers(settings: config.Settings) -> dict[str, str]:
    """Return the headers for the gate's responses, which bypass the application."""
    headers = {
        **server_headers(),
        "Cross-Origin-Opener-Policy": "same-origin",
        "X-Robots-Tag": "noindex",
    }
    if _is_reached_by_https(settings):
        headers["Strict-Transport-Security"] = _HTTPS_ONLY
    return headers


def _is_reached_by_https(settings: config.Settings) -> bool:
    """Return whether readers use HTTPS, according to the settings.

    The request's scheme is not used, for two reasons: a proxy may terminate TLS, and a cached
    response must not depend on a value that is not part of its cache key.
    """
    return settings.on_app_engine or settings.public_url.startswith("https://")
