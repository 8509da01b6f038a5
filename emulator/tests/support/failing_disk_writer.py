"""A writer that makes each disk operation on its file fail in turn.

Owns a method that SQLite's own tests use: make the n-th disk operation fail, for n = 1, 2, ...,
until a run needs fewer than n operations. Every refusal must have the expected status and leave
nothing behind, and the engine must recover without a restart as soon as the disk does. The writer
runs in a separate process:

    python -m emulator.tests.support.failing_disk_writer FOLDER RESULT STATUS

RESULT is a numeric SQLite result code. The program prints the number of operations that it made
fail.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import grpc

from datastore_emulator import errors, inprocess
from emulator.tests.support import fault_vfs, ledger_writer

MOST = 1_000
# A short run tries only every third operation. The result code determines the first operation, so
# the runs for all codes together try all operations.
STRIDE = max(1, 18 // int(os.environ.get("EMULATOR_CRASH_ROUNDS", "6")))


class Disk:
    """Counts operations, and makes one operation fail, or that one and all later ones."""

    def __init__(self, result: int) -> None:
        self.result = result
        self.count = 0
        self.heal()

    def heal(self) -> None:
        self.first = self.last = MOST

    def fail(self, number: int, *, is_lasting: bool) -> None:
        self.count = 0
        self.first, self.last = number, MOST if is_lasting else number

    def watch(self, _: fault_vfs.Operation) -> int:
        self.count += 1
        return self.result if self.first <= self.count <= self.last else 0


def fail_each(disk: Disk, run: Callable[[], bool], check: Callable[..., None]) -> int:
    """Make each operation of a repeated run fail in turn; return the number of operations."""
    number = 0
    for is_lasting in (False, True):
        for number in range(1 + disk.result % STRIDE, MOST, STRIDE):
            disk.fail(number, is_lasting=is_lasting)
            is_refused = run()
            is_over = disk.count < number
            disk.heal()
            check(is_refused=is_refused)
            if is_over:
                break
    return number


def assert_one_of(found: str, *wanted: str) -> None:
    assert found in wanted, f"{found} instead of {wanted}"


def fail_commits(disk: Disk, path: Path, status: str) -> int:
    acknowledged = ledger_writer.Acknowledged()
    with ledger_writer.open_engine(path) as engine:
        worker = ledger_writer.Worker(inprocess.Channel(engine), "w")

        def commit() -> bool:
            try:
                acknowledged.commits, given = worker.commit()
            except grpc.RpcError as error:
                assert_one_of(error.code().name, status)
                return True
            acknowledged.ids += given
            return False

        def check(*, is_refused: bool) -> None:
            assert worker.check(acknowledged) == acknowledged.commits
            if is_refused:
                assert not commit()

        failed = fail_each(disk, commit, check)
    assert ledger_writer.assert_file_matches(path, {"w": acknowledged}) == {
        "w": acknowledged.commits
    }
    return failed


def fail_openings(disk: Disk, folder: Path, status: str) -> int:
    def path() -> Path:
        return folder / f"{disk.first} {disk.last}"

    opened = folder / "none"

    def open_new() -> bool:
        nonlocal opened
        opened = path()
        try:
            inprocess.open_engine(opened).close()
        except errors.DatastoreError as error:
            assert_one_of(error.status, status, "FAILED_PRECONDITION")
            assert_one_of(error.message.partition(": ")[0], str(opened))
            return True
        return False

    def check(*, is_refused: bool) -> None:
        assert ledger_writer.assert_file_matches(opened, {"w": ledger_writer.Acknowledged()}) == {
            "w": 0
        }

    return fail_each(disk, open_new, check)


def main() -> None:
    folder, result, status = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    disk = Disk(int(result))
    shim = fault_vfs.Shim(disk.watch)
    fault_vfs.use_small_logs()
    ledger_writer.say(
        fail_openings(disk, folder, status), fail_commits(disk, folder / "data", status)
    )
    del shim


if __name__ == "__main__":
    main()
