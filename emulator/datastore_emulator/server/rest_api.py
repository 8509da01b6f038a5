"""The API over HTTP: `POST /v1/projects/{project}:{method}`, as JSON or protobuf.

Owns the encoding of requests, responses and errors; the engine handles the requests. Bodies use
proto3's JSON mapping. An error is a google.rpc.Status, sent with the HTTP status that Datastore
documents. A body with any other Content-Type is refused; the server never guesses the type.
"""

from __future__ import annotations

import json
import re
from typing import Any

from google.protobuf import json_format
from google.protobuf import message as protobuf

from datastore_emulator import engine as engines
from datastore_emulator import errors, protobufs
from datastore_emulator.server import http_server

PREFIX = "/v1/projects/"
JSON = "application/json"
PROTOBUF = "application/x-protobuf"
_MAX_BODY = 64 * 1024 * 1024  # Above the engine's own limit, which gives INVALID_ARGUMENT
_PATH = re.compile(r"/v1/projects/([^/:]+):([A-Za-z]+)")
_METHODS = {name[0].lower() + name[1:]: name for name in protobufs.REQUESTS}

# Each status, with its number in google.rpc.Code and its HTTP status.
_CODES = {
    "CANCELLED": (1, 499),
    "UNKNOWN": (2, 500),
    "INVALID_ARGUMENT": (3, 400),
    "DEADLINE_EXCEEDED": (4, 504),
    "NOT_FOUND": (5, 404),
    "ALREADY_EXISTS": (6, 409),
    "PERMISSION_DENIED": (7, 403),
    "RESOURCE_EXHAUSTED": (8, 429),
    "FAILED_PRECONDITION": (9, 400),
    "ABORTED": (10, 409),
    "OUT_OF_RANGE": (11, 400),
    "UNIMPLEMENTED": (12, 501),
    "INTERNAL": (13, 500),
    "UNAVAILABLE": (14, 503),
    "DATA_LOSS": (15, 500),
    "UNAUTHENTICATED": (16, 401),
}


def answer(engine: engines.Engine, request: http_server.Request) -> http_server.Response:
    """Answer one API call."""
    is_json = request.content_type != PROTOBUF
    try:
        method, message = _call(request)
        content = engine.call(method, message)
    except errors.Dropped as fault:
        raise http_server.ConnectionDropped from fault
    except errors.DatastoreError as error:
        return refusal(error, is_json=is_json)
    if not is_json:
        return http_server.Response(content, content_type=PROTOBUF)
    response = protobufs.RESPONSES[method].FromString(content)
    return http_server.Response(_json(response), content_type=JSON)


def http_status(error: errors.DatastoreError) -> int:
    """Return the HTTP status of an error."""
    return _CODES[error.status][1]


def _call(request: http_server.Request) -> tuple[str, Any]:
    named = _PATH.fullmatch(request.path)
    if request.method != "POST" or named is None or named[2] not in _METHODS:
        raise errors.NotFound(f"There is no {request.method} {request.path}.")
    method = _METHODS[named[2]]
    body = request.read(_MAX_BODY)
    message = protobufs.REQUESTS[method]()
    if request.content_type == PROTOBUF:
        _parse_protobuf(body, message)
    elif request.content_type == JSON:
        parse_json(body, message)
    else:
        raise errors.InvalidArgument(f"The Content-Type must be {JSON} or {PROTOBUF}.")
    if message.project_id not in ("", named[1]):
        raise errors.InvalidArgument(
            f"mismatched projects within request: {named[1]} and {message.project_id}"
        )
    message.project_id = named[1]
    return method, message


def _parse_protobuf(body: bytes, message: Any) -> None:
    try:
        message.MergeFromString(body)
    except protobuf.DecodeError as error:
        raise errors.InvalidArgument(f"The body is not a protobuf message: {error}") from error


def parse_json(body: bytes, message: Any) -> None:
    """Read a message from JSON.

    Raises:
        errors.InvalidArgument: The body is not valid JSON for this message.
    """
    try:
        json_format.Parse(body or b"{}", message)
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise errors.InvalidArgument(
            f"The body is not valid JSON for this method: {error}"
        ) from error


def _json(message: Any) -> bytes:
    return json_format.MessageToJson(message).encode() + b"\n"


def refusal(error: errors.DatastoreError, *, is_json: bool = True) -> http_server.Response:
    """Convert an error to a google.rpc.Status."""
    code, status = _CODES[error.status]
    if not is_json:
        content = protobufs.number_field(1, code) + protobufs.field(2, error.message.encode())
        return http_server.Response(content, status, PROTOBUF)
    shown = {"error": {"code": status, "message": error.message, "status": error.status}}
    content = json.dumps(shown, indent=2).encode() + b"\n"
    return http_server.Response(content, status, JSON)
