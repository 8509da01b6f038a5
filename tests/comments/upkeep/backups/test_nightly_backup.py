"""One nightly backup is made each day, old ones are removed, and no failure goes unseen."""

import dataclasses
import sys
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest

import embedded_engine
from comments import config, errors
from comments.events import backlog
from comments.upkeep import background_worker
from comments.upkeep.backups import backup_archive, backup_process, nightly_backup
from tests.support import forked_programs, programs

pytestmark = pytest.mark.embedded

NOW = datetime(2026, 1, 2, 4, 0, tzinfo=UTC)
NAME = "flatthread-nightly-20260102-040000.tar.gz"
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def made(service: config.Settings) -> list[str]:
    assert service.backup_dir is not None
    return sorted(each.name for each in service.backup_dir.iterdir())


def test_a_backup_is_due_once_after_each_time_of_day(
    service: config.Settings, files: embedded_engine.DataFiles
) -> None:
    assert nightly_backup.is_due(service, now=NOW)
    first = nightly_backup.make(service, files, now=NOW)
    assert first is not None
    assert made(service) == [NAME]
    assert backup_archive.unpack(first.path, None).created == NOW
    for later in (timedelta(0), HOUR, DAY - HOUR - timedelta(seconds=1)):
        assert not nightly_backup.is_due(service, now=NOW + later)
        assert nightly_backup.make(service, files, now=NOW + later) is None
    assert nightly_backup.is_due(service, now=NOW + DAY - HOUR)
    assert nightly_backup.is_due(service, now=NOW + 5 * DAY)
    earlier = dataclasses.replace(service, backup_at=time(2, 30))
    assert not nightly_backup.is_due(earlier, now=NOW + DAY - 2 * HOUR)
    assert nightly_backup.is_due(earlier, now=NOW + DAY - 1.5 * HOUR)


def test_a_service_without_a_folder_makes_no_backups(
    service: config.Settings, files: embedded_engine.DataFiles
) -> None:
    without = dataclasses.replace(service, backup_dir=None)
    assert not nightly_backup.is_due(without, now=NOW)
    assert nightly_backup.state(without, now=NOW) is None
    with pytest.raises(errors.BackupFailed, match="Set BACKUP_DIR"):
        nightly_backup.make(without, files, now=NOW)


def test_only_the_newest_nightly_backups_are_kept(
    service: config.Settings, files: embedded_engine.DataFiles
) -> None:
    assert service.backup_dir is not None
    others = ["flatthread-20260102-030405.tar.gz", "flatthread-nightly-20260101.tar.gz", "mine"]
    for name in others:
        (service.backup_dir / name).touch()
    ahead = "flatthread-nightly-20990101-030000.tar.gz"  # Made when the clock was wrong
    (service.backup_dir / ahead).touch()
    three = dataclasses.replace(service, backup_keep=3)
    for day in range(5):
        assert nightly_backup.make(three, files, now=NOW + day * DAY) is not None
    kept = [NAME.replace("20260102", f"2026010{day}") for day in (4, 5, 6)]
    assert made(service) == sorted([*kept, *others, ahead])


def test_a_failure_is_remembered_and_retried_after_an_hour(
    service: config.Settings, files: embedded_engine.DataFiles
) -> None:
    assert service.backup_dir is not None
    nightly_backup.make(service, files, now=NOW)
    away = service.backup_dir.rename(service.backup_dir.with_name("away"))
    with pytest.raises(errors.BackupFailed, match="backups does not exist"):
        nightly_backup.make(service, files, now=NOW + DAY)
    assert not service.backup_dir.exists()
    found = nightly_backup.state(service, now=NOW + DAY)
    assert found is not None
    assert not found.is_overdue
    assert (found.record.last, found.record.failed) == (NOW, NOW + DAY)
    assert "backups does not exist. Create it, or mount its disk." in found.record.reason
    assert not nightly_backup.is_due(service, now=NOW + DAY + HOUR / 2)
    assert nightly_backup.is_due(service, now=NOW + DAY + HOUR)
    later = nightly_backup.state(service, now=NOW + DAY + 3 * HOUR)
    assert later is not None
    assert later.is_overdue
    away.rename(service.backup_dir)
    assert nightly_backup.make(service, files, now=NOW + DAY + HOUR) is not None
    now = nightly_backup.state(service, now=NOW + DAY + HOUR)
    assert now is not None
    assert (now.record.last, now.record.failed, now.record.reason) == (NOW + DAY + HOUR, None, "")
    assert not now.is_overdue


