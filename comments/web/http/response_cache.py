"""Answers given before Flask is asked: GETs of public pages that are known, or known in form.

Most requests for a page are for one that was just sent. Flask's machinery would find that out at
three times the cost of the probe that proves it, so such an answer is given before Flask is asked:
with the headers that Flask gave it and the bytes that `answers` keeps. And the first page of one
thread is answered as that of another thread of its site was, or its own before a change, but for
bytes, length and tag: where it can be cut from the materialised thread, Flask would cost as much as
all the rest. What must stay true:

- An answer is given again only to the very same question (path, query, coding) and only while what
  it rests on is so: the site's settings, and the thread's tag by a probe of this request, or by
  one that is no older than the site's `freshness`.
- A question is like another one only if nothing but the value of `thread` differs, and that is read
  by the one that reads it for Flask.
- Whatever is in doubt goes to Flask: other methods, errors, a first request, a change, bytes that
  are not kept any more, a store that does not answer at once.
- Nothing is kept that depends on who asks: these answers never do.
"""

import functools
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_etags, remove_entity_headers

from comments import errors
from comments.domain import thread_ids
from comments.reading.materialized import thread_view
from comments.sites import site_settings
from comments.store import caches, connection
from comments.web.http import content_coding, context, responses

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

KEPT_BYTES = 4 * 1024 * 1024  # of one process; a replay is a few headers
_OVERHEAD = 4_000  # bytes of Python around one, roughly
PATIENCE = 1.0  # seconds for the store; who needs longer goes the ordinary way
_LONGEST = 2_000  # of a question that is remembered
_log = logging.getLogger("flatthread")
_THREAD = "thread="
_FAMILY = "of any thread"
_READS = ("GET", "HEAD")
_FOUND = "200 OK"
_UNCHANGED = "304 NOT MODIFIED"

# Path and query as they came, and the coding the client prefers.
_Question = tuple[str, str, content_coding.Coding]
# The same without the thread's id, and what tells it from a question.
_Family = tuple[str, str, content_coding.Coding, str]
_Headers = list[tuple[str, str]]


class _Replay(msgspec.Struct, frozen=True):
    """An answer's headers, those of its 304, its tag, and what it rests on."""

    basis: responses.Basis
    headers: _Headers
    unchanged: _Headers
    tag: str

    def stands(self, age: float) -> bool:
        """Whether everything it rests on is so now; of the thread, at most `age` seconds ago."""
        basis = self.basis
        return (
            site_settings.get(basis.site.id) == basis.site
            and thread_view.tag_before_view(basis.name, age) == basis.lasts
        )


class Replays:
    """A WSGI application that answers for another one where it knows the answer."""

    def __init__(self, wsgi: "WSGIApplication") -> None:
        self._wsgi = wsgi
        self._kept = caches.Cache[_Question | _Family, _Replay](KEPT_BYTES)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer a request. Call it inside the store's context."""
        # An upgrade is refused by Flask.
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
        """Answer as the same question about another thread was; None where that will not do."""
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
        """Remember the answer, if it is one that may be given again."""

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
    """Give an answer again; None if it does not stand any more or its bytes are gone."""
    body = responses.kept(replay.basis)
    if body is None or not _stands(replay, _age(replay, environ)):
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


def _stands(replay: _Replay, age: float) -> bool:
    try:
        with connection.within(PATIENCE):
            return replay.stands(age)
    except errors.FlatthreadError:
        return False


def _of_thread(
    like: _Replay, query: str, environ: "WSGIEnvironment"
) -> tuple[responses.Basis, responses.Body | None] | None:
    """What the same question about another thread is answered with; None where that will not do."""
    site = like.basis.site
    try:
        with connection.within(PATIENCE):
            if site_settings.get(site.id) != site:
                return None
            thread = thread_ids.thread_from_query(query.encode("latin-1"), site)
            is_known = functools.partial(_is_known, environ)
            age = _age(like, environ)
            return responses.of_thread(like.basis, thread, is_known, age=age)
    except errors.FlatthreadError:
        return None
    except Exception:  # noqa: BLE001 - what goes wrong again goes wrong where Flask's handlers are
        _log.warning("a page could not be made without Flask", exc_info=True)
        return None


def _with(headers: _Headers, own: Mapping[str, str]) -> _Headers:
    return [(name, own.get(name, value)) for name, value in headers]


def _replay(basis: responses.Basis, headers: _Headers) -> _Replay:
    return _Replay(basis, headers, list(_unchanged(headers)), _tag(headers))


def _is_known(environ: "WSGIEnvironment", tag: str) -> bool:
    """Whether the client names the tag; most name one, as it was sent."""
    known = environ.get("HTTP_IF_NONE_MATCH")
    return known is not None and (known == f'"{tag}"' or parse_etags(known).contains_weak(tag))


def _question(environ: "WSGIEnvironment") -> _Question:
    coding = _coding(environ.get("HTTP_ACCEPT_ENCODING"))
    return environ.get("PATH_INFO", ""), environ.get("QUERY_STRING", ""), coding


def _family(question: _Question) -> _Family | None:
    """What is the same of all questions that differ in the thread's id alone."""
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
    """The headers of a 304: those of the answer that do not speak of its body."""
    left = list(headers)
    remove_entity_headers(left)
    return iter(left)


def _tag(headers: _Headers) -> str:
    return next(value for name, value in headers if name == "ETag").strip('"')
