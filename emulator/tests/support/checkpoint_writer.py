"""A writer whose background checkpoints run on a disk that can fail.

As a program, it commits, prints the acknowledgment of each commit, and waits for the checkpoint
that the commit has started. At the end, it prints the operations that changed the data file, each
with the name of the thread:

    python -m emulator.tests.support.checkpoint_writer FILE COMMITS ROWS NTH RESULT

A checkpoint is due after ROWS changed rows. The program kills itself before operation number NTH of
its checkpoints; 0 means never. If RESULT is not 0, all of their operations fail with this SQLite
result code.
"""

import collections
import os
import signal
import sys
import threading
from pathlib import Path

from datastore_emulator.storage import background_checkpoint
from emulator.tests.support import fault_vfs, ledger_writer


def main() -> None:
    path = Path(sys.argv[1])
    commits, rows, nth, result = map(int, sys.argv[2:])
    seen: collections.Counter[str] = collections.Counter()
    done = 0

    def watch(operation: fault_vfs.Operation) -> int:
        nonlocal done
        thread = threading.current_thread().name
        if operation.name == path.name:
            seen[f"{operation.kind} {thread}"] += 1
        if thread != background_checkpoint.THREAD:
            return 0
        done += 1
        if done == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    shim = fault_vfs.Shim(watch)
    background_checkpoint.ROWS = rows
    with ledger_writer.open_engine(path) as engine:
        worker = ledger_writer.worker(engine, "w")
        worker.count()
        seen.clear()
        for _ in range(commits):
            ledger_writer.say(worker.step())
            engine.storage._log.finish()
        ledger_writer.say(*sorted(seen), sep="\n")
    del shim


if __name__ == "__main__":
    main()
