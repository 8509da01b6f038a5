"""Forms of our own pages: from bytes off the wire to one of our shapes, as strict as queries.

What a browser sends of a form is small and plain: each field once, UTF-8, nothing that cannot be
seen. Anything else was made by something else, and is refused by its field.
"""

from typing import TypeVar

import flask
import msgspec

from comments import errors
from comments.web.http import context, problems
from comments.web.http.decode import json_bodies, query_strings

T = TypeVar("T", bound=msgspec.Struct)

_TYPE = "application/x-www-form-urlencoded"
# The field that every form of somebody signed in has beside its own (`signed_in.guard` checks it).
TOKEN = "form"  # noqa: S105 - the name of a field


def read(shape: type[T]) -> T:
    """The current request's form as a `shape`, without the token of forms.

    Raises:
        errors.BadInput: names the field that is missing, unknown, repeated or malformed.
        web.errors.UnsupportedMedia: it is no form.
        errors.TooLarge, werkzeug's RequestEntityTooLarge: it is longer than `max_body` bytes.
    """
    return json_bodies.convert(fields(), shape)


def fields() -> dict[str, str]:
    """The current request's form, each field once, without the token of forms.

    Raises:
        errors.BadInput, web.errors.UnsupportedMedia, errors.TooLarge: see `read`.
    """
    return {name: value for name, value in _fields().items() if name != TOKEN}


def token() -> str:
    """The token of the current request's form; empty without one."""
    return _fields().get(TOKEN, "")


def _fields() -> dict[str, str]:
    if flask.request.mimetype != _TYPE:
        raise problems.UnsupportedMedia(f"Content-Type must be {_TYPE}")
    limit = context.settings().max_body
    # Kept, because the token is read before the view reads the rest.
    data = flask.request.get_data(cache=True)
    if len(data) > limit:
        raise errors.TooLarge("form", limit)
    return query_strings.pairs(data)
