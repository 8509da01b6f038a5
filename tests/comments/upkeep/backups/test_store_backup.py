"""A backup contains the store as of one moment, and only a checked file gets its name."""

import contextlib
import dataclasses
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest

import embedded_engine
from comments import config, errors
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection, reads
from comments.upkeep.backups import backup_archive, store_backup
from comments.upkeep.integrity import recount, repair
from tests.support import programs, store_snapshot
from tests.support.threads import raw_changes, sample_threads

pytestmark = pytest.mark.embedded

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAME = records.ThreadName("demo", "page")
Open = Callable[[config.Settings], AbstractContextManager[records.Site]]


def unpacked(backup: Path, folder: Path) -> config.Settings:
    """Return the settings of a service whose data file is that of the backup."""
    settings = dataclasses.replace(sample_threads.SETTINGS, data_dir=folder)
    folder.mkdir()
    backup_archive.unpack(backup, settings.data_file)
    return settings


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_a_backup_contains_every_row(
    service: config.Settings, files: embedded_engine.DataFiles, open_service: Open, tmp_path: Path
) -> None:
    with open_service(service):
        before = store_snapshot.everything()
    made = store_backup.make(service, files, tmp_path / "copy", now=NOW)
    assert made.entities == len(before)
    assert made.size == (tmp_path / "copy").stat().st_size
    assert (made.threads, made.doubtful) == (2, ())
    with open_service(unpacked(tmp_path / "copy", tmp_path / "unpacked")):
        assert store_snapshot.everything() == before
    manifest = backup_archive.unpack(tmp_path / "copy", None)
    assert manifest.kinds["Comment"] == 10
    assert manifest.created == NOW


@pytest.mark.parametrize("name", ["copy", "b[1]*?.tar.gz"])
def test_a_backup_leaves_nothing_else_behind(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path, name: str
) -> None:
    before = names(service.data_dir)
    store_backup.make(service, files, tmp_path / name, now=NOW)
    assert names(service.data_dir) == before
    assert names(tmp_path) == sorted(["backups", name, "data"])


@pytest.mark.slow
def test_posts_acknowledged_before_a_backup_are_in_it_and_none_is_half(
    service: config.Settings, files: embedded_engine.DataFiles, open_service: Open, tmp_path: Path
) -> None:
    posted: list[str] = []
    marks: list[int] = []
    stop = threading.Event()

    def write(store: connection.Store) -> None:
        with store.context():
            site, parent = site_settings.get("demo"), None
            while not stop.is_set():
                number = len(posted)
                comment = sample_threads.post(site, f"text {number}", parent)
                posted.append(comment.id)
                parent = comment.id if number % 3 else None

    with files.open_store(service.data_file, service) as store:
        writers = [threading.Thread(target=write, args=(store,)) for _ in range(3)]
        for each in writers:
            each.start()
        try:
            for number in range(3):
                programs.wait_until(lambda: len(posted) > 20 * (len(marks) + 1), "no posts")
                marks.append(len(posted))
                store_backup.make(service, files, tmp_path / f"copy{number}", now=NOW)
        finally:
            stop.set()
            for each in writers:
                each.join()
    for number, mark in enumerate(marks):
        with open_service(unpacked(tmp_path / f"copy{number}", tmp_path / f"unpacked{number}")):
            stored = {row.key.path[-1].name for row in reads.fetch(reads.Query("Comment"))}
            assert set(posted[:mark]) <= stored
            differences: list[recount.Difference] = []
            recount.site("demo", tell=differences.append, fixes=False)
            recount.thread(NAME, tell=differences.append, fixes=False)
            assert differences == []
            assert repair.find_problems(service.scheme, NAME) == []


def test_a_thread_with_problems_is_named_but_backed_up(
    service: config.Settings, files: embedded_engine.DataFiles, open_service: Open, tmp_path: Path
) -> None:
    with open_service(service):
        row = next(iter(reads.fetch(reads.Query("Comment", where=(("level", "=", 2),)))))
        raw_changes.comment(row.key.path[-1].name, level=5)
    made = store_backup.make(service, files, tmp_path / "copy", now=NOW)
    assert made.doubtful == ("demo page",)


