"""Request bodies: from bytes off the wire to one of our shapes, or a refusal that names the field.

The rules are narrower than JSON's, each for a reason: exactly `application/json`, because pages of
other sites can send everything else without asking (CSRF); no content encoding, because a small
body may unpack to a large one; little depth, because parsers recurse; no repeated keys, because
two readers may pick different ones; no NUL and no lone surrogate, because a store refuses them.
"""

import json
import re
from typing import NoReturn, TypeVar

import flask
import msgspec

from comments import errors
from comments.web.http import context, problems
from comments.web.http.decode import field_errors

T = TypeVar("T", bound=msgspec.Struct)

# The deepest shape of ours is an object with a list.
_MAX_DEPTH = 8
_CHARSET = re.compile(r'charset=("?)utf-8\1', re.IGNORECASE)
# Possessive, with an optional end: every start matches, so an open string costs one pass.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_LONGEST_NAME = 64


def read(shape: type[T]) -> T:
    """The current request's body as a `shape`.

    Raises:
        errors.BadInput: it is incomplete, not JSON, or not of that shape; names the field.
        web.errors.UnsupportedMedia: it is not plainly `application/json`.
        errors.TooLarge, werkzeug's RequestEntityTooLarge: it is longer than `max_body` bytes,
            whatever Content-Length says or if it says nothing.
    """
    return decode(raw(), shape)


def raw() -> bytes:
    """The current request's body as it came.

    Raises:
        errors.BadInput, web.errors.UnsupportedMedia, errors.TooLarge: see `read`.
    """
    require_json(flask.request)
    limit = context.settings().max_body
    # One more than is allowed: the framework cuts a chunked body at its limit without a word.
    flask.request.max_content_length = limit + 1
    data = flask.request.get_data(cache=False)
    if len(data) > limit:
        raise errors.TooLarge(field_errors.BODY, limit)
    if flask.request.content_length not in {None, len(data)}:
        raise errors.BadInput(field_errors.BODY, "was cut short on its way")
    return data


def require_json(request: flask.Request) -> None:
    """Refuse a body that is anything but plain `application/json`."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise problems.UnsupportedMedia("Content-Encoding is not accepted")
    media, *parameters = (
        part.strip() for part in request.headers.get("Content-Type", "").split(";")
    )
    known = [_CHARSET.fullmatch(parameter) for parameter in parameters]
    if media.lower() != "application/json" or not all(known) or len(known) > 1:
        raise problems.UnsupportedMedia("Content-Type must be application/json")


def decode(data: bytes, shape: type[T]) -> T:
    """`data`, JSON in UTF-8, as a `shape`.

    Raises:
        errors.BadInput: names the field where one is to blame, else "body".
    """
    _refuse_depth(data)
    try:
        value = json.loads(
            data.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise errors.BadInput(field_errors.BODY, "is not UTF-8") from error
    # ValueError also covers whole numbers of thousands of digits, which Python will not parse.
    except ValueError as error:
        raise errors.BadInput(field_errors.BODY, "is not JSON") from error
    _refuse_unstorable(value)
    return convert(value, shape)


def convert(value: object, shape: type[T]) -> T:
    """A decoded value as a `shape`.

    Raises:
        errors.BadInput: names the field that does not fit.
    """
    try:
        return msgspec.convert(value, shape, strict=True)
    except msgspec.ValidationError as error:
        raise field_errors.refusal(error, shape) from error


def _refuse_depth(data: bytes) -> None:
    """Count brackets outside strings: a parser must not meet thousands of them."""
    depth = 0
    for match in re.finditer(rb"[\[\]{}]", _STRING.sub(b"", data)):
        depth += 1 if match[0] in b"[{" else -1
        if depth > _MAX_DEPTH:
            raise errors.BadInput(field_errors.BODY, f"is nested more than {_MAX_DEPTH} deep")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise errors.BadInput(name[:_LONGEST_NAME] or field_errors.BODY, "is given twice")
        found[name] = value
    return found


def _refuse_unstorable(value: object) -> None:
    """Look at every text, by the top-level field it is in."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        if _holds_unstorable(name):
            raise errors.BadInput(field_errors.BODY, "has a field name that is not text")
        if _holds_unstorable(inner):
            raise errors.BadInput(name[:_LONGEST_NAME], "holds a NUL or half a surrogate pair")


def _holds_unstorable(value: object) -> bool:
    if isinstance(value, str):
        return _UNSTORABLE.search(value) is not None
    if isinstance(value, dict):
        return any(map(_holds_unstorable, (*value.keys(), *value.values())))
    return isinstance(value, list) and any(map(_holds_unstorable, value))


def _refuse_constant(name: str) -> NoReturn:
    raise errors.BadInput(field_errors.BODY, f"{name} is not JSON")
