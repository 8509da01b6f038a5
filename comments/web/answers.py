"""How a value becomes an answer of the API: JSON, its tag, and how long it may be kept."""

import hashlib

import flask
import msgspec

_JSON = "application/json"


def cacheable(data: bytes, *, content_type: str = _JSON) -> flask.Response:
    """An answer that anyone may keep but must ask about again: 304 while it is the same bytes."""
    response = flask.Response(data, content_type=content_type)
    response.headers["Cache-Control"] = "no-cache"
    response.set_etag(hashlib.sha256(data).hexdigest()[:32])
    response.make_conditional(flask.request)
    return response


def fresh(value: msgspec.Struct, status: int = 200) -> flask.Response:
    """An answer to one caller, kept by nobody."""
    response = flask.Response(msgspec.json.encode(value), status=status, content_type=_JSON)
    response.headers["Cache-Control"] = "no-store"
    return response
