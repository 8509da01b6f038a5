"""The Datastore Admin API over HTTP, as Google's clients use it.

    GET, POST    /v1/projects/P/indexes          GET, DELETE  /v1/projects/P/indexes/ID
    POST         /v1/projects/P:export           POST         /v1/projects/P:import
    GET          /v1/projects/P/operations       GET, DELETE  /v1/projects/P/operations/ID
    POST         /v1/projects/P/operations/ID:cancel, :wait

Owns the mapping of paths and methods to RPCs, and the names of the query parameters. Bodies are
JSON.
"""

from __future__ import annotations

import re
from typing import Any

from datastore_emulator import errors
from datastore_emulator.admin_api import admin_service
from datastore_emulator.server import http_server, rest_api

_MAX_BODY = 2 * 1024 * 1024  # Above the service's own limit, which gives INVALID_ARGUMENT
_SEGMENT = "[^/]+"
# Method, path, RPC, and the field that receives the body ("*" means the whole message).
_RULES = tuple(
    (method, re.compile(path), rpc, body)
    for method, path, rpc, body in (
        ("GET", f"/v1/projects/(?P<project_id>{_SEGMENT})/indexes", "ListIndexes", ""),
        ("POST", f"/v1/projects/(?P<project_id>{_SEGMENT})/indexes", "CreateIndex", "index"),
        ("GET", f"/v1/projects/(?P<project_id>{_SEGMENT})/indexes/(?P<index_id>{_SEGMENT})",
         "GetIndex", ""),
        ("DELETE", f"/v1/projects/(?P<project_id>{_SEGMENT})/indexes/(?P<index_id>{_SEGMENT})",
         "DeleteIndex", ""),
        ("POST", f"/v1/projects/(?P<project_id>{_SEGMENT}):export", "ExportEntities", "*"),
        ("POST", f"/v1/projects/(?P<project_id>{_SEGMENT}):import", "ImportEntities", "*"),
        ("GET", f"/v1/(?P<name>projects/{_SEGMENT})/operations", "ListOperations", ""),
        ("POST", f"/v1/(?P<name>projects/{_SEGMENT}/operations/{_SEGMENT}):cancel",
         "CancelOperation", "*"),
        ("POST", f"/v1/(?P<name>projects/{_SEGMENT}/operations/{_SEGMENT}):wait",
         "WaitOperation", "*"),
        ("GET", f"/v1/(?P<name>projects/{_SEGMENT}/operations/{_SEGMENT})", "GetOperation", ""),
        ("DELETE", f"/v1/(?P<name>projects/{_SEGMENT}/operations/{_SEGMENT})",
         "DeleteOperation", ""),
    )
)  # fmt: skip
# Parameters that affect only the form of the response.
_SYSTEM = frozenset({"$alt", "alt", "$prettyPrint", "prettyPrint", "key", "quotaUser"})


def is_path(path: str) -> bool:
    """Return whether a path belongs to this API."""
    return any(rule.fullmatch(path) for _, rule, _, _ in _RULES)


def answer(api: admin_service.AdminService, request: http_server.Request) -> http_server.Response:
    from google.protobuf import json_format  # noqa: PLC0415 - loaded on first use

    try:
        method, message = _call(api, request)
        response = api.call(method, message)
    except errors.DatastoreError as error:
        return rest_api.refusal(error)
    has_numbers = "enum-encoding=int" in request.query.get("$alt", "")
    text = json_format.MessageToJson(response, use_integers_for_enums=has_numbers)
    return http_server.Response(text.encode() + b"\n", content_type=rest_api.JSON)


def _call(api: admin_service.AdminService, request: http_server.Request) -> tuple[str, Any]:
    for method, path, rpc, body in _RULES:
        named = path.fullmatch(request.path)
        if named is not None and method == request.method:
            message = api.request(rpc)()
            _read_body(request, message, body)
            _read_query(request, message)
            for name, text in named.groupdict().items():
                setattr(message, name, text)
            return rpc, message
    raise errors.NotFound(f"There is no {request.method} {request.path}.")


def _read_body(request: http_server.Request, message: Any, body: str) -> None:
    content = request.read(_MAX_BODY)
    if not body:
        return
    if content and request.content_type != rest_api.JSON:
        raise errors.InvalidArgument(f"The Content-Type must be {rest_api.JSON}.")
    rest_api.parse_json(content, message if body == "*" else getattr(message, body))


def _read_query(request: http_server.Request, message: Any) -> None:
    """Read the query parameters: the message's fields, with names in either spelling."""
    by_name = {
        name: field
        for field in message.DESCRIPTOR.fields
        for name in (field.name, field.json_name)
        if not field.is_repeated and field.message_type is None
    }
    for name, text in request.query.items():
        if name in _SYSTEM:
            continue
        if name not in by_name:
            raise errors.InvalidArgument(f"The parameter {name} does not exist.")
        try:
            kind = type(getattr(message, by_name[name].name))
            setattr(message, by_name[name].name, kind(text))
        except ValueError as error:
            raise errors.InvalidArgument(f"{name} must be a number, not {text!r}.") from error
