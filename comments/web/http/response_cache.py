"""A response cache in front of Flask, for GETs of public pages.

Most requests ask for a page that was just sent. Flask takes three times as long as the probe, which
shows whether the page is unchanged. This middleware therefore answers such requests before Flask
does, with the headers that Flask set earlier and the bytes that `responses` cached.

The cache can also answer the first page of a thread with cached headers of a different thread of
the same site, or of the same thread before a change. Only the body, its length and the ETag are
new. If such a page can be read from the compacted thread, this saves half of the total time.

Invariants:

1. A cached answer is sent only for the same cache key (path, query, coding), and only while its
   basis is unchanged. The basis is the site's settings, the page's members that do not come from
   its comments (`page_members`), and the thread's tag. The tag comes from a probe during this
   request, or from a probe that is no older than the site's `freshness`.
2. Headers are shared only between requests that differ only in the value of `thread`. This module
   and Flask's views read that value with the same function in `thread_parameters`.
3. All other requests go through Flask: other methods, first requests, requests after a change,
   requests whose bytes are no longer cached, and requests while the store is slow. Errors always
   come from Flask.
4. No cached answer depends on the caller.
"""

import functools
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_etags, remove_entity_headers

from comments import errors
from comments.reading.materialized import thread_view
from comments.sites import site_settings
from comments.store import caches, connection
from comments.web.http import content_coding, context, page_members, responses
from comments.web.http.decode import thread_parameters

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

KEPT_BYTES = 4 * 1024 * 1024  # Per process; an entry contains only headers.
_OVERHEAD = 4_000  # Approximate size of an entry's Python objects, in bytes.
PATIENCE = 1.0  # Seconds; if the store takes longer, the request goes through Flask.
_LONGEST = 2_000  # Characters; answers with a longer cache key are not cached.
_log = logging.getLogger("flatthread")
_THREAD = "thread="
_FAMILY = "of any thread"
_READS = ("GET", "HEAD")
_FOUND = "200 OK"
_UNCHANGED = "304 NOT MODIFIED"

# The cache key: the path and query as the client sent them, and the coding that the client prefers.
_Question = tuple[str, str, content_coding.Coding]
# The cache key shared by all threads of a site: the same values without the thread's id, and a
# marker.
_Family = tuple[str, str, content_coding.Coding, str]
_Headers = list[tuple[str, str]]


class _Replay(msgspec.Struct, frozen=True):
    """The headers of an answer and of its 304, its ETag, and the state that it depends on."""

    basis: responses.Basis
    headers: _Headers
    unchanged: _Headers
    tag: str

    def is_current(self, age: float) -> bool:
        """Compare the basis with a tag of the thread that is at most `age` seconds old."""
        basis = self.basis
        return (
            site_settings.get(basis.site.id) == basis.site
            and thread_view.tag_before_view(basis.name, age) == basis.lasts
            and page_members.of(basis.site, basis.name, basis.order, basis.service) == basis.members
        )


class Replays:
    """WSGI middleware that answers from the cache if possible."""

    def __init__(self, wsgi: "WSGIApplication") -> None:
        self._wsgi = wsgi
        self._kept = caches.Cache[_Question | _Family, _Replay](KEPT_BYTES)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer a request. Call this method inside the store's context."""
        # Flask refuses upgrades.
        if environ["REQUEST_METHOD"] not in _READS or "HTTP_UPGRADE" in environ:
            return self._wsgi(environ, start_response)
        question = _question(environ)
        family = _family(question)
        start = self._noting(question, family, environ, start_response)
        replay = self._kept.get(question)
        like = self._kept.get(family) if family else None
        answer = None
        try:
            if replay is not None:
                answer = _again(replay, environ, start_response)
            if answer is None and like is not None:
                answer = self._like_another(like, question, environ, start_response)
            if answer is None:
                answer = self._wsgi(environ, start)
            return answer
        finally:
            if replay is not None:
                thread_view.forget_probe()

    def _like_another(
        self,
        like: _Replay,
        question: _Question,
        environ: "WSGIEnvironment",
        start_response: "StartResponse",
    ) -> Iterable[bytes] | None:
        """Answer with the cached headers of a different thread; None if only Flask can answer."""
        found = _of_thread(like, question[1], environ)
        if found is None:
            return None
        basis, body = found
        environ[context.SITE] = basis.site.id
        tag = content_coding.tag(basis.tag, basis.place[1])
        if body is None:
            start_response(_UNCHANGED, _with(like.unchanged, {"ETag": f'"{tag}"'}))
            return ()
        size = str(sum(map(len, body)))
        own = {"ETag": f'"{tag}"', "Content-Length": size}
        headers, unchanged = _with(like.headers, own), _with(like.unchanged, own)
        replay = _Replay(basis, headers, unchanged, tag)
        self._keep(question, replay)
        return _given(replay, body, environ, start_response)

    def _keep(self, question: _Question | _Family, replay: _Replay) -> None:
        if len("".join(question)) < _LONGEST:
            self._kept.keep(question, replay, _OVERHEAD + sum(map(len, question)))

    def _noting(
        self,
        question: _Question,
        family: _Family | None,
        environ: "WSGIEnvironment",
        start_response: "StartResponse",
    ) -> "StartResponse":
        """Return a `start_response` that caches the headers of cacheable answers."""

        def start(status: str, headers: _Headers, *rest: Any) -> Any:
            basis = environ.get(responses.BASIS)
            if basis is not None and status == _FOUND:
                replay = _replay(basis, list(headers))
                self._keep(question, replay)
                if family is not None and basis.asked is not None:
                    self._keep(family, replay)
            return start_response(status, headers, *rest)

        return start


