"""A full, read-only or failing disk: a clear status, no partial commit, and full recovery."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.tests.support import fault_vfs
from tests.support import optional_tools, programs

RESULTS = {
    sqlite3.SQLITE_FULL: "RESOURCE_EXHAUSTED",
    sqlite3.SQLITE_IOERR_FSYNC: "UNAVAILABLE",
    sqlite3.SQLITE_READONLY: "UNAVAILABLE",
}


@pytest.mark.slow
@pytest.mark.parametrize("result", RESULTS)
def test_any_disk_operation_can_fail(tmp_path: Path, result: int) -> None:
    fault_vfs.require()
    program = [sys.executable, "-m", "emulator.tests.support.failing_disk_writer", str(tmp_path)]
    ended = subprocess.run(
        [*program, str(result), RESULTS[result]],
        cwd=programs.ROOT, check=False, capture_output=True, text=True, timeout=programs.PATIENCE,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    openings, commits = map(int, ended.stdout.split())
    assert openings > 20
    assert commits > 10


def test_a_full_or_read_only_disk_is_reported_and_recovery_is_complete(
    tmp_path: Path,
) -> None:
    optional_tools.mounts()
    writer = "emulator.tests.support.small_disk_writer"
    ended = subprocess.run(
        [*programs.unshare(), sys.executable, "-m", writer, tmp_path],
        cwd=programs.ROOT, check=False, capture_output=True, text=True, timeout=programs.PATIENCE,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
