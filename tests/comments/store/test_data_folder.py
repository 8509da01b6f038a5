"""Only the service's user can read anything in the data folder."""

import grp
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments import config, errors
from comments.store.folder import data_folder
from tests.support import optional_tools, other_user, programs

# This program starts the service as gunicorn does, posts, and prints the folder's contents while
# the service runs.
SERVING = """
import json, os
os.umask(0)
import main
from pathlib import Path
from tests.support import other_user
assert main.app.test_client().get("/healthz").status_code == 200
print(json.dumps(other_user.modes(Path(os.environ["FLATTHREAD_DATA"]))))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with other_user.reachable_folder() as folder:
        yield folder / "data"


def _serve(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", SERVING],
        cwd=programs.ROOT,
        env=programs.environment(FLATTHREAD_DATA=str(folder), **more),
        capture_output=True,
        text=True,
        timeout=programs.PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_every_file_is_created_for_its_owner_alone(folder: Path) -> None:
    found = json.loads(_serve(folder).stdout)
    assert {"data", "data/secret", "data/flatthread.db", "data/flatthread.db-wal",
            "data/flatthread.db-shm", "data/flatthread.db-turn",
            "data/flatthread.db-locks/gate"} <= set(found)  # fmt: skip
    folders = {path for path in found if path in {"data", "data/flatthread.db-locks"}}
    assert {path: mode for path, mode in found.items() if path in folders} == dict.fromkeys(
        folders, "0o700"
    )
    files = {path: mode for path, mode in found.items() if path not in folders}
    assert files == dict.fromkeys(files, "0o600")


@pytest.mark.slow
def test_readable_files_are_closed_at_the_next_start(folder: Path) -> None:
    optional_tools.root()
    _serve(folder)
    backup = folder / "backups" / "monday.db"
    backup.parent.mkdir()
    backup.write_bytes((folder / "flatthread.db").read_bytes())
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    paths = [folder, folder / "flatthread.db", folder / "secret", backup]
    assert all(other_user.can_read(path) for path in paths)
    found = json.loads(_serve(folder).stdout)
    assert not any(other_user.can_read(path) for path in paths)
    assert set(found.values()) == {"0o700", "0o600"}
    # Even if the folder is made readable again, each file's own mode protects it.
    folder.chmod(0o755)
    assert other_user.can_read(folder)
    assert not any(other_user.can_read(path) for path in paths[1:])


def test_a_group_for_backups_may_read_and_not_write(folder: Path) -> None:
    optional_tools.root()
    _serve(folder, DATA_GROUP="nogroup" if _has("nogroup") else grp.getgrgid(os.getgid()).gr_name)
    found = other_user.modes(folder)
    assert found["data"] == "0o2750"
    assert found["data/flatthread.db"] == "0o640"
    assert set(found.values()) <= {"0o2750", "0o2700", "0o640", "0o600"}
    assert other_user.can_read(folder / "flatthread.db") is _has("nogroup")


def _has(name: str) -> bool:
    return name in {each.gr_name for each in grp.getgrall()}


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(errors.Misconfigured, match="DATA_GROUP"):
        config.load(
            {
                "DATASTORE": "cloud",
                "DATASTORE_PROJECT_ID": "p",
                "DATA_GROUP": "no-such-group",
                "SECRET": "x" * 32,
            }
        )


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "data", tmp_path / "outside"
    folder.mkdir()
    outside.write_text("somebody else's")
    outside.chmod(0o644)
    (folder / "flatthread.db-wal").symlink_to(outside)
    assert data_folder.protect(folder) == []
    assert outside.stat().st_mode & 0o777 == 0o644


def test_a_folder_with_other_files_keeps_their_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other, ours = tmp_path / "notes.txt", tmp_path / "flatthread.db"
    for path in (other, ours):
        path.write_text("")
        path.chmod(0o644)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert data_folder.protect(tmp_path) == []
    assert (oct(other.stat().st_mode), oct(ours.stat().st_mode)) == ("0o100644", "0o100600")
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert "Set FLATTHREAD_DATA to a folder that only this service uses" in caplog.text


def test_a_refused_chmod_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refuse)
    with caplog.at_level(logging.WARNING):
        assert data_folder.protect(folder) == [folder]
    assert f"The permissions of {folder} cannot be restricted" in caplog.text
