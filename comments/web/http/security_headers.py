"""Security headers on every answer, whatever made it: an error, a 304, a preflight, a file.

What a view sets itself stays. Four kinds of answer: the API (JSON that any site may read, in no
frame and no document), the widget's files (any site may load them), the service's own pages, and
threads as pages, which the site's own pages may frame.
"""

import re
from collections.abc import Iterable

import flask

from comments import config
from comments.web.http import context

_API = "/api/"
_WIDGET = "/widget/"
# Also what no view of theirs answered: a path that is none, a method that is not allowed.
_STAFF = re.compile("/admin(?:/|$)")

_EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Permissions-Policy": (
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"
    ),
}
# What a document of ours could do if a browser were made to show one: nothing.
_INERT = "default-src 'none'; frame-ancestors 'none'; sandbox"
# No inline script or style anywhere: the demo page and the widget bring theirs as files.
_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types flatthread"
)
# A thread as a page runs nothing at all. Its JSON-LD is a data block, which is no script.
_FRAMED = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors {}"
)
# A year, of this host alone: which others its owner has is not ours to know.
_HTTPS_ONLY = "max-age=31536000"
# What can stand in a policy: a semicolon or blank in a stored origin must not end the rule.
_ANCESTOR = re.compile(r"https?://[A-Za-z0-9._-]+(?::[0-9]+)?|https?://\[[0-9a-f:.]+\](?::[0-9]+)?")


def framed_by(origins: Iterable[str]) -> str:
    """The policy of a page that runs nothing and that only pages of these origins may frame."""
    allowed = " ".join(origin for origin in origins if _ANCESTOR.fullmatch(origin))
    return _FRAMED.format(allowed or "'none'")


def add(response: flask.Response) -> flask.Response:
    """Complete the headers of an answer (an `after_request` of the application)."""
    path = flask.request.path
    is_page = response.mimetype == "text/html"
    found = {
        **_EVERYWHERE,
        "Content-Security-Policy": _PAGE if is_page else _INERT,
        "Cross-Origin-Resource-Policy": _resource_policy(response),
        # What says nothing, errors among it, is kept by nobody.
        "Cache-Control": "no-store",
    }
    if _is_reached_by_https(context.settings()):
        found["Strict-Transport-Security"] = _HTTPS_ONLY
    if path.startswith(_API):
        found["X-Robots-Tag"] = "noindex"
        response.vary.add("Origin")
    if _STAFF.match(path):
        found["X-Robots-Tag"] = "noindex"
        found["Cross-Origin-Opener-Policy"] = "same-origin"
    for name, value in found.items():
        response.headers.setdefault(name, value)
    return response


def unasked() -> dict[str, str]:
    """The headers of an answer to what never became a request, for the server that gives it."""
    return {
        **_EVERYWHERE,
        "Content-Security-Policy": _INERT,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def refused(settings: config.Settings) -> dict[str, str]:
    """The headers of an answer to a request that is kept from the application."""
    found = {
        **unasked(),
        "Cross-Origin-Opener-Policy": "same-origin",
        "X-Robots-Tag": "noindex",
    }
    if _is_reached_by_https(settings):
        found["Strict-Transport-Security"] = _HTTPS_ONLY
    return found


def _is_reached_by_https(settings: config.Settings) -> bool:
    """Whether people reach us by HTTPS, by the settings.

    Never by the request: a proxy may end TLS before us, and an answer that is kept must not depend
    on what nobody keeps it by.
    """
    return settings.on_app_engine or settings.public_url.startswith("https://")


def _resource_policy(response: flask.Response) -> str:
    path = flask.request.path
    is_read = flask.request.method in {"GET", "HEAD"}
    is_public = path.startswith(_API) and is_read and not response.cache_control.private
    return "cross-origin" if is_public or path.startswith(_WIDGET) else "same-origin"
