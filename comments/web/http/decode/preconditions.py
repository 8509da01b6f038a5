"""The request headers on which a write depends: Idempotency-Key and If-Match."""

import re

import flask

from comments import errors

# Visible ASCII characters. Shorter keys could be guessed, or repeated by accident.
_KEY = re.compile("[\x21-\x7e]{16,255}")
_REVISION = re.compile('"([1-9][0-9]{0,17})"')


def idempotency_key() -> str | None:
    """Return the request's idempotency key, or None.

    Raises:
        errors.BadInput: the key does not have 16 to 255 visible ASCII characters.
    """
    key = flask.request.headers.get("Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise errors.BadInput("Idempotency-Key", "bad-idempotency-key", minimum=16, maximum=255)
    return key


def revision() -> int | None:
    """Return the revision in If-Match; None if the header is missing.

    Raises:
        errors.BadInput: the header is not one quoted revision.
    """
    given = flask.request.headers.get("If-Match")
    if given is None:
        return None
    match = _REVISION.fullmatch(given)
    if match is None:
        raise errors.BadInput("If-Match", "bad-revision")
    return int(match[1])
