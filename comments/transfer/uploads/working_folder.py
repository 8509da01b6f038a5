"""Create a folder for the unencrypted copy of an uploaded file while a process works on it.

The process holds a lock on the folder. If the process is killed, it loses the lock but the folder
remains, and any other process then removes it (`remove_leftovers`).
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "flatthread-upload-"
_YOUNG = 60.0  # Seconds within which a process is certain to have locked its new folder.


@contextlib.contextmanager
def create() -> Iterator[Path]:
    """Create a folder that only this user can read, and remove it when the `with` block ends."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name, _open_folder(Path(name)) as folder:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield Path(name)


def remove_leftovers() -> None:
    """Remove the folders of processes that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), _open_folder(path) as folder:
            status = os.fstat(folder)
            if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _YOUNG:
                continue
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)


@contextlib.contextmanager
def _open_folder(path: Path) -> Iterator[int]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield folder
    finally:
        os.close(folder)
