"""The API over HTTP: JSON and protobuf, statuses, and a client library that uses HTTP."""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from datastore_emulator import inprocess, protobufs
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.server import admin_port, http_server, rest_api
from emulator.tests.support import service_calls


@pytest.fixture
def running(engine: inprocess.Engine) -> Iterator[http_server.HttpServer]:
    running = http_server.start(admin_port.AdminPort(engine, lambda: None).answer, 0)
    yield running
    running.stop()


@pytest.fixture
def post(running: http_server.HttpServer) -> Callable[..., Any]:
    def post(
        method: str,
        body: bytes | dict[str, Any],
        content_type: str = "application/json; charset=utf-8",
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("localhost", running.port, timeout=60)
        given = body if isinstance(body, bytes) else json.dumps(body)
        connection.request(
            "POST", f"/v1/projects/test:{method}", given, {"Content-Type": content_type}
        )
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content

    return post


KEY = {"partitionId": {"projectId": "test"}, "path": [{"kind": "T", "id": "5"}]}
VALUES = {
    "null": {"nullValue": None},
    "bool": {"booleanValue": True},
    "int": {"integerValue": "-9223372036854775808"},
    "nan": {"doubleValue": "NaN"},
    "zero": {"doubleValue": -0.0},
    "time": {"timestampValue": "2026-01-02T03:04:05.678901Z"},
    "key": {"keyValue": KEY},
    "text": {"stringValue": "\u0000\U0001f600", "excludeFromIndexes": True, "meaning": 15},
    "blob": {"blobValue": "AP8="},
    "geo": {"geoPointValue": {"latitude": 1.5, "longitude": -2.5}},
    "entity": {"entityValue": {"properties": {"x": {"arrayValue": {}}}}},
}


def test_json_stores_and_returns_every_type(post: Callable[..., Any]) -> None:
    mutation = {"upsert": {"key": KEY, "properties": VALUES}}
    status, content = post("commit", {"mode": "NON_TRANSACTIONAL", "mutations": [mutation]})
    assert (status, len(json.loads(content)["mutationResults"])) == (200, 1)
    status, content = post("lookup", {"keys": [KEY]})
    found = json.loads(content)["found"][0]["entity"]
    assert (status, found["key"]) == (200, KEY)
    assert json.dumps(found["properties"], sort_keys=True) == json.dumps(VALUES, sort_keys=True)


def test_the_key_may_be_projected_with_a_property(post: Callable[..., Any]) -> None:
    mutation = {"upsert": {"key": KEY, "properties": {"a": {"integerValue": "7"}}}}
    post("commit", {"mode": "NON_TRANSACTIONAL", "mutations": [mutation]})
    named = [{"property": {"name": name}} for name in ("__key__", "a")]
    query = {"query": {"kind": [{"name": "T"}], "projection": named}}
    batch = json.loads(post("runQuery", query)[1])["batch"]
    (entity,) = (each["entity"] for each in batch["entityResults"])
    assert batch["entityResultType"] == "PROJECTION"
    assert entity == {"key": KEY, "properties": {"a": {"integerValue": "7", "meaning": 18}}}


def test_all_eight_methods_answer(post: Callable[..., Any]) -> None:
    begun = json.loads(post("beginTransaction", {})[1])["transaction"]
    query = {"query": {"kind": [{"name": "T"}]}, "readOptions": {"transaction": begun}}
    assert json.loads(post("runQuery", query)[1])["batch"]["moreResults"] == "NO_MORE_RESULTS"
    counted = {"nestedQuery": {"kind": [{"name": "T"}]}, "aggregations": [{"count": {}}]}
    batch = json.loads(post("runAggregationQuery", {"aggregationQuery": counted})[1])["batch"]
    found = batch["aggregationResults"][0]["aggregateProperties"]
    assert found == {"property_1": {"integerValue": "0"}}
    assert post("rollback", {"transaction": begun})[0] == 200
    incomplete = {"path": [{"kind": "T"}]}
    given = json.loads(post("allocateIds", {"keys": [incomplete]})[1])["keys"][0]
    assert given["path"][0]["id"]
    assert post("reserveIds", {"keys": [given]})[0] == 200
    assert {post(name, {})[0] for name in ("lookup", "commit")} == {200, 400}


@pytest.mark.parametrize(
    ("method", "body", "content_type", "status", "name"),
    [
        ("lookup", {"keys": [{}]}, rest_api.JSON, 400, "INVALID_ARGUMENT"),
        ("lookup", {"kyes": []}, rest_api.JSON, 400, "INVALID_ARGUMENT"),
        ("lookup", b"{", rest_api.JSON, 400, "INVALID_ARGUMENT"),
        ("lookup", b"\xff", rest_api.JSON, 400, "INVALID_ARGUMENT"),
        ("lookup", b"[" * 50_000, rest_api.JSON, 400, "INVALID_ARGUMENT"),
        ("lookup", {"projectId": "other"}, rest_api.JSON, 400, "INVALID_ARGUMENT"),
        ("lookup", {}, "text/plain", 400, "INVALID_ARGUMENT"),
        ("lookup", b"\xff\xff", rest_api.PROTOBUF, 400, None),
        (
            "runQuery",
            {"query": {"findNearest": {"limit": 1}}},
            rest_api.JSON,
            501,
            "UNIMPLEMENTED",
        ),
        ("import", {"input_url": "x"}, rest_api.JSON, 400, "INVALID_ARGUMENT"),
        ("lokup", {}, rest_api.JSON, 404, "NOT_FOUND"),
    ],
)
def test_refusals_are_statuses(
    post: Callable[..., Any],
    method: str,
    body: bytes | dict[str, Any],
    content_type: str,
    status: int,
    name: str | None,
) -> None:
    got, content = post(method, body, content_type)
    assert got == status
    if name is not None:
        error = json.loads(content)["error"]
        assert (error["code"], error["status"]) == (status, name)
        assert error["message"]


def test_conflicting_writes_have_the_documented_statuses(post: Callable[..., Any]) -> None:
    def commit(operation: str) -> int:
        mutation = {operation: {"key": KEY}}
        return post("commit", {"mode": "NON_TRANSACTIONAL", "mutations": [mutation]})[0]

    assert commit("update") == 404
    assert commit("insert") == 200
    assert commit("insert") == 409


# The client library chooses its transport during import, so it runs in a separate process.
CLIENT = """
import datetime
from google.api_core import exceptions
from google.cloud import datastore
client = datastore.Client(project="test")
assert not client._use_grpc
task = datastore.Entity(client.key("T"), exclude_from_indexes=["text"])
now = datetime.datetime.now(datetime.timezone.utc)
task.update(a=1, text="x" * 2000, when=now, blob=b"\\0\\xff", tags=["u", 2], none=None)
client.put(task)
again = client.get(task.key)
assert dict(again) == dict(task) and again.exclude_from_indexes == {"text"}, again
with client.transaction():
    again["a"] = 2
    client.put(again)
assert [each["a"] for each in client.query(kind="T", filters=[("a", "=", 2)]).fetch()] == [2]
counted = client.aggregation_query(client.query(kind="T")).count().fetch()
assert [each.value for each in next(iter(counted))] == [1]
client.put_multi([datastore.Entity(client.key("Many", n + 1)) for n in range(400)])
assert len(list(client.query(kind="Many").fetch())) == 400
try:
    client.get(client.key("T", "x" * 1501))
except exceptions.BadRequest as refusal:
    assert "1500" in refusal.message
else:
    raise AssertionError
print("done")
"""


def test_google_cloud_datastore_works_over_http(running: http_server.HttpServer) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CLIENT],
        env={
            **os.environ,
            "DATASTORE_EMULATOR_HOST": f"localhost:{running.port}",
            "GOOGLE_CLOUD_DISABLE_GRPC": "1",
        },
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


