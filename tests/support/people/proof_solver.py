"""Solve proof-of-work challenges and send posts with their proofs."""

import base64
import hashlib
import itertools
import json
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.people import api_requests

CHALLENGE = "/api/v1/sites/demo/challenge"


def solved(challenge: dict[str, Any], /, **changed: object) -> str:
    """Return a challenge's solution in the format of ALTCHA's widget."""
    number = next(
        number
        for number in itertools.count()
        if hashlib.sha256(f"{challenge['salt']}{number}".encode()).hexdigest()
        == challenge["challenge"]
    )
    said = {name: challenge[name] for name in ("algorithm", "challenge", "salt", "signature")}
    return encoded({**said, "number": number, "took": 12, **changed})


def encoded(payload: object) -> str:
    return base64.b64encode(json.dumps(payload).encode()).decode()


def proof(client: FlaskClient) -> str:
    return solved(api_requests.answer(client.get(CHALLENGE)))


def post(
    client: FlaskClient, body: str = "Hello", *, key: str | None = None, **more: object
) -> TestResponse:
    headers = {} if key is None else {"Idempotency-Key": key.ljust(16, "-")}
    token = more.pop("token", None)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    environ = {"REMOTE_ADDR": str(more.pop("peer", "192.0.2.1"))}
    sent = {"name": "Ann", "body": body, **more}
    return client.post(api_requests.THREAD, json=sent, headers=headers, environ_base=environ)
