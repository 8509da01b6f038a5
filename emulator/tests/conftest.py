"""Fixtures for the engine's tests: an engine, a channel over either transport, and clients."""

import contextlib
import sys
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import datastore
from google.cloud.datastore_v1.services.datastore import DatastoreClient
from google.cloud.datastore_v1.services.datastore.transports import DatastoreGrpcTransport

from datastore_emulator import inprocess, testing
from datastore_emulator.transactions import lock_manager
from emulator.tests.support import shifted_clock
from emulator.tests.support.service_calls import Service, Unindexed
from tests.support import hypothesis_profiles, programs

hypothesis_profiles.load()

# Statuses with details, waiting calls, statistics of queries, faults, and clients.
CARRIED = {
    "test_engine", "test_inprocess", "test_preconditions", "test_lock_manager", "test_explain",
    "test_fault_plans", "test_client_retries", "test_client_transactions", "test_system_tests",
}  # fmt: skip
INDEXES = """
indexes:
- kind: T
  properties:
  - name: a
  - name: b
- kind: T
  properties:
  - name: a
    direction: desc
  - name: b
- kind: T
  properties:
  - name: c
  - name: a
- kind: T
  ancestor: yes
  properties:
  - name: a
    direction: desc
- kind: T
  properties:
  - name: __key__
    direction: desc
- kind: T
  properties:
  - name: a
  - name: __key__
    direction: desc
- kind: T
  properties:
  - name: tag
  - name: a
"""


@contextlib.contextmanager
def serving(*arguments: Any) -> Iterator[tuple[str, programs.Program]]:
    """Run the emulator as a program; yield its address."""
    fixed = ["--port", "0", "--no-admin", "--strict-indexes"]
    command = [sys.executable, "-m", "datastore_emulator", *fixed, *map(str, arguments)]
    with programs.running(command, environ=programs.environment()) as program:
        yield program.wait_for(r"export DATASTORE_EMULATOR_HOST=(\S+)")[1], program


@pytest.fixture
def unindexed() -> type[Unindexed]:
    return Unindexed


@pytest.fixture
def clock() -> shifted_clock.ShiftedClock:
    return shifted_clock.ShiftedClock()


@pytest.fixture
def index_yaml(tmp_path: Any) -> Any:
    path = tmp_path / "index.yaml"
    path.write_text(INDEXES)
    return path


@pytest.fixture
def engine(index_yaml: Any, clock: shifted_clock.ShiftedClock) -> Iterator[inprocess.Engine]:
    with inprocess.open_engine(None, indexes=index_yaml, clock=clock) as opened:
        yield opened


@pytest.fixture
def make_service() -> type[Service]:
    return Service


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of what a transport carries over both transports, and the others in process.

    The tests of the clients and the oracle send calls of every kind over gRPC.
    """
    if "channel" in metafunc.fixturenames:
        transports = ["in process", "gRPC"]
        is_carried = metafunc.module.__name__.rpartition(".")[2] in CARRIED
        metafunc.parametrize("channel", transports[: 1 + is_carried], indirect=True)


@pytest.fixture
def channel(request: Any, engine: inprocess.Engine) -> Iterator[grpc.Channel]:
    if request.param == "in process":
        yield inprocess.Channel(engine)
        return
    with (
        testing.running_server(engine) as address,
        grpc.insecure_channel(address) as opened,
    ):
        yield opened


@pytest.fixture
def service(channel: grpc.Channel) -> Service:
    return Service(channel)


@pytest.fixture
def near(engine: inprocess.Engine) -> Service:
    """An in-process `Service`, for tests in which the transport does not matter."""
    return Service(inprocess.Channel(engine))


@pytest.fixture
def gcd_client(channel: grpc.Channel) -> datastore.Client:
    """A google-cloud-datastore client over either transport."""
    made = datastore.Client(project="test", credentials=AnonymousCredentials())
    made._datastore_api_internal = DatastoreClient(
        transport=DatastoreGrpcTransport(channel=channel)
    )
    return made


@pytest.fixture
def threads() -> Iterator[futures.ThreadPoolExecutor]:
    with futures.ThreadPoolExecutor(16) as executor:
        yield executor


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all waits time out immediately."""
    monkeypatch.setattr(lock_manager, "WRITE_WAIT", 0.0)
    monkeypatch.setattr(lock_manager, "COMMIT_WAIT", 0.0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make waits long enough that they do not time out in these tests."""
    for name in ("WRITE_WAIT", "COMMIT_WAIT", "READ_WAIT", "READ_QUEUE"):
        monkeypatch.setattr(lock_manager, name, 300.0)
