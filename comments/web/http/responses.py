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

import dataclasses
import functools
import hashlib
import http
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import flask
import msgspec

from comments.domain import presentation, records
from comments.reading import page_source, thread_pages
from comments.reading.materialized import chunks
from comments.store import caches, per_process
from comments.web.http import content_coding

_JSON = "application/json"
KEPT_BYTES = 32 * 1024 * 1024  # of one process
_OVERHEAD = 500  # bytes of Python around a page that is kept, roughly
PAGES = per_process.PerProcess(lambda: caches.Cache[_Place, _Kept](KEPT_BYTES))

BASIS = "flatthread.basis"  # under which a request's environment holds one

# What a browser says when a page is reloaded: it wants what is there now.
_WANTS_NOW = re.compile(r"(?<![\w-])(no-cache|no-store|max-age\s*=\s*0+)(?![\w-])", re.IGNORECASE)

T = TypeVar("T")
Body = tuple[bytes, ...]  # what is sent, piece after piece
_Place = tuple[str, content_coding.Coding]
_Parts = Mapping[bytes, content_coding.Part]


class Basis(msgspec.Struct, frozen=True):
    """What a page that was sent rests on: while all of it is so, the page is the same.

    `lasts` is the thread's tag. The page's bytes are kept at `place` under `tag`. `of` is what the
    same question asks of the site's other threads, by their ids; None where that differs.
    """

    site: records.Site
    name: records.ThreadName
    lasts: str
    place: _Place
    tag: str
    of: "Of | None" = None


# Makes the listing of a thread by its id.
Of = Callable[[str], thread_pages.Listing]


class _Kept(msgspec.Struct, frozen=True):
    """A page as it is sent, and its parts by their marks if it is made of such."""

    tag: str
    body: Body
    parts: _Parts = msgspec.field(default_factory=dict)


