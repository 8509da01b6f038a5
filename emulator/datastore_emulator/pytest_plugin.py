"""Pytest fixtures, which pytest finds in every environment that has the package.

Owns the lifetime of emulators in a test run. Each worker of the run has one engine in memory. The
engine is empty at the start of every test that uses it, regardless of what earlier tests stored. To
pass arguments to `testing.emulator`, override the fixture `datastore_options`, for example:

    @pytest.fixture(scope="session")
    def datastore_options():
        return {"indexes": "index.yaml"}

    def test_greeting(datastore_ndb_client):
        with datastore_ndb_client.context():
            ...
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from datastore_emulator import testing


@pytest.fixture(scope="session")
def datastore_options() -> dict[str, Any]:
    """Return the arguments for `testing.emulator`: by default none; a project can override this."""
    return {}


@pytest.fixture(scope="session")
def _datastore_engine(datastore_options: dict[str, Any]) -> Iterator["testing.Emulator"]:
    from datastore_emulator import testing  # noqa: PLC0415 - most test runs need no emulator

    with testing.emulator(**datastore_options) as started:
        yield started


@pytest.fixture
def datastore_emulator(_datastore_engine: "testing.Emulator") -> "testing.Emulator":
    """Return an emulator without data.

    The first access to `datastore_emulator.address` starts a server for the emulator.
    """
    _datastore_engine.reset()
    return _datastore_engine


@pytest.fixture
def datastore_ndb_client(datastore_emulator: "testing.Emulator") -> Any:
    """Return a google.cloud.ndb.Client for the project "test"."""
    return datastore_emulator.ndb_client()


@pytest.fixture
def datastore_client(datastore_emulator: "testing.Emulator") -> Any:
    """Return a google.cloud.datastore.Client for the project "test"."""
    return datastore_emulator.datastore_client()


@pytest.fixture
def datastore_server(
    datastore_emulator: "testing.Emulator", monkeypatch: pytest.MonkeyPatch
) -> str:
    """Serve the emulator and set the variables that clients read during the test."""
    monkeypatch.setenv("DATASTORE_EMULATOR_HOST", datastore_emulator.address)
    monkeypatch.setenv("DATASTORE_PROJECT_ID", "test")
    monkeypatch.setenv("DATASTORE_DATASET", "test")  # Some Python libraries read the project here
    return datastore_emulator.address
