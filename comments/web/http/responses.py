"""How a value becomes an answer: its bytes in a coding, its tag, and how long it may be kept.

What anyone may read carries a strong tag, and a request that names the tag gets 304 before any
byte of the answer is made. Pages that do not change are kept as they are sent, in a bounded cache
of this process, so they are put together and compressed once. What must stay true:

- A whole thread is kept and sent in pieces, one for each bucket: after a change only the pieces
  that show it are made and compressed again. They are not kept joined, which would take their
  memory twice, and not made while they are sent: length and faults are known before the first byte
  leaves.
- Nothing is kept that depends on who asks: a page is kept under what was asked and the tag of its
  content. A page of another tag takes its place, so a text that is gone leaves with the next
  request for the page.
- Errors and answers to writes never come here to be kept.
"""

import hashlib
import http
import re
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

import flask
import msgspec

from comments.domain import presentation, records
from comments.reading import full_thread, page_source, thread_pages
from comments.reading.materialized import chunks
from comments.store import caches, per_process
from comments.web.http import content_coding, context

_JSON = "application/json"
KEPT_BYTES = 32 * 1024 * 1024  # of one process
_OVERHEAD = 500  # bytes of Python around a page that is kept, roughly

BASIS = "flatthread.basis"  # under which a request's environment holds one

# What a browser says when a page is reloaded: it wants what is there now.
_WANTS_NOW = re.compile(r"(?<![\w-])(no-cache|no-store|max-age\s*=\s*0+)(?![\w-])", re.IGNORECASE)

Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)
Body = tuple[bytes, ...]  # what is sent, piece after piece
_Place = tuple[str, content_coding.Coding]
_Parts = Mapping[bytes, content_coding.Part]


class Basis(msgspec.Struct, frozen=True):
    """What a page that was sent rests on: while all of it is so, the page is the same.

    `lasts` is the thread's tag. The page's bytes are kept at `place` under `tag`. `asked` is what
    a first page in reading order was asked with, and the same of the site's other threads is; None
    for other pages.
    """

    site: records.Site
    name: records.ThreadName
    lasts: str
    place: _Place
    tag: str
    asked: thread_pages.Asked | None = None


class _Kept(msgspec.Struct, frozen=True):
    """A page as it is sent, and its parts by their marks if it is made of such."""

    tag: str
    body: Body
    parts: _Parts = msgspec.field(default_factory=dict)


PAGES = per_process.PerProcess(lambda: caches.Cache[_Place, _Kept](KEPT_BYTES))

# Makes what is kept of a page in a coding; some of its parts may be known.
_Make = Callable[[content_coding.Coding, _Parts], _Kept]


class Fixed(msgspec.Struct, frozen=True):
    """An answer that stays the same while the process runs, in every coding."""

    tag: str
    codings: dict[content_coding.Coding, bytes]


class Source(Protocol[Made_co]):
    """What answers with a page: a `page_source.PageSource`, or the feed of a site."""

    key: str
    tag: str

    def look(self, age: float = 0.0) -> str:
        """Find out what the page is made of; its tag, "" if only the page tells."""

    def make(self) -> Made_co:
        """Make the page."""


class Form(msgspec.Struct, Generic[Made], frozen=True):
    """How a page is put into bytes. `made_of` names everything but the page that goes into them.

    `describe` gives headers of an answer that sends the page.
    """

    render: Callable[[Made], bytes]
    made_of: str = ""
    content_type: str = _JSON
    describe: Callable[[Made], dict[str, str]] | None = None


_AS_JSON = Form(presentation.ThreadPage.json)


def age(site: records.Site, cache_control: str) -> float:
    """How many seconds old a page may be for a request with this `Cache-Control`; "" for none."""
    if not site.freshness or _WANTS_NOW.search(cache_control):
        return 0.0
    return float(site.freshness)


def fixed(data: bytes) -> Fixed:
    """Code an answer once."""
    return Fixed(
        _digest(data), {each: content_coding.encode(data, each) for each in content_coding.Coding}
    )


def unchanging(answer: Fixed, *, content_type: str = _JSON) -> flask.Response:
    """An answer coded before."""
    return _negotiated(
        lambda: answer.tag,
        lambda coding: (answer.tag, answer.codings[coding]),
        content_type=content_type,
    )


def cacheable(data: bytes, *, content_type: str = _JSON) -> flask.Response:
    """An answer that anyone may keep but must ask about again: 304 while it is the same bytes."""
    tag = _digest(data)
    return _negotiated(
        lambda: tag,
        lambda coding: (tag, content_coding.encode(data, coding)),
        content_type=content_type,
    )


def listing(source: thread_pages.ListingPage, site: records.Site) -> flask.Response:
    """A page of comments, as JSON."""
    return page(source, site, _AS_JSON)


def page(source: Source[Made], site: records.Site, form: Form[Made]) -> flask.Response:
    """A page in a form, as it is kept or made anew."""
    rendered: list[tuple[Made, bytes]] = []  # once for each page that is made

    def data() -> bytes:
        found = source.make()
        if not rendered or rendered[-1][0] is not found:
            rendered.append((found, form.render(found)))
        return rendered[-1][1]

    def tag() -> str:
        if not source.tag:
            return _digest(data())
        return _digest(f"{source.tag} {form.made_of}".encode()) if form.made_of else source.tag

    def make(coding: content_coding.Coding, _parts: _Parts) -> _Kept:
        body = data()
        if coding is not content_coding.Coding.IDENTITY:
            body = content_coding.encode(body, coding)
        return _Kept(tag(), (body,))  # the tag is another one if the thread changed meanwhile

    response = _sent(source, f"{form.made_of} {source.key}", site, tag, make, form.content_type)
    if form.describe and response.status_code == http.HTTPStatus.OK:
        response.headers.update(form.describe(source.make()))
    return response


