"""A response cache in front of Flask, for GETs of public pages.

Most requests are for a page that was sent recently. A probe shows whether the page is unchanged;
going through Flask takes three times as long as this probe. This middleware therefore answers such
requests before they reach Flask. The middleware sends the headers that Flask set earlier, and the
bytes that `responses` cached.

A cached response is sent only for the same cache key (path, query, coding), and only while its
basis is unchanged. The basis consists of the site's settings, the page's members that do not come
from its comments (`page_members`), and the thread's tag. The tag comes from a probe during this
request, or from an earlier probe that is no older than the site's `freshness`. All other requests
go through Flask: other methods, first requests, requests after a change, requests whose bytes are
no longer cached, and requests while the store is slow. Errors always come from Flask.
"""

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_etags, remove_entity_headers

from comments import errors
from comments.reading.materialized import thread_view
from comments.sites import site_settings
from comments.store import connection
from comments.store.memory import caches
from comments.web.http import content_coding, context, page_members, responses

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

KEPT_BYTES = 4 * 1024 * 1024  # Bytes per process; an entry contains only headers.
_OVERHEAD = 4_000  # Approximate size of an entry's Python objects, in bytes.
PATIENCE = 1.0  # Seconds; if the store takes longer, the request goes through Flask.
_LONGEST = 2_000  # Characters; responses with a longer cache key are not cached.
_READS = ("GET", "HEAD")
_FOUND = "200 OK"
_UNCHANGED = "304 NOT MODIFIED"

# The cache key: the path and query as the client sent them, and the coding that the client prefers.
_Question = tuple[str, str, content_coding.Coding]
_Headers = list[tuple[str, str]]


class _Replay(msgspec.Struct, frozen=True):
    """The headers of a response and of its 304, its ETag, and the state that it depends on."""

    basis: responses.Basis
    headers: _Headers
    unchanged: _Headers
    tag: str

    def is_current(self, age: float) -> bool:
        """Return whether the basis is unchanged, using a tag that is at most `age` seconds old."""
        basis = self.basis
        return (
            site_settings.get(basis.site.id) == basis.site
            and thread_view.tag_before_view(basis.name, age) == basis.lasts
            and page_members.of(basis.site, basis.name, basis.order, basis.service) == basis.members
        )


class Replays:
    """WSGI middleware that responds from the cache if possible."""

    def __init__(self, wsgi: "WSGIApplication") -> None:
        self._wsgi = wsgi
        self._kept = caches.Cache[_Question, _Replay](KEPT_BYTES)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer a request. Call this method within the store's context."""
        # Upgrade requests go to Flask, which refuses them.
        if environ["REQUEST_METHOD"] not in _READS or "HTTP_UPGRADE" in environ:
            return self._wsgi(environ, start_response)
        question = _question(environ)
        start = self._caching_start_response(question, environ, start_response)
        replay = self._kept.get(question)
        if replay is None:
            return self._wsgi(environ, start)
        try:
            answer = _cached_answer(replay, environ, start_response)
            return self._wsgi(environ, start) if answer is None else answer
        finally:
            thread_view.forget_probe()

    def _caching_start_response(
        self, question: _Question, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "StartResponse":
        """Return a `start_response` that caches the headers of cacheable responses."""

        def start(status: str, headers: _Headers, *rest: Any) -> Any:
            basis, size = environ.get(responses.BASIS), sum(map(len, question))
            if basis is not None and status == _FOUND and size < _LONGEST:
                self._kept.keep(question, _replay(basis, list(headers)), _OVERHEAD + size)
            return start_response(status, headers, *rest)

        return start


def _cached_answer(
    replay: _Replay, environ: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes] | None:
    """Return a cached response; None if its basis has changed or its bytes are no longer cached."""
    body = responses.cached_body(replay.basis)
    age = responses.age(replay.basis.site, environ.get("HTTP_CACHE_CONTROL", ""))
    if body is None or not _is_current(replay, age):
        return None
    environ[context.SITE] = replay.basis.site.id
    if _is_known(environ, replay.tag):
        start_response(_UNCHANGED, list(replay.unchanged))
        return ()
    start_response(_FOUND, list(replay.headers))
    return body if environ["REQUEST_METHOD"] == "GET" else ()


def _is_current(replay: _Replay, age: float) -> bool:
    try:
        with connection.within(PATIENCE):
            return replay.is_current(age)
    except errors.FlatthreadError:
        return False


def _replay(basis: responses.Basis, headers: _Headers) -> _Replay:
    unchanged = list(headers)
    remove_entity_headers(unchanged)
    tag = next(value for name, value in headers if name == "ETag").strip('"')
    return _Replay(basis, headers, unchanged, tag)


def _is_known(environ: "WSGIEnvironment", tag: str) -> bool:
    """Return whether the client has this ETag."""
    # Most clients send exactly the one ETag that they received, so this case is checked before
    # parsing.
    known = environ.get("HTTP_IF_NONE_MATCH")
    return known is not None and (known == f'"{tag}"' or parse_etags(known).contains_weak(tag))


def _question(environ: "WSGIEnvironment") -> _Question:
    coding = _coding(environ.get("HTTP_ACCEPT_ENCODING"))
    return environ.get("PATH_INFO", ""), environ.get("QUERY_STRING", ""), coding


@functools.lru_cache(maxsize=64)
def _coding(header: str | None) -> content_coding.Coding:
    return content_coding.preferred_coding(parse_accept_header(header, Accept))
