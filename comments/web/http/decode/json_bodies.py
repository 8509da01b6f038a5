"""JSON bodies: from raw bytes to a typed value, or an error that names the field.

The rules are stricter than JSON's:

- The type is exactly `application/json`, because pages of other sites can send the other types
  without a preflight (CSRF).
- There is no content encoding, because a small body may unpack to a large one.
- Depth is limited, because parsers recurse.
- Keys are not repeated, because two parsers may pick different values.
- Texts have no NUL and no lone surrogate, because the store refuses them.
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

# The deepest shape is an object with a list.
_MAX_DEPTH = 8
_CHARSET = re.compile(r'charset=("?)utf-8\1', re.IGNORECASE)
# Possessive, and the closing quote is optional: an unclosed string costs one pass.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_LONGEST_NAME = 64


def read(shape: type[T]) -> T:
    """Return the current request's body as a `shape`.

    Raises:
        errors.BadInput: it is incomplete, not JSON, or not of that shape; names the field.
        problems.UnsupportedMedia: it is not plain `application/json`.
        errors.TooLarge, werkzeug's RequestEntityTooLarge: it is longer than `max_body` bytes, with
            any Content-Length or none.
    """
    return decode(raw(), shape)


def raw() -> bytes:
    """Return the bytes of the current request's body.

    Raises:
        errors.BadInput, problems.UnsupportedMedia, errors.TooLarge: see `read`.
    """
    require_json(flask.request)
    limit = context.settings().max_body
    # One byte more than allowed, because Flask silently cuts a chunked body at its limit.
    flask.request.max_content_length = limit + 1
    data = flask.request.get_data(cache=False)
    if len(data) > limit:
        raise errors.TooLarge(field_errors.BODY, limit)
    if flask.request.content_length not in {None, len(data)}:
        raise errors.BadInput(field_errors.BODY, "incomplete-body")
    return data


def require_json(request: flask.Request) -> None:
    """Refuse a body that is not plain `application/json`."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise problems.UnsupportedMedia("unsupported-encoding")
    media, *parameters = (
        part.strip() for part in request.headers.get("Content-Type", "").split(";")
    )
    known = [_CHARSET.fullmatch(parameter) for parameter in parameters]
    if media.lower() != "application/json" or not all(known) or len(known) > 1:
        raise problems.UnsupportedMedia(expected="application/json")


def decode(data: bytes, shape: type[T]) -> T:
    """Return `data`, JSON in UTF-8, as a `shape`.

    Raises:
        errors.BadInput: it does not fit; names the field, or "body" where no single one is wrong.
    """
    _refuse_depth(data)
    try:
        value = json.loads(
            data.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise errors.BadInput(field_errors.BODY, "not-utf8") from error
    # ValueError also covers integers of thousands of digits, which Python refuses to parse.
    except ValueError as error:
        raise errors.BadInput(field_errors.BODY, "not-json") from error
    _refuse_unstorable(value)
    return convert(value, shape)


def convert(value: object, shape: type[T]) -> T:
    """Return a decoded value as a `shape`.

    Raises:
        errors.BadInput: a field does not fit.
    """
    try:
        return msgspec.convert(value, shape, strict=True)
    except msgspec.ValidationError as error:
        raise field_errors.refusal(error, shape) from error


def _refuse_depth(data: bytes) -> None:
    """Count brackets outside strings, so that no deeply nested body reaches the parser."""
    depth = 0
    for match in re.finditer(rb"[\[\]{}]", _STRING.sub(b"", data)):
        depth += 1 if match[0] in b"[{" else -1
        if depth > _MAX_DEPTH:
            raise errors.BadInput(field_errors.BODY, "nested-too-deeply", limit=_MAX_DEPTH)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise errors.BadInput(name[:_LONGEST_NAME] or field_errors.BODY, "duplicate-field")
        found[name] = value
    return found


def _refuse_unstorable(value: object) -> None:
    """Check every text; the error names the top-level field that contains it."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        if _holds_unstorable(name):
            raise errors.BadInput(field_errors.BODY, "bad-characters")
        if _holds_unstorable(inner):
            raise errors.BadInput(name[:_LONGEST_NAME], "bad-characters")


def _holds_unstorable(value: object) -> bool:
    if isinstance(value, str):
        return _UNSTORABLE.search(value) is not None
    if isinstance(value, dict):
        return any(map(_holds_unstorable, (*value.keys(), *value.values())))
    return isinstance(value, list) and any(map(_holds_unstorable, value))


def _refuse_constant(_: str) -> NoReturn:
    raise errors.BadInput(field_errors.BODY, "not-json")
