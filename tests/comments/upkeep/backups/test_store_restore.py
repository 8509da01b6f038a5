"""A restore replaces the whole store in one step, or refuses and changes nothing."""

import contextlib
import dataclasses
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import embedded_engine
from comments import config, errors
from comments.accounts import accounts, sessions
from comments.accounts.links import one_time_links
from comments.domain import records
from comments.domain.crypto import secret_rotation
from comments.posting import own_comment
from comments.sites import site_deletion, site_settings
from comments.store import reads
from comments.store.models import conversion
from comments.upkeep.backups import backup_archive, store_backup, store_restore
from comments.upkeep.integrity import recount, repair
from datastore_emulator import data_files
from tests.support import forked_programs, programs, store_snapshot
from tests.support.people import account_holders
from tests.support.threads import sample_threads

pytestmark = pytest.mark.embedded

Open = Callable[[config.Settings], AbstractContextManager[records.Site]]
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAME = records.ThreadName("demo", "page")
KEPT = "flatthread.db.replaced-20260102-030405-000000"


@pytest.fixture
def backup(service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path) -> Path:
    return store_backup.make(service, files, tmp_path / "backup", now=NOW).path


def changed(service: config.Settings, open_service: Open) -> dict[bytes, bytes]:
    """Post a comment, and return the rows of the store."""
    with open_service(service) as site:
        sample_threads.post(site, "after the backup")
        return store_snapshot.everything()


def rows(service: config.Settings, open_service: Open) -> dict[bytes, bytes]:
    with open_service(service):
        return store_snapshot.everything()


def kept_as_data(service: config.Settings, folder: Path) -> config.Settings:
    """Return a service whose store is the one that was replaced."""
    folder.mkdir()
    (service.data_dir / KEPT).rename(folder / "flatthread.db")
    return dataclasses.replace(service, data_dir=folder)


def test_a_restored_store_equals_the_one_that_was_backed_up(
    service: config.Settings,
    files: embedded_engine.DataFiles,
    open_service: Open,
    backup: Path,
    tmp_path: Path,
) -> None:
    before = rows(service, open_service)
    after = changed(service, open_service)
    restored = store_restore.restore(backup, service, files, now=NOW)
    assert rows(service, open_service) == before
    assert restored.kept == service.data_dir / KEPT
    assert (restored.repeated, restored.held) == ((0, 0, 0, 0), 0)
    assert rows(kept_as_data(service, tmp_path / "kept"), open_service) == after


def test_a_backup_is_restored_on_another_machine(
    service: config.Settings,
    files: embedded_engine.DataFiles,
    open_service: Open,
    backup: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "other").mkdir()
    other = dataclasses.replace(service, data_dir=tmp_path / "other")
    restored = store_restore.restore(backup, other, files, now=NOW)
    assert (restored.kept, restored.repeated) == (None, None)
    assert rows(other, open_service) == rows(service, open_service)
    with open_service(other) as site:
        sample_threads.post(site, "the service goes on")
        differences: list[recount.Difference] = []
        recount.thread(NAME, tell=differences.append, fixes=False)
        assert differences == []
        assert repair.find_problems(service.scheme, NAME) == []


def test_a_store_in_use_is_not_replaced(
    service: config.Settings, files: embedded_engine.DataFiles, open_service: Open, backup: Path
) -> None:
    with files.open_store(service.data_file, service) as store:
        with pytest.raises(errors.BackupFailed, match="is in use"):
            store_restore.restore(backup, service, files, now=NOW)
        with store.context():
            sample_threads.post(site_settings.get("demo"), "still here")
    assert not (service.data_dir / KEPT).exists()
    with open_service(service):
        assert len(list(reads.fetch(reads.Query("Comment")))) == 11


