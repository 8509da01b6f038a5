"""How a value becomes an answer: its bytes in a coding, its tag, and how long it may be kept.

What anyone may read carries a strong tag, and a request that names the tag gets 304 before any
byte of the answer is made. Pages that do not change are kept as they are sent, in a bounded cache
of this process, so they are put together and compressed once. What must stay true:

- Nothing is kept that depends on who asks: a page is kept under what was asked and the tag of its
  content. A page of another tag takes its place, so a text that is gone leaves with the next
  request for the page.
- Errors and answers to writes never come here to be kept.
"""

import dataclasses
import hashlib
import http
from collections.abc import Callable

import flask
import msgspec

from comments import caching, datastore, public, reading, records
from comments.web import codings

_JSON = "application/json"
_KEPT = "answers"  # under which `datastore.kept` keeps them
KEPT_BYTES = 32 * 1024 * 1024  # of one process
_OVERHEAD = 500  # bytes of Python around a page that is kept, roughly

BASIS = "flatthread.basis"  # under which a request's environment holds one

Encode = Callable[[codings.Coding], bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class Basis:
    """What a page that was sent rests on: while all of it is so, the page is the same.

    `lasts` is the thread's tag. The page's bytes are kept at `place` under `tag`.
    """

    site: records.Site
    name: records.ThreadName
    lasts: str
    place: tuple[str, codings.Coding]
    tag: str


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    """An answer that stays the same while the process runs, in every coding."""

    tag: str
    codings: dict[codings.Coding, bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How a page is put into bytes. `made_of` names everything but the page that goes into them.

    `describe` gives headers of an answer that sends the page.
    """

    render: Callable[[public.Page], bytes]
    made_of: str = ""
    content_type: str = _JSON
    describe: Callable[[public.Page], dict[str, str]] | None = None


_AS_JSON = Form(public.Page.json)


def fixed(data: bytes) -> Fixed:
    """Code an answer once."""
    return Fixed(_digest(data), {each: codings.encode(data, each) for each in codings.Coding})


def unchanging(answer: Fixed, *, content_type: str = _JSON) -> flask.Response:
    """An answer coded before."""
    return _negotiated(answer.tag, answer.codings.__getitem__, content_type=content_type)


def cacheable(data: bytes, *, content_type: str = _JSON) -> flask.Response:
    """An answer that anyone may keep but must ask about again: 304 while it is the same bytes."""
    return _negotiated(
        _digest(data), lambda coding: codings.encode(data, coding), content_type=content_type
    )


def page(
    listing: reading.Listing, site: records.Site, *, form: Form | None = None
) -> flask.Response:
    """A page of a thread, as it is kept or made anew; as JSON unless another form is given."""
    form = form or _AS_JSON
    cdn_seconds = site.cdn_seconds

    def give(offer: reading.Offer) -> flask.Response:
        if offer.tag:
            tag = _digest(f"{offer.tag} {form.made_of}".encode()) if form.made_of else offer.tag
            response = _page(listing.key, tag, lambda: form.render(offer.make()), form, cdn_seconds)
            if offer.lasts and form is _AS_JSON:
                _rest_on(Basis(site, listing.name, offer.lasts, _place(listing.key, form), tag))
        else:
            data = form.render(offer.make())
            response = _page(listing.key, _digest(data), lambda: data, form, cdn_seconds)
        if form.describe and response.status_code == http.HTTPStatus.OK:
            response.headers.update(form.describe(offer.make()))
        return response

    return listing.answer(give)


def fresh(value: msgspec.Struct, status: int = 200) -> flask.Response:
    """An answer to one caller, kept by nobody."""
    response = flask.Response(msgspec.json.encode(value), status=status, content_type=_JSON)
    response.headers["Cache-Control"] = "no-store"
    return response


def kept(basis: Basis) -> tuple[bytes] | None:
    """The bytes of a page that was sent, if they are kept."""
    known, data = _cache().get(basis.place) or ("", b"")
    return (data,) if known == basis.tag else None


def _rest_on(basis: Basis) -> None:
    flask.request.environ[BASIS] = basis


def _place(key: str, form: Form) -> tuple[str, codings.Coding]:
    """Where a page is kept in the coding that the current request prefers."""
    return f"{form.made_of} {key}", codings.preferred(flask.request.accept_encodings)


def _page(
    key: str, tag: str, make: Callable[[], bytes], form: Form, cdn_seconds: int
) -> flask.Response:
    place = _place(key, form)
    response = _negotiated(
        tag, lambda _coding: _kept(place, tag, make), content_type=form.content_type
    )
    if cdn_seconds:
        response.headers["Cache-Control"] = (
            f"public, max-age=0, s-maxage={cdn_seconds}, stale-while-revalidate={cdn_seconds}"
        )
    return response


def _kept(place: tuple[str, codings.Coding], tag: str, make: Callable[[], bytes]) -> bytes:
    """A page in a coding, as it is kept at this tag or made and kept."""
    cache = _cache()
    known, data = cache.get(place) or ("", b"")
    if known != tag:
        data = codings.encode(make(), place[1])
        cache.keep(place, (tag, data), len(place[0]) + len(data) + _OVERHEAD)
    return data


def _cache() -> caching.Cache:
    return datastore.kept(_KEPT, lambda: caching.Cache(KEPT_BYTES))


def _negotiated(tag: str, encode: Encode, *, content_type: str = _JSON) -> flask.Response:
    """The answer in the coding the client wants; 304 without making it if the client has it."""
    request = flask.request
    coding = codings.preferred(request.accept_encodings)
    tag = codings.tag(tag, coding)
    if request.if_none_match.contains_weak(tag):
        response = flask.Response(status=304, content_type=content_type)
    else:
        response = flask.Response(encode(coding), content_type=content_type)
        if coding is not codings.Coding.IDENTITY:
            response.headers["Content-Encoding"] = coding.value
    response.headers["Cache-Control"] = "no-cache"
    response.vary.add("Accept-Encoding")
    response.set_etag(tag)
    return response


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