def _again(
    replay: _Replay, environ: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes] | None:
    """Return a cached answer; None if its basis has changed or its bytes are no longer cached."""
    body = responses.kept(replay.basis)
    if body is None or not _is_current(replay, _age(replay, environ)):
        return None
    environ[context.SITE] = replay.basis.site.id
    return _given(replay, body, environ, start_response)


def _given(
    replay: _Replay,
    body: responses.Body,
    environ: "WSGIEnvironment",
    start_response: "StartResponse",
) -> Iterable[bytes]:
    if _is_known(environ, replay.tag):
        start_response(_UNCHANGED, list(replay.unchanged))
        return ()
    start_response(_FOUND, list(replay.headers))
    return body if environ["REQUEST_METHOD"] == "GET" else ()


def _age(replay: _Replay, environ: "WSGIEnvironment") -> float:
    return responses.age(replay.basis.site, environ.get("HTTP_CACHE_CONTROL", ""))


def _is_current(replay: _Replay, age: float) -> bool:
    try:
        with connection.within(PATIENCE):
            return replay.is_current(age)
    except errors.FlatthreadError:
        return False


def _of_thread(
    like: _Replay, query: str, environ: "WSGIEnvironment"
) -> tuple[responses.Basis, responses.Body | None] | None:
    """Return the page of the thread in `query`; None if only Flask can answer.

    The query may differ from the cached one only in the thread's id.
    """
    site = like.basis.site
    try:
        with connection.within(PATIENCE):
            if site_settings.get(site.id) != site:
                return None
            thread = thread_parameters.thread(query.encode("latin-1"), site)
            is_known = functools.partial(_is_known, environ)
            age = _age(like, environ)
            return responses.of_thread(like.basis, thread, is_known, age=age)
    except errors.FlatthreadError:
        return None
    except Exception:  # noqa: BLE001 - if it happens again in Flask, the error handlers see it
        _log.warning("a page could not be made without Flask", exc_info=True)
        return None


def _with(headers: _Headers, own: Mapping[str, str]) -> _Headers:
    return [(name, own.get(name, value)) for name, value in headers]


def _replay(basis: responses.Basis, headers: _Headers) -> _Replay:
    return _Replay(basis, headers, list(_unchanged(headers)), _tag(headers))


def _is_known(environ: "WSGIEnvironment", tag: str) -> bool:
    """Tell whether the client has this ETag."""
    # Most clients send exactly the one ETag that they received, so compare that before parsing.
    known = environ.get("HTTP_IF_NONE_MATCH")
    return known is not None and (known == f'"{tag}"' or parse_etags(known).contains_weak(tag))


def _question(environ: "WSGIEnvironment") -> _Question:
    coding = _coding(environ.get("HTTP_ACCEPT_ENCODING"))
    return environ.get("PATH_INFO", ""), environ.get("QUERY_STRING", ""), coding


def _family(question: _Question) -> _Family | None:
    """Return the key shared by all requests that differ only in the thread's id."""
    path, query, coding = question
    pieces = query.split("&")
    named = [place for place, piece in enumerate(pieces) if piece.startswith(_THREAD)]
    if len(named) != 1:
        return None
    pieces[named[0]] = _THREAD
    return path, "&".join(pieces), coding, _FAMILY


@functools.lru_cache(maxsize=64)
def _coding(header: str | None) -> content_coding.Coding:
    return content_coding.preferred(parse_accept_header(header, Accept))


def _unchanged(headers: _Headers) -> Iterator[tuple[str, str]]:
    """Return the headers for a 304: all headers except those that describe the body."""
    left = list(headers)
    remove_entity_headers(left)
    return iter(left)


def _tag(headers: _Headers) -> str:
    return next(value for name, value in headers if name == "ETag").strip('"')
