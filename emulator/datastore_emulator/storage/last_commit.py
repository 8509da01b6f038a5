"""The last commit: notice if a data file or its log lacks commits or has been exchanged.

SQLite opens a data file without its log as an older state. It also skips the rest of a log after
the first damaged page, and applies any log that has the right name. Therefore a process notes each
of its commits in the file of `writer_lock`. It writes this note before it gives up the turn and
before it acknowledges the commit:

    <data>-turn    version, base, log, since, until (`Note`), and their CRC-32

A note is written after its commit is on disk, and is never synced. After a power loss, the note may
be old, torn or missing, but never names a commit that did not reach the disk. The data file itself,
without the log, contains `base`, because SQLite begins a new log only when the data file contains
everything in the former log. A file is refused only if its log is certainly missing, or certainly
belongs to a different file. In case of doubt, the file is opened, and the missing commits are
reported. The check changes no file, but may create an empty log. An ordinary connection would
change the data file, because closing the last connection merges the log into the file.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from datastore_emulator import errors

_FORM = struct.Struct("<QQ8sQQ")
SIZE = _FORM.size + 4  # Includes the CRC
NO_LOG = bytes(8)
_SALTS = 16  # Offset of the log's two random numbers (salts) in its header.
_WAIT = 20.0  # Seconds to wait for a lock.

_logger = logging.getLogger(__name__)


class Note(NamedTuple):
    """The last commit of a data file. Versions are commit times in microseconds.

    `log` identifies the log that contains `version`. `base` is the last version before that log, or
    0 if unknown. The commits after `since`, up to `until`, were lost and reported.
    """

    version: int
    base: int = 0
    log: bytes = NO_LOG
    since: int = 0
    until: int = 0

    def encode(self) -> bytes:
        body = _FORM.pack(*self)
        return body + zlib.crc32(body).to_bytes(4, "little")


class LostCommits(NamedTuple):
    """The commits after `since`, up to `until`, were acknowledged and are lost."""

    since: datetime
    until: datetime


def next_note(content: bytes, version: int, log: bytes) -> bytes:
    """Return the note of a commit in a log, given the previous content of the note file."""
    last = _decode(content)
    if last is None:
        return Note(version, 0, log).encode()
    base = last.base if log == last.log else last.version
    return last._replace(version=version, base=base, log=log).encode()


def log_of(path: str) -> bytes:
    """Return the salts of a data file's log, which identify the log, or `NO_LOG` without a log."""
    with contextlib.suppress(OSError):
        log = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(log, len(NO_LOG), _SALTS) or NO_LOG
        finally:
            os.close(log)
    return NO_LOG


def check(path: str) -> LostCommits | None:
    """Check a data file before it is opened; return the commits that are known to be lost.

    Raises:
        errors.FailedPrecondition: The log is missing, or belongs to a different state of the file.
    """
    note, log = _read_note(path), log_of(path)
    lost = _newly_lost(path, note, log)
    if lost is not None:
        _logger.error(
            "%s lacks the commits from %s to %s, which were acknowledged: its log was cut, or the "
            "file was replaced by an older one.", path, *_times(*lost)
        )  # fmt: skip
        # If the write is interrupted, there is no note, which is safe.
        with contextlib.suppress(OSError):
            Path(f"{path}-turn").write_bytes(Note(lost[0], 0, log, *lost).encode())
    elif note is not None and note.until:
        lost = (note.since, note.until)
    return None if lost is None else LostCommits(*map(_moment, lost))


def forget(path: str) -> None:
    """Forget the last commit before a different file becomes the data file."""
    with contextlib.suppress(OSError):
        os.truncate(f"{path}-turn", 0)


def seal(path: str) -> None:
    """Unless other processes use a closed data file, note that the file needs no log."""
    note = _read_note(path)
    if note is not None and log_of(path) == NO_LOG:
        with contextlib.suppress(OSError):
            sealed = note._replace(base=note.version, log=NO_LOG).encode()
            Path(f"{path}-turn").write_bytes(sealed)


def _newly_lost(path: str, note: Note | None, log: bytes) -> tuple[int, int] | None:
    """Return the versions between which commits are lost. The order of the reads matters.

    Other processes may commit between two reads, so a later read may find a newer state.
    """
    alone = _version(path, "mode=ro&immutable=1")  # The version in the file alone, ignoring the log
    whole = alone if log == NO_LOG else _version(path, "mode=ro")
    if not alone or whole is None:
        return None  # Wrong format, damaged or in use; opening the file reports which
    is_noted = note is not None and note.log == log != NO_LOG
    if whole < alone or (note is not None and is_noted and alone < note.base):
        raise errors.FailedPrecondition(
            f"{path}-wal was cut, or it and {path} are from different times. Opening them together "
            f"would damage the data. Put back the file that belongs to the other one, or restore a "
            f"backup. To go on with {path} alone, which has the commits until "
            f"{_times(alone)[0]}, remove {path}-wal and {path}-turn."
        )
    if note is None or whole >= note.version:
        return None
    if not is_noted and 0 < note.base <= alone and _needs_log(path):
        raise errors.FailedPrecondition(
            f"{path}-wal is missing or from another time, and with it the commits from "
            f"{_times(alone)[0]} to {_times(note.version)[0]}, which were acknowledged. Put the "
            "file back, or restore a backup. To go on without these commits, remove "
            f"{path}-turn, and {path}-wal if it exists."
        )
    return whole, note.version


def _needs_log(path: str) -> bool:
    """Return whether the data file has had a log since its creation; a backup has not."""
    return _answer(path, "mode=ro", "PRAGMA journal_mode") == "wal"


def _version(path: str, how: str) -> int | None:
    """Return the version of the last commit, 0 if it is damaged, or None if it cannot be read."""
    try:
        value = _answer(path, how, "SELECT version FROM engine_state")
    except (sqlite3.Error, UnicodeDecodeError) as fault:
        is_damaged = getattr(fault, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT
        return 0 if is_damaged else None
    return value if isinstance(value, int) else 0


def _answer(path: str, how: str, question: str) -> object:
    """Run a query on a connection that changes nothing."""
    address = f"{Path(path).absolute().as_uri()}?{how}"
    with contextlib.closing(sqlite3.connect(address, uri=True, timeout=_WAIT)) as connection:
        return next(connection.execute(question), (None,))[0]


def _read_note(path: str) -> Note | None:
    with contextlib.suppress(OSError):
        return _decode(Path(f"{path}-turn").read_bytes())
    return None


def _decode(content: bytes) -> Note | None:
    body, check = content[: _FORM.size], content[_FORM.size : SIZE]
    if zlib.crc32(body).to_bytes(4, "little") != check:
        return None
    return Note._make(_FORM.unpack(body))


def _moment(version: int) -> datetime:
    return datetime.fromtimestamp(version / 1e6, UTC)


def _times(*versions: int) -> list[str]:
    return [f"{_moment(version):%Y-%m-%d %H:%M:%S.%f} UTC" for version in versions]
