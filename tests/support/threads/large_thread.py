"""Make a file with one long, compacted and cleared thread, in a separate program.

python -m tests.support.threads.large_thread FILE COMMENTS

Coverage does not measure the separate program, because with coverage, filling the thread would take
four times as long as reading it. The loading code has separate tests.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.threads import conversations, loading, shapes
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess
from tests.conftest import ROOT
from tests.support.threads import sample_threads


def thread(count: int) -> list[conversations.Said]:
    """Return a thread with `count` comments."""
    return conversations.thread(shapes.repeated(shapes.grown(1_000), count))


def copied(folders: pytest.TempPathFactory, count: int) -> Path:
    """Return a copy of the file; the file itself is made once for all processes of a test run."""
    folder = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    made = folder / f"filled-{count}"
    with (folder / f"filled-{count}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(folder / f"filling-{count}", count)
            (folder / f"filling-{count}").rename(made)
    return Path(shutil.copy(made, folders.mktemp("filled") / "data"))


def make(path: Path, count: int) -> None:
    """Make the file without measuring coverage."""
    environ = {name: value for name, value in os.environ.items() if "COV" not in name}
    command: list[str | Path] = [sys.executable, "-m", __name__, path, str(count)]
    subprocess.run(command, cwd=ROOT, env=environ, check=True)


def main(path: str, count: str) -> None:
    with inprocess.open_engine(path, indexes=ROOT / "index.yaml", durability="fast") as engine:
        store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
        with store.context():
            origins, now = ["http://localhost"], datetime.now(UTC)
            site_settings.add(
                loading.NAME.site, origins, scheme=sample_threads.SETTINGS.scheme, now=now
            )
            said = thread(int(count))
            loading.add_thread(
                engine, loading.NAME, said, is_folded=True, votes=lambda place: place % 7
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
