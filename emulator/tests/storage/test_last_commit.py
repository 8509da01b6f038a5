"""A log that is lost, cut or exchanged is noticed, and no file that is whole is refused."""

import contextlib
import logging
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from datastore_emulator import errors
from datastore_emulator.storage import inspection, maintenance
from emulator.tests.support import ledger_writer
from tests.support import forked_programs

pytestmark = pytest.mark.slow

# Commits once for each letter: after "c" the log is copied into the file, after "e" it is emptied.
# Then, the process kills itself, or closes the file if the last letter is "q".
WRITER = """
import contextlib, os, signal, sqlite3, sys
from datetime import UTC, datetime
from pathlib import Path
from emulator.tests.support import ledger_writer

path = Path(sys.argv[1])
engine = ledger_writer.open_engine(path)
worker = ledger_writer.worker(engine, "w")
for letter in sys.argv[2]:
    worker.commit()
    if letter in "ce":
        how = {"c": "PASSIVE", "e": "TRUNCATE"}[letter]
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA wal_checkpoint({how})")
if letter == "q":
    engine.close()
else:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def write(path: Path, letters: str) -> None:
    status, output = forked_programs.run(WRITER, path, letters)
    assert status == (0 if letters.endswith("q") else -signal.SIGKILL), output


def beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def saved(path: Path) -> Path:
    """Copy a data file and all files beside it; return the copy."""
    folder = path.parent / "saved"
    folder.mkdir()
    for each in path.parent.glob(f"{path.name}*"):
        if each.is_file():
            shutil.copy(each, folder)
    return folder / path.name


def put_back(copy: Path, path: Path, *endings: str) -> None:
    for ending in endings:
        shutil.copy(beside(copy, ending), beside(path, ending))


def contents(path: Path) -> dict[str, bytes]:
    """Return the content of the files whose change would matter; an empty log is like none."""
    files = (beside(path, ending) for ending in ("", "-wal", "-turn"))
    return {each.name: each.read_bytes() for each in files if each.exists() and each.stat().st_size}


def commits(path: Path) -> int:
    with ledger_writer.open_engine(path) as engine:
        return ledger_writer.worker(engine, "w").count()


def frames(path: Path) -> list[int]:
    """Return the offsets of the log's frames that end a commit of its present use."""
    log = beside(path, "-wal").read_bytes()
    size = 24 + 4096
    return [
        at
        for at in range(32, len(log) - size + 1, size)
        if int.from_bytes(log[at + 4 : at + 8], "big") and log[at + 8 : at + 16] == log[16:24]
    ]