# Makes what is kept of a page in a coding; some of its parts may be known.
_Make = Callable[[str, content_coding.Coding, _Parts], _Kept]


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    """An answer that stays the same while the process runs, in every coding."""

    tag: str
    codings: dict[content_coding.Coding, bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How a page is put into bytes. `made_of` names everything but the page that goes into them.

    `describe` gives headers of an answer that sends the page.
    """

    render: Callable[[presentation.ThreadPage], bytes]
    made_of: str = ""
    content_type: str = _JSON
    describe: Callable[[presentation.ThreadPage], dict[str, str]] | None = None


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
    return _negotiated(answer.tag, answer.codings.__getitem__, content_type=content_type)


def cacheable(data: bytes, *, content_type: str = _JSON) -> flask.Response:
    """An answer that anyone may keep but must ask about again: 304 while it is the same bytes."""
    return _negotiated(
        _digest(data), lambda coding: content_coding.encode(data, coding), content_type=content_type
    )


def page(
    listing: thread_pages.Listing,
    site: records.Site,
    *,
    form: Form | None = None,
    of: Of | None = None,
) -> flask.Response:
    """A page of a thread, as it is kept or made anew; as JSON unless another form is given.

    `of` makes the listings of the same question about the site's other threads.
    """
    form = form or _AS_JSON

    def give(offer: thread_pages.Offer) -> flask.Response:
        tag = offer.tag or _digest(form.render(offer.make()))
        if offer.tag and form.made_of:
            tag = _digest(f"{tag} {form.made_of}".encode())
        response = _page(
            f"{form.made_of} {listing.key}", tag, _maker(offer, form), form.content_type
        )
        if form is _AS_JSON:
            _note_basis(site, listing, offer, tag, of)
        if form.describe and response.status_code == http.HTTPStatus.OK:
            response.headers.update(form.describe(offer.make()))
        return _for_caches(response, site)

    return listing.answer(give, age=_age(site))


def _maker(offer: thread_pages.Offer, form: Form) -> _Make:
    return lambda tag, coding, _: _Kept(
        tag, (content_coding.encode(form.render(offer.make()), coding),)
    )


def of_thread(
    basis: Basis, thread: str, is_known: Callable[[str], bool], *, age: float = 0.0
) -> tuple[Basis, Body | None] | None:
    """The answer to the basis' question about a thread, `age` seconds old at most, and its basis.

    There are no bytes for who knows its tag, as it is sent. None where only `page` can answer.

    Raises:
        materialized.NotMaterialized: the same, where only the floor knows the thread.
    """
    listing = None if basis.of is None else basis.of(thread)
    if listing is None:
        return None
    name, place = listing.name, (_plain(listing.key), basis.place[1])

    def give(offer: thread_pages.Offer) -> tuple[Basis, Body | None] | None:
        if not offer.lasts:
            return None
        found = Basis(basis.site, name, offer.lasts, place, offer.tag, basis.of)
        if is_known(content_coding.tag(offer.tag, place[1])):
            return found, None
        return found, _made(place, offer.tag, _maker(offer, _AS_JSON))

    return listing.materialised(give, age=age)


def offered(
    key: str, tag: str, render: Callable[[], bytes], site: records.Site, *, content_type: str
) -> flask.Response:
    """An answer that is kept until its tag changes; without a tag it is named by its bytes.

    `key` names what was asked and everything but what the tag names that goes into the bytes.
    """
    made = functools.cache(render)

    def make(tag: str, coding: content_coding.Coding, _: _Parts) -> _Kept:
        return _Kept(tag, (content_coding.encode(made(), coding),))

    named = _digest(f"{tag} {key}".encode()) if tag else _digest(made())
    return _for_caches(_page(key, named, make, content_type), site)


def whole(listing: page_source.Listing[chunks.Whole], site: records.Site) -> flask.Response:
    """A whole thread or subtree, in pieces that are kept."""

    def give(offer: page_source.Offer[chunks.Whole]) -> flask.Response:
        tag = offer.tag or _digest(offer.make().json())

        def make(tag: str, coding: content_coding.Coding, known: _Parts) -> _Kept:
            return _in_pieces(offer.make(), tag, coding, known)

        response = _page(_plain(listing.key), tag, make, _JSON)
        _note_basis(site, listing, offer, tag)
        return _for_caches(response, site)

    return listing.answer(give, age=_age(site))


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


def _note_basis(
    site: records.Site,
    listing: page_source.Listing[T],
    offer: page_source.Offer[T],
    tag: str,
    of: Of | None = None,
) -> None:
    """Leave with the request what its answer rests on, if that can be known."""
    if offer.lasts:
        place = _place(_plain(listing.key))
        basis = Basis(site, listing.name, offer.lasts, place, tag, of if listing.top else None)
        flask.request.environ[BASIS] = basis


def _age(site: records.Site) -> float:
    return age(site, flask.request.headers.get("Cache-Control", ""))


def _plain(key: str) -> str:
    """The place of a listing's JSON."""
    return f" {key}"


def _place(name: str) -> _Place:
    """Where a page is kept in the coding that the current request prefers."""
    return name, content_coding.preferred(flask.request.accept_encodings)


def _page(name: str, tag: str, make: _Make, content_type: str) -> flask.Response:
    place = _place(name)
    return _negotiated(tag, lambda _coding: _made(place, tag, make), content_type=content_type)


def _for_caches(response: flask.Response, site: records.Site) -> flask.Response:
    """Tell caches between us and the readers how long they may answer for us."""
    if site.cdn_seconds:
        response.headers["Cache-Control"] = (
            f"public, max-age=0, s-maxage={site.cdn_seconds}, "
            f"stale-while-revalidate={site.cdn_seconds}"
        )
    return response


def _made(place: _Place, tag: str, make: _Make) -> Body:
    """A page in a coding, as it is kept at this tag or made and kept."""
    cache = PAGES.get()
    known = cache.get(place)
    if known is not None and known.tag == tag:
        return known.body
    made = make(tag, place[1], {} if known is None else known.parts)
    size = sum(map(len, made.body)) + _OVERHEAD * (1 + len(made.parts))
    cache.keep(place, made, len(place[0]) + size)
    return made.body


def _in_pieces(
    whole: chunks.Whole, tag: str, coding: content_coding.Coding, known: _Parts
) -> _Kept:
    """A list in its pieces, of which the known ones are not made again."""
    whole.read([piece for piece in whole.pieces if piece.mark not in known])
    parts = {
        piece.mark: known.get(piece.mark) or content_coding.part(piece.make(), coding)
        for piece in whole.pieces
    }
    head, end = content_coding.part(whole.head, coding), content_coding.part(whole.end, coding)
    return _Kept(tag, content_coding.joined([head, *parts.values(), end], coding), parts)


def _negotiated(
    tag: str, encode: Callable[[content_coding.Coding], bytes | Body], *, content_type: str = _JSON
) -> flask.Response:
    """The answer in the coding the client wants; 304 without making it if the client has it."""
    request = flask.request
    coding = content_coding.preferred(request.accept_encodings)
    tag = content_coding.tag(tag, coding)
    if request.if_none_match.contains_weak(tag):
        response = flask.Response(status=304, content_type=content_type)
    else:
        response = flask.Response(encode(coding), content_type=content_type)
        if coding is not content_coding.Coding.IDENTITY:
            response.headers["Content-Encoding"] = coding.value
    response.headers["Cache-Control"] = "no-cache"
    response.vary.add("Accept-Encoding")
    response.set_etag(tag)
    return response


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
