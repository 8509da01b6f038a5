"""Query strings: decode raw bytes to a typed value, or raise an error that names the parameter.

This module reads the raw bytes because Flask decodes leniently: it replaces invalid UTF-8 with
U+FFFD, and silently uses the first value if a parameter is repeated. `thread_parameters` decodes
`thread` and `page`.
"""

import re
from collections.abc import Set as AbstractSet
from typing import TypeVar

import flask
import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.threads import thread_aliases
from comments.tree.lists import slugs
from comments.web.http.decode import field_errors, parameters, thread_parameters

T = TypeVar("T", bound=msgspec.Struct)

_NUMBERS = {"limit", "offset", "page"}
_WORDS = {parameters.ALL}  # Values that are allowed instead of a number.
_THREAD_NAMES = {"thread", "page"}
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_CONTROL_EXCEPT_LINES = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# Zero and negative numbers match too, so that the error raised later names the bounds.
_NUMBER = re.compile("-?(0|[1-9][0-9]{0,17})")
_LONGEST_NAME = 64


def read(shape: type[T]) -> T:
    """Decode the current request's query to the type `shape`, for a call without a thread.

    Raises:
        errors.BadInput: a parameter is unknown, repeated or malformed.
    """
    return _convert(pairs(flask.request.query_string, _THREAD_NAMES), shape)


def read_thread(shape: type[T], site: records.Site) -> tuple[str, T]:
    """Return the id of the stored thread that the query names, and the other parameters.

    If `shape` has a field `page`, the query can also contain the number of a page
    (`thread_parameters.split_page_number`).

    Raises:
        errors.BadInput: a parameter is missing, unknown, repeated or malformed.
    """
    raw, number = flask.request.query_string, None
    if "page" in shape.__struct_fields__:
        raw, number = thread_parameters.split_page_number(raw)
    parameters = pairs(raw, _THREAD_NAMES)
    given = {name: value for name, value in parameters.items() if name not in _THREAD_NAMES}
    rest = _convert(given if number is None else given | {"page": number}, shape)
    asked = thread_parameters.thread(parameters, site)
    stored = thread_aliases.stored_id(site, asked)
    flask.g.asked_thread = asked
    if flask.request.method in {"GET", "HEAD"}:
        flask.g.translated_for = site
    if stored != asked:
        flask.g.led_to = stored
        name = records.ThreadName(site.id, asked)
        places = {field: getattr(rest, field, None) for field in ("around", "slug")}
        from_there = {
            field: slugs.address_from(name, value) for field, value in places.items() if value
        }
        rest = msgspec.structs.replace(rest, **from_there)
    return stored, rest


def pairs(
    raw: bytes, as_sent: AbstractSet[str] = frozenset(), multiline: AbstractSet[str] = frozenset()
) -> dict[str, str]:
    """Return the values of a query or form by name.

    The values of the names in `as_sent` are not decoded. The values of the names in `multiline` may
    contain tabs and line breaks.

    Raises:
        errors.BadInput: a parameter is repeated or malformed.
    """
    values: dict[str, str] = {}
    for piece in raw.split(b"&"):
        if not piece:
            continue
        key, _, value = piece.partition(b"=")
        name = _decode("query", key)[:_LONGEST_NAME]
        if name in values:
            raise errors.BadInput(name, "duplicate-field")
        control = _CONTROL_EXCEPT_LINES if name in multiline else _CONTROL
        is_raw = name in as_sent
        values[name] = value.decode("latin-1") if is_raw else _decode(name, value, control)
    return values


def _decode(field: str, raw: bytes, control: re.Pattern[str] = _CONTROL) -> str:
    text = thread_parameters.decode(field, raw)
    if control.search(text):
        raise errors.BadInput(field, "bad-characters")
    return text


def _convert(found: dict[str, str], shape: type[T]) -> T:
    typed = {
        name: _number(name, value) if name in _NUMBERS and value not in _WORDS else value
        for name, value in found.items()
    }
    try:
        return decoders.convert(typed, shape)
    except msgspec.ValidationError as error:
        raise field_errors.refusal(error, shape) from error


def _number(name: str, value: str) -> int:
    if not _NUMBER.fullmatch(value):
        raise errors.BadInput(name, "not-a-number")
    return int(value)
