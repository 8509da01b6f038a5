"""Security headers for every answer, including errors, 304, preflights and files.

A view's own headers are kept. There are four kinds of answers: the API (JSON that every site may
read but not frame), the widget's files (every site may load them), the service's own pages, and
threads as pages, which the site's pages may frame.
"""

import re
from collections.abc import Iterable

import flask

from comments import config
from comments.web.http import context

_API = "/api/"
_WIDGET = "/widget/"
# Includes answers without a view: unknown paths, methods that are not allowed.
_STAFF = re.compile("/admin(?:/|$)")

_EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Permissions-Policy": (
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"
    ),
}
# For answers that are not pages, in case a browser shows one as a document.
_INERT = "default-src 'none'; frame-ancestors 'none'; sandbox"
# No inline scripts or styles: the demo page and the widget load theirs as files.
_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types flatthread"
)
# A thread as a page runs no script. Its JSON-LD is a data block, which is not a script.
_FRAMED = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors {}"
)
# A year, for this host only: we do not know the owner's other hosts.
_HTTPS_ONLY = "max-age=31536000"
# Origins that are safe inside a policy: a semicolon or space would end the directive.
_ANCESTOR = re.compile(r"https?://[A-Za-z0-9._-]+(?::[0-9]+)?|https?://\[[0-9a-f:.]+\](?::[0-9]+)?")


def framed_by(origins: Iterable[str]) -> str:
    """Return the policy of a page without scripts that only pages of these origins may frame."""
    allowed = " ".join(origin for origin in origins if _ANCESTOR.fullmatch(origin))
    return _FRAMED.format(allowed or "'none'")


def add(response: flask.Response) -> flask.Response:
    """Add the missing headers to an answer (an `after_request` of the application)."""
    path = flask.request.path
    is_page = response.mimetype == "text/html"
    found = {
        **_EVERYWHERE,
        "Content-Security-Policy": _PAGE if is_page else _INERT,
        "Cross-Origin-Resource-Policy": _resource_policy(response),
        # The default, which also keeps errors out of caches.
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
    """Return the headers for answers of the HTTP server itself, such as to malformed requests."""
    return {
        **_EVERYWHERE,
        "Content-Security-Policy": _INERT,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def refused(settings: config.Settings) -> dict[str, str]:
    """Return the headers for answers of the gate, which do not reach the application."""
    found = {
        **unasked(),
        "Cross-Origin-Opener-Policy": "same-origin",
        "X-Robots-Tag": "noindex",
    }
    if _is_reached_by_https(settings):
        found["Strict-Transport-Security"] = _HTTPS_ONLY
    return found


def _is_reached_by_https(settings: config.Settings) -> bool:
    """Tell from the settings whether readers use HTTPS.

    The request does not count: a proxy may terminate TLS, and a cached answer must not depend on
    a value that is not part of its cache key.
    """
    return settings.on_app_engine or settings.public_url.startswith("https://")


def _resource_policy(response: flask.Response) -> str:
    path = flask.request.path
    is_read = flask.request.method in {"GET", "HEAD"}
    is_public = path.startswith(_API) and is_read and not response.cache_control.private
    return "cross-origin" if is_public or path.startswith(_WIDGET) else "same-origin"