def test_a_new_folder_is_overdue_until_it_has_a_backup(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path
) -> None:
    nightly_backup.make(service, files, now=NOW)
    (tmp_path / "new").mkdir()
    moved = dataclasses.replace(service, backup_dir=tmp_path / "new")
    found = nightly_backup.state(moved, now=NOW)
    assert found is not None
    assert (found.record.last, found.is_overdue) == (None, True)
    assert nightly_backup.make(moved, files, now=NOW) is not None
    assert made(moved) == [NAME]


def test_a_lost_record_causes_no_second_backup(
    service: config.Settings, files: embedded_engine.DataFiles
) -> None:
    nightly_backup.make(service, files, now=NOW)
    (service.data_dir / "backup.json").write_bytes(b"{")
    assert nightly_backup.is_due(service, now=NOW + HOUR)
    assert nightly_backup.make(service, files, now=NOW + HOUR) is None
    assert made(service) == [NAME]
    assert not nightly_backup.is_due(service, now=NOW + HOUR)


@pytest.mark.slow
def test_two_processes_make_one_backup(service: config.Settings) -> None:
    started = [forked_programs.start(make_now, service, NOW + n * HOUR) for n in range(4)]
    for each in started:
        assert each.stdout.readline() == "ready\n"
    for each in started:
        each.stdin.write("go\n")
        each.stdin.flush()
    said = sorted(each.output() for each in started)
    assert said == ["made\n", "nothing\n", "nothing\n", "nothing\n"]
    assert len(made(service)) == 1


def make_now(service: config.Settings, now: datetime) -> None:
    print("ready", flush=True)  # noqa: T201 - the test reads it
    sys.stdin.readline()
    found = nightly_backup.make(service, embedded_engine.DataFiles(), now=now)
    print("nothing" if found is None else "made")  # noqa: T201 - same


WRITES = "import sys; open(sys.argv[1], 'a').write('started\\n')"


def test_a_command_is_started_when_a_backup_is_due(
    service: config.Settings, files: embedded_engine.DataFiles, tmp_path: Path
) -> None:
    started, clock = tmp_path / "started", [NOW]
    command = [sys.executable, "-c", WRITES, str(started)]
    process = backup_process.BackupProcess(service, command, lambda: clock[0])

    def starts() -> int:
        process.step()
        programs.wait_until(lambda: not process.is_running, "the command does not end")
        return len(started.read_text().splitlines())

    assert starts() == 1
    assert starts() == 1  # The command has made no backup, and is not started again for an hour.
    clock[0] += HOUR
    assert starts() == 2
    nightly_backup.make(service, files, now=clock[0])
    clock[0] += HOUR
    assert starts() == 2
    clock[0] += DAY
    assert starts() == 3
    assert process.stop(programs.PATIENCE)


def test_a_running_command_is_stopped_with_the_service(service: config.Settings) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    process = backup_process.BackupProcess(service, command, lambda: NOW)
    assert process.stop(0.0)
    process.step()
    assert process.is_running
    assert process.stop(programs.PATIENCE)
    assert not process.is_running


def test_a_command_that_cannot_be_started_is_logged(
    service: config.Settings, caplog: pytest.LogCaptureFixture
) -> None:
    process = backup_process.BackupProcess(service, ["/nowhere/command"], lambda: NOW)
    process.step()
    assert caplog.messages == ["The nightly backup could not be started: No such file or directory"]
    assert process.stop(0.0)


def test_the_background_worker_checks_for_backups_every_minute(
    service: config.Settings, files: embedded_engine.DataFiles
) -> None:
    class Counting(backup_process.BackupProcess):
        steps = 0

        def step(self) -> None:
            self.steps += 1

    counting = Counting(service, [], lambda: NOW)
    with files.open_store(service.data_file, service) as store, store.context():
        clock = [0.0]
        backlog.BACKLOG.put(store, backlog.Backlog(lambda: clock[0])).open()
        worker = background_worker.BackgroundWorker(store, backups=counting)
        worker.step()
        assert counting.steps == 1
        clock[0] += background_worker.BACKUP_EVERY - 1
        worker.step()
        assert counting.steps == 1
        clock[0] += 1
        worker.step()
        assert counting.steps == 2
