"""File permissions: only the owner may read the engine's files.

Owns the creation of data files and the restriction of older files. SQLite gives its log and the
log's index the same permissions as the data file, regardless of the umask.

This module never opens an existing data file, because closing a descriptor of the file would drop
this process's SQLite locks on it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FILE = 0o600
FOLDER = 0o700
_OTHERS = 0o077  # The permission bits for the group and for all other users
_BESIDE = ("", "-wal", "-shm", "-journal", "-pause", "-turn", "-locks")


def create(path: str) -> None:
    """Create an empty data file that only its owner can read, unless the path already exists.

    The file gets its name only after its descriptor is closed, so no process can lock the file
    while the descriptor is open.
    """
    if os.path.lexists(path):
        return
    own = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.new"
    try:
        os.close(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE))
        with contextlib.suppress(FileExistsError):  # Another process created it first
            os.link(own, path)
    except OSError:
        # The folder is missing, or hard links are not supported: SQLite creates the file or reports
        # the problem.
        return
    finally:
        with contextlib.suppress(OSError):
            Path(own).unlink()


def restrict(path: str) -> list[str]:
    """Restrict access to a data file and its log files to their owner.

    Return the paths whose permissions could not be changed.
    """
    refused = []
    for file in _files(path):
        try:
            mode = os.lstat(file).st_mode
            if mode & _OTHERS and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                Path(file).chmod(stat.S_IMODE(mode) & ~_OTHERS)
        except FileNotFoundError:
            continue
        except OSError:
            refused.append(file)
    return refused


def give_to_owner(descriptor: int, folder: Path) -> None:
    """If root created a file, give it to the owner of its folder, who must be able to read it."""
    if os.geteuid() == 0:
        there = folder.stat()
        os.fchown(descriptor, there.st_uid, there.st_gid)


def _files(path: str) -> Iterator[str]:
    for suffix in _BESIDE:
        yield f"{path}{suffix}"
    with contextlib.suppress(OSError):
        yield from (str(file) for file in Path(f"{path}-locks").iterdir())
