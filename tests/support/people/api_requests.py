"""Make API calls in one line, with the checks that apply to every response."""

import json

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.store import connection, reads

THREAD = "/api/v1/sites/demo/comments?thread=t"
ONE = "/api/v1/comments/"
KEY = {"Idempotency-Key": "0123456789abcdef"}
NOBODY = "a" * 26


def post(client: FlaskClient, name: str = "Ann", body: str = "Hello", **more: object) -> dict:
    response = client.post(THREAD, json={"name": name, "body": body, **more})
    assert response.status_code == 201, response.text
    return answer(response)


def answer(response: TestResponse) -> dict:
    assert response.is_json
    return dict(json.loads(response.text))


def is_empty(response: TestResponse) -> bool:
    """Whether a response is the page of a thread without comments."""
    page = answer(response)
    shown = {name: page[name] for name in ("comments", "cursor", "total", "changed")}
    return shown == {"comments": [], "cursor": None, "total": 0, "changed": None}


def refused(response: TestResponse, status: int, field: str | None = None) -> str:
    """Check that a response is an error; return its stable code."""
    assert response.status_code == status, response.text
    assert response.content_type == "application/problem+json"
    problem = json.loads(response.text)
    if field is not None:
        assert problem["field"] == field
    return str(problem["code"])


def bearer(posted: dict) -> dict[str, str]:
    return {"Authorization": f"Bearer {posted['token']}"}


def listed(client: FlaskClient, query: str = "") -> list[str]:
    return [row["html"] for row in answer(client.get(THREAD + query))["comments"]]


def stored(store: connection.Store, kind: str) -> int:
    with store.context():
        return len(list(reads.fetch(reads.Query(kind, keys_only=True))))
