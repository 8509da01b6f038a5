"""Replace an embedded store with a backup.

A restore unpacks and checks the whole backup next to the data file before anything is changed. The
restore opens the unpacked store, which upgrades it if an older release wrote it. The restore then
repeats deletions (`repeated_deletions`), ends all sessions, because some of them ended after the
backup, and holds the pending messages (`held_messages`). Finally, the engine replaces the data file
with the new one in a single step.

Invariant: If the restore is killed at any moment, either the old store or the new one remains
(test_store_restore.py::test_a_killed_restore_leaves_the_old_store_or_the_new_one).

A restore is refused if the backup is damaged or was made with another secret, or if the store is in
use. The replaced store is kept under the name `flatthread.db.replaced-TIME`.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from comments import config, errors
from comments.accounts import sessions
from comments.store import connection
from comments.upkeep.backups import (
    backup_archive,
    engine_files,
    held_messages,
    repeated_deletions,
    store_backup,
    working_files,
)


class Restored(NamedTuple):
    """The result of a restore.

    `kept` is the path of the replaced store; None if there was no store. `repeated` is None if the
    replaced store was missing or damaged. `held` is the number of messages that are now held.
    """

    manifest: backup_archive.Manifest
    kept: Path | None
    repeated: repeated_deletions.RepeatedDeletions | None
    held: int


def restore(
    source: Path,
    settings: config.Settings,
    files: engine_files.EngineFiles,
    *,
    now: datetime,
    accepts_other_secret: bool = False,
) -> Restored:
    """Replace the store with a backup.

    With `accepts_other_secret`, a backup that was made with another, lost secret is accepted.

    Raises:
        errors.BackupFailed: the backup cannot be restored. Nothing was changed.
    """
    data = settings.data_file
    kept = data.with_name(f"{data.name}.replaced-{now.astimezone(UTC):%Y%m%d-%H%M%S-%f}")
    with working_files.working_file(data, working_files.RESTORING) as staged:
        try:
            manifest = backup_archive.unpack(source, staged)
        except OSError as error:
            raise errors.BackupFailed(f"{source} cannot be unpacked: {error.strerror}.") from error
        if not accepts_other_secret:
            _check_secret(source, manifest, settings)
        files.check_is_unused(data)
        _check_content(source, manifest, settings, files, staged)
        with files.open_store(staged, settings) as store:
            repeated = _repeat_deletions(files, settings, store, now)
            with store.context():
                sessions.end_all()
                held = held_messages.hold(settings, now=now)
        had_store = data.exists()
        files.install(staged, data, kept=kept)
    return Restored(manifest, kept if had_store else None, repeated, held)


def _check_secret(
    source: Path, manifest: backup_archive.Manifest, settings: config.Settings
) -> None:
    place = settings.data_dir / "secret"
    if not settings.secret:
        raise errors.BackupFailed(
            f"There is no secret. Copy the secret that belongs to the backup to {place}, or set "
            "SECRET, and run this command again. If it is lost, use --lost-secret."
        )
    if not backup_archive.has_secret(manifest, settings.secret):
        raise errors.BackupFailed(
            f"{source} was made with a different secret. Copy the secret that belongs to it to "
            f"{place}, or set SECRET or SECRET_OLD. If it is lost, use --lost-secret: everyone is "
            "then signed out, and encrypted addresses cannot be read."
        )


def _check_content(
    source: Path,
    manifest: backup_archive.Manifest,
    settings: config.Settings,
    files: engine_files.EngineFiles,
    staged: Path,
) -> None:
    kinds, _ = store_backup.examine(settings, files, staged)
    wrong = {kind for kind in kinds | manifest.kinds if kinds.get(kind) != manifest.kinds.get(kind)}
    if wrong:
        kind = min(wrong)
        raise errors.BackupFailed(
            f"{source} describes {manifest.kinds.get(kind, 0)} entities of {kind}, but "
            f"{kinds.get(kind, 0)} were found. Set DATASTORE_PROJECT_ID, DATASTORE_DATABASE and "
            "DATASTORE_NAMESPACE as they were when the backup was made."
        )


def _repeat_deletions(
    files: engine_files.EngineFiles,
    settings: config.Settings,
    restored: connection.Store,
    now: datetime,
) -> repeated_deletions.RepeatedDeletions | None:
    if not settings.data_file.exists():
        return None
    try:
        with files.open_store(settings.data_file, settings) as replaced:
            return repeated_deletions.repeat(replaced, restored, now=now)
    except (errors.BackupFailed, errors.Overloaded):  # The store is damaged; the backup replaces it
        return None
