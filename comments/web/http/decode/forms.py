"""Forms of the service's own pages: decode bytes to a typed value, as strictly as for queries.

A browser sends each field of these forms once, in UTF-8, without control characters (except line
breaks in fields for several lines). A form that
breaks these rules does not come from one of these pages, so it is refused with the name of the
field.
"""

from typing import TypeVar

import flask
import msgspec

from comments import errors
from comments.web.http import context, problems
from comments.web.http.decode import json_bodies, query_strings

T = TypeVar("T", bound=msgspec.Struct)

_TYPE = "application/x-www-form-urlencoded"
# The field with the CSRF token. Every form for signed-in users contains the field, and `signed_in`
# checks it.
TOKEN = "form"  # noqa: S105 - the name of a field
HEADER = "X-Form-Token"
_BYTES = "application/octet-stream"
_MULTILINE = frozenset({"body", "pages"})  # Fields that may contain tabs and line breaks


def read(shape: type[T]) -> T:
    """Decode the current request's form to the type `shape`, without the CSRF token.

    Raises:
        errors.BadInput: a field is missing, unknown, repeated or malformed.
        problems.UnsupportedMedia: the body is not a form.
        errors.TooLarge, werkzeug's RequestEntityTooLarge: the body is longer than `max_body` bytes.
    """
    return json_bodies.convert(fields(), shape)


def fields() -> dict[str, str]:
    """Return the values in the current request's form by field, without the CSRF token.

    Raises:
        errors.BadInput, problems.UnsupportedMedia, errors.TooLarge: see `read`.
    """
    return {name: value for name, value in _fields().items() if name != TOKEN}


def token() -> str:
    """Return the CSRF token of the current request's form, or "".

    A script that sends bytes instead of a form puts the token into a header.
    """
    if flask.request.mimetype == _BYTES:
        return flask.request.headers.get(HEADER, "")
    return _fields().get(TOKEN, "")


def _fields() -> dict[str, str]:
    if flask.request.mimetype != _TYPE:
        raise problems.UnsupportedMedia(expected=_TYPE)
    limit = context.settings().max_body
    # The data is cached, because the token is read before the view reads the other fields.
    data = flask.request.get_data(cache=True)
    if len(data) > limit:
        raise errors.TooLarge("form", limit)
    return query_strings.pairs(data, multiline=_MULTILINE)
