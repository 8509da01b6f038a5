"""Google's own clients of the Datastore Admin API, tested against the running program.

The tests use the Python client over gRPC and REST, and the Node client in both of its modes.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import google.api_core.exceptions
import grpc
import pytest
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import datastore_admin_v1
from google.cloud.datastore_admin_v1.services.datastore_admin.transports import (
    DatastoreAdminGrpcTransport,
)

from emulator.tests.clients import node_driver
from emulator.tests.support import service_calls
from tests.support import programs

PATIENCE = 60  # Seconds


class Started:
    """A running emulator: its addresses, a client for its data, and its exports folder."""

    def __init__(self, address: str, admin: str, channel: grpc.Channel, exports: Path) -> None:
        self.address = address
        self.admin = admin
        self.service = service_calls.Service(channel)
        self.exports = exports

    def path_of(self, url: str) -> Path:
        return self.exports / url.removeprefix("gs://")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """Run the program once, with a composite index; each test stores its own data."""
    data = tmp_path_factory.mktemp("admin") / "data"
    command = [
        sys.executable,
        "-m",
        "datastore_emulator",
        "--port",
        "0",
        "--data",
        str(data),
        "--fast",
    ]
    with contextlib.ExitStack() as stack:
        program = stack.enter_context(programs.running(command, environ=programs.environment()))
        address = program.wait_for(r"export DATASTORE_EMULATOR_HOST=(\S+)")[1]
        admin = program.wait_for(r"Admin port: (\S+)")[1]
        channel = stack.enter_context(grpc.insecure_channel(address))
        yield Started(address, admin, channel, data.with_name("data-exports"))


@pytest.fixture
def emulator(started: Started) -> Started:
    service = started.service
    for namespace in ("", "n"):
        for number in (1, 2, 3):
            key = service.key("T", number, namespace=namespace)
            service.put(key, a=number, b=[number, "x"], link=key)
    service.put(service.key("U", "u"), a=1)
    assert service.names("T", ("a", "=", 1), order=["-b"]) == [1]
    return started


@pytest.fixture(params=["grpc", "rest"])
def admin(request: pytest.FixtureRequest, emulator: Started) -> Iterator[Any]:
    if request.param == "grpc":
        with grpc.insecure_channel(emulator.address) as channel:
            yield datastore_admin_v1.DatastoreAdminClient(
                transport=DatastoreAdminGrpcTransport(channel=channel)
            )
        return
    yield datastore_admin_v1.DatastoreAdminClient(
        transport="rest",
        client_options=ClientOptions(api_endpoint=emulator.admin),
        credentials=AnonymousCredentials(),
    )


def shown(index: Any) -> list[tuple[str, str]]:
    return [(each.name, each.direction.name) for each in index.properties]


def test_python_lists_and_gets_indexes(admin: Any) -> None:
    (index,) = admin.list_indexes(request={"project_id": "test"})
    assert (index.kind, index.ancestor.name, index.state.name) == ("T", "NONE", "READY")
    assert shown(index) == [("a", "ASCENDING"), ("b", "DESCENDING")]
    asked = {"project_id": "test", "index_id": index.index_id}
    assert admin.get_index(request=asked) == index
    with pytest.raises(
        google.api_core.exceptions.NotFound, match="The index 'none' does not exist"
    ):
        admin.get_index(request={**asked, "index_id": "none"})


def test_python_exports_and_imports(admin: Any, emulator: Started) -> None:
    service = emulator.service
    asked = {
        "project_id": "test",
        "output_url_prefix": "gs://bucket/some/prefix",
        "entity_filter": {"kinds": ["T"], "namespace_ids": ["", "n"]},
        "labels": {"made": "here"},
    }
    exporting = admin.export_entities(request=asked)
    url = exporting.result(timeout=PATIENCE).output_url
    assert url.startswith("gs://bucket/some/prefix/")
    assert emulator.path_of(url).is_file()
    metadata = exporting.metadata
    assert metadata.common.state.name == "SUCCESSFUL"
    assert metadata.common.operation_type.name == "EXPORT_ENTITIES"
    assert dict(metadata.common.labels) == {"made": "here"}
    assert (metadata.progress_entities.work_completed, metadata.output_url_prefix) == (
        6,
        "gs://bucket/some/prefix",
    )
    service.delete(service.key("T", 1))
    service.put(service.key("T", 2), a=99)
    importing = admin.import_entities(request={"project_id": "test", "input_url": url})
    assert importing.result(timeout=PATIENCE) is not None
    assert importing.metadata.progress_entities.work_completed == 6
    assert service.get(service.key("T", 1))["b"] == [1, "x"]
    assert service.get(service.key("T", 2))["a"] == 2


def test_python_lists_gets_cancels_and_deletes_operations(admin: Any) -> None:
    asked = {"project_id": "test", "output_url_prefix": "gs://bucket"}
    operation = admin.export_entities(request=asked)
    operation.result(timeout=PATIENCE)
    name = operation.operation.name
    assert admin.get_operation({"name": name}).done
    admin.cancel_operation({"name": name})
    assert admin.get_operation({"name": name}).HasField("response")
    listed = admin.list_operations({"name": "projects/test"}).operations
    assert name in [each.name for each in listed]
    admin.delete_operation({"name": name})
    with pytest.raises(google.api_core.exceptions.NotFound):
        admin.get_operation({"name": name})


def test_python_gets_an_error_about_a_wrong_url(admin: Any) -> None:
    for prefix in ("s3://bucket", "file:///etc", "gs://../up"):
        with pytest.raises(google.api_core.exceptions.BadRequest, match="output_url_prefix"):
            admin.export_entities(request={"project_id": "test", "output_url_prefix": prefix})


@pytest.fixture
def node(emulator: Started, start_node: Callable[..., Any]) -> Any:
    return node_driver.Node(start_node(), emulator.address, "test", "", "")


def test_node_admin_client_lists_gets_exports_and_imports(node: Any, emulator: Any) -> None:
    found = node.call("adminClient", prefix="gs://nodes/one")
    (index,) = found["indexes"]
    assert (index["kind"], index["state"], found["one"]["indexId"]) == (
        "T", "READY", index["indexId"],
    )  # fmt: skip
    assert emulator.path_of(found["outputUrl"]).is_file()
    assert found["labels"] == {"by": "node"}
    assert found["exported"] == found["imported"] == 7
    assert len(found["listed"]) >= 2


def test_node_datastore_needs_only_the_variable(node: Any, emulator: Any) -> None:
    found = node.call("adminMethods", bucket="nodes")
    assert found["ids"] == [found["one"]["indexId"]]
    assert found["outputUrl"].startswith("gs://nodes/")
    assert emulator.path_of(found["outputUrl"]).is_file()
    assert found["imported"] == 7
