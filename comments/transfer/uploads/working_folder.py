"""A folder for the unencrypted copy of an uploaded file, while a process works on it.

The process holds a lock on the folder. A killed process loses its lock and leaves the folder, and
any process removes it afterwards (`remove_leftovers`).
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
_YOUNG = 60.0  # Seconds in which a process certainly locks its new folder.


@contextlib.contextmanager
def create() -> Iterator[Path]:
    """Make a folder that only this user can read, and remove it at the end."""
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
