"""Which requests reach the application, and what of a proxy's headers counts: the outermost layer.

Owns what is decided by a request's host, script name and scheme before anything reads them, so that
it holds under every HTTP server:

- The application stands at the root of its host. A script name, which servers may take from a
  client's header, becomes a part of the path again.
- With PUBLIC_URL set, other hosts are answered 421. Free of that are `/healthz` and `/tasks/`,
  whose callers know a machine and no name, the names that App Engine gives the service, and HOSTS.
- X-Forwarded-Proto counts where TRUSTED_PROXIES says that a proxy stands in front, and on App
  Engine, which sets it. X-Forwarded-Host, -Port and -Prefix, and Forwarded, never count: PUBLIC_URL
  says what they would. X-Forwarded-For is read by `networks`.
"""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from comments import config
from comments.web.http import problems, response_shapes, security_headers

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_SCHEMES = {"http", "https"}
_FREE, _FREE_BELOW = "/healthz", "/tasks/"
_BAD_HOST = problems.document(400, "bad-host", "Host")
_BAD_SCHEME = problems.document(400, "bad-scheme", "X-Forwarded-Proto")
_OTHER_HOST = problems.document(421, "other-host", "Host")


class Gate:
    """A WSGI application that lets another one have the requests that are meant for it."""

    def __init__(self, wsgi: "WSGIApplication", settings: config.Settings) -> None:
        self._wsgi = wsgi
        self._is_ours = _hosts(settings)
        self._headers = security_headers.refused(settings)
        # App Engine's own front end is one proxy.
        self._proxies = 1 if settings.on_app_engine else settings.trusted_proxies

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer a request, or have it answered."""
        if script := environ.get("SCRIPT_NAME", ""):
            environ.update(SCRIPT_NAME="", PATH_INFO=script + environ.get("PATH_INFO", ""))
        problem = self._wrong_host(environ) or self._wrong_scheme(environ)
        if problem is None:
            return self._wsgi(environ, start_response)
        body = msgspec.json.encode(problem)
        sent = {"Content-Type": problems.CONTENT_TYPE, "Content-Length": str(len(body))}
        start_response(f"{problem.status} {problem.title}", list({**self._headers, **sent}.items()))
        return () if environ.get("REQUEST_METHOD") == "HEAD" else (body,)

    def _wrong_host(self, environ: "WSGIEnvironment") -> response_shapes.Problem | None:
        host = environ.get("HTTP_HOST", "")
        found = _HOST.fullmatch(host)
        if host and found is None:
            return _BAD_HOST
        path = environ.get("PATH_INFO", "")
        if path == _FREE or path.startswith(_FREE_BELOW):
            return None
        name = found[1].rstrip(".").lower() if found else ""
        return None if self._is_ours(name) else _OTHER_HOST

    def _wrong_scheme(self, environ: "WSGIEnvironment") -> response_shapes.Problem | None:
        said = environ.get("HTTP_X_FORWARDED_PROTO", "")
        if not self._proxies or not said:
            return None
        # As in X-Forwarded-For, what stands before the entries of our own proxies is a client's.
        schemes = [each.strip().lower() for each in said.split(",")]
        scheme = schemes[max(0, len(schemes) - self._proxies)]
        if scheme not in _SCHEMES:
            return _BAD_SCHEME
        environ["wsgi.url_scheme"] = scheme
        return None


def _hosts(settings: config.Settings) -> Callable[[str], bool]:
    """Tell which host names are this service's. Ports are a proxy's business and do not count."""
    if not settings.public_url:
        return lambda _: True
    public = urlsplit(settings.public_url).hostname or ""
    names = {public.rstrip("."), *settings.hosts}
    if not settings.on_app_engine:
        return names.__contains__
    # VERSION-dot-SERVICE-dot-PROJECT.REGION.r.appspot.com, with less in front or no region.
    project = settings.project.lower()
    return lambda name: name in names or _is_of_project(name, project)


def _is_of_project(name: str, project: str) -> bool:
    """Tell whether App Engine serves a project under this name."""
    label, *rest = name.split(".")
    is_of_engine = rest == ["appspot", "com"] or (rest[1:] == ["r", "appspot", "com"])
    return is_of_engine and (label == project or label.endswith(f"-dot-{project}"))
