"""Upgrade a store when a new release opens it for the first time, after a backup.

    back_up(settings, files, change, now=now)   before the engine changes the data file's format
    begin(settings, files, now=now)             at the start of a service, and by `upgrade`

While requests are served, the scheduler then runs the scans (`migrations.upgrades`).

An embedded store is backed up in the state in which the older release left it, before the new
release changes anything. If an upgrade is killed at any moment, the next start continues it. The
next start may make another backup.
"""

import logging
from datetime import datetime
from pathlib import Path

import flatthread
from comments import config, errors
from comments.upkeep.backups import engine_files, store_backup
from comments.upkeep.migrations import upgrades

_log = logging.getLogger("flatthread")


def begin(
    settings: config.Settings, files: engine_files.EngineFiles | None, *, now: datetime
) -> None:
    """Begin the new scans of this release, if any; with `files`, make a backup first.

    Raises:
        errors.Misconfigured: the backup cannot be made. Nothing was changed.
    """
    if not upgrades.has_new():
        return
    if pending := upgrades.pending_scans():
        scans = ", ".join(f"{scan.purpose} ({scan.rows} rows)" for scan in pending)
        if files is not None:
            back_up(settings, files, scans, now=now)
        _log.info("Flatthread %s upgrades the store: %s.", flatthread.__version__, scans)
    upgrades.begin()


def back_up(
    settings: config.Settings, files: engine_files.EngineFiles, change: str, *, now: datetime
) -> Path:
    """Make the backup before an upgrade, in BACKUP_DIR; without one, in the data folder.

    Raises:
        errors.Misconfigured: the backup cannot be made.
    """
    release = flatthread.__version__
    folder = settings.backup_dir or settings.data_dir
    target = folder / store_backup.file_name(now, f"before-{release}-")
    if target.exists():  # A start that was killed completed this backup within the same second
        return target
    try:
        made = store_backup.make(settings, files, target, now=now)
    except errors.BackupFailed as error:
        raise errors.Misconfigured(
            f"Flatthread {release} upgrades the store ({change}), but no backup can be made "
            f"first: {error.message} Nothing was changed. If you have a backup, run "
            "`flatthread upgrade --no-backup`"
        ) from error
    _log.info("Flatthread %s upgrades the store (%s). Backup: %s", release, change, made.path)
    return made.path
