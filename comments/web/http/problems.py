"""How what is wrong reaches the client: one table of statuses, one form of answer.

Every error of the service is a problem document (RFC 9457) with a stable `code`, also those that
Flask and the store's client raise themselves. A fault of ours says nothing of its cause: that is
for the log.
"""

import http
import logging

import flask
import msgspec
from google.api_core import exceptions as api
from werkzeug import exceptions

from comments import errors
from comments.accounts import reader_accounts
from comments.web.http import response_shapes

CONTENT_TYPE = "application/problem+json"

_log = logging.getLogger(__name__)


class Unauthenticated(errors.FlatthreadError):
    """A call that needs a token came without one, or with one that is not good."""

    code = "bad-token"


class UnsupportedMedia(errors.FlatthreadError):
    """A body that is not plainly JSON."""

    code = "unsupported-media-type"


# The nearest class of an error's ancestry counts. What is not here is a fault of ours: 500.
STATUSES: dict[type[Exception], int] = {
    errors.BadInput: 400,
    errors.CursorExpired: 410,
    Unauthenticated: 401,
    reader_accounts.Refused: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.RevisionMismatch: 412,
    errors.TooLarge: 413,
    UnsupportedMedia: 415,
    errors.TooMany: 429,
    errors.Unreachable: 502,
    errors.Overloaded: 503,
    errors.Unchecked: 503,
    api.GoogleAPIError: 503,
}
# Codes are ours to keep stable; the phrases of statuses change with Python's version.
_FLASK_CODES = {
    400: "bad-request",
    404: "not-found",
    405: "method-not-allowed",
    413: errors.TooLarge.code,
}
_SERVER_FAULT = 500
_WAITING = {http.HTTPStatus.TOO_MANY_REQUESTS, http.HTTPStatus.SERVICE_UNAVAILABLE}
_RETRY_AFTER = 2


def answer(error: Exception) -> flask.Response:
    """The answer to a request that ended in `error`."""
    if isinstance(error, exceptions.HTTPException):
        return _of_flask(error)
    status = status_of(error)
    if status >= _SERVER_FAULT:
        # The route, not the path: that may hold anything.
        route = str(flask.request.url_rule or "no route")
        _log.error("%s %s failed: %d", flask.request.method, route, status, exc_info=error)
    response = _problem(_document(error, status))
    if isinstance(error, Unauthenticated | reader_accounts.Refused):
        response.headers["WWW-Authenticate"] = 'Bearer realm="flatthread", error="invalid_token"'
    if status in _WAITING:
        response.headers["Retry-After"] = str(getattr(error, "retry_after", _RETRY_AFTER))
    return response


def status_of(error: Exception) -> int:
    """The HTTP status of an error."""
    known = (STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    return next(known, _SERVER_FAULT)


def _document(error: Exception, status: int) -> response_shapes.Problem:
    title = http.HTTPStatus(status).phrase
    if isinstance(error, api.GoogleAPIError):
        return response_shapes.Problem(
            title, status, "overloaded", "the store did not answer; try again"
        )
    if status == _SERVER_FAULT or not isinstance(error, errors.FlatthreadError):
        return response_shapes.Problem(
            title, status, "internal", "this is our fault; it is in the log"
        )
    field = getattr(error, "field", "")
    return response_shapes.Problem(title, status, error.code, error.message, field)


def _of_flask(error: exceptions.HTTPException) -> flask.Response:
    """Flask's own refusals (404, 405, 413 ...) in our form, with their headers (Allow)."""
    status = error.code or _SERVER_FAULT
    if status == _SERVER_FAULT:
        return _problem(_document(error, status))
    title = http.HTTPStatus(status).phrase
    code = _FLASK_CODES.get(status, f"http-{status}")
    response = _problem(response_shapes.Problem(title, status, code, title.lower()))
    for name, value in error.get_headers():
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


def _problem(document: response_shapes.Problem) -> flask.Response:
    return flask.Response(
        msgspec.json.encode(document), status=document.status, content_type=CONTENT_TYPE
    )
