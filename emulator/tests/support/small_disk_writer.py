"""A writer on a small disk that a test fills, makes read-only and repairs.

Owns the scenario; `test_failing_disk` runs it in its own mount namespace, in which FOLDER can be a
disk of two megabytes:

    python -m emulator.tests.support.small_disk_writer FOLDER
"""

import subprocess
import sys
from pathlib import Path

import grpc

from datastore_emulator import errors, inprocess
from emulator.tests.support import ledger_writer

SIZE = "2m"
TRIES = 1_000


def mount(folder: Path, *options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", folder], check=True)


def fill(folder: Path) -> Path:
    """Fill the remaining space; return the file that occupies it."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 512):
                pass
        except OSError:
            return ballast
    raise AssertionError


class Writer:
    """A worker and the acknowledgments that it received."""

    def __init__(
        self, worker: ledger_writer.Worker, acknowledged: ledger_writer.Acknowledged
    ) -> None:
        self.worker = worker
        self.acknowledged = acknowledged

    def commit(self) -> str:
        try:
            self.acknowledged.commits, given = self.worker.commit()
        except grpc.RpcError as error:
            return error.code().name
        self.acknowledged.ids += given
        return "OK"

    def commit_until_refused(self) -> str:
        return next(status for _ in range(TRIES) if (status := self.commit()) != "OK")

    def check(self) -> None:
        assert self.worker.check(self.acknowledged) == self.acknowledged.commits


def outgrow(folder: Path, path: Path, acknowledged: ledger_writer.Acknowledged) -> None:
    """Fill the disk while an engine is open, and free the space again."""
    with ledger_writer.open_engine(path) as engine:
        writer = Writer(ledger_writer.worker(engine, "w"), acknowledged)
        assert [writer.commit() for _ in range(5)] == ["OK"] * 5
        writer.check()  # Makes the indexes, which a full disk does not allow
        for _ in range(2):
            ballast = fill(folder)
            assert writer.commit_until_refused() == "RESOURCE_EXHAUSTED"
            assert writer.commit_until_refused() == "RESOURCE_EXHAUSTED"
            writer.check()
            ballast.unlink()
            assert writer.commit() == "OK"
            writer.check()
        assert (
            writer.commit_until_refused() == "RESOURCE_EXHAUSTED"
        )  # The writer's own data fills the disk
        writer.check()


def open_on(path: Path, acknowledged: ledger_writer.Acknowledged, *refusals: str) -> None:
    """Open an engine that cannot write: opening is refused with the path, or only reads work."""
    try:
        engine = inprocess.open_engine(path)
    except errors.DatastoreError as error:
        status, message = error.status, error.message
    else:
        with engine:
            writer = Writer(ledger_writer.worker(engine, "w"), acknowledged)
            writer.check()
            status, message = writer.commit_until_refused(), str(path)
    assert status in refusals, message
    assert str(path) in message


def main() -> None:
    folder = Path(sys.argv[1])
    path, acknowledged = folder / "data", ledger_writer.Acknowledged()
    mount(folder, "-o", f"size={SIZE}")
    outgrow(folder, path, acknowledged)
    mount(folder, "-o", "remount,size=8m")
    ledger_writer.assert_file_matches(path, {"w": acknowledged})
    ballast = fill(folder)
    open_on(path, acknowledged, "RESOURCE_EXHAUSTED")
    ballast.unlink()
    ledger_writer.assert_file_matches(path, {"w": acknowledged})
    mount(folder, "-o", "remount,ro")
    open_on(path, acknowledged, "FAILED_PRECONDITION", "UNAVAILABLE")
    mount(folder, "-o", "remount,rw")
    ledger_writer.assert_file_matches(path, {"w": acknowledged})
    ledger_writer.say("done")


if __name__ == "__main__":
    main()
