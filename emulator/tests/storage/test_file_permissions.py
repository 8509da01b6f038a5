"""Only the owner can read the engine's files."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from datastore_emulator import inprocess
from datastore_emulator.storage import file_permissions
from tests.support import optional_tools, other_user, programs


@pytest.fixture
def folder() -> Iterator[Path]:
    before = os.umask(0)
    with other_user.reachable_folder() as folder:
        yield folder
    os.umask(before)


def test_a_new_data_file_is_readable_only_by_its_owner_with_any_umask(folder: Path) -> None:
    with inprocess.open_engine(folder / "store.db"):
        found = other_user.modes(folder)
        del found[folder.name]
        assert f"{folder.name}/store.db-wal" in found
        assert set(found.values()) <= {"0o600", "0o700"}


def test_creating_an_existing_file_leaves_it_unchanged(folder: Path) -> None:
    path = str(folder / "store.db")
    file_permissions.create(path)
    Path(path).write_bytes(b"made")
    file_permissions.create(path)
    assert Path(path).read_bytes() == b"made"
    assert [each.name for each in folder.iterdir()] == ["store.db"]


def test_a_server_restricts_the_permissions_of_old_files(folder: Path) -> None:
    optional_tools.root()
    path = folder / "store.db"
    with inprocess.open_engine(path):
        pass
    path.chmod(0o644)
    assert other_user.can_read(path)
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "datastore_emulator",
            "--port",
            "0",
            "--data",
            str(path),
            "--no-admin",
        ],
        cwd=programs.ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline().startswith("export DATASTORE_EMULATOR_HOST")
        files = [each for each in folder.rglob("*") if each.is_file()]
        assert len(files) > 2
        assert not any(other_user.can_read(each) for each in files)
    finally:
        child.terminate()
        child.communicate(timeout=programs.PATIENCE)


def test_lock_files_of_root_are_readable_by_the_service(folder: Path) -> None:
    optional_tools.root()
    os.chown(folder, 65534, 65534)
    path = folder / "store.db"
    locks = folder / "store.db-locks"
    locks.mkdir()
    os.chown(locks, 65534, 65534)
    with inprocess.open_engine(path, concurrency="pessimistic") as engine:
        assert engine is not None
        owners = {each.stat().st_uid for each in locks.iterdir()}
    assert owners <= {65534}
