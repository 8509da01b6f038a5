"""The outermost layer: check a request's host, script name and scheme before all other code.

The gate works in the same way under every HTTP server:

- The application is served at the root of its host. Some HTTP servers take a script name from a
  request header, so the gate moves the script name back into the path.
- If PUBLIC_URL is set, the gate answers requests for other hosts with 421. The gate also accepts
  the names in HOSTS and the names that App Engine gives the service. For `/healthz`, `/metrics` and
  `/tasks/`, the gate accepts any host, because callers may know only an IP address.
- The gate trusts X-Forwarded-Proto only behind TRUSTED_PROXIES and on App Engine, which sets the
  header. The gate ignores X-Forwarded-Host, -Port and -Prefix, and Forwarded, because PUBLIC_URL
  replaces them. `context` reads X-Forwarded-For.
"""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from comments import config
from comments.web.http import cors, problems, security_headers

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_SCHEMES = {"http", "https"}
_FREE, _FREE_BELOW = {"/healthz", "/metrics", "/metrics.json"}, "/tasks/"
_BAD_HOST = problems.document(400, "bad-host", "Host")
_BAD_SCHEME = problems.document(400, "bad-scheme", "X-Forwarded-Proto")
_OTHER_HOST = problems.document(421, "other-host", "Host")


class Gate:
    """WSGI middleware that passes on requests for this service and answers all others itself."""

    def __init__(self, wsgi: "WSGIApplication", settings: config.Settings) -> None:
        self._wsgi = wsgi
        self._is_ours = _hosts(settings)
        self._headers = security_headers.gate_headers(settings)
        # App Engine's front end counts as one proxy.
        self._proxies = 1 if settings.on_app_engine else settings.trusted_proxies

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Pass a request on, or refuse it."""
        if script := environ.get("SCRIPT_NAME", ""):
            environ.update(SCRIPT_NAME="", PATH_INFO=script + environ.get("PATH_INFO", ""))
        problem = self._wrong_host(environ) or self._wrong_scheme(environ)
        if problem is None:
            return self._wsgi(environ, start_response)
        body = msgspec.json.encode(problem)
        sent = {"Content-Type": problems.CONTENT_TYPE, "Content-Length": str(len(body))}
        if environ.get("PATH_INFO", "").startswith(cors.API):
            sent |= cors.REFUSED
        start_response(f"{problem.status} {problem.title}", list({**self._headers, **sent}.items()))
        return () if environ.get("REQUEST_METHOD") == "HEAD" else (body,)

    def _wrong_host(self, environ: "WSGIEnvironment") -> problems.Problem | None:
        host = environ.get("HTTP_HOST", "")
        match = _HOST.fullmatch(host)
        if host and match is None:
            return _BAD_HOST
        path = environ.get("PATH_INFO", "")
        if path in _FREE or path.startswith(_FREE_BELOW):
            return None
        name = match[1].rstrip(".").lower() if match else ""
        return None if self._is_ours(name) else _OTHER_HOST

    def _wrong_scheme(self, environ: "WSGIEnvironment") -> problems.Problem | None:
        forwarded = environ.get("HTTP_X_FORWARDED_PROTO", "")
        if not self._proxies or not forwarded:
            return None
        # Our proxies append their entries, as in X-Forwarded-For. The client may have forged
        # earlier entries.
        schemes = [scheme.strip().lower() for scheme in forwarded.split(",")]
        scheme = schemes[max(0, len(schemes) - self._proxies)]
        if scheme not in _SCHEMES:
            return _BAD_SCHEME
        environ["wsgi.url_scheme"] = scheme
        return None


def _hosts(settings: config.Settings) -> Callable[[str], bool]:
    """Return a function that returns whether a host name belongs to this service.

    Ports are not compared, because proxies can change the port.
    """
    if not settings.public_url:
        return lambda _: True
    public = urlsplit(settings.public_url).hostname or ""
    names = {public.rstrip("."), *settings.hosts}
    if not settings.on_app_engine:
        return names.__contains__
    # VERSION-dot-SERVICE-dot-PROJECT.REGION.r.appspot.com; all parts but the project are optional.
    project = settings.project.lower()
    return lambda name: name in names or _is_of_project(name, project)


def _is_of_project(name: str, project: str) -> bool:
    """Return whether App Engine serves the project under this host name."""
    label, *rest = name.split(".")
    is_of_engine = rest == ["appspot", "com"] or (rest[1:] == ["r", "appspot", "com"])
    return is_of_engine and (label == project or label.endswith(f"-dot-{project}"))
