"""Fixtures: an engine with commits that wait for each other, and connections that are watched."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from datastore_emulator import inprocess
from datastore_emulator.storage import group_commit
from emulator.tests.support import service_calls, shared_commits
from emulator.tests.support.service_calls import Service


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> shared_commits.Watch:
    made = shared_commits.Watch()
    monkeypatch.setattr(sqlite3, "connect", made.connect)
    return made


@pytest.fixture
def patient_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep groups open long enough that a busy machine does not end them before the test does."""
    monkeypatch.setattr(group_commit, "LONGEST", 300.0)
    monkeypatch.setattr(group_commit, "_NAP", 30.0)


@pytest.fixture(params=["optimistic", "pessimistic"])
def opened(
    tmp_path: Path,
    index_yaml: Path,
    watch: shared_commits.Watch,
    patient_groups: None,
    request: pytest.FixtureRequest,
) -> Iterator[tuple[inprocess.Engine, service_calls.Service]]:
    options = {"indexes": index_yaml, "concurrency": request.param}
    with inprocess.open_engine(tmp_path / "data", **options) as engine:
        service = Service(inprocess.Channel(engine))
        service.put(service.key("Known"), a=1)
        service.names(order=["a"])  # Makes the index
        watch.statements.clear()
        yield engine, service
