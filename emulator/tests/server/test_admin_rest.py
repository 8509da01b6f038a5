"""The Datastore Admin API over HTTP: paths, parameters, content types, and refusals."""

import http.client
import json
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import inprocess
from datastore_emulator.admin_api import admin_service
from datastore_emulator.server import admin_port, http_server
from emulator.tests.support import service_calls


@pytest.fixture
def ask(engine: inprocess.Engine, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    api = admin_service.AdminService(engine, tmp_path / "exports")
    running = http_server.start(admin_port.AdminPort(engine, lambda: None, api=api).answer, 0)

    def ask(
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        content_type: str = "application/json",
        **parameters: Any,
    ) -> tuple[Any, ...]:
        connection = http.client.HTTPConnection("localhost", running.port, timeout=60)
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        given = json.dumps(body) if isinstance(body, (dict, list)) else body
        headers = {} if body is None else {"Content-Type": content_type}
        connection.request(method, f"/v1/projects/{path}{query}", given, headers)
        response = connection.getresponse()
        content = json.loads(response.read())
        connection.close()
        return response.status, content

    yield ask
    api.close()
    running.stop()


def refusal_of(answer: tuple[int, Any]) -> tuple[int, str]:
    status, content = answer
    assert content["error"]["code"] == status
    assert content["error"]["message"]
    return status, content["error"]["status"]


def test_indexes_are_listed_by_page_and_got(ask: Callable[..., Any]) -> None:
    first = ask("GET", "test/indexes", pageSize=4)[1]
    second = ask("GET", "test/indexes", page_size=4, pageToken=first["nextPageToken"])[1]
    assert [len(each["indexes"]) for each in (first, second)] == [4, 3]
    assert "nextPageToken" not in second
    index = first["indexes"][0]
    assert (index["projectId"], index["kind"], index["state"]) == ("test", "T", "READY")
    assert ask("GET", f"test/indexes/{index['indexId']}") == (200, index)
    assert ask("GET", "test/indexes", filter="state=CREATING") == (200, {})


def test_enums_are_numbers_for_clients_that_ask_for_them(ask: Callable[..., Any]) -> None:
    found = ask("GET", "test/indexes", **{"$alt": "json;enum-encoding=int"})[1]
    assert {each["state"] for each in found["indexes"]} == {2}


def test_entities_are_exported_and_imported(
    ask: Callable[..., Any], near: service_calls.Service
) -> None:
    near.put(near.key("T", 1), a=1)
    body = {
        "outputUrlPrefix": "gs://bucket",
        "entityFilter": {"kinds": ["T"]},
        "labels": {"a": "b"},
    }
    status, operation = ask("POST", "test:export", body)
    assert status == 200
    assert operation["name"].startswith("projects/test/operations/")
    path = operation["name"].removeprefix("projects/")
    ended = ask("POST", f"{path}:wait", {"timeout": "60s"})[1]
    assert (ended["done"], ended["metadata"]["common"]["state"]) == (True, "SUCCESSFUL")
    assert ended["metadata"]["common"]["operationType"] == "EXPORT_ENTITIES"
    assert ended["metadata"]["progressEntities"] == {"workCompleted": "1", "workEstimated": "1"}
    assert ask("GET", path) == (200, ended)
    near.delete(near.key("T", 1))
    begun = ask("POST", "test:import", {"input_url": ended["response"]["outputUrl"]})[1]
    other = begun["name"].removeprefix("projects/")
    assert ask("POST", f"{other}:wait", {"timeout": "60s"})[1]["done"]
    assert near.get(near.key("T", 1)) == {"a": 1}
    listed = ask("GET", "test/operations")[1]["operations"]
    assert [each["name"] for each in listed] == [operation["name"], begun["name"]]
    chosen = ask("GET", "test/operations", filter="metadata.common.labels.a=b AND done=true")[1]
    assert [each["name"] for each in chosen["operations"]] == [operation["name"]]
    assert ask("POST", f"{path}:cancel", {}) == (200, {})
    assert ask("DELETE", path) == (200, {})
    assert refusal_of(ask("GET", path)) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "body", "parameters", "found"),
    [
        ("GET", "test/indexes", None, {"fields": "x"}, (400, "INVALID_ARGUMENT")),
        ("GET", "test/indexes", None, {"pageSize": "x"}, (400, "INVALID_ARGUMENT")),
        ("GET", "test/indexes", None, {"pageSize": -1}, (400, "INVALID_ARGUMENT")),
        ("GET", "test/indexes", None, {"pageSize": 2**40}, (400, "INVALID_ARGUMENT")),
        ("GET", "test/indexes/none", None, {}, (404, "NOT_FOUND")),
        ("DELETE", "test/indexes/none", None, {}, (404, "NOT_FOUND")),
        ("PUT", "test/indexes", None, {}, (404, "NOT_FOUND")),
        ("GET", "test:export", None, {}, (404, "NOT_FOUND")),
        ("POST", "test:export", b"{", {}, (400, "INVALID_ARGUMENT")),
        ("POST", "test:export", {"outputUrl": "gs://x"}, {}, (400, "INVALID_ARGUMENT")),
        ("POST", "test:export", {"outputUrlPrefix": "/etc"}, {}, (400, "INVALID_ARGUMENT")),
        ("POST", "no%20name:export", {"outputUrlPrefix": "gs://x"}, {}, (400, "INVALID_ARGUMENT")),
        ("POST", "test:import", {"inputUrl": "gs://x"}, {}, (400, "INVALID_ARGUMENT")),
        ("POST", "test/indexes", {"kind": "T"}, {}, (400, "INVALID_ARGUMENT")),
        ("POST", "test/operations/x:cancel", {}, {}, (404, "NOT_FOUND")),
        ("GET", "test/operations/a%0Ab", None, {}, (400, "INVALID_ARGUMENT")),
        ("GET", "test/operations", None, {"filter": "x"}, (400, "INVALID_ARGUMENT")),
        ("GET", "test/operations", None, {"name": "projects/other"}, (200, None)),
    ],
)  # fmt: skip
def test_refusals_are_statuses(
    ask: Callable[..., Any],
    method: str,
    path: str,
    body: bytes | dict[str, str] | None,
    parameters: dict[str, Any],
    found: tuple[Any, ...],
) -> None:
    answer = ask(method, path, body, **parameters)
    if found[1] is None:
        assert answer[0] == 200
    else:
        assert refusal_of(answer) == found


def test_a_body_with_another_content_type_is_refused(ask: Callable[..., Any]) -> None:
    answer = ask("POST", "test:export", b"x", content_type="application/x-protobuf")
    assert refusal_of(answer) == (400, "INVALID_ARGUMENT")


def test_an_admin_port_without_exports_answers_about_indexes(engine: inprocess.Engine) -> None:
    running = http_server.start(admin_port.AdminPort(engine, lambda: None).answer, 0)
    connection = http.client.HTTPConnection("localhost", running.port, timeout=60)
    found = []
    for method, path in (("GET", "test/indexes"), ("POST", "test:export")):
        body = None if method == "GET" else '{"outputUrlPrefix": "gs://x"}'
        connection.request(
            method, f"/v1/projects/{path}", body, {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        found.append((response.status, json.loads(response.read())))
    connection.close()
    running.stop()
    assert len(found[0][1]["indexes"]) == 7
    assert refusal_of(found[1]) == (400, "FAILED_PRECONDITION")
    assert "--exports FOLDER" in found[1][1]["error"]["message"]
