"""Generate the OpenAPI document from the types that decode requests and encode responses.

`operations` lists all calls. msgspec generates the JSON Schema of each type.
"""

import functools
from collections.abc import Sequence

import flask
import msgspec

from comments.web.api import comment_calls
from comments.web.api.description import operations
from comments.web.http import problems, responses

_REF = "#/components/schemas/{name}"
_SITE: operations.Json = {"type": "string", "pattern": "^[a-z0-9-]{1,63}$"}
_COMMENT: operations.Json = {"type": "string", "pattern": "^[a-z2-7]{26}$"}
_PATH_SCHEMAS = {"site": _SITE, "id": _COMMENT}
# Headers that not every response of an operation has.
_OPTIONAL = {"Idempotent-Replayed", "Link"}
_REFUSED_WITH = {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}

blueprint = flask.Blueprint("description", __name__, url_prefix="/api/v1")
blueprint.before_request(comment_calls.admit)


@blueprint.get("/openapi.json")
def describe() -> flask.Response:
    return responses.fixed_answer(_encoded_document())


@functools.cache
def _encoded_document() -> responses.Fixed:
    return responses.encode_fixed(document())


@functools.cache
def document() -> bytes:
    """Return the document as JSON."""
    schemas = _schemas()
    paths: dict[str, operations.Json] = {}
    for operation in operations.table().operations:
        paths.setdefault(operation.path, {})[operation.method] = _operation_object(operation)
    contents = {
        "openapi": "3.1.0",
        "info": {"title": "Flatthread", "version": "1"},
        "servers": [{"url": "/api/v1"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "guest": {"type": "http", "scheme": "bearer"},
                "moderator": {"type": "http", "scheme": "bearer"},
            },
        },
    }
    return msgspec.json.encode(contents)


def _schemas() -> operations.Json:
    """Return the schemas of all request bodies and responses."""
    bodies = (operation.body for operation in operations.table().operations)
    answers = (operation.answer for operation in operations.table().operations)
    others = (operation.or_answer for operation in operations.table().operations)
    kinds = [problems.Problem, *(kind for kind in (*bodies, *answers, *others) if kind)]
    return msgspec.json.schema_components(list(dict.fromkeys(kinds)), ref_template=_REF)[1]


def _operation_object(operation: operations.Operation) -> operations.Json:
    described: operations.Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            *_path_parameters(operation),
            *_query_parameters(operation),
            *(operations.table().parameters[name] for name in operation.extra),
        ],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _content(operation.body)}
    if operation.security != "none":
        described["security"] = operations.SECURITY[operation.security]
    return described


def _path_parameters(operation: operations.Operation) -> list[operations.Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name, schema in _PATH_SCHEMAS.items()
        if f"{{{name}}}" in operation.path
    ]


def _query_parameters(operation: operations.Operation) -> list[operations.Json]:
    """Return a parameter for each field of a query type that the operation does not describe."""
    (_,), components = msgspec.json.schema_components([operation.query], ref_template=_REF)
    properties: operations.Json = components[operation.query.__name__]["properties"]
    described = {operations.table().parameters[name]["name"] for name in operation.extra}
    return [
        {"name": name, "in": "query", "schema": _inline(schema, components)}
        for name, schema in properties.items()
        if name not in described
    ]


def _inline(schema: operations.Json, found: operations.Json) -> operations.Json:
    """Return a parameter's schema without references, because query types are not components."""
    reference = schema.get("$ref") or next(
        (part["$ref"] for part in schema.get("allOf", []) if "$ref" in part), None
    )
    if reference is None:
        return schema
    rest = {key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}
    return {**found[reference.rpartition("/")[2]], **rest}


def _responses(operation: operations.Operation) -> operations.Json:
    shapes = [shape for shape in (operation.answer, operation.or_answer) if shape]
    content = _content(*shapes) if shapes else {"application/json": {"schema": {}}}
    if operation.is_table:
        content["text/csv"] = {"schema": {"type": "string"}}
    problem = {"application/problem+json": {"schema": {"$ref": _REF.format(name="Problem")}}}
    refused = {
        str(status): _response("Error", _REFUSED_WITH.get(status, ()), problem)
        for status in operation.refusals
    }
    given = {
        str(status): _response(operation.summary, operation.headers, content)
        for status in (operation.status, *operation.also)
    }
    if "known" in operation.extra:
        given["304"] = _response("Not modified: the client has this content", ("ETag",), {})
    return {**given, **refused}


def _response(
    description: str, headers: Sequence[str], content: operations.Json
) -> operations.Json:
    response: operations.Json = {"description": description}
    if headers:
        response["headers"] = {
            name: {**operations.table().headers[name], "required": name not in _OPTIONAL}
            for name in headers
        }
    return {**response, "content": content} if content else response


def _content(*shapes: type[msgspec.Struct]) -> operations.Json:
    schemas = [{"$ref": _REF.format(name=shape.__name__)} for shape in shapes]
    return {"application/json": {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}
