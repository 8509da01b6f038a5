"""Query strings: from the raw bytes to one of our shapes, or a refusal that names the parameter.

Read from the bytes off the wire, because the framework decodes leniently: broken UTF-8 becomes
U+FFFD, and of a repeated parameter the first silently wins. `thread` and `page` pass through to
`thread_ids`, which owns their form.
"""

import re
from collections.abc import Set as AbstractSet
from typing import TypeVar
from urllib.parse import unquote_to_bytes

import flask
import msgspec

from comments import errors
from comments.domain import records, thread_ids
from comments.web.http import request_shapes
from comments.web.http.decode import field_errors

T = TypeVar("T", bound=msgspec.Struct)

_NUMBERS = {"limit"}
_WORDS = {request_shapes.ALL}  # that may stand for a number
_THREAD_NAMES = {"thread", "page"}
_STRAY_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_NUMBER = re.compile("[1-9][0-9]{0,8}")
_LONGEST_NAME = 64


def read(shape: type[T]) -> T:
    """The current request's query as a `shape`, for a call that takes no thread.

    Raises:
        errors.BadInput: names the parameter that is unknown, repeated or malformed.
    """
    return _shaped(pairs(flask.request.query_string, _THREAD_NAMES), shape)


def read_thread(shape: type[T], site: records.Site) -> tuple[str, T]:
    """The canonical thread id that the current request's query names, and the rest of the query.

    Raises:
        errors.BadInput: names the parameter that is missing, unknown, repeated or malformed.
    """
    raw = flask.request.query_string
    found = pairs(raw, _THREAD_NAMES)
    rest = _shaped({k: v for k, v in found.items() if k not in _THREAD_NAMES}, shape)
    return thread_ids.thread_from_query(raw, site), rest


def pairs(raw: bytes, as_sent: AbstractSet[str] = frozenset()) -> dict[str, str]:
    """Names and values of a query or a form, each name once; those `as_sent` are not decoded.

    Raises:
        errors.BadInput: names the parameter that is repeated or malformed.
    """
    found: dict[str, str] = {}
    for piece in raw.split(b"&"):
        if not piece:
            continue
        key, _, value = piece.partition(b"=")
        name = _decoded("query", key)[:_LONGEST_NAME]
        if name in found:
            raise errors.BadInput(name, "is given twice")
        found[name] = value.decode("latin-1") if name in as_sent else _decoded(name, value)
    return found


def _decoded(field: str, raw: bytes) -> str:
    if _STRAY_PERCENT.search(raw):
        raise errors.BadInput(field, "has a percent sign without two hex digits")
    try:
        text = unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError as error:
        raise errors.BadInput(field, "is not UTF-8") from error
    if _CONTROL.search(text):
        raise errors.BadInput(field, "has control characters")
    return text


def _shaped(found: dict[str, str], shape: type[T]) -> T:
    typed = {
        name: _number(name, value) if name in _NUMBERS and value not in _WORDS else value
        for name, value in found.items()
    }
    try:
        return msgspec.convert(typed, shape, strict=True)
    except msgspec.ValidationError as error:
        raise field_errors.refusal(error, shape) from error


def _number(name: str, value: str) -> int:
    if not _NUMBER.fullmatch(value):
        raise errors.BadInput(name, "is not a whole number above 0")
    return int(value)
