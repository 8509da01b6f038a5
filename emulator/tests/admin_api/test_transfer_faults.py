"""Canceled, failed and killed exports and imports leave no files or entities behind."""

import io
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import errors, inprocess
from datastore_emulator.admin_api import operations
from datastore_emulator.import_export import json_lines
from datastore_emulator.storage import file_store, row_writer
from emulator.tests.support import admin_calls, service_calls
from emulator.tests.support.admin_calls import Admin, fill, whole
from emulator.tests.support.service_calls import Service
from tests.support import programs

CANCELLED, RESOURCE_EXHAUSTED = 1, 8


def test_a_canceled_export_leaves_nothing(
    admin: admin_calls.Admin,
    near: service_calls.Service,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(near)
    has_begun, may_go_on = threading.Event(), threading.Event()
    pieces = json_lines.pieces

    def held(snapshot: file_store.Snapshot, chosen: Any) -> Iterator[Any]:
        has_begun.set()
        assert may_go_on.wait(60)
        return pieces(snapshot, chosen)

    monkeypatch.setattr(json_lines, "pieces", held)
    operation = admin.export()
    assert has_begun.wait(60)
    admin.call("CancelOperation", name=operation.name)
    may_go_on.set()
    assert admin.ended(operation).error.code == CANCELLED
    assert list(folder.iterdir()) == []


def test_a_canceled_import_stores_nothing(
    admin: admin_calls.Admin,
    near: service_calls.Service,
    engine: inprocess.Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(near)
    url = admin.exported()
    engine.reset()
    has_begun, may_go_on = threading.Event(), threading.Event()

    def held(file: io.BufferedReader) -> Iterator[bytes]:
        for line in iter(file.readline, b""):
            has_begun.set()
            assert may_go_on.wait(60)
            yield line

    monkeypatch.setattr(json_lines, "read_lines", held)
    operation = admin.load(url)
    assert has_begun.wait(60)
    admin.call("CancelOperation", name=operation.name)
    may_go_on.set()
    assert admin.ended(operation).error.code == CANCELLED
    assert whole(engine) == []


def test_a_full_disk_ends_an_export_and_leaves_nothing(
    admin: admin_calls.Admin,
    near: service_calls.Service,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(near)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    operation = admin.ended(admin.export())
    monkeypatch.undo()
    assert operation.error.code == RESOURCE_EXHAUSTED
    assert list(folder.iterdir()) == []
    assert admin.exported()


def test_a_fault_of_the_commit_stores_nothing(
    admin: admin_calls.Admin,
    near: service_calls.Service,
    engine: inprocess.Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(near)
    url = admin.exported()
    engine.reset()

    def full(_writer: row_writer.RowWriter) -> None:
        fault = sqlite3.OperationalError("database or disk is full")
        fault.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise fault

    monkeypatch.setattr(row_writer.RowWriter, "save_state", full)
    operation = admin.ended(admin.load(url))
    monkeypatch.undo()
    assert operation.error.code == RESOURCE_EXHAUSTED
    assert whole(engine) == []
    assert admin.loaded(url) == 12


def test_a_snapshot_is_released_if_no_thread_starts(
    admin: admin_calls.Admin, near: service_calls.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_RUNNING", 0)
    before = len(admin.api._engine.storage._connections.snapshots_left)
    with pytest.raises(errors.ResourceExhausted):
        admin.export()
    assert len(admin.api._engine.storage._connections.snapshots_left) == before


KILLED = """
import os, signal, sys
from datastore_emulator import inprocess
from datastore_emulator.import_export import json_lines
from emulator.tests.support.admin_calls import Admin
data, folder, what, url = sys.argv[1:]
engine = inprocess.open_engine(data)
admin = Admin(engine, __import__("pathlib").Path(folder))
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if what == "export":
    json_lines.pieces = lambda *_: iter(kill, None)
    admin.ended(admin.export())
else:
    def lines(file):
        for number, line in enumerate(file):
            yield kill() if number == 5 else line
    json_lines.read_lines = lines
    admin.ended(admin.load(url))
"""


@pytest.mark.parametrize("what", ["export", "import"])
def test_a_kill_leaves_no_export_and_no_part_of_an_import(
    tmp_path: Path, folder: Path, what: str
) -> None:
    data = tmp_path / "data"
    with inprocess.open_engine(data) as engine:
        service = Service(inprocess.Channel(engine))
        fill(service)
        url = Admin(engine, folder).exported()
        engine.reset()
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(data), str(folder), what, url],
        cwd=programs.ROOT, check=False, timeout=60, capture_output=True,
    )  # fmt: skip
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    with inprocess.open_engine(data) as engine:
        assert whole(engine) == []
        admin = Admin(engine, folder)
        assert admin.loaded(url) == 12
        admin.exported("gs://after")
    assert [each.name for each in folder.iterdir() if each.name.startswith(".")] == []
