"""The OpenAPI document is valid and describes exactly the existing routes."""

import json
import re

import flask
import msgspec
import openapi_schema_validator
import openapi_spec_validator
from flask.testing import FlaskClient

from comments.domain import presentation
from comments.web.api.description import openapi, operations


def document() -> dict[str, object]:
    return msgspec.json.decode(openapi.document(), type=dict[str, object])


def test_the_document_is_valid_openapi() -> None:
    openapi_spec_validator.validate(document())
    assert document()["openapi"] == "3.1.0"


def test_every_route_is_described_and_every_description_has_a_route(app: flask.Flask) -> None:
    assert _routes(app) == {(item.method, item.path) for item in operations.table().operations}


def test_every_response_is_as_described(client: FlaskClient) -> None:
    thread = "/api/v1/sites/demo/comments?thread=t"
    sent = {"name": "Ann", "body": "Hello"}
    posted = client.post(thread, json=sent)
    said = json.loads(posted.text)
    reply = json.loads(client.post(thread, json={**sent, "parent": said["comment"]["id"]}).text)
    one = f"/api/v1/comments/{reply['comment']['id']}"
    own = {"Authorization": f"Bearer {said['token']}"}
    first = f"/api/v1/comments/{said['comment']['id']}"
    answers = {
        "PostedComment": [posted],
        "OneComment": [client.get(one)],
        "CastVote": [
            client.put(f"{one}/vote", json={"value": 1}),
            client.delete(f"{one}/vote", headers=own),
        ],
        "OwnVotes": [client.get("/api/v1/sites/demo/votes?thread=t", headers=own)],
        "FollowState": [
            client.open("/api/v1/sites/demo/following?thread=t", method=method, headers=own)
            for method in ("PUT", "GET", "DELETE")
        ],
        "FollowedPage": [client.get("/api/v1/sites/demo/followed", headers=own)],
        "AuthorPage": [client.get("/api/v1/sites/demo/authors")],
        "Preview": [client.post("/api/v1/sites/demo/preview", json={"body": "x"})],
        "Counts": [
            client.post("/api/v1/sites/demo/counts", json={"threads": ["t"], **more})
            for more in ({}, {"followers": True})
        ],
        "ChangedComment": [
            client.patch(first, json={"body": "x"}, headers=own),
            client.delete(first, headers=own),
        ],
        "CommentPage": [client.get(thread), client.get(f"{first}/replies")],
        "Problem": [client.get("/nothing"), client.post(thread, json={}), client.put(thread)],
    }
    for name, responses in answers.items():
        for response in responses:
            assert_described(json.loads(response.text), name)


def assert_described(value: object, name: str) -> None:
    schema = {**document(), "$ref": f"#/components/schemas/{name}"}
    openapi_schema_validator.OAS31Validator(schema).validate(value)
    assert isinstance(value, dict)
    # The schemas allow undeclared fields, but the responses do not contain any.
    components = document()["components"]
    assert isinstance(components, dict)
    assert value.keys() <= components["schemas"][name]["properties"].keys()


def test_parameters_contain_no_references() -> None:
    for operation in operations.table().operations:
        assert "$ref" not in str(openapi._query_parameters(operation))


def test_the_schemas_of_responses_have_no_personal_fields() -> None:
    fields = {field.name for field in msgspec.structs.fields(presentation.PublicAuthor)}
    assert fields == {"name", "website", "kind"}


def _routes(app: flask.Flask) -> set[tuple[str, str]]:
    names = {"site_id": "site", "comment_id": "id"}
    return {
        (method.lower(), re.sub(r"<\w+:(\w+)>", lambda m: f"{{{names[m[1]]}}}", rule.rule[7:]))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/v1")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