def test_a_damaged_backup_changes_nothing(
    service: config.Settings, files: embedded_engine.DataFiles, backup: Path
) -> None:
    content = backup.read_bytes()
    before = {each.name: each.read_bytes() for each in service.data_dir.glob("flatthread.db*")
              if each.is_file()}  # fmt: skip
    backup.write_bytes(content[: len(content) // 2])
    with pytest.raises(errors.BackupFailed, match="Nothing was changed"):
        store_restore.restore(backup, service, files, now=NOW)
    after = {each.name: each.read_bytes() for each in service.data_dir.glob("flatthread.db*")
             if each.is_file()}  # fmt: skip
    assert after == before


def test_a_backup_of_another_secret_is_refused(
    service: config.Settings, files: embedded_engine.DataFiles, open_service: Open, backup: Path
) -> None:
    after = changed(service, open_service)
    other = dataclasses.replace(service, secret="another secret of the tests")
    with pytest.raises(errors.BackupFailed, match="made with a different secret"):
        store_restore.restore(backup, other, files, now=NOW)
    without = dataclasses.replace(service, secret="")
    with pytest.raises(errors.BackupFailed, match=r"There is no secret. Copy the secret"):
        store_restore.restore(backup, without, files, now=NOW)
    assert rows(service, open_service) == after
    renewed = secret_rotation.Secret("another secret of the tests", service.secret)
    store_restore.restore(backup, dataclasses.replace(service, secret=renewed), files, now=NOW)
    later = NOW + timedelta(seconds=1)
    store_restore.restore(backup, other, files, now=later, accepts_other_secret=True)
    assert rows(service, open_service) != after


def test_a_backup_of_another_project_is_refused(
    service: config.Settings, files: embedded_engine.DataFiles, backup: Path
) -> None:
    other = dataclasses.replace(service, project="other")
    with pytest.raises(errors.BackupFailed, match="Set DATASTORE_PROJECT_ID"):
        store_restore.restore(backup, other, files, now=NOW)


@pytest.mark.parametrize("number", [1, 2])
def test_a_backup_of_an_older_release_is_upgraded(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path, number: int
) -> None:
    script = programs.ROOT / "emulator" / "tests" / "storage" / f"format{number}.sql"
    with contextlib.closing(sqlite3.connect(tmp_path / "old")) as database:
        database.executescript(script.read_text(encoding="utf-8"))
    shutil.copy(tmp_path / "old", tmp_path / "opened")
    kinds, _ = store_backup.examine(service, files, tmp_path / "opened")
    found = backup_archive.digest(tmp_path / "old")
    manifest = backup_archive.Manifest(
        1, NOW, backup_archive.secret_mark(service.secret), found.size, found.sha256, kinds
    )
    backup_archive.pack(tmp_path / "old", manifest, tmp_path / "backup")
    store_restore.restore(tmp_path / "backup", service, files, now=NOW)
    report = data_files.check(service.data_file)
    assert report.problems == []
    assert report.entities > 1


def test_a_damaged_store_is_replaced_and_kept(
    service: config.Settings, files: embedded_engine.DataFiles, open_service: Open, backup: Path
) -> None:
    before = rows(service, open_service)
    service.data_file.write_bytes(b"rubbish" * 1000)
    restored = store_restore.restore(backup, service, files, now=NOW)
    assert restored.repeated is None
    assert (service.data_dir / KEPT).read_bytes() == b"rubbish" * 1000
    assert rows(service, open_service) == before


def test_comments_deleted_since_the_backup_are_deleted_again(
    service: config.Settings, files: embedded_engine.DataFiles, open_service: Open, backup: Path
) -> None:
    with open_service(service):
        found = {each.body: each for each in page()}
        for text in ("1.1", "3"):
            own_comment.retract(
                found[text].id, author_id=found[text].author.id, revision=None, now=NOW
            )
    restored = store_restore.restore(backup, service, files, now=NOW)
    assert restored.repeated == (2, 0, 0, 0)
    assert b"author of 1.1\x12" not in service.data_file.read_bytes()
    with open_service(service):
        texts = [each.body for each in page()]
        assert sorted(texts) == ["", "", "", "1", "1.1.1", "1.2", "2", "2.1"]
        differences: list[recount.Difference] = []
        recount.site("demo", tell=differences.append, fixes=False)
        recount.thread(NAME, tell=differences.append, fixes=False)
        assert differences == []
        assert repair.find_problems(service.scheme, NAME) == []


def test_a_site_that_was_deleted_since_the_backup_is_deleted_again(
    service: config.Settings, files: embedded_engine.DataFiles, open_service: Open, backup: Path
) -> None:
    ada = records.Actor("cli", "Ada")
    with open_service(service):
        site_deletion.delete("demo", ada, now=NOW)
    restored = store_restore.restore(backup, service, files, now=NOW + timedelta(days=3))
    assert restored.repeated == (0, 0, 0, 1)
    with files.open_store(service.data_file, service) as store, store.context():
        (deleted,) = site_deletion.deleted_sites()
        assert deleted.deleted == NOW
        site_deletion.restore("demo", ada, now=NOW)
    with open_service(service):
        assert len(page()) > 0


def test_sessions_end_and_removed_accounts_stay_removed(
    service: config.Settings, files: embedded_engine.DataFiles, open_service: Open, tmp_path: Path
) -> None:
    kinds = ("Account", "Identity", "Session", "Ticket")

    def counts() -> list[int]:
        return [reads.count(reads.Query(kind)) for kind in kinds]

    with open_service(service):
        made = {}
        for name in ("ann", "bob"):
            made[name] = account_holders.account(name)
            sessions.begin(made[name].id, service.secret, now=NOW)
        one_time_links.issue(
            one_time_links.LinkPurpose.RESET,
            made["ann"].id,
            service.secret,
            now=NOW,
            term=timedelta(days=1),
        )
        assert counts() == [2, 2, 2, 1]
    backup = store_backup.make(service, files, tmp_path / "backup", now=NOW).path
    with open_service(service):
        assert accounts.remove(made["bob"].id)
    restored = store_restore.restore(backup, service, files, now=NOW)
    assert restored.repeated == (0, 1, 0, 0)
    with open_service(service):
        assert counts() == [1, 1, 0, 0]
        assert accounts.get(made["ann"].id) is not None


def page() -> list[records.Comment]:
    """Return the comments of the thread "page"."""
    found = map(conversion.comment_from_message, reads.fetch(reads.Query("Comment")))
    return [each for each in found if each.thread == "page"]


CALLS = ("os.link", "os.rename", "os.remove", "sqlite3.connect")


def counted_calls(place: int, action: Callable[..., object], *arguments: object) -> None:
    """Run an action, die at the given call that changes a folder, or print the number of calls."""
    calls = 0

    def watch(event: str, _arguments: object) -> None:
        nonlocal calls
        if event in CALLS:
            calls += 1
            if calls == place:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    action(*arguments)
    print(calls)  # noqa: T201 - the test reads it


def restore_now(backup: Path, service: config.Settings) -> None:
    store_restore.restore(backup, service, embedded_engine.DataFiles(), now=NOW)


def back_up_now(target: Path, service: config.Settings) -> None:
    store_backup.make(service, embedded_engine.DataFiles(), target, now=NOW)


def places(calls: int) -> list[int]:
    """Choose some calls of an action, and its last ones."""
    return sorted({*range(1, calls + 1, max(1, calls // 4)), *range(calls - 2, calls + 1)})


@pytest.mark.slow
def test_a_killed_restore_leaves_the_old_store_or_the_new_one(
    service: config.Settings,
    files: embedded_engine.DataFiles,
    open_service: Open,
    backup: Path,
    tmp_path: Path,
) -> None:
    new = rows(service, open_service)
    old = changed(service, open_service)
    shutil.copytree(service.data_dir, tmp_path / "old")
    status, calls = forked_programs.run(counted_calls, 0, restore_now, backup, service)
    assert status == 0
    found = []
    for place in places(int(calls)):
        shutil.rmtree(service.data_dir)
        shutil.copytree(tmp_path / "old", service.data_dir)
        status, _ = forked_programs.run(counted_calls, place, restore_now, backup, service)
        assert status == -signal.SIGKILL
        assert data_files.check(service.data_file).problems == []
        found.append(rows(service, open_service))
        assert found[-1] in (old, new)
        if found[-1] == new:
            assert rows(kept_as_data(service, tmp_path / f"kept{place}"), open_service) == old
    assert old in found
    assert new in found
    store_restore.restore(backup, service, files, now=NOW + timedelta(minutes=1))
    assert rows(service, open_service) == new
    assert not list(service.data_dir.glob("*.restoring*"))


@pytest.mark.slow
def test_a_killed_backup_leaves_no_file_or_a_complete_one(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path
) -> None:
    status, calls = forked_programs.run(counted_calls, 0, back_up_now, tmp_path / "first", service)
    assert status == 0
    expected = backup_archive.unpack(tmp_path / "first", None).kinds
    complete = 0
    for place in places(int(calls)):
        target = tmp_path / f"{place}" / "copy"  # In the same folder, it would remove what is left
        target.parent.mkdir()
        status, _ = forked_programs.run(counted_calls, place, back_up_now, target, service)
        assert status == -signal.SIGKILL
        if target.exists():
            complete += 1
            assert backup_archive.unpack(target, None).kinds == expected
    store_backup.make(service, files, tmp_path / "last", now=NOW)
    assert backup_archive.unpack(tmp_path / "last", None).kinds == expected
    assert not list(service.data_dir.glob("*.copy*"))
    assert complete
