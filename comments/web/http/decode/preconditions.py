"""The request headers that decide whether and how a write happens: Idempotency-Key, If-Match."""

import re

import flask

from comments import errors

# Visible ASCII. Shorter keys would be guessed or repeated by accident.
_KEY = re.compile("[\x21-\x7e]{16,255}")
_REVISION = re.compile('"([1-9][0-9]{0,17})"')


def idempotency_key() -> str | None:
    """The request's key, under which repeats are recognised.

    Raises:
        errors.BadInput: it is not 16 to 255 visible ASCII characters.
    """
    key = flask.request.headers.get("Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise errors.BadInput("Idempotency-Key", "is 16 to 255 visible ASCII characters")
    return key


def revision() -> int | None:
    """The revision that If-Match asks for; None for any.

    Raises:
        errors.BadInput: it is not one quoted revision.
    """
    given = flask.request.headers.get("If-Match")
    if given is None:
        return None
    match = _REVISION.fullmatch(given)
    if match is None:
        raise errors.BadInput("If-Match", 'is a revision in quotes, like "3"')
    return int(match[1])
