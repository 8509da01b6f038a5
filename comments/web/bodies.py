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
from comments.web import errors as web_errors

T = TypeVar("T", bound=msgspec.Struct)

# The deepest shape of ours is an object with a list.
_MAX_DEPTH = 8
_CHARSET = re.compile(r'charset=("?)utf-8\1', re.IGNORECASE)
# Possessive, with an optional end: every start matches, so an open string costs one pass.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_FIELD = re.compile(r"`\$\.([A-Za-z_]+)|field `([^`]*)`$")
_BODY = "body"
_LONGEST_NAME = 64


def read(shape: type[T]) -> T:
    """The current request's body as a `shape`.

    Raises:
        errors.BadInput: it is not JSON, or not of that shape; names the field.
        web.errors.UnsupportedMedia: it is not plainly `application/json`.
        werkzeug's RequestEntityTooLarge: it is longer than the application allows, chunked or not.
    """
    require_json(flask.request)
    return decode(flask.request.get_data(cache=False), shape)


def require_json(request: flask.Request) -> None:
    """Refuse a body that is anything but plain `application/json`."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise web_errors.UnsupportedMedia("Content-Encoding is not accepted")
    media, *parameters = (
        part.strip() for part in request.headers.get("Content-Type", "").split(";")
    )
    known = [_CHARSET.fullmatch(parameter) for parameter in parameters]
    if media.lower() != "application/json" or not all(known) or len(known) > 1:
        raise web_errors.UnsupportedMedia("Content-Type must be application/json")


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
        raise errors.BadInput(_BODY, "is not UTF-8") from error
    # ValueError also covers whole numbers of thousands of digits, which Python will not parse.
    except ValueError as error:
        raise errors.BadInput(_BODY, "is not JSON") from error
    return convert(value, shape)


def convert(value: object, shape: type[T]) -> T:
    """A decoded value as a `shape`.

    Raises:
        errors.BadInput: names the field that does not fit.
    """
    try:
        return msgspec.convert(value, shape, strict=True)
    except msgspec.ValidationError as error:
        message = str(error)
        match = _FIELD.search(message)
        field = (match[1] or match[2]) if match else _BODY
        reason = message.partition(" - at ")[0]
        raise errors.BadInput(field[:_LONGEST_NAME], reason[: 3 * _LONGEST_NAME]) from error


def _refuse_depth(data: bytes) -> None:
    """Count brackets outside strings: a parser must not meet thousands of them."""
    depth = 0
    for match in re.finditer(rb"[\[\]{}]", _STRING.sub(b"", data)):
        depth += 1 if match[0] in b"[{" else -1
        if depth > _MAX_DEPTH:
            raise errors.BadInput(_BODY, f"is nested more than {_MAX_DEPTH} deep")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        _refuse_unstorable(_BODY, name)
        if name in found:
            raise errors.BadInput(name[:_LONGEST_NAME], "is given twice")
        for text in value if isinstance(value, list) else [value]:
            _refuse_unstorable(name[:_LONGEST_NAME], text)
        found[name] = value
    return found


def _refuse_unstorable(field: str, value: object) -> None:
    if isinstance(value, str) and _UNSTORABLE.search(value):
        raise errors.BadInput(field, "holds a NUL or half a surrogate pair")


def _refuse_constant(name: str) -> NoReturn:
    raise errors.BadInput(_BODY, f"{name} is not JSON")
