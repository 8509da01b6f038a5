"""Several writers in one process, whose commits share COMMITs on a disk that can fail.

Owns the program that tests run in order to kill such a process or to make its disk fail. Every
writer is a worker of the ledger, so its data is checked in the same way as the data of a single
writer. Each sync of the log is slowed down, so that writers wait for each other. As a program, it
prints the answers to each writer, and the number of commits in each COMMIT:

    python -m emulator.tests.support.concurrent_writers FILE PLAN KIND NAME NTH

PLAN is a fault plan in JSON, or "". The program kills itself before the operation number NTH of the
given KIND on the file NAME (`fault_vfs`); 0 means never.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc

from datastore_emulator import inprocess
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import group_commit
from emulator.tests.support import fault_vfs, ledger_writer

NAMES = ("a", "b", "c", "d")
_SYNC = 0.005  # Seconds


def tell_of_groups(tell: Callable[[int], object]) -> None:
    """Call a function with the number of commits in each COMMIT, before they are answered."""
    usual = group_commit.WriteTurn._has_happened

    def told(turn: group_commit.WriteTurn, group: group_commit._Group) -> None:
        tell(len(group.parts))
        usual(turn, group)

    group_commit.WriteTurn._has_happened = told  # type: ignore[assignment]


def slowly(watch: fault_vfs.Watch) -> fault_vfs.Watch:
    """Return a watch function that makes syncs of the log slow."""

    def watched(operation: fault_vfs.Operation) -> int:
        if operation.kind == "sync" and operation.name.endswith("-wal"):
            time.sleep(_SYNC)
        return watch(operation)

    return watched


def run(engine: inprocess.Engine, step: Callable[[ledger_writer.Worker], bool]) -> None:
    """Run each worker's steps in its own thread, until a step returns False."""

    def work(worker: ledger_writer.Worker) -> None:
        while step(worker):
            pass

    threads = [
        threading.Thread(target=work, args=(ledger_writer.worker(engine, name),)) for name in NAMES
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def step(worker: ledger_writer.Worker) -> bool:
    """Commit and allocate ids; print both results in one write.

    Separate writes could mix the lines of several threads.
    """
    told: list[int] = []
    with _may_be_refused():
        number, told = worker.commit()
        told.insert(0, number)
    with _may_be_refused():
        told += worker.allocate(2) if told else []
    if told:
        os.write(1, " ".join(map(str, [worker.name, *told, "\n"])).encode())
    return True


@contextlib.contextmanager
def _may_be_refused() -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.INTERNAL:
            raise


def main() -> None:
    path, plan, *struck, nth = sys.argv[1:]
    wanted, left = tuple(struck), int(nth)

    def watch(operation: fault_vfs.Operation) -> int:
        nonlocal left
        left -= (operation.kind, operation.name) == wanted
        if wanted == (operation.kind, operation.name) and not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    shim = fault_vfs.Shim(slowly(watch))
    fault_vfs.use_small_logs()
    tell_of_groups(lambda parts: os.write(1, f"group {parts}\n".encode()))
    with ledger_writer.open_engine(Path(path)) as engine:
        if plan:
            engine.install_faults(fault_plans.Plan.parse(plan))
        run(engine, step)
    del shim


if __name__ == "__main__":
    main()
