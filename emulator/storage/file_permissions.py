"""Who may read the files of the engine: their owner, and nobody else.

Owns how a data file is made and how older files are restricted. SQLite gives its log and the log's
index the permissions of the data file, whatever the umask is.

What must stay true: nothing here opens a data file. Closing a descriptor of it would drop the locks
that SQLite holds on it for this process.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FILE = 0o600
FOLDER = 0o700
_OTHERS = 0o077  # the bits of the group and of everybody else
_BESIDE = ("", "-wal", "-shm", "-journal", "-pause", "-locks")


def create(path: str) -> None:
    """Make an empty data file that only its owner reads, unless there is one.

    It gets its name when it is closed, so nobody can hold a lock on it before.
    """
    if os.path.lexists(path):
        return
    own = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.new"
    try:
        os.close(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE))
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.link(own, path)
    except OSError:
        # No such folder, or no hard links: SQLite makes the file, or says what is wrong.
        return
    finally:
        with contextlib.suppress(OSError):
            Path(own).unlink()


def restrict(path: str) -> list[str]:
    """Restrict the files of a data file to their owner; return those where that was refused."""
    refused = []
    for each in _files(path):
        try:
            mode = os.lstat(each).st_mode
            if mode & _OTHERS and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                Path(each).chmod(stat.S_IMODE(mode) & ~_OTHERS)
        except FileNotFoundError:
            continue
        except OSError:
            refused.append(each)
    return refused


def give_to_owner(descriptor: int, folder: Path) -> None:
    """Let a file that root made in a folder be the folder's owner's, who has to read it too."""
    if os.geteuid() == 0:
        there = folder.stat()
        os.fchown(descriptor, there.st_uid, there.st_gid)


def _files(path: str) -> Iterator[str]:
    for suffix in _BESIDE:
        yield f"{path}{suffix}"
    with contextlib.suppress(OSError):
        yield from (str(each) for each in Path(f"{path}-locks").iterdir())
