"""Make a backup of an embedded store while the service runs.

A backup is made in four steps, so readers and writers never wait for it:

1. Copy the last committed state of the data file. The copy is next to the data file, because SQLite
   cannot use every disk on which backups may be kept. If step 2 would change the format of the
   copy, step 2 uses a second copy, so that the older release can still restore the backup.
2. Open the copy as a service would: count the entities of each kind, read one entity of each kind,
   and check a sample of threads. Then check every page, entity and index entry of the copy.
3. Pack the copy into a partial file next to the target, and read that file back.
4. Give the partial file its name.

Invariant: Every post that was acknowledged before the backup was started is in the backup, and the
backup contains each commit completely or not at all
(test_store_backup.py::test_posts_acknowledged_before_a_backup_are_in_it_and_none_is_half).

Only a checked file gets the final name, and no file is ever overwritten.
"""

import contextlib
import itertools
import os
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from comments import config, errors
from comments.sites import site_settings
from comments.store import reads
from comments.store.models import comment_rows
from comments.upkeep import scheduler
from comments.upkeep.backups import backup_archive, engine_files, working_files
from comments.upkeep.integrity import repair
from comments.upkeep.migrations import store_format

_THREADS_CONSIDERED = 1000  # Maximum number of threads per site from which the sample is chosen
ENDING = ".tar.gz"
_SAMPLE = 5  # Number of threads per site in the sample.
_LONGEST = 2000  # Maximum number of comments; checking a longer thread would take seconds.


_UNFINISHED = "flatthread-backup"
_ADVICE = "Check the data file with `python -m emulator check` (docs/backups.md)."


class Backup(NamedTuple):
    """A backup that was made. `doubtful` names the threads of the sample that have problems."""

    path: Path
    size: int
    entities: int
    threads: int
    doubtful: tuple[str, ...]


class ThreadSample(NamedTuple):
    """The number of threads that were checked, and the names of those with problems."""

    checked: int
    doubtful: tuple[str, ...]


def make(
    settings: config.Settings, files: engine_files.EngineFiles, target: Path, *, now: datetime
) -> Backup:
    """Make a backup in a new file.

    Raises:
        errors.BackupFailed: the backup cannot be made because of the store or the backup's folder.
            No file with the final name exists.
    """
    check_target(target)
    with (
        _reporting_failures(target),
        working_files.working_file(settings.data_file, working_files.COPY) as copy,
        working_files.working_file(settings.data_file, working_files.COPY) as upgraded,
        # The copies are not named after the target, because its name contains the time. With a
        # constant name, a later backup finds and removes what a killed process has left.
        working_files.working_file(target.with_name(_UNFINISHED), working_files.PARTIAL) as partial,
    ):
        files.copy(settings.data_file, copy)
        if files.upgrade_of(copy):
            shutil.copyfile(copy, upgraded)
        kinds, sample = examine(settings, files, upgraded if upgraded.exists() else copy)
        digest = backup_archive.digest(copy)
        manifest = backup_archive.Manifest(
            backup_archive.FORMAT,
            now,
            backup_archive.secret_mark(settings.secret),
            digest.size,
            digest.sha256,
            kinds,
        )
        backup_archive.pack(copy, manifest, partial)
        if backup_archive.unpack(partial, None) != manifest:
            raise errors.BackupFailed(f"{partial} cannot be read back as it was written.")
        size = partial.stat().st_size
        _give_final_name(partial, target)
    return Backup(target, size, sum(kinds.values()), *sample)


def check_target(target: Path) -> None:
    """Refuse a path at which no new file can be created.

    Raises:
        errors.BackupFailed: the file exists, or its folder does not.
    """
    if not target.parent.is_dir():
        raise errors.BackupFailed(
            f"The folder {target.parent} does not exist. Create it, or mount its disk."
        )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise errors.BackupFailed(
            f"The folder {target.parent} is not writable. Make it writable for the service's user."
        )
    if os.path.lexists(target):
        raise errors.BackupFailed(f"{target} already exists. Name a new file.")


def examine(
    settings: config.Settings, files: engine_files.EngineFiles, path: Path
) -> tuple[dict[str, int], ThreadSample]:
    """Open a copy of a store and check it completely.

    Return the number of entities of each kind, and the result of checking a sample of threads.

    Raises:
        errors.BackupFailed: the copy is damaged, or a newer release wrote it.
    """
    try:
        files.upgrade_of(path)
        with files.open_store(path, settings) as store, store.context():
            store_format.read()
            kinds, sample = _count_kinds(), _check_thread_sample()
    except errors.Misconfigured as error:
        raise errors.BackupFailed(f"{path.name}: {error.message}.") from error
    except errors.Overloaded as error:
        raise errors.BackupFailed(f"The data cannot be read: {error.reason} {_ADVICE}") from error
    if problems := files.problems(path):
        raise errors.BackupFailed(f"The data is damaged: {problems[0]}. {_ADVICE}")
    return kinds, sample


def _count_kinds() -> dict[str, int]:
    """Count the entities of each kind, and read one entity of each kind."""
    counts = {}
    for row in reads.fetch(reads.Query("__kind__", keys_only=True)):
        kind = row.key.path[-1].name
        if kind.startswith("__"):
            continue
        counts[kind] = reads.count(reads.Query(kind))
        if counts[kind] and not list(reads.fetch(reads.Query(kind, limit=1))):
            raise errors.BackupFailed(f"The data is damaged: no entity of {kind} can be read.")
    return counts


def _check_thread_sample() -> ThreadSample:
    """Check a sample of each site's threads as `repair` does."""
    checked, doubtful = 0, []
    for site in site_settings.every_kept():
        known = list(itertools.islice(scheduler.threads(site.id), _THREADS_CONSIDERED))
        for name in random.sample(known, min(_SAMPLE, len(known))):
            key_name = comment_rows.thread_key(name).id()
            query = reads.Query("Comment", where=(("thread", "=", key_name),), limit=_LONGEST + 1)
            if reads.count(query) > _LONGEST:
                continue
            checked += 1
            if repair.find_problems(site_settings.scheme_of(site.id), name):
                doubtful.append(f"{name.site} {name.id}")
    return ThreadSample(checked, tuple(doubtful))


@contextlib.contextmanager
def _reporting_failures(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise errors.BackupFailed(f"{target} cannot be written: {error.strerror}.") from error


def _give_final_name(partial: Path, target: Path) -> None:
    """Give a finished file its final name, unless another file has this name by now."""
    try:
        target.hardlink_to(partial)
    except FileExistsError:
        raise errors.BackupFailed(f"{target} already exists. Name a new file.") from None
    except OSError:  # Some network disks do not support links
        partial.rename(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def file_name(now: datetime, kind: str = "") -> str:
    """Return the name of a backup's file, which contains the time in UTC."""
    return f"flatthread-{kind}{now.astimezone(UTC):%Y%m%d-%H%M%S}{ENDING}"
