"""Fixtures: the Datastore Admin API for an engine, and its exports folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator import inprocess
from tests.emulator.support import admin_calls
from tests.emulator.support.admin_calls import Admin


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "exports"


@pytest.fixture
def admin(engine: inprocess.Engine, folder: Path) -> Iterator[admin_calls.Admin]:
    made = Admin(engine, folder)
    yield made
    made.api.close()
