"""Create responses: content coding, ETags, cache headers, and the cache of encoded pages.

Every public response has a strong ETag. If a client already has this ETag, the response is 304 and
nothing is rendered. Each process has a bounded cache of encoded pages, so it renders and compresses
an unchanged page only once.

Invariant: No cached page depends on the caller
(test_responses.py::test_the_page_does_not_depend_on_the_caller).

A cached page is stored under its cache key, together with the tag of its content. A page with a
different tag replaces the cached page, so the next request for the page removes a deleted text from
the cache. This cache never contains errors or responses to writes.

A whole thread is cached and sent in pieces, one piece per bucket. After a change, only the affected
pieces are rendered and compressed again. The cache does not store the joined pieces, because they
would double its size. All pieces are made before the first byte is sent, so that the length and any
error are known before the headers are sent.
"""

import hashlib
import http
import re
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

import flask
import msgspec

from comments.domain import presentation, records
from comments.reading import full_thread, page_source, thread_pages
from comments.reading.materialized import chunks
from comments.sites import mail_server
from comments.store.memory import caches, per_process
from comments.web.http import content_coding, context, page_members

_JSON = "application/json"
KEPT_BYTES = 32 * 1024 * 1024  # Maximum number of bytes per process.
_OVERHEAD = 500  # Approximate size of a cached page's Python objects, in bytes.

BASIS = "flatthread.basis"  # The key of a `Basis` in the WSGI environment.

# Browsers send one of these values when the reader reloads a page to get its current state.
_WANTS_NOW = re.compile(r"(?<![\w-])(no-cache|no-store|max-age\s*=\s*0+)(?![\w-])", re.IGNORECASE)

Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)
Body = tuple[bytes, ...]  # The pieces, in the order in which they are sent.
_Place = tuple[str, content_coding.Coding]
_Parts = Mapping[bytes, content_coding.EncodedPart]


class Basis(msgspec.Struct, frozen=True):
    """The state on which a sent page depends; the page is valid while this state is unchanged.

    `lasts` is the thread's tag. `members` are the members of the page in the order `order` that do
    not come from comments (`page_members`). `service` is the part of the state that concerns the
    service. `place` and `tag` identify the page's bytes in the cache.
    """

    site: records.Site
    name: records.ThreadName
    lasts: str
    order: str
    members: bytes
    service: page_members.Service
    place: _Place
    tag: str


class _Shape(NamedTuple):
    """A page's cache key without the coding, its content type and, for JSON, its members."""

    key: str
    content_type: str = _JSON
    order: str = ""
    members: bytes = b""


class _EncodedPage(msgspec.Struct, frozen=True):
    """An encoded page. For a whole thread, `parts` contains the parts by their marks."""

    tag: str
    body: Body
    parts: _Parts = msgspec.field(default_factory=dict)


PAGES = per_process.PerProcess(lambda: caches.Cache[_Place, _EncodedPage](KEPT_BYTES))

# Builds a page in a coding. The second argument contains the parts that are already encoded.
_Make = Callable[[content_coding.Coding, _Parts], _EncodedPage]


class Fixed(msgspec.Struct, frozen=True):
    """A response, in every coding, that does not change while the process runs."""

    tag: str
    codings: dict[content_coding.Coding, bytes]


class PageProvider(Protocol[Made_co]):
    """A source of a page: a `page_source.PageSource`, or a site's feed."""

    key: str
    tag: str

    def look(self, age: float = 0.0) -> str:
        """Return the page's current tag; "" if the page must be rendered to get a tag."""

    def make(self) -> Made_co:
        """Return the page."""


class PageFormat(msgspec.Struct, Generic[Made], frozen=True):
    """How a page is rendered. `made_of` names everything that affects the bytes, except the source.

    `kind` distinguishes the cached pages of one source: a new page replaces the old page of the
    same kind. If the page is JSON, `order` is its order, and `members` are its members
    (`page_members`). `describe` returns additional headers for a response that contains the page.
    """

    render: Callable[[Made], bytes]
    made_of: str = ""
    kind: str = ""
    order: str = ""
    members: bytes = b""
    content_type: str = _JSON
    describe: Callable[[Made], dict[str, str]] | None = None


