"""Maintenance: backup, restore and compaction of a data file.

Owns operations on whole files: copying a file while engines write to it, replacing a file and
shrinking a file.

Invariant: A restored file never allocates an id that was allocated after the backup
(test_maintenance.py::test_ids_handed_out_after_the_backup_are_not_reused_after_the_restore).

The counter of ids advances by one for each microsecond since the backup, which is more than the
number of ids that can have been allocated. A copy is written under a temporary name, checked and
synced. Only then does it get its final name, in a single step. A file that is in use is never
overwritten.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from datastore_emulator import errors
from datastore_emulator.storage import (
    data_file,
    history,
    index_writer,
    last_commit,
    row_writer,
    write_ahead_log,
    writer_lock,
)

_DURABLE = data_file.Durability.DURABLE
_BESIDE = ("-wal", "-shm", "-journal")  # The files that SQLite keeps next to a data file


class Copied(NamedTuple):
    """A file that a backup or restore wrote."""

    path: str
    entities: int
    size: int

    def __str__(self) -> str:
        return f"{self.path}: {self.entities} entities, {self.size} bytes"


class Compacted(NamedTuple):
    """The size in bytes of a file and its log, before and after a compaction."""

    path: str
    before: int
    after: int
    is_log_empty: bool

    def __str__(self) -> str:
        text = f"{self.path}: {self.before} bytes before, {self.after} bytes after"
        if self.is_log_empty:
            return text
        return f"{text}; its log is in use and will be emptied later"


def backup(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> Copied:
    """Copy a consistent snapshot of a data file while engines read and write it.

    Raises:
        errors.AlreadyExists: The target exists.
        errors.FailedPrecondition: The data file is missing, belongs to another program or is too
            new.
        errors.Damaged: The data file is damaged. Nothing is written.
    """
    source, final = os.fspath(path), os.fspath(target)
    check_is_free(final)
    with _partial(final) as partial:
        _copy(source, partial)
        copied = Copied(final, seal(partial), Path(partial).stat().st_size)
        _name(partial, final)
    return copied


def restore(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    now: int,
    replace: bool = False,
) -> Copied:
    """Create a data file from a backup, or replace an existing one; `now` is in microseconds.

    The restored file refuses reads at moments before `now`, because it lacks the history of that
    time.

    Raises:
        errors.AlreadyExists: The data file exists and `replace` is false.
        errors.Unavailable: The data file to replace is in use.
        errors.FailedPrecondition: The backup is missing, damaged, too new or from another program.
    """
    final = os.fspath(path)
    if not replace:
        check_is_free(final)
    with _partial(final) as partial:
        _copy(os.fspath(source), partial)
        return install(partial, final, now=now)


def install(
    new: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    now: int,
    kept: str | os.PathLike[str] | None = None,
) -> Copied:
    """Turn a copy in the same folder into the data file, like `restore` but without a second copy.

    The replaced data file gets the name `kept`; if `kept` is None, the replaced file is removed.

    Raises:
        errors.AlreadyExists: `kept` exists.
        errors.Unavailable: The data file to replace is in use.
        errors.FailedPrecondition: The copy is missing, damaged, too new or from a different
        program.
    """
    partial, final = os.fspath(new), os.fspath(path)
    if kept is not None:
        check_is_free(os.fspath(kept))
    with _requiring_file(partial), _naming(final):
        data_file.prepare(partial, _DURABLE, lambda: now)
        _renew(partial, now)
        copied = Copied(final, seal(partial), Path(partial).stat().st_size)
        if not Path(final).exists():
            last_commit.forget(final)
            _remove_beside(final)
            _name(partial, final)
            return copied
        with _retiring(final, None if kept is None else os.fspath(kept)):
            last_commit.forget(final)
            Path(partial).replace(final)
            data_file.sync_folder(final)
    return copied


def compact(path: str | os.PathLike[str], *, now: int) -> Compacted:
    """Release the disk space of deleted data, and delete history older than an hour.

    If the file makes built-in indexes on demand, those that no query has asked for are dropped.
    Engines may keep the file open and read from it; their writes wait. Compaction needs as much
    free disk space as the file occupies.
    """
    name = os.fspath(path)
    before = _size(name)
    with _requiring_file(name), data_file.translating_at_opening(name):
        last_commit.check(name)
        data_file.prepare(name, _DURABLE, lambda: now)
        with (
            writer_lock.holding(name),
            contextlib.closing(data_file.connect(name, _DURABLE)) as connection,
        ):
            connection.execute("BEGIN IMMEDIATE")
            row_writer.forget_history(connection, now - history.MAX_AGE * 1_000_000)
            index_writer.drop_unasked(connection)
            connection.execute("COMMIT")
            connection.execute("VACUUM")
        log = write_ahead_log.WriteAheadLog(
            name, lambda wait: data_file.connect(name, _DURABLE, wait=wait)
        )
        is_empty = log.empty(data_file.BUSY_SECONDS)
    return Compacted(name, before, _size(name), is_empty)


def seal(path: str | os.PathLike[str]) -> int:
    """Check a copy, write it to disk as one file without a log, and count its entities.

    Raises:
        errors.Damaged: The copy is damaged.
    """
    name = os.fspath(path)
    with (
        data_file.translating_at_opening(name),
        contextlib.closing(data_file.connect(name, _DURABLE)) as connection,
    ):
        result = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if result != "ok":
            raise errors.Damaged(f"The data file is damaged: {result}")
        connection.execute("PRAGMA journal_mode = DELETE")
        entities: int = connection.execute("SELECT count(*) FROM entities").fetchone()[0]
    descriptor = os.open(name, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return entities


def check_is_unused(path: str | os.PathLike[str]) -> None:
    """Refuse a data file that is in use. A missing or damaged file is not in use.

    Raises:
        errors.Unavailable: A process has opened the file.
    """
    name = os.fspath(path)
    try:
        if Path(name).exists():
            with _exclusive(name):
                pass
    except sqlite3.Error as fault:
        if not isinstance(data_file.refusal(fault), errors.Damaged):
            raise errors.Unavailable(f"{name} is in use: {fault}.") from fault


def check_is_free(path: str) -> None:
    """Refuse a path at which no new file can be created.

    Raises:
        errors.AlreadyExists: The path exists.
        errors.FailedPrecondition: The path's folder does not exist.
    """
    if os.path.lexists(path):
        raise errors.AlreadyExists(f"{path} already exists.")
    if not Path(path).parent.is_dir():
        raise errors.FailedPrecondition(f"The folder of {path} does not exist.")


@contextlib.contextmanager
def _requiring_file(path: str) -> Iterator[None]:
    """Refuse a path without a file, because SQLite would create one."""
    if not Path(path).is_file():
        raise errors.FailedPrecondition(f"There is no data file {path}.")
    yield


@contextlib.contextmanager
def _partial(final: str) -> Iterator[str]:
    """Yield an unused name in the same folder, and remove all files with that name at the end."""
    partial = f"{final}.{os.getpid()}-{os.urandom(4).hex()}.partial"
    try:
        with _naming(final):
            yield partial
    finally:
        Path(partial).unlink(missing_ok=True)
        _remove_beside(partial)


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Report errors of the operating system as refusals that name a file."""
    try:
        yield
    except OSError as error:
        raise errors.FailedPrecondition(f"{path}: {error}") from error


