"""Checkpoints run outside commits, and their failures and deaths harm no commit."""

import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import inprocess
from datastore_emulator.storage import background_checkpoint
from emulator.tests.support import fault_vfs, ledger_writer, service_calls
from tests.support import forked_programs, programs

ROUNDS = int(os.environ.get("EMULATOR_CRASH_ROUNDS", "6"))
PATIENCE = programs.PATIENCE


def write(
    path: Path, *, commits: int, rows: int = 1, nth: int = 0, result: int = 0
) -> tuple[int, list[str]]:
    """Run the program that commits and checkpoints on a disk that can fail.

    Return its exit status and its lines.
    """
    fault_vfs.require()
    writer = "emulator.tests.support.checkpoint_writer"
    status, output = forked_programs.run(writer, path, commits, rows, nth, result)
    return status, output.splitlines()


def acknowledged(lines: list[str]) -> ledger_writer.Acknowledged:
    found = ledger_writer.Acknowledged()
    for line in lines:
        found.add(line)
    return found


class Checkpoints:
    """Background checkpoints that are counted, and that wait until the test lets them run."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.statements: list[str] = []
        self.subject = background_checkpoint.BackgroundCheckpoint(self._connect)

    def _connect(self) -> sqlite3.Connection:
        checkpoints = self

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
                checkpoints.statements.append(statement)
                assert checkpoints.go.wait(PATIENCE)
                return super().execute(statement, *arguments)

        return sqlite3.connect(":memory:", factory=Connection, check_same_thread=False)


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> Checkpoints:
    monkeypatch.setattr(background_checkpoint, "ROWS", 10)
    return Checkpoints()


def put(service: service_calls.Service, *, count: int, size: int) -> None:
    for number in range(count):
        text = service_calls.Unindexed("x" * size)
        service.put(service.key("T", number + 1), a=number, text=text)


def test_only_the_background_thread_writes_to_the_data_file(tmp_path: Path) -> None:
    # The commits write several times the 1,000 pages after which SQLite would checkpoint.
    status, lines = write(tmp_path / "data", commits=100, rows=100)
    assert status == 0
    operations = lines[100:]
    assert "write checkpoint" in operations
    assert {each.split()[1] for each in operations} == {background_checkpoint.THREAD}


@pytest.mark.slow
def test_a_process_killed_in_a_checkpoint_loses_no_commit(tmp_path: Path) -> None:
    commits = 0
    for nth in range(1, 3 * ROUNDS + 1, 2):
        status, lines = write(tmp_path / "data", commits=100, nth=nth)
        assert status == -signal.SIGKILL
        known = acknowledged(lines)
        commits = max(commits, known.commits)
        stored = ledger_writer.assert_file_matches(
            tmp_path / "data", {"w": ledger_writer.Acknowledged(commits, known.ids)}
        )
        commits = stored["w"]


@pytest.mark.parametrize("result", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_FSYNC])
def test_a_failing_checkpoint_fails_no_commit(
    tmp_path: Path, result: int, capfd: pytest.CaptureFixture[str]
) -> None:
    status, lines = write(tmp_path / "data", commits=30, result=result)
    assert (status, capfd.readouterr().err) == (0, "")
    known = acknowledged(lines[:30])
    assert known.commits == 30
    assert ledger_writer.assert_file_matches(tmp_path / "data", {"w": known}) == {"w": 30}


def test_a_log_without_background_checkpoints_stays_small(
    tmp_path: Path,
    make_service: Callable[..., service_calls.Service],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background_checkpoint, "ROWS", 1)
    monkeypatch.setattr(background_checkpoint, "LARGE", 400_000)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with inprocess.open_engine(tmp_path / "data") as engine:
        put(make_service(inprocess.Channel(engine)), count=60, size=50_000)
        assert (tmp_path / "data-wal").stat().st_size < 1_000_000


def test_a_checkpoint_is_due_after_a_number_of_rows(checkpoints: Checkpoints) -> None:
    checkpoints.go.set()
    checkpoints.subject.count(9)
    assert checkpoints.statements == []
    checkpoints.subject.count(1)
    checkpoints.subject.finish()
    assert checkpoints.statements == ["PRAGMA wal_checkpoint(PASSIVE)"]
    checkpoints.subject.count(9)
    checkpoints.subject.finish()
    assert len(checkpoints.statements) == 1


def test_rows_counted_during_a_checkpoint_lead_to_one_more(checkpoints: Checkpoints) -> None:
    checkpoints.subject.count(10)
    programs.wait_until(lambda: checkpoints.statements)
    for _ in range(5):
        checkpoints.subject.count(10)
    checkpoints.go.set()
    checkpoints.subject.finish()
    assert len(checkpoints.statements) == 2


@pytest.mark.parametrize("step", ["close_idle", "close"])
def test_forks_and_closing_wait_for_the_running_checkpoint(
    tmp_path: Path, checkpoints: Checkpoints, step: str
) -> None:
    """`close_idle` runs before each fork."""
    with inprocess.open_engine(tmp_path / "data") as engine:
        engine.storage._log._background = checkpoints.subject
        checkpoints.subject.count(10)
        programs.wait_until(lambda: checkpoints.statements)
        thread = threading.Thread(target=getattr(engine.storage, step))
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
        checkpoints.go.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_closing_leaves_no_thread_and_no_log(
    tmp_path: Path,
    make_service: Callable[..., service_calls.Service],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background_checkpoint, "ROWS", 1)
    with inprocess.open_engine(tmp_path / "data") as engine:
        put(make_service(inprocess.Channel(engine)), count=10, size=50_000)
    names = [thread.name for thread in threading.enumerate()]
    assert background_checkpoint.THREAD not in names
    assert not (tmp_path / "data-wal").exists()


def test_a_child_forked_during_a_checkpoint_runs_its_own(checkpoints: Checkpoints) -> None:
    checkpoints.subject.count(10)
    programs.wait_until(lambda: checkpoints.statements)
    child = forked_programs.fork()
    if not child:
        try:
            checkpoints.subject.forget_parent()
            checkpoints.go.set()
            checkpoints.subject.count(10)
            checkpoints.subject.finish()
            os._exit(len(checkpoints.statements) != 2)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    checkpoints.go.set()
    checkpoints.subject.finish()
    assert len(checkpoints.statements) == 1
