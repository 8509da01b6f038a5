"""A new release backs a store up before it changes anything, and an older release refuses it."""

import contextlib
import os
import shutil
import signal
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import flask
import pytest

import embedded_engine
import flatthread
import main
from comments import errors
from comments.domain import records
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import event_rows
from comments.upkeep import store_upgrade
from comments.upkeep.backups import backup_archive, store_backup
from comments.upkeep.integrity import repair
from comments.upkeep.migrations import rerendering, store_format, upgrades
from datastore_emulator import data_files
from flatthread import command_line
from tests.support import forked_programs, kept_store, programs

pytestmark = pytest.mark.embedded

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
FILES = embedded_engine.DataFiles()
TEXT = event_rows.job_key(f"upgrades/text/{rerendering.VERSION}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder of a service with the newest kept store."""
    kept_store.unpack(kept_store.KEPT[-1], tmp_path / "data")
    return tmp_path / "data"


def store(*writes: ownership.Writes) -> None:
    transactions.transaction(lambda: transactions.apply(*writes))


def need_a_scan() -> None:
    """Make the store one whose comments another renderer has rendered."""
    store(ownership.Writes("upgrades", delete=(TEXT,)))


def make_newer(folder: Path) -> None:
    """Make the store one that a later release has opened."""
    row = event_rows.JobRow(key=store_format.KEY, position=f"{store_format.FORMAT + 1} 7.8.9")
    with kept_store.open_store(folder):
        store(ownership.Writes("upgrades", put=(row,)))


def file_format(path: Path, number: int | None = None) -> int:
    """Return the format of a closed data file; set it first if a number is given.

    Formats 3 and 4 differ in the name of a table, unless byte strings are indexed.
    """
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        if number is not None:
            if number < data_files.FORMAT:
                file.execute("ALTER TABLE engine_state RENAME TO file_state")
            file.execute(f"PRAGMA user_version = {number}")
        found: int = file.execute("PRAGMA user_version").fetchone()[0]
    return found


def backups(folder: Path) -> list[Path]:
    return sorted(folder.glob("flatthread-before-*.tar.gz"))


def begin(folder: Path) -> None:
    store_upgrade.begin(kept_store.settings(folder), FILES, now=NOW)


def test_a_new_store_needs_no_scan_and_no_backup(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with kept_store.open_store(tmp_path / "data"):
        assert store_format.read() is None
        upgrades.note_new()
        assert store_format.read() == (store_format.FORMAT, flatthread.__version__)
        assert upgrades.pending_scans() == []
        begin(tmp_path / "data")
    assert backups(tmp_path / "data") == []


def test_a_store_without_a_format_is_backed_up_once_and_gets_one(folder: Path) -> None:
    with kept_store.open_store(folder):
        jobs = [event_rows.job_key(each.job) for each in upgrades._WALKS]
        store(ownership.Writes("upgrades", delete=(store_format.KEY, *jobs)))
        upgrades.note_new()  # The store has sites, so this does nothing
        assert store_format.read() is None
        begin(folder)
        assert store_format.read() == (store_format.FORMAT, flatthread.__version__)
        assert [each.has_begun for each in upgrades.pending_scans()] == [True] * len(jobs)
        begin(folder)  # Killed meanwhile, for example
        (backup,) = backups(folder)
        assert upgrades.go_on(steps=None) > 0
        assert upgrades.pending_scans() == []
    kept_store.settings(folder).data_file.unlink()
    backup_archive.unpack(backup, kept_store.settings(folder).data_file)
    with kept_store.open_store(folder):
        assert store_format.read() is None


def test_without_a_backup_nothing_changes(folder: Path, tmp_path: Path) -> None:
    settings = kept_store.settings(folder, backup_dir=tmp_path / "missing")
    with kept_store.open_store(folder):
        need_a_scan()
        with pytest.raises(errors.Misconfigured, match=r"no backup can be made first.*missing"):
            store_upgrade.begin(settings, FILES, now=NOW)
        assert upgrades.has_new()
        store_upgrade.begin(settings, None, now=NOW)
        assert not upgrades.has_new()


def test_the_backup_of_an_older_file_can_be_restored_by_the_older_release(folder: Path) -> None:
    settings = kept_store.settings(folder)
    file_format(settings.data_file, 3)
    assert FILES.upgrade_of(settings.data_file) == f"format 3 becomes {data_files.FORMAT}"
    backup = store_upgrade.back_up(settings, FILES, "format 3 becomes 4", now=NOW)
    assert file_format(settings.data_file) == 3
    backup_archive.unpack(backup, folder / "unpacked")
    assert file_format(folder / "unpacked") == 3
    assert {path.name for path in folder.iterdir()} == {"flatthread.db", "unpacked", backup.name}


def test_a_newer_store_is_refused_with_both_versions(folder: Path) -> None:
    make_newer(folder)
    sentence = (
        f"the data was written by Flatthread 7.8.9 and has format {store_format.FORMAT + 1}, but "
        f"this is Flatthread {flatthread.__version__}, which reads formats up to "
        f"{store_format.FORMAT}."
    )
    for arguments in (["site", "list"], ["upgrade", "--check"], ["serve", "--port", "0"]):
        refused = programs.run(
            [*programs.FLATTHREAD, *arguments],
            cwd=programs.ROOT,
            **environment(folder),
        )
        assert (refused.returncode, refused.stdout) == (3, "")
        assert refused.stderr.startswith(f"flatthread: {sentence}")
    backup = folder / "copy"
    with pytest.raises(errors.BackupFailed, match=r"7\.8\.9"):
        store_backup.make(kept_store.settings(folder), FILES, backup, now=NOW)
    assert not backup.exists()


def test_a_newer_file_is_refused_with_both_formats(folder: Path) -> None:
    path = kept_store.settings(folder).data_file
    file_format(path, data_files.FORMAT + 1)
    with pytest.raises(
        errors.Misconfigured,
        match=rf"format {data_files.FORMAT + 1}, but Flatthread {flatthread.__version__} reads "
        rf"formats 1 to {data_files.FORMAT}",
    ):
        FILES.upgrade_of(path)
    assert file_format(path) == data_files.FORMAT + 1


# --- The command --------------------


def environment(folder: Path) -> dict[str, str]:
    return {"FLATTHREAD_DATA": str(folder), "SECRET": kept_store.settings(folder).secret}


def command(folder: Path, *words: str) -> None:
    """Run `flatthread WORDS` in a process of its own."""
    os.environ |= environment(folder)
    sys.argv = ["flatthread", *words]
    command_line.run()


def run(folder: Path, *words: str) -> tuple[int, list[str]]:
    status, output = forked_programs.run(command, folder, *words)
    return status, output.splitlines()


def test_the_command_shows_what_is_pending_and_does_it(folder: Path) -> None:
    path = kept_store.settings(folder).data_file
    with kept_store.open_store(folder):
        need_a_scan()
        count = reads.count(reads.Query("Comment"))
        days = reads.count(reads.Query("Day"))
        threads = reads.count(reads.Query("Thread"))
    file_format(path, 3)
    status, lines = run(folder, "upgrade", "--check")
    assert (status, lines[1:]) == (
        1,
        [
            f"the data file: format 3 becomes {data_files.FORMAT}",
            f"file threads by category: {threads} rows left, not begun",
            f"count comments by page and hour, and votes by day: {days} rows left, not begun",
            f"render comments again: {count} rows left, not begun",
            "`flatthread serve` and `flatthread upgrade` make a backup first.",
        ],
    )
    assert flatthread.__version__ in lines[0]
    assert (file_format(path), backups(folder)) == (3, [])
    assert run(folder, "upgrade") == (
        0,
        [f"The store is up to date. Read {count + days + threads} rows."],
    )
    assert len(backups(folder)) == 1
    assert run(folder, "upgrade", "--check") == (0, [lines[0], "Nothing is pending."])


def test_the_command_can_do_without_a_backup_but_not_beside_the_service(folder: Path) -> None:
    with kept_store.open_store(folder):
        need_a_scan()
        assert run(folder, "upgrade", "--no-backup") == (1, [])
    assert run(folder, "upgrade", "--no-backup")[0] == 0
    assert backups(folder) == []


def test_in_the_cloud_the_command_names_the_command_for_a_backup(
    app: flask.Flask, monkeypatch: pytest.MonkeyPatch, site: records.Site
) -> None:
    del site
    for name, value in {"DATASTORE_EMULATOR_HOST": "localhost:1", "SECRET": "x" * 43}.items():
        monkeypatch.setenv(name, value)
    shown = app.test_cli_runner().invoke(args=["upgrade", "--check"])
    assert shown.exit_code == 1
    assert "render comments again: 0 rows left, not begun" in shown.stdout
    assert "`gcloud firestore export gs://BUCKET`" in shown.stdout


# --- Kills --------------------


def die_at(count: int) -> None:
    """Kill this process at its `count`-th operation on a file."""
    left = count

    def hook(event: str, _arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in {"open", "os.link", "os.remove", "os.rename", "os.mkdir", "sqlite3.connect"}:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def start(folder: Path, count: int) -> None:
    """Do what the start of a service does to its store, and then what its worker does."""
    os.environ |= environment(folder)
    if count:
        die_at(count)
    _, opened = main._open(creates=False, serves=True)
    with opened.context():
        upgrades.AT_ONCE = 2
        upgrades.go_on(steps=None)


def has_format_3(backup: Path, folder: Path) -> bool:
    unpacked = folder / "unpacked"
    unpacked.unlink(missing_ok=True)
    backup_archive.unpack(backup, unpacked)
    return file_format(unpacked) == 3


@pytest.mark.slow
def test_an_upgrade_killed_at_any_moment_is_finished_by_the_next_start(
    folder: Path, tmp_path: Path
) -> None:
    with kept_store.open_store(folder):
        before = kept_store.shown()
        need_a_scan()
    file_format(kept_store.settings(folder).data_file, 3)
    kills, count, reached = 0, 5, set()
    while True:
        copy = tmp_path / f"{count}"
        shutil.copytree(folder, copy)
        path = kept_store.settings(copy).data_file
        status, _ = forked_programs.run(start, copy, count)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        kills, count = kills + 1, count + 13
        reached.add((bool(backups(copy)), file_format(path)))
        if file_format(path) > 3:
            assert backups(copy)
        assert forked_programs.run(start, copy, 0)[0] == 0
        assert any(has_format_3(each, copy) for each in backups(copy))
        assert data_files.check(path).problems == []
        with kept_store.open_store(copy):
            assert upgrades.pending_scans() == []
            assert kept_store.shown() == before
            for name in kept_store.THREADS:
                assert repair.find_problems(site_settings.scheme_of(name.site), name) == []
            assert reads.get(TEXT).position == "done"
        assert not [each.name for each in copy.iterdir() if each.suffix in {".copy", ".partial"}]
        shutil.rmtree(copy)
    assert kills > 5
    assert {(False, 3), (True, 3), (True, 4)} <= reached