def age(site: records.Site, cache_control: str) -> float:
    """Return the maximum age of a page, in seconds, for a request with this `Cache-Control`."""
    if not site.freshness or _WANTS_NOW.search(cache_control):
        return 0.0
    return float(site.freshness)


def encode_fixed(data: bytes) -> Fixed:
    """Encode data in every coding, for a response that never changes."""
    codings = {coding: content_coding.encode_once(data, coding) for coding in content_coding.Coding}
    return Fixed(_digest(data), codings)


def fixed_answer(answer: Fixed, *, content_type: str = _JSON) -> flask.Response:
    """Respond with data that `encode_fixed` encoded."""
    return _negotiated_answer(
        lambda: answer.tag,
        lambda coding: (answer.tag, answer.codings[coding]),
        content_type=content_type,
    )


def cacheable(data: bytes, *, content_type: str = _JSON) -> flask.Response:
    """Respond with bytes that any cache may store but must revalidate; send 304 if unchanged."""
    tag = _digest(data)
    return _negotiated_answer(
        lambda: tag,
        lambda coding: (tag, content_coding.encode(data, coding)),
        content_type=content_type,
    )


def listing(source: thread_pages.ListingPage, site: records.Site) -> flask.Response:
    """Respond with a page of comments as JSON."""
    members = _members(site, source.name, source.order)
    form = PageFormat[presentation.ThreadPage](
        lambda found: found.json(members),
        made_of=members.decode(),
        order=source.order,
        members=members,
    )
    return page(source, site, form)


def page(source: PageProvider[Made], site: records.Site, form: PageFormat[Made]) -> flask.Response:
    """Respond with a page, either from the cache or newly rendered by `form`."""
    # `rendered` contains the last rendered page, because `data` may be called twice for the same
    # page.
    rendered: list[tuple[Made, bytes]] = []

    def data() -> bytes:
        content = source.make()
        if not rendered or rendered[-1][0] is not content:
            rendered.append((content, form.render(content)))
        return rendered[-1][1]

    def tag() -> str:
        if not source.tag:
            return _digest(data())
        return _tag(source.tag, f"{form.kind}{form.made_of}".encode())

    def make(coding: content_coding.Coding, _parts: _Parts) -> _EncodedPage:
        body = content_coding.encode(data(), coding)
        return _EncodedPage(
            tag(), (body,)
        )  # The tag is new if the thread has changed since `look`.

    shape = _Shape(f"{form.kind} {source.key}", form.content_type, form.order, form.members)
    response = _page_answer(source, site, shape, tag, make)
    if form.describe and response.status_code == http.HTTPStatus.OK:
        response.headers.update(form.describe(source.make()))
    return response


def whole(source: full_thread.WholeThread, site: records.Site) -> flask.Response:
    """Respond with a whole thread or subtree, in cached pieces."""
    order = thread_pages.ListingOrder.THREAD
    members = _members(site, source.name, order)

    def tag() -> str:
        if not source.tag:
            return _digest(source.make().json(members))
        return _tag(source.tag, members)

    def make(coding: content_coding.Coding, known: _Parts) -> _EncodedPage:
        source.known = known
        content = source.make()
        return _encode_in_pieces(content, members, tag(), coding, known)

    shape = _Shape(f" {source.key}", order=order, members=members)
    return _page_answer(source, site, shape, tag, make)


def fresh(value: msgspec.Struct, status: int = 200) -> flask.Response:
    """Send one caller a response that no cache may store."""
    response = flask.Response(msgspec.json.encode(value), status=status, content_type=_JSON)
    response.headers["Cache-Control"] = "no-store"
    return response


def of_comment(value: msgspec.Struct, revision: int, status: int = 200) -> flask.Response:
    """Send one caller a comment; the ETag is the comment's revision, for If-Match."""
    response = fresh(value, status)
    response.headers["ETag"] = f'"{revision}"'
    return response


