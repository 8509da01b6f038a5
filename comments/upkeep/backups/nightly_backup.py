"""Make nightly backups: decide whether one is due, make it, and remove old ones.

    BACKUP_DIR/flatthread-nightly-20260102-030000.tar.gz
    FLATTHREAD_DATA/backup.lock    locked by the process that makes a nightly backup
    FLATTHREAD_DATA/backup.json    a `Record`

A backup is due if none was made since the time of day `BACKUP_AT` last passed. A service that was
not running at that time makes the backup when it starts.

A process makes a nightly backup only while it holds a lock, so no two processes make one. The
kernel releases the lock when its process ends. A failed backup is logged and retried after `RETRY`;
owners see the failure until a backup succeeds. The serving processes only read the record. Only
`make` reads the folder of the backups, which may be on a network disk that does not respond.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from comments import config, errors
from comments.domain import decoders
from comments.upkeep.backups import engine_files, store_backup

RETRY = timedelta(hours=1)
LATE = timedelta(hours=3)  # How long after `BACKUP_AT` a missing backup counts as overdue.
_KIND = "nightly-"
_NAME = re.compile(r"flatthread-nightly-(\d{8}-\d{6})\.tar\.gz", re.ASCII)
_TIME = "%Y%m%d-%H%M%S"
_LOCK, _RECORD = "backup.lock", "backup.json"
_LARGEST = 65_536  # Maximum size of a record in bytes.


class Record(msgspec.Struct, frozen=True):
    """What is known about the nightly backups in a folder.

    `last` is the time of the last backup. If the last attempt failed, `failed` is its time and
    `reason` says why it failed.
    """

    folder: str
    last: datetime | None = None
    failed: datetime | None = None
    reason: str = ""


class NightlyState(NamedTuple):
    """The record of the nightly backups, and whether a newer backup should exist."""

    record: Record
    is_overdue: bool


def is_due(settings: config.Settings, *, now: datetime) -> bool:
    """Return whether a nightly backup should be started now."""
    record = _record(settings)
    if record is None or (record.failed and record.failed <= now < record.failed + RETRY):
        return False
    return _is_missing(record.last, settings, now)


def state(settings: config.Settings, *, now: datetime) -> NightlyState | None:
    """Return the state of nightly backups; None if the service is not configured to make any."""
    record = _record(settings)
    if record is None:
        return None
    return NightlyState(record, _is_missing(record.last, settings, now - LATE))


def make(
    settings: config.Settings, files: engine_files.EngineFiles, *, now: datetime
) -> store_backup.Backup | None:
    """Make the nightly backup if it is due and no other process makes it; remove old ones.

    Raises:
        errors.BackupFailed: the backup could not be made. The old backups remain.
    """
    if settings.backup_dir is None:
        raise errors.BackupFailed("Set BACKUP_DIR to the folder for nightly backups.")
    with _lock(settings) as is_ours:
        if not is_ours or not is_due(settings, now=now):
            return None
        record = Record(str(settings.backup_dir))
        try:
            if (last := _last(settings.backup_dir, now)) and not _is_missing(last, settings, now):
                _note(settings, msgspec.structs.replace(record, last=last))
                return None
            target = settings.backup_dir / store_backup.file_name(now, _KIND)
            made = store_backup.make(settings, files, target, now=now)
        except errors.BackupFailed as error:
            known = _record(settings) or record
            _note(settings, msgspec.structs.replace(known, failed=now, reason=error.message))
            raise
        _note(settings, msgspec.structs.replace(record, last=now))
        _remove_old(settings.backup_dir, settings.backup_keep, now)
    return made


@contextlib.contextmanager
def _lock(settings: config.Settings) -> Iterator[bool]:
    descriptor = os.open(settings.data_dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


def _is_missing(last: datetime | None, settings: config.Settings, now: datetime) -> bool:
    """Return whether no backup was made since the time of day `BACKUP_AT` last passed."""
    today = datetime.combine(now.astimezone(UTC).date(), settings.backup_at, UTC)
    since = today if today <= now else today - timedelta(days=1)
    return last is None or last < since


def _nightly_backups(folder: Path, now: datetime) -> list[tuple[datetime, Path]]:
    """List the nightly backups, oldest first, without those dated in the future."""
    dated_paths = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            named = _NAME.fullmatch(path.name)
            with contextlib.suppress(ValueError):
                made = named and datetime.strptime(named[1], _TIME).replace(tzinfo=UTC)
                if made and made <= now:
                    dated_paths.append((made, path))
    return sorted(dated_paths)


def _last(folder: Path, now: datetime) -> datetime | None:
    made = _nightly_backups(folder, now)
    return made[-1][0] if made else None


def _remove_old(folder: Path, keep: int, now: datetime) -> None:
    for _, path in _nightly_backups(folder, now)[:-keep]:
        path.unlink(missing_ok=True)


def _record(settings: config.Settings) -> Record | None:
    """Return the record in the configured folder; None if the service makes no backups."""
    if settings.backup_dir is None or settings.datastore != "embedded":
        return None
    empty = Record(str(settings.backup_dir))
    with contextlib.suppress(OSError, msgspec.DecodeError):
        with (settings.data_dir / _RECORD).open("rb") as file:
            record = _RECORDS.decode(file.read(_LARGEST))
        return record if record.folder == empty.folder else empty
    return empty


def _note(settings: config.Settings, record: Record) -> None:
    own = settings.data_dir / f"{_RECORD}.{os.getpid()}"
    with contextlib.suppress(OSError):  # If the disk is full, the log at least says so
        own.write_bytes(msgspec.json.encode(record))
        own.replace(settings.data_dir / _RECORD)


_RECORDS = decoders.json(Record)
