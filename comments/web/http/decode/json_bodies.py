"""JSON bodies: decode raw bytes to a typed value, or raise an error that names the field.

These rules are stricter than those of JSON:

- The content type must be `application/json`, because pages of other sites can send some other
  types without a preflight (CSRF).
- Content encodings are refused, because a small body may decompress to a very large one.
- The nesting depth is limited, because parsers recurse.
- Repeated keys are refused, because different parsers pick different values.
- Texts with a NUL or a lone surrogate are refused, because the store cannot save them.
"""

import json
import re
from typing import NoReturn, TypeVar

import flask
import msgspec

from comments import errors
from comments.domain import decoders
from comments.web.http import context, problems
from comments.web.http.decode import field_errors

T = TypeVar("T", bound=msgspec.Struct)

# Enough for all request types: the deepest type is an object that contains a list.
_MAX_DEPTH = 8
_CHARSET = re.compile(r'charset=("?)utf-8\1', re.IGNORECASE)
# The quantifier is possessive and the closing quote optional, so that an unclosed string is scanned
# only once.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_LONGEST_NAME = 64


def read(shape: type[T]) -> T:
    """Decode the current request's body to the type `shape`.

    Raises:
        errors.BadInput: the body is incomplete, is not JSON, or does not match the type. The error
            names the field.
        problems.UnsupportedMedia: the body is not plain `application/json`.
        errors.TooLarge, werkzeug's RequestEntityTooLarge: the body is longer than `max_body` bytes,
            whatever its Content-Length says.
    """
    return decode(raw(), shape)


def raw() -> bytes:
    """Return the bytes of the current request's body.

    Raises:
        errors.BadInput, problems.UnsupportedMedia, errors.TooLarge: see `read`.
    """
    request, limit = context.request(), context.settings().max_body
    require_json(request)
    # One byte more than allowed is read, because Flask silently truncates a chunked body at its
    # limit.
    request.max_content_length = limit + 1
    data = request.get_data()
    if len(data) > limit:
        raise errors.TooLarge(field_errors.BODY, limit)
    if request.content_length not in {None, len(data)}:
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
    """Decode `data`, JSON in UTF-8, to the type `shape`.

    Raises:
        errors.BadInput: the data does not match the type. The error names the field, or "body" if
            no single field is wrong.
    """
    _refuse_depth(data)
    try:
        value = _DECODER.decode(data.decode())
    except UnicodeDecodeError as error:
        raise errors.BadInput(field_errors.BODY, "not-utf8") from error
    # Python also raises ValueError for integers with thousands of digits.
    except ValueError as error:
        raise errors.BadInput(field_errors.BODY, "not-json") from error
    _refuse_unstorable(value)
    return convert(value, shape)


def convert(value: object, shape: type[T]) -> T:
    """Convert a decoded value to the type `shape`.

    Raises:
        errors.BadInput: a field does not match the type.
    """
    try:
        return decoders.convert(value, shape)
    except msgspec.ValidationError as error:
        raise field_errors.refusal(error, shape) from error


def _refuse_depth(data: bytes) -> None:
    """Refuse deeply nested bodies before the parser reads them: count brackets outside strings."""
    depth = 0
    for match in re.finditer(rb"[\[\]{}]", _STRING.sub(b"", data)):
        depth += 1 if match[0] in b"[{" else -1
        if depth > _MAX_DEPTH:
            raise errors.BadInput(field_errors.BODY, "nested-too-deeply", limit=_MAX_DEPTH)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, value in pairs:
        if name in fields:
            raise errors.BadInput(name[:_LONGEST_NAME] or field_errors.BODY, "duplicate-field")
        fields[name] = value
    return fields


def _refuse_unstorable(value: object) -> None:
    """Refuse texts that the store cannot save. The error names the top-level field."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        if _has_unstorable(name):
            raise errors.BadInput(field_errors.BODY, "bad-characters")
        if _has_unstorable(inner):
            raise errors.BadInput(name[:_LONGEST_NAME], "bad-characters")


def _has_unstorable(value: object) -> bool:
    if isinstance(value, str):
        return _UNSTORABLE.search(value) is not None
    if isinstance(value, dict):
        return any(map(_has_unstorable, (*value.keys(), *value.values())))
    return isinstance(value, list) and any(map(_has_unstorable, value))


def _refuse_constant(_: str) -> NoReturn:
    raise errors.BadInput(field_errors.BODY, "not-json")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)
