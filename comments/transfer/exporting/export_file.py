"""Write a file that gets its name only when it is complete, even if the process is killed.

The data is written to a temporary file in the same folder, named ".NAME.part", which is
synchronized with the disk and then renamed. If the process is killed, only the temporary file
remains, and the next export to the same name overwrites it.

Only the owner of the file may read it, because an export contains comments that readers do not see.
In a folder that others can write to, a temporary file that somebody else created is refused.
"""

import contextlib
import fcntl
import gzip
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from comments import errors

Output = IO[bytes] | gzip.GzipFile

_GZIP = ".gz"
_LEVEL = 6


@contextlib.contextmanager
def create(path: Path) -> Iterator[Output]:
    """Open a file for writing; the file gets its name if the `with` block ends without an error.

    If the name ends in ".gz", the file is compressed with gzip.

    Raises:
        errors.ExportFailed: the file cannot be written, or another process is writing it.
    """
    part = path.with_name(f".{path.name}.part")
    if path.exists() and not path.is_file():  # A rename would replace a device like /dev/null
        raise errors.ExportFailed(str(path), "this is not a regular file")
    try:
        with _open_locked(part) as raw:
            try:
                with _packing(raw, is_gzip=path.name.endswith(_GZIP)) as file:
                    yield file
                raw.flush()
                os.fsync(raw.fileno())
                part.replace(path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        _synchronize(path.parent)
    except OSError as error:
        raise errors.ExportFailed(str(path), error.strerror or str(error)) from error


@contextlib.contextmanager
def _packing(raw: IO[bytes], *, is_gzip: bool) -> Iterator[Output]:
    """Compress what is written with gzip, or pass it on unchanged."""
    if not is_gzip:
        yield raw
        return
    # Without a name and a time in gzip's header, equal contents make equal files.
    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=_LEVEL, mtime=0) as file:
        yield file


@contextlib.contextmanager
def _open_locked(part: Path) -> Iterator[IO[bytes]]:
    """Open the temporary file, and lock it until it is closed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(part, flags, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - it is open already
        _check_is_own(part, descriptor)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            reason = "another process is writing this file"
            raise errors.ExportFailed(str(part), reason) from error
        file.truncate()
        yield file


def _check_is_own(part: Path, descriptor: int) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink != 1:
        raise errors.ExportFailed(str(part), "somebody else has made this file; remove it")
    os.fchmod(descriptor, 0o600)


def _synchronize(folder: Path) -> None:
    """Write a folder's entries to the disk, so that the new file name survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
