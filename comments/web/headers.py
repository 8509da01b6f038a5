"""Security headers on every answer, whatever made it: an error, a 304, a preflight, a file.

What a view sets itself stays. Three kinds of answer: the API (JSON that any site may read, in no
frame and no document), the widget's files (any site may load them), and the service's own pages.
"""

import flask

_API = "/api/"
_WIDGET = "/widget/"

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
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def add(response: flask.Response) -> flask.Response:
    """Complete the headers of an answer (an `after_request` of the application)."""
    path = flask.request.path
    is_page = response.mimetype == "text/html"
    found = {
        **_EVERYWHERE,
        "Content-Security-Policy": _PAGE if is_page else _INERT,
        "Cross-Origin-Resource-Policy": _resource_policy(path),
        # What says nothing, errors among it, is kept by nobody.
        "Cache-Control": "no-store",
    }
    if path.startswith(_API):
        found["X-Robots-Tag"] = "noindex"
        response.vary.add("Origin")
    for name, value in found.items():
        response.headers.setdefault(name, value)
    return response


def _resource_policy(path: str) -> str:
    is_read = flask.request.method in {"GET", "HEAD"}
    is_public = path.startswith(_WIDGET) or (path.startswith(_API) and is_read)
    return "cross-origin" if is_public else "same-origin"