def test_a_protobuf_request_gets_a_protobuf_response(
    post: Callable[..., Any], make_service: type[service_calls.Service], engine: inprocess.Engine
) -> None:
    service = make_service(inprocess.Channel(engine))
    service.put(service.key("T", 5), a=1)
    request = protobufs.LookupRequest()
    request.keys.append(service.key("T", 5))
    status, content = post("lookup", request.SerializeToString(), rest_api.PROTOBUF)
    assert status == 200
    found = protobufs.LookupResponse.FromString(content).found
    assert found[0].entity.properties["a"].integer_value == 1


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("INVALID_ARGUMENT", 400),
        ("UNAUTHENTICATED", 401),
        ("PERMISSION_DENIED", 403),
        ("NOT_FOUND", 404),
        ("ALREADY_EXISTS", 409),
        ("ABORTED", 409),
        ("FAILED_PRECONDITION", 400),
        ("RESOURCE_EXHAUSTED", 429),
        ("INTERNAL", 500),
        ("UNAVAILABLE", 503),
    ],
)
def test_every_status_has_its_http_status(
    engine: inprocess.Engine, post: Callable[..., Any], name: str, status: int
) -> None:
    engine.install_faults(fault_plans.Plan.parse({"rules": [{"every": 1, "status": name}]}))
    got, content = post("lookup", {})
    assert (got, json.loads(content)["error"]["status"]) == (status, name)
