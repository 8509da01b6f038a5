"""Fixtures that run the same suite with every client library and both transports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import grpc
import pytest
from google.cloud import ndb

from datastore_emulator import inprocess, testing
from emulator.tests.clients import datastore_driver, driver, ndb_driver, node_driver
from tests.support import optional_tools

PYTHON: dict[str, type[driver.Driver]] = {
    "ndb": ndb_driver.Ndb,
    "google-cloud-datastore": datastore_driver.Datastore,
}
CLIENTS = [(name, transport) for name in PYTHON for transport in ("in process", "gRPC")] + [
    ("node", "gRPC")
]

Make = Callable[..., driver.Driver]


def only(*libraries: str) -> pytest.MarkDecorator:
    """Run a test with only some of the libraries."""
    chosen = [each for each in CLIENTS if each[0] in libraries]
    return pytest.mark.parametrize("make_driver", chosen, ids=map(" ".join, chosen), indirect=True)


@pytest.fixture(scope="session")
def start_node() -> Iterator[Callable[[], node_driver.Process]]:
    """Start the Node program once, when a test first needs it."""
    started: list[node_driver.Process] = []

    def start() -> node_driver.Process:
        optional_tools.require(
            node_driver.is_installed(),
            "no client library for Node: scripts/test without arguments installs it, "
            "given node and npm",
        )
        if not started:
            started.append(node_driver.Process())
        return started[0]

    yield start
    for each in started:
        each.close()


@pytest.fixture(params=CLIENTS, ids=[" ".join(each) for each in CLIENTS])
def make_driver(
    request: Any, engine: inprocess.Engine, start_node: Callable[[], node_driver.Process]
) -> Iterator[Make]:
    """Create clients of one library over one transport, each for a namespace and database."""
    library, transport = request.param
    with (
        testing.running_server(engine) as address,
        grpc.insecure_channel(address) as remote,
        mock.patch.dict(ndb.Model._kind_map),  # Tests must not share models
    ):

        def make(namespace: str = "", database: str = "") -> driver.Driver:
            scope = ("test", namespace, database)
            if library == "node":
                return node_driver.Node(start_node(), address, *scope)
            channel = inprocess.Channel(engine) if transport == "in process" else remote
            return PYTHON[library](channel, *scope)

        yield make


@pytest.fixture
def client(make_driver: Make) -> driver.Driver:
    """A client for the default namespace and database."""
    return make_driver()