def _copy(source: str, target: str) -> None:
    """Copy a file's last committed state in one step, so that a write never restarts the copy."""
    last_commit.check(source)
    with (
        _requiring_file(source),
        data_file.translating_at_opening(source),
        contextlib.closing(data_file.connect(source, _DURABLE)) as giver,
    ):
        if not data_file.read_format(giver, source):
            raise errors.FailedPrecondition(f"{source} is empty.")
        with (
            data_file.translating_at_opening(target),
            contextlib.closing(data_file.connect(target, _DURABLE)) as taker,
        ):
            giver.backup(taker, pages=-1)


def _renew(path: str, now: int) -> None:
    """Skip all ids and versions that may have been used since the backup."""
    with contextlib.closing(data_file.connect(path, _DURABLE)) as connection:
        connection.execute(
            "UPDATE engine_state SET next_id = next_id + max(0, ? - version), "
            "version = max(version, ?), kept_since = max(version, ?)",
            (now, now, now),
        )


def _name(partial: str, final: str) -> None:
    """Give a finished file its final name, unless another file has taken the name since."""
    try:
        os.link(partial, final)
    except FileExistsError:
        check_is_free(final)
    data_file.sync_folder(final)


@contextlib.contextmanager
def _retiring(path: str, kept: str | None) -> Iterator[None]:
    """Merge an unused data file's log into it, lock it exclusively, and also name it `kept`.

    The log must not outlive the file, because SQLite would apply it to the replacement file.
    """
    try:
        with _exclusive(path):
            _keep(path, kept)
            yield
    except sqlite3.Error as fault:
        known = data_file.refusal(fault)
        if not isinstance(known, errors.Damaged):
            raise errors.Unavailable(f"{path} is in use: {fault}.") from fault
        # Accept a damaged file, because backups exist to replace it.
        _keep(path, kept)
        _remove_beside(path)
        yield


@contextlib.contextmanager
def _exclusive(path: str) -> Iterator[None]:
    connection = data_file.connect(path, _DURABLE, wait=0)
    with contextlib.closing(connection):
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        yield


def _keep(path: str, kept: str | None) -> None:
    """Give a file a second name, which remains after the file is replaced."""
    if kept is not None:
        os.link(path, kept)


def _remove_beside(path: str) -> None:
    for ending in _BESIDE:
        Path(path + ending).unlink(missing_ok=True)


def _size(path: str) -> int:
    files = [Path(path), *(Path(path + ending) for ending in _BESIDE)]
    return sum(file.stat().st_size for file in files if file.exists())