def damage(path: Path, at: int) -> None:
    log = os.open(beside(path, "-wal"), os.O_WRONLY)
    os.pwrite(log, b"\xee", at)
    os.close(log)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file that was closed after two commits."""
    write(tmp_path / "data", "wq")
    return tmp_path / "data"


# Each takes the closed file, and returns the number of commits that must be found.


def killed(path: Path) -> int:
    write(path, "ww")
    return 4


def killed_twice(path: Path) -> int:
    write(path, "ww")
    write(path, "ww")
    return 6


def killed_after_a_checkpoint(path: Path) -> int:
    write(path, "wcww")
    return 6


def killed_after_the_log_began_anew(path: Path) -> int:
    write(path, "wcwewwcw")
    return 10


def emptied_log_removed(path: Path) -> int:
    write(path, "we")
    beside(path, "-wal").unlink()
    return 4


def no_note(path: Path) -> int:
    write(path, "ww")
    beside(path, "-turn").unlink()
    write(path, "ww")
    return 6


def torn_note(path: Path) -> int:
    write(path, "ww")
    note = beside(path, "-turn").read_bytes()
    later = int.from_bytes(note[:8], "little") + 10_000_000
    beside(path, "-turn").write_bytes(later.to_bytes(8, "little") + note[8:])
    return 4


def older_note(path: Path) -> int:
    """The note did not reach the disk before a power loss."""
    note = beside(path, "-turn").read_bytes()
    write(path, "wwc")
    beside(path, "-turn").write_bytes(note)
    return 5


def commits_of_an_older_release(path: Path) -> int:
    """An older release used the file without notes, before and after a newer one."""
    note = beside(path, "-turn").read_bytes()
    write(path, "wwc")
    beside(path, "-turn").write_bytes(note)
    write(path, "ww")
    return 7


def closed_file_copied_alone(path: Path) -> int:
    closed = path.read_bytes()
    for each in path.parent.glob(f"{path.name}-*"):
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    path.write_bytes(closed)
    return 2


def restored_after_a_kill(path: Path) -> int:
    write(path, "ww")
    maintenance.backup(path, beside(path, ".backup"))
    write(path, "ww")
    maintenance.restore(beside(path, ".backup"), path, now=1, replace=True)
    return 4


def compacted_after_a_kill(path: Path) -> int:
    write(path, "ww")
    maintenance.compact(path, now=1)
    return 4


def journal_of_the_usual_kind(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return 2


@pytest.mark.parametrize(
    "prepare",
    [
        killed,
        killed_twice,
        killed_after_a_checkpoint,
        killed_after_the_log_began_anew,
        emptied_log_removed,
        no_note,
        torn_note,
        older_note,
        commits_of_an_older_release,
        closed_file_copied_alone,
        restored_after_a_kill,
        compacted_after_a_kill,
        journal_of_the_usual_kind,
    ],
)
def test_a_whole_file_opens_without_a_report(
    path: Path, prepare: Callable[[Path], int], caplog: pytest.LogCaptureFixture
) -> None:
    wanted = prepare(path)
    assert commits(path) == wanted
    assert not inspection.check(path).wrong
    write(path, "ww")
    assert commits(path) == wanted + 2
    assert caplog.messages == []


def cut_log(path: Path) -> int:
    write(path, "wwww")
    os.truncate(beside(path, "-wal"), frames(path)[-2])
    return 4


def damaged_log(path: Path) -> int:
    write(path, "wwww")
    damage(path, frames(path)[-2] + 500)
    return 4


def damaged_log_after_a_checkpoint(path: Path) -> int:
    write(path, "wcww")
    damage(path, frames(path)[-1] + 500)
    return 5


def older_copy_of_a_closed_file(path: Path) -> int:
    copy = saved(path)
    write(path, "wwq")
    put_back(copy, path, "")
    return 2


def older_copy_after_a_kill(path: Path) -> int:
    copy = saved(path)
    write(path, "weww")
    beside(path, "-wal").unlink()
    put_back(copy, path, "")
    return 2


def older_copy_with_its_log(path: Path) -> int:
    write(path, "ww")
    copy = saved(path)
    write(path, "wwq")
    write(path, "ww")
    put_back(copy, path, "", "-wal")
    return 4


def backup_put_in_place_of_a_killed_file(path: Path) -> int:
    write(path, "ww")
    maintenance.backup(path, beside(path, ".backup"))
    write(path, "ww")
    beside(path, "-wal").unlink()
    beside(path, ".backup").replace(path)
    return 4


@pytest.mark.parametrize(
    "prepare",
    [
        cut_log,
        damaged_log,
        damaged_log_after_a_checkpoint,
        older_copy_of_a_closed_file,
        older_copy_after_a_kill,
        older_copy_with_its_log,
        backup_put_in_place_of_a_killed_file,
    ],
)
def test_what_is_lost_is_reported_once_and_stays_known(
    path: Path, prepare: Callable[[Path], int], caplog: pytest.LogCaptureFixture
) -> None:
    wanted = prepare(path)
    with ledger_writer.open_engine(path) as engine:
        lost = engine.storage.lost
        assert ledger_writer.worker(engine, "w").count() == wanted
    assert lost is not None
    assert lost.since < lost.until <= datetime.now(UTC)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert (
        f"from {lost.since:%Y-%m-%d %H:%M:%S.%f} UTC to {lost.until:%Y-%m-%d %H:%M:%S.%f} UTC"
        in (caplog.text)
    )
    write(path, "ww")
    with ledger_writer.open_engine(path) as engine:
        assert engine.storage.lost == lost
        assert ledger_writer.worker(engine, "w").count() == wanted + 2
    assert len(caplog.records) == 1
    maintenance.restore(path, path, now=1, replace=True)
    with ledger_writer.open_engine(path) as engine:
        assert engine.storage.lost is None


def removed_log(path: Path) -> int:
    write(path, "ww")
    beside(path, "-wal").unlink()
    return 2


def removed_log_after_a_checkpoint(path: Path) -> int:
    write(path, "wcww")
    beside(path, "-wal").unlink()
    return 4


def removed_log_that_began_anew(path: Path) -> int:
    write(path, "weww")
    beside(path, "-wal").unlink()
    return 4


def emptied_log(path: Path) -> int:
    write(path, "ww")
    os.truncate(beside(path, "-wal"), 0)
    return 2


def log_cut_below_a_checkpoint(path: Path) -> int:
    write(path, "wwwc")
    damage(path, frames(path)[-2] + 500)
    return 6


def older_log(path: Path) -> int:
    write(path, "ww")
    copy = saved(path)
    write(path, "wwq")
    write(path, "wwwww")
    put_back(copy, path, "-wal")
    return 7


def older_log_of_a_closed_file(path: Path) -> int:
    write(path, "ww")
    copy = saved(path)
    write(path, "wwq")
    put_back(copy, path, "-wal")
    return 7


def older_file_beside_its_log(path: Path) -> int:
    copy = saved(path)
    write(path, "wwq")
    write(path, "ww")
    put_back(copy, path, "")
    return 2


@pytest.mark.parametrize(
    "prepare",
    [
        removed_log,
        removed_log_after_a_checkpoint,
        removed_log_that_began_anew,
        emptied_log,
        log_cut_below_a_checkpoint,
        older_log,
        older_log_of_a_closed_file,
        older_file_beside_its_log,
    ],
)
def test_a_file_without_its_log_is_refused_until_its_owner_accepts_the_loss(
    path: Path, prepare: Callable[[Path], int]
) -> None:
    left = prepare(path)
    before = contents(path)
    for use in (
        ledger_writer.open_engine,
        inspection.check,
        lambda each: maintenance.backup(each, beside(each, ".backup")),
        lambda each: maintenance.compact(each, now=1),
    ):
        with pytest.raises(errors.FailedPrecondition, match=f"{path}-wal .* restore a backup") as e:
            use(path)
        assert f"remove {path}-" in str(e.value)
        assert contents(path) == before
    assert not beside(path, ".backup").exists()
    for ending in ("-turn", "-wal"):
        beside(path, ending).unlink(missing_ok=True)
    assert commits(path) == left
    assert not inspection.check(path).wrong


def test_a_log_put_back_brings_everything_back(path: Path) -> None:
    write(path, "ww")
    log = beside(path, "-wal").rename(path.parent / "aside")
    with pytest.raises(errors.FailedPrecondition):
        commits(path)
    log.replace(beside(path, "-wal"))
    assert commits(path) == 4


def test_a_note_that_cannot_be_written_fails_no_commit(tmp_path: Path) -> None:
    (tmp_path / "data-turn").mkdir()
    write(tmp_path / "data", "ww")
    assert commits(tmp_path / "data") == 2
