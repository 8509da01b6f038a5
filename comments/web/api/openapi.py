"""The OpenAPI document, generated from the types that decode requests and encode answers.

`OPERATIONS` lists all calls with the types of their requests and answers. A test compares this list
with the routes. msgspec generates the JSON Schema of each type.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from comments.domain.crypto import proof_of_work
from comments.jobs import personal_data
from comments.web.http import request_shapes, response_shapes

Json: TypeAlias = dict[str, Any]

_REF = "#/components/schemas/{name}"
# Classes whose schemas keep the names that clients know.
_CLIENT_NAMES = {
    "AuthorKind": "Kind",
    "ChallengePurpose": "Purpose",
    "ConfirmationRequested": "Asked",
    "ListingOrder": "Order",
    "PublicAuthor": "Author",
    "PublicComment": "Comment",
    "ReaderSession": "Session",
}
_SITE: Json = {"type": "string", "pattern": "^[a-z0-9-]{1,63}$"}
_COMMENT: Json = {"type": "string", "pattern": "^[a-z2-7]{26}$"}
_PATH_SCHEMAS = {"site": _SITE, "id": _COMMENT}
_THREAD: tuple[Json, ...] = (
    {
        "name": "thread",
        "in": "query",
        "description": "The thread's id, chosen by the site. Send either this or `page`.",
        "schema": {"type": "string", "minLength": 1},
    },
    {
        "name": "page",
        "in": "query",
        "description": "The URL of the thread's page. Send either this or `thread`.",
        "schema": {"type": "string", "minLength": 1},
    },
)
_KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Makes retries safe: requests with the same key post only one comment.",
    "schema": {"type": "string", "minLength": 16, "maxLength": 255, "pattern": "^[!-~]+$"},
}
_REVISION: Json = {
    "name": "If-Match",
    "in": "header",
    "description": "Change the comment only if it is at this revision.",
    "schema": {"type": "string", "pattern": '^"[1-9][0-9]*"$'},
}
_SIGNED: tuple[Json, ...] = tuple(
    {
        "name": name,
        "in": "header",
        "description": description,
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    }
    for name, description in (
        ("webhook-id", "An id of the message, as in Standard Webhooks."),
        ("webhook-timestamp", "Seconds since 1970; at most five minutes from now."),
        ("webhook-signature", "The signature of id, timestamp and body with the shared secret."),
    )
)
_KNOWN: Json = {
    "name": "If-None-Match",
    "in": "header",
    "description": "Answer 304 without a body if the ETag is one of these.",
    "schema": {"type": "string"},
}
# Answer headers by name. All answers of an operation contain the headers that the operation lists
# and `_ALWAYS` contains.
_HEADERS: Json = {
    "ETag": {
        "description": "The tag of this content, or the comment's revision for If-Match.",
        "schema": {"type": "string", "pattern": '^"[!#-~]+"$'},
    },
    "Location": {
        "description": "The path of the comment.",
        "schema": {"type": "string", "pattern": "^/api/v1/comments/[a-z2-7]{26}$"},
    },
    "Idempotent-Replayed": {
        "description": "Present if a comment was already posted with this key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Retry-After": {
        "description": "Seconds until a retry may succeed.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {
        "description": "The authentication scheme.",
        "schema": {"type": "string", "pattern": "^Bearer "},
    },
}
_ALWAYS = set(_HEADERS) - {"Idempotent-Replayed"}
_REFUSED_WITH = {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}


class Operation(msgspec.Struct, frozen=True):
    """One call: its route, parameters and body, its answer, and its error statuses."""

    method: str
    path: str
    name: str
    summary: str
    answer: type[msgspec.Struct] | None
    refusals: tuple[int, ...]
    query: type[msgspec.Struct] = request_shapes.NoQuery
    body: type[msgspec.Struct] | None = None
    extra: tuple[Json, ...] = ()
    status: int = 200
    also: tuple[int, ...] = ()  # Other statuses that have the same answer.
    headers: tuple[str, ...] = ()  # The headers of the answer.
    # Whether a token of a guest or an account is ignored, optional or required.
    security: tuple[Mapping[str, list[str]], ...] = ()


_TOKEN_TAKEN: tuple[Json, ...] = ({}, {"guest": []})
_TOKEN_NEEDED: tuple[Json, ...] = ({"guest": []},)
_WRITE = (400, 403, 404, 413, 415, 503)
_TAG = ("ETag",)
_COMMENTS = "/sites/{site}/comments"
_ONE = "/comments/{id}"

OPERATIONS = (
    Operation(
        "get", _COMMENTS, "listComments", "List a page of a thread",
        response_shapes.CommentPage, (400, 404, 410, 503), query=request_shapes.ListQuery,
        extra=(*_THREAD, _KNOWN), headers=_TAG,
    ),
    Operation(
        "post", _COMMENTS, "postComment", "Post a comment",
        response_shapes.PostedComment, (*_WRITE, 401, 409, 429), body=request_shapes.NewComment,
        extra=(*_THREAD, _KEY), status=201, also=(202,), security=_TOKEN_TAKEN,
        headers=("Location", "ETag", "Idempotent-Replayed"),
    ),
    Operation(
        "get", "/sites/{site}/challenge", "challenge",
        "Get a challenge to solve before a post, a vote, a report or a sign-in mail",
        proof_of_work.Challenge, (400, 404, 503), query=request_shapes.ChallengeQuery,
    ),
    Operation(
        "get", _ONE, "showComment", "Get a comment with its ancestors",
        response_shapes.OneComment, (400, 404, 503), headers=_TAG,
    ),
    Operation(
        "patch", _ONE, "editComment", "Replace the text of your own comment",
        response_shapes.ChangedComment, (*_WRITE, 401, 409, 412, 429), body=request_shapes.NewBody,
        extra=(_REVISION,), security=_TOKEN_NEEDED, headers=_TAG,
    ),
    Operation(
        "delete", _ONE, "retractComment", "Delete your own comment",
        response_shapes.ChangedComment, (400, 401, 403, 404, 409, 412, 503), extra=(_REVISION,),
        security=_TOKEN_NEEDED, headers=_TAG,
    ),
    Operation(
        "get", f"{_ONE}/replies", "listReplies", "List a page of the comments below a comment",
        response_shapes.CommentPage, (400, 404, 503), query=request_shapes.RepliesQuery,
        extra=(_KNOWN,), headers=_TAG,
    ),
    Operation(
        "get", "/sites/{site}/subscription", "offerMail", "Tell whether this service sends mail",
        response_shapes.MailOffer, (400, 404, 503),
    ),
    Operation(
        "put", "/sites/{site}/subscription", "subscribe",
        "Ask an address to confirm mail about new comments in a thread, or about replies",
        response_shapes.ConfirmationRequested, (*_WRITE, 401, 409, 429),
        body=request_shapes.NewSubscription,
        extra=_THREAD, status=202, security=_TOKEN_TAKEN,
    ),
    Operation(
        "put", f"{_ONE}/vote", "vote", "Vote on a comment",
        response_shapes.CastVote, (*_WRITE, 401, 409, 429), body=request_shapes.NewVote,
        extra=(_KEY,), security=_TOKEN_TAKEN,
    ),
    Operation(
        "delete", f"{_ONE}/vote", "withdrawVote", "Withdraw your vote",
        response_shapes.CastVote, (400, 401, 403, 404, 409, 503), security=_TOKEN_NEEDED,
    ),
    Operation(
        "post", "/sites/{site}/session", "enterSite",
        "Sign in a reader with a token that the site has signed",
        response_shapes.ReaderSession, (*_WRITE, 401), body=request_shapes.Assertion,
    ),
    Operation(
        "get", "/sites/{site}/sign-in", "offerEntry", "List the ways to sign in to a site",
        response_shapes.EntryOffer, (400, 404, 503),
    ),
    Operation(
        "post", "/sites/{site}/sign-in", "askToEnter", "Send a mail with a link to a sign-in code",
        response_shapes.Pending, (*_WRITE, 409, 429), body=request_shapes.AskedEntry, status=202,
    ),
    Operation(
        "post", "/sites/{site}/sign-in/code", "enterByCode",
        "Sign in with the code that a mail linked to",
        response_shapes.ReaderSession, (*_WRITE, 401), body=request_shapes.Code,
    ),
    Operation(
        "post", "/sites/{site}/sign-in/provider", "enterByProvider",
        "Sign in with the code that a provider's pop-up showed",
        response_shapes.ReaderSession, (*_WRITE, 401), body=request_shapes.Voucher,
    ),
    Operation(
        "get", "/sites/{site}/author", "exportAuthor",
        "Export all data that is stored about the caller on a site",
        personal_data.Everything, (400, 401, 403, 404, 503), security=_TOKEN_NEEDED,
    ),
    Operation(
        "delete", "/sites/{site}/author", "eraseAuthor",
        "Erase part of the data that is stored about the caller; repeat until done",
        response_shapes.Erased, (400, 401, 403, 404, 409, 503), security=_TOKEN_NEEDED,
    ),
    Operation(
        "post", f"{_ONE}/report", "reportComment", "Report a comment to the site's moderators",
        response_shapes.Reported, (*_WRITE, 401, 429), body=request_shapes.NewReport, status=202,
        security=_TOKEN_TAKEN,
    ),
    Operation(
        "post", "/sites/{site}/opinions", "giveOpinion",
        "Give a verdict on a comment, as the site's classifier",
        response_shapes.TakenOpinion, (*_WRITE, 401, 409), body=request_shapes.GivenOpinion,
        extra=_SIGNED,
    ),
    Operation(
        "get", "/sites/{site}/votes", "listOwnVotes", "List your own votes in a thread",
        response_shapes.OwnVotes, (400, 401, 403, 404, 503), query=request_shapes.OwnVotesQuery,
        extra=_THREAD, security=_TOKEN_NEEDED,
    ),
    Operation(
        "get", "/sites/{site}/held", "listOwnHeld",
        "List your own comments in a thread, including held ones",
        response_shapes.OwnHeld, (400, 401, 403, 404, 503), extra=_THREAD, security=_TOKEN_NEEDED,
    ),
    Operation(
        "get", "/sites/{site}/authors", "listAuthors", "List a site's authors, highest score first",
        response_shapes.AuthorPage, (400, 404, 503), query=request_shapes.AuthorsQuery,
        extra=(_KNOWN,), headers=_TAG,
    ),
    Operation(
        "post", "/sites/{site}/preview", "previewComment", "Render a text as it would be stored",
        response_shapes.Preview, (*_WRITE, 429), body=request_shapes.NewBody,
    ),
    Operation(
        "post", "/sites/{site}/counts", "countComments", "Count the comments in several threads",
        response_shapes.Counts, _WRITE, body=request_shapes.ThreadList,
    ),
    Operation(
        "get", "/openapi.json", "describe", "Get this document", None, (), extra=(_KNOWN,),
        headers=_TAG,
    ),
)  # fmt: skip


@functools.cache
def document() -> bytes:
    """Return the document as JSON."""
    schemas = _schemas()
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    found = {
        "openapi": "3.1.0",
        "info": {"title": "Flatthread", "version": "1"},
        "servers": [{"url": "/api/v1"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"guest": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(_with_client_names(found))


def _with_client_names(value: Any) -> Any:
    """Return a part of the document with the names of `_CLIENT_NAMES` replaced."""
    if isinstance(value, dict):
        return {_CLIENT_NAMES.get(key, key): _with_client_names(value[key]) for key in value}
    if isinstance(value, list | tuple):
        return [_with_client_names(each) for each in value]
    if isinstance(value, str):
        base, slash, name = value.rpartition("/")
        return base + slash + _CLIENT_NAMES.get(name, name)
    return value


def _schemas() -> Json:
    """Return the schemas of all bodies and answers."""
    bodies = (operation.body for operation in OPERATIONS)
    answers = (operation.answer for operation in OPERATIONS)
    kinds = [response_shapes.Problem, *(kind for kind in (*bodies, *answers) if kind is not None)]
    return msgspec.json.schema_components(list(dict.fromkeys(kinds)), ref_template=_REF)[1]


def _described(operation: Operation) -> Json:
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            *_path_parameters(operation),
            *_query_parameters(operation),
            *operation.extra,
        ],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _content(operation.body)}
    if operation.security:
        described["security"] = list(operation.security)
    return described


def _path_parameters(operation: Operation) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name, schema in _PATH_SCHEMAS.items()
        if f"{{{name}}}" in operation.path
    ]


def _query_parameters(operation: Operation) -> list[Json]:
    """Return a parameter for each field of a query type, with the field's schema."""
    (_,), found = msgspec.json.schema_components([operation.query], ref_template=_REF)
    properties: Json = found[operation.query.__name__]["properties"]
    return [
        {"name": name, "in": "query", "schema": _inlined(schema, found)}
        for name, schema in properties.items()
    ]