def test_a_damaged_store_is_not_backed_up(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path
) -> None:
    content = bytearray(service.data_file.read_bytes())
    for start in range(4096 * 4, len(content), 4096 * 2):
        content[start + 100 : start + 2048] = b"\xa5" * 1948
    service.data_file.write_bytes(content)
    with pytest.raises(errors.BackupFailed, match="damaged"):
        store_backup.make(service, files, tmp_path / "copy", now=NOW)
    assert names(tmp_path) == ["backups", "data"]


def test_a_store_with_a_damaged_entity_is_not_backed_up(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path
) -> None:
    content = service.data_file.read_bytes()
    assert b"author of 2.1" in content
    service.data_file.write_bytes(content.replace(b"author of 2.1", b"author of 2.7"))
    with pytest.raises(
        errors.BackupFailed, match=r"does not match its checksum.*python -m emulator check"
    ):
        store_backup.make(service, files, tmp_path / "copy", now=NOW)
    assert names(tmp_path) == ["backups", "data"]


def test_a_store_with_a_damaged_index_is_not_backed_up(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path
) -> None:
    with contextlib.closing(sqlite3.connect(service.data_file)) as database, database:
        database.execute(
            "DELETE FROM index_entries WHERE entity_id = (SELECT max(id) FROM entities)"
        )
    with pytest.raises(errors.BackupFailed, match=r"The data is damaged: .* is missing"):
        store_backup.make(service, files, tmp_path / "copy", now=NOW)
    assert names(tmp_path) == ["backups", "data"]


@pytest.mark.parametrize("damage", [b"", b"x"])
def test_a_file_that_is_not_read_back_as_written_gets_no_name(
    service: config.Settings,
    files: embedded_engine.DataFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: bytes,
) -> None:
    pack = backup_archive.pack

    def badly(data: Path, manifest: backup_archive.Manifest, target: Path) -> None:
        pack(data, manifest, target)
        content = target.read_bytes()
        target.write_bytes(content[:2000] + damage + content[2001:])

    monkeypatch.setattr(backup_archive, "pack", badly)
    with pytest.raises(errors.BackupFailed, match="damaged"):
        store_backup.make(service, files, tmp_path / "copy", now=NOW)
    assert names(tmp_path) == ["backups", "data"]


def test_no_file_is_overwritten(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path
) -> None:
    (tmp_path / "copy").write_text("mine")
    with pytest.raises(errors.BackupFailed, match=r"copy already exists. Name a new file"):
        store_backup.make(service, files, tmp_path / "copy", now=NOW)
    assert (tmp_path / "copy").read_text() == "mine"


def test_a_missing_folder_is_not_created(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path
) -> None:
    with pytest.raises(errors.BackupFailed, match=r"disk does not exist. Create it, or mount"):
        store_backup.make(service, files, tmp_path / "disk" / "copy", now=NOW)
    assert not (tmp_path / "disk").exists()


def test_working_files_of_killed_processes_are_removed(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path
) -> None:
    ended = 2**22 + 1  # Above the kernel's highest process id
    left = [
        service.data_dir / f"flatthread.db.{ended}-0123abcd.copy",
        service.data_dir / f"flatthread.db.{ended}-0123abcd.copy-wal",
        tmp_path / f"flatthread-backup.{ended}-0123abcd.partial",
    ]
    others = [
        service.data_dir / f"flatthread.db.{os.getppid()}-0123abcd.copy",
        service.data_dir / "flatthread.db.replaced-20260102-030405-000000",
        tmp_path / "copy.partial",
    ]
    for each in (*left, *others):
        each.touch()
    store_backup.make(service, files, tmp_path / "another", now=NOW)
    assert [each for each in left if each.exists()] == []
    assert [each for each in others if not each.exists()] == []
