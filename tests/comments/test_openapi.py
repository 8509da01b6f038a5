"""The OpenAPI document: valid, and exactly the routes there are."""

import re

import flask
import msgspec
import openapi_spec_validator

from comments.web import openapi, shapes


def document() -> dict[str, object]:
    return msgspec.json.decode(openapi.document(), type=dict[str, object])


def test_the_document_is_valid_openapi() -> None:
    openapi_spec_validator.validate(document())
    assert document()["openapi"] == "3.1.0"


def test_every_route_is_described_and_every_description_routed(app: flask.Flask) -> None:
    assert _routes(app) == {(item.method, item.path) for item in openapi.OPERATIONS}


def test_parameters_hold_no_references() -> None:
    for operation in openapi.OPERATIONS:
        assert "$ref" not in str(openapi._query_parameters(operation))


def test_the_personal_has_no_place_in_an_answer() -> None:
    fields = {field.name for field in msgspec.structs.fields(shapes.Author)}
    assert fields == {"name", "website"}


def _routes(app: flask.Flask) -> set[tuple[str, str]]:
    names = {"site_id": "site", "comment_id": "id"}
    return {
        (method.lower(), re.sub(r"<\w+:(\w+)>", lambda m: f"{{{names[m[1]]}}}", rule.rule[7:]))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/v1")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
