"""Fixtures: the Datastore Admin API for an engine, and its exports folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from datastore_emulator import inprocess
from emulator.tests.support import admin_calls
from emulator.tests.support.admin_calls import Admin


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "exports"


@pytest.fixture
def admin(engine: inprocess.Engine, folder: Path) -> Iterator[admin_calls.Admin]:
    made = Admin(engine, folder)
    yield made
    made.api.close()
