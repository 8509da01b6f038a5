"""Files that exist only while a backup is made or restored.

    NAME.PID-RANDOM.copy        the copy of the data file
    NAME.PID-RANDOM.restoring   the unpacked data file
    NAME.PID-RANDOM.partial     the unfinished backup

Each process removes its own files when it has finished. If a process is killed, the next process
that makes or restores a backup in the same folder removes the files that are left.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

COPY, RESTORING, PARTIAL = "copy", "restoring", "partial"
_NAME = re.compile(r"\.(\d{1,10})-[0-9a-f]{8}\.(?:copy|restoring|partial)", re.ASCII)


@contextlib.contextmanager
def working_file(path: Path, ending: str) -> Iterator[Path]:
    """Yield an unused name next to a file; at the end, remove all files with that name."""
    remove_leftovers(path)
    own = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}.{ending}")
    try:
        yield own
    finally:
        _remove(own)


def remove_leftovers(path: Path) -> None:
    """Remove a file's working files if the processes that made them have ended."""
    for file in _files_beginning_with(path):
        match = _NAME.match(file.name, len(path.name))
        if match and not _is_running(int(match[1])):
            _remove(file)


def _remove(path: Path) -> None:
    """Remove a file, and the log and locks that the engine keeps next to it."""
    for file in _files_beginning_with(path):
        if file.is_dir():
            shutil.rmtree(file, ignore_errors=True)
        else:
            file.unlink(missing_ok=True)


def _files_beginning_with(path: Path) -> list[Path]:
    # `glob` would interpret some characters of the name as a pattern.
    return [file for file in path.parent.iterdir() if file.name.startswith(path.name)]


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # The process exists but belongs to another user
        return True
    return True