def _inlined(schema: Json, found: Json) -> Json:
    """Return a parameter's schema without references, because query types are not components."""
    reference = schema.get("$ref") or next(
        (part["$ref"] for part in schema.get("allOf", []) if "$ref" in part), None
    )
    if reference is None:
        return schema
    rest = {key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}
    return {**found[reference.rpartition("/")[2]], **rest}


def _responses(operation: Operation) -> Json:
    answer = operation.answer
    content = {"application/json": {"schema": {}}} if answer is None else _content(answer)
    problem = {"application/problem+json": {"schema": {"$ref": _REF.format(name="Problem")}}}
    refused = {
        str(status): _response("Error", _REFUSED_WITH.get(status, ()), problem)
        for status in sorted(operation.refusals)
    }
    given = {
        str(status): _response(operation.summary, operation.headers, content)
        for status in (operation.status, *operation.also)
    }
    if _KNOWN in operation.extra:
        given["304"] = _response("Not modified: the client has this content", _TAG, {})
    return {**given, **refused}


def _response(description: str, headers: Sequence[str], content: Json) -> Json:
    found: Json = {"description": description}
    if headers:
        found["headers"] = {
            name: {**_HEADERS[name], "required": name in _ALWAYS} for name in headers
        }
    return {**found, "content": content} if content else found


def _content(shape: type[msgspec.Struct]) -> Json:
    return {"application/json": {"schema": {"$ref": _REF.format(name=shape.__name__)}}}
