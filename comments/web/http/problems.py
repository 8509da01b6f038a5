"""Convert errors to HTTP responses: their statuses and their problem documents.

Every error, including the errors of Flask and of the store's client, becomes a problem document
(RFC 9457) with a stable `code`. docs/errors.md lists the codes. The cause of an internal error is
written only to the log.
"""

import http
import logging
from collections.abc import Callable, Mapping

import flask
import msgspec
from google.api_core import exceptions as api
from werkzeug import exceptions

from comments import errors
from comments.accounts import reader_accounts
from comments.domain import decoders
from comments.domain.languages import error_texts

CONTENT_TYPE = "application/problem+json"

_log = logging.getLogger(__name__)


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error (RFC 9457).

    `code` is stable and identifies the error; docs/errors.md lists all codes. `detail` describes
    the error in English. `field` is the name of the wrong field or parameter. `params` contains the
    values that `detail` mentions, for clients that translate errors by `code`.
    """

    title: str
    status: int
    code: str
    detail: str
    field: str = ""
    params: dict[str, str | int] = {}


class Unauthenticated(errors.CodedError):
    """The call requires a valid token but has none."""

    code = "bad-token"


class UnsupportedMedia(errors.CodedError):
    """The body has the wrong content type, or it has a content encoding."""

    code = "unsupported-media-type"


# An error gets the status of its nearest base class in this table. An error without such a base
# class gets 500.
STATUSES: dict[type[Exception], int] = {
    errors.BadInput: 400,
    errors.CursorExpired: 410,
    Unauthenticated: 401,
    reader_accounts.Refused: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.MoveRefused: 409,
    errors.RevisionMismatch: 412,
    errors.TooLarge: 413,
    UnsupportedMedia: 415,
    errors.TooMany: 429,
    errors.Unreachable: 502,
    errors.Overloaded: 503,
    errors.Unchecked: 503,
    api.GoogleAPIError: 503,
}
# Codes are not derived from status phrases, because the phrases differ between versions of Python.
_FLASK_CODES = {
    400: "bad-request",
    404: "not-found",
    405: "method-not-allowed",
    413: errors.TooLarge.code,
}
_INTERNAL = 500
_RETRIED = {http.HTTPStatus.TOO_MANY_REQUESTS, http.HTTPStatus.SERVICE_UNAVAILABLE}
_RETRY_AFTER = 2


def answer(error: Exception) -> flask.Response:
    """Return the response to a request that ended in `error`."""
    if isinstance(error, exceptions.HTTPException):
        return _of_flask(error)
    if type(error) is errors.BadCursor and "led_to" in flask.g:
        # The cursor may be from a thread that was merged into another one.
        error = errors.CursorExpired()
        error.params["thread"] = flask.g.led_to
    status = status_of(error)
    if status >= _INTERNAL:
        # The route is logged instead of the path, because the path may contain personal data.
        route = str(flask.request.url_rule or "no route")
        _log.error("%s %s failed: %d", flask.request.method, route, status, exc_info=error)
    response = _response(_document(error, status))
    if isinstance(error, Unauthenticated | reader_accounts.Refused):
        response.headers["WWW-Authenticate"] = 'Bearer realm="flatthread", error="invalid_token"'
    if status in _RETRIED:
        response.headers["Retry-After"] = str(getattr(error, "retry_after", _RETRY_AFTER))
    return response


def page(error: Exception, shown: Callable[[Problem], flask.Response]) -> flask.Response:
    """Respond with a page that shows the content of the error's problem document."""
    answered = answer(error)
    response = shown(decoders.json(Problem).decode(answered.data))
    response.status_code = answered.status_code
    for name, value in answered.headers:
        if name.lower() not in {"content-type", "content-length", "www-authenticate"}:
            response.headers[name] = value
    return response


def status_of(error: Exception) -> int:
    known = (STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    return next(known, _INTERNAL)


def document(
    status: int, code: str, field: str = "", params: Mapping[str, errors.Param] | None = None
) -> Problem:
    """Return the problem document for a code."""
    detail = error_texts.of_code(code, field, params)
    title = http.HTTPStatus(status).phrase
    return Problem(title, status, code, detail, field, dict(params or {}))


def _document(error: Exception, status: int) -> Problem:
    if isinstance(error, api.GoogleAPIError):
        return document(status, errors.Overloaded.code, params={"seconds": _RETRY_AFTER})
    if status == _INTERNAL or not isinstance(error, errors.CodedError):
        return document(status, "internal")
    return document(status, error.code, error.field, error.params)


def _of_flask(error: exceptions.HTTPException) -> flask.Response:
    """Convert Flask's own error, such as 404 or 405, to a problem document, keeping its headers."""
    status = error.code or _INTERNAL
    if status == _INTERNAL:
        return _response(_document(error, status))
    if status in _FLASK_CODES:
        response = _response(document(status, _FLASK_CODES[status]))
    else:
        title = http.HTTPStatus(status).phrase
        response = _response(Problem(title, status, f"http-{status}", f"{title}."))
    for name, value in error.get_headers():
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


def _response(problem: Problem) -> flask.Response:
    return flask.Response(
        msgspec.json.encode(problem), status=problem.status, content_type=CONTENT_TYPE
    )