def whole(source: full_thread.WholeThread, site: records.Site) -> flask.Response:
    """A whole thread or subtree, in pieces that are kept."""

    def tag() -> str:
        return source.tag or _digest(source.make().json())

    def make(coding: content_coding.Coding, known: _Parts) -> _Kept:
        source.known = known
        found = source.make()
        return _in_pieces(found, tag(), coding, known)

    return _sent(source, f" {source.key}", site, tag, make, _JSON)


def of_thread(
    basis: Basis, thread: str, is_known: Callable[[str], bool], *, age: float = 0.0
) -> tuple[Basis, Body | None] | None:
    """The answer to the basis' question about a thread, `age` seconds old at most, and its basis.

    There are no bytes for who knows its tag, as it is sent. None where only `page` can answer.
    """
    if basis.asked is None:
        return None
    source = thread_pages.InOrder(records.ThreadName(basis.site.id, thread), basis.asked)
    if not source.look(age):
        return None
    coding = basis.place[1]
    place, body = (f" {source.key}", coding), None
    if not is_known(content_coding.tag(source.tag, coding)):
        cache = PAGES.get()
        made = cache.get(place)
        if made is None or made.tag != source.tag:
            data = content_coding.encode(source.make().json(), coding)
            if not source.tag:
                return None  # the thread changed meanwhile, and only the ordered query knows it
            made = _Kept(source.tag, (data,))
            cache.keep(place, made, len(place[0]) + len(data) + _OVERHEAD)
        body = made.body
    return Basis(basis.site, source.name, source.lasts, place, source.tag, source.asked), body


def fresh(value: msgspec.Struct, status: int = 200) -> flask.Response:
    """An answer to one caller, kept by nobody."""
    response = flask.Response(msgspec.json.encode(value), status=status, content_type=_JSON)
    response.headers["Cache-Control"] = "no-store"
    return response


def of_comment(value: msgspec.Struct, revision: int, status: int = 200) -> flask.Response:
    """An answer to one caller that shows a comment: its tag is the revision, for If-Match."""
    response = fresh(value, status)
    response.headers["ETag"] = f'"{revision}"'
    return response


def private(response: flask.Response) -> flask.Response:
    """Keep an answer to one caller from everybody else, whatever stands between us."""
    response.headers["Cache-Control"] = "private, no-store"
    response.vary.add("Authorization")
    return response


def kept(basis: Basis) -> Body | None:
    """What was sent of a page, if it is kept."""
    found = PAGES.get().get(basis.place)
    return found.body if found is not None and found.tag == basis.tag else None


def _sent(
    source: Source[Made],
    key: str,
    site: records.Site,
    tag: Callable[[], str],
    make: _Make,
    content_type: str,
) -> flask.Response:
    """A page of a site with all its headers; not made for a client that knows its tag."""
    request, seconds = flask.request, _age(site)

    def look() -> str:
        source.look(seconds)
        return tag()

    def body(coding: content_coding.Coding) -> tuple[str, Body]:
        cache, named = PAGES.get(), tag()
        made = cache.get((key, coding))
        if made is None or made.tag != named:
            made = make(coding, {} if made is None else made.parts)
            size = sum(map(len, made.body)) + _OVERHEAD * (1 + len(made.parts))
            cache.keep((key, coding), made, len(key) + size)
        return made.tag, made.body

    response = _negotiated(look, body, content_type=content_type)
    request.environ[context.SITE] = site.id
    # What the answer rests on, where that can be known.
    if content_type == _JSON and isinstance(source, page_source.PageSource) and source.lasts:
        place = key, content_coding.preferred(request.accept_encodings)
        asked = source.asked if isinstance(source, thread_pages.InOrder) and source.first else None
        basis = Basis(site, source.name, source.lasts, place, source.tag, asked)
        request.environ[BASIS] = basis
    if site.cdn_seconds:
        # Caches between us and the readers may answer for us so long.
        response.headers["Cache-Control"] = (
            f"public, max-age=0, s-maxage={site.cdn_seconds}, "
            f"stale-while-revalidate={site.cdn_seconds}"
        )
    return response


def _age(site: records.Site) -> float:
    return age(site, flask.request.headers.get("Cache-Control", ""))


def _in_pieces(
    whole: chunks.Whole, tag: str, coding: content_coding.Coding, known: _Parts
) -> _Kept:
    """A list in its pieces, of which the known ones are not made again."""
    parts = {
        piece.mark: known.get(piece.mark) or content_coding.part(piece.make(), coding)
        for piece in whole.pieces
    }
    head, end = content_coding.part(whole.head, coding), content_coding.part(whole.end, coding)
    return _Kept(tag, content_coding.joined([head, *parts.values(), end], coding), parts)


def _negotiated(
    look: Callable[[], str],
    encode: Callable[[content_coding.Coding], tuple[str, bytes | Body]],
    *,
    content_type: str = _JSON,
) -> flask.Response:
    """The answer in the coding the client wants; 304 without making it if the client has it.

    `look` finds the content's tag, and `encode` makes the content, which may have another one.
    """
    request, found = flask.request, look()
    coding = content_coding.preferred(request.accept_encodings)
    tag = content_coding.tag(found, coding)
    if request.if_none_match.contains_weak(tag):
        response = flask.Response(status=304, content_type=content_type)
    else:
        found, data = encode(coding)
        tag = content_coding.tag(found, coding)
        response = flask.Response(data, content_type=content_type)
        if coding is not content_coding.Coding.IDENTITY:
            response.headers["Content-Encoding"] = coding.value
    response.headers["Cache-Control"] = "no-cache"
    response.vary.add("Accept-Encoding")
    response.set_etag(tag)
    return response


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