def private(response: flask.Response) -> flask.Response:
    """Prevent all caches between the service and the caller from storing a response."""
    response.headers["Cache-Control"] = "private, no-store"
    response.vary.add("Authorization")
    return response


def personal(value: msgspec.Struct, status: int = 200) -> flask.Response:
    """Send one caller a response that depends on the caller's token."""
    return private(fresh(value, status))


def cached_body(basis: Basis) -> Body | None:
    """Return the body of a sent page; None if the body is no longer cached."""
    entry = PAGES.get().get(basis.place)
    return entry.body if entry is not None and entry.tag == basis.tag else None


def _page_answer(
    source: PageProvider[Made],
    site: records.Site,
    shape: _Shape,
    tag: Callable[[], str],
    make: _Make,
) -> flask.Response:
    """Respond with a page of a site. The page is not rendered if the client has its ETag."""
    request, seconds, key = flask.request, _age(site), shape.key

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

    response = _negotiated_answer(look, body, content_type=shape.content_type)
    request.environ[context.SITE] = site.id
    # Tell the response cache what the response depends on, if that is known.
    if shape.members and isinstance(source, page_source.PageSource) and source.lasts:
        thread = source.name, source.lasts, shape.order, shape.members, _service(site)
        place = key, content_coding.preferred_coding(request.accept_encodings)
        request.environ[BASIS] = Basis(site, *thread, place, tag())
    if site.cdn_seconds:
        # Shared caches may use the response for this long without revalidation.
        response.headers["Cache-Control"] = (
            f"public, max-age=0, s-maxage={site.cdn_seconds}, "
            f"stale-while-revalidate={site.cdn_seconds}"
        )
    return response


def _service(site: records.Site) -> page_members.Service:
    settings = context.settings()
    return page_members.Service(
        mail_server.sends_mail_of(site, settings), bool(settings.public_url)
    )


def _members(site: records.Site, name: records.ThreadName, order: str) -> bytes:
    return page_members.of(site, name, order, _service(site))


def _age(site: records.Site) -> float:
    return age(site, flask.request.headers.get("Cache-Control", ""))


def _encode_in_pieces(
    whole: chunks.Whole, members: bytes, tag: str, coding: content_coding.Coding, known: _Parts
) -> _EncodedPage:
    """Encode a list in pieces. Pieces that are already encoded are reused."""
    parts = {
        piece.mark: known.get(piece.mark) or content_coding.encode_part(piece.make(), coding)
        for piece in whole.pieces
    }
    head = content_coding.encode_part(whole.head, coding)
    end = content_coding.encode_part(whole.end(members), coding)
    return _EncodedPage(tag, content_coding.join([head, *parts.values(), end], coding), parts)


def _negotiated_answer(
    look: Callable[[], str],
    encode: Callable[[content_coding.Coding], tuple[str, bytes | Body]],
    *,
    content_type: str = _JSON,
) -> flask.Response:
    """Respond in the client's coding, or with 304 if the client has the ETag.

    `look` returns the content's tag. `encode` is not called for a 304. `encode` returns the content
    and its tag, which differs from the first tag if the content has changed since `look`.
    """
    request, source = flask.request, look()
    coding = content_coding.preferred_coding(request.accept_encodings)
    tag = content_coding.tag(source, coding)
    if request.if_none_match.contains_weak(tag):
        response = flask.Response(status=304, content_type=content_type)
    else:
        source, data = encode(coding)
        tag = content_coding.tag(source, coding)
        response = flask.Response(data, content_type=content_type)
        if coding is not content_coding.Coding.IDENTITY:
            response.headers["Content-Encoding"] = coding.value
    response.headers["Cache-Control"] = "no-cache"
    response.vary.add("Accept-Encoding")
    response.set_etag(tag)
    return response


def _tag(source: str, made_of: bytes) -> str:
    return _digest(source.encode() + b" " + made_of) if made_of else source


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
