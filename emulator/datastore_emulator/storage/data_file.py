"""Opening, creating and checking the data file.

Owns the connection settings, the creation and upgrade of files, and the conversion of SQLite's
errors to the engine's errors. Opening refuses a file of a different program, a file with a newer
format, and a file with obvious damage; the error names the file. Other damage is found when a
damaged row is read, or by `inspection`. A full check at every opening would cost as much as reading
the whole file.

Invariant: In durable mode, a commit is on disk before it is acknowledged, which WAL mode with
synchronous=FULL guarantees
(test_power_loss.py::test_a_power_loss_at_any_moment_loses_no_acknowledged_commit).

Durable mode also syncs the log before each checkpoint and the file after each checkpoint. The
folder of a new file is synced too. The creation or upgrade of a file is one SQLite transaction, so
killing the process midway leaves the file unchanged. Only SQLite opens the file, because closing
any other descriptor of the file would drop this process's locks on it.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import random
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from datastore_emulator import errors
from datastore_emulator.storage import file_permissions, old_byte_strings, schema

APPLICATION = 0x46744453  # The characters "FtDS".
BUSY_SECONDS = 20.0  # Shorter than client deadlines, so that clients get an answer.
_CACHE_KIB = 8192
_WAL_BYTES = 64 * 1024 * 1024  # A larger log is truncated to this size


class Durability(enum.StrEnum):
    """The failures that an acknowledged commit survives."""

    DURABLE = "durable"  # A crash of the process or the machine, or a power loss.
    FAST = "fast"  # Only a crash of the process; a power loss can lose or damage the file.


_SYNCHRONOUS = {Durability.DURABLE: "FULL", Durability.FAST: "OFF"}


def connect(
    path: str, durability: Durability, *, cache_kib: int = _CACHE_KIB, wait: float | None = None
) -> sqlite3.Connection:
    """Open a connection that waits up to `wait` seconds (default `BUSY_SECONDS`) for a lock."""
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS if wait is None else wait,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=64,
    )
    try:
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        connection.execute("PRAGMA fullfsync = 1")  # On macOS, fsync alone is not enough
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        connection.execute("PRAGMA secure_delete = ON")  # Overwrite deleted data with zeros.
    except BaseException:  # The first PRAGMA already reads the file and can fail.
        connection.close()
        raise
    return connection


def prepare(path: str, durability: Durability, now: Callable[[], int]) -> None:
    """Create the file or upgrade it to this engine's format.

    Raises:
        errors.FailedPrecondition: The file cannot be opened, belongs to another program or is too
            new.
        errors.Damaged: The file is damaged.
        errors.Unavailable: Another process holds an exclusive lock on the file.
    """
    with translating_at_opening(path):
        while True:
            before = _inode(path)
            file_permissions.create(path)
            with contextlib.closing(connect(path, durability)) as connection:
                current = read_format(connection, path)
                if current:
                    _refuse_torn_end(connection, path)
                # Use the connection only if no restore replaced the file while this process waited
                # for the lock.
                if before in (None, _inode(path)):
                    _prepare(connection, path, now, current)
                    break
        if before is None and durability is Durability.DURABLE:
            sync_folder(path)


def _refuse_torn_end(connection: sqlite3.Connection, path: str) -> None:
    """Refuse a file whose last page is incomplete: SQLite would read the missing part as zeros.

    After a power loss during a checkpoint, a file with a log may end with an incomplete page. That
    page is still complete in the log.
    """
    page: int = connection.execute("PRAGMA page_size").fetchone()[0]
    if _size(path) % page and not _size(f"{path}-wal"):
        raise errors.Damaged(f"{path} is damaged: its last page is incomplete.")


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


def _prepare(
    connection: sqlite3.Connection, path: str, now: Callable[[], int], current: int
) -> None:
    if _with_log(connection) != "wal":
        raise errors.FailedPrecondition(
            f"SQLite cannot keep a write-ahead log next to {path}. Move the file to another disk."
        )
    if current == schema.FORMAT:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        current = read_format(connection, path)  # Another process may have prepared the file
        if not current:
            schema.create(connection, now(), int.from_bytes(os.urandom(7), "big"))
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
        elif current < schema.FORMAT:
            schema.upgrade(connection, current)
            if current < schema.BYTE_STRINGS_FORMAT:
                old_byte_strings.rewrite(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.rollback()


def _with_log(connection: sqlite3.Connection) -> str:
    """Switch the file to WAL mode, which persists in the file, and return its journal mode.

    A new or copied file is not in WAL mode yet. The switch requires exclusive access to the file.
    If another process is switching or writing at that moment, SQLite refuses immediately, because
    SQLite never waits for a second lock while it already holds a lock. This function then tries
    again.
    """
    until = time.monotonic() + BUSY_SECONDS
    mode = ""
    while not mode:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as fault:
            is_busy = fault.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > until:
                raise
            time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - avoid another collision
    return mode


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Move the log into the file and truncate the log; return False if other connections use it."""
    connection.execute("PRAGMA busy_timeout = 0")  # A checkpoint is not worth waiting for
    try:
        busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError:
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    return not busy


def read_format(connection: sqlite3.Connection, path: str) -> int:
    """Return a file's format, or 0 for an empty file; refuse unreadable formats."""
    with _one_view(connection):  # Another process may be creating the file
        number: int = connection.execute("PRAGMA user_version").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        is_empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if not number and is_empty:
        return 0
    if application != APPLICATION:
        raise errors.FailedPrecondition(
            f"{path} is another program's database (application id {application:#x}, "
            f"format {number})."
        )
    if not 0 < number <= schema.FORMAT:
        raise errors.FailedPrecondition(
            f"{path} has format {number}; this engine reads formats 1 to {schema.FORMAT}. Open it "
            "with a newer engine."
        )
    return number


@contextlib.contextmanager
def _one_view(connection: sqlite3.Connection) -> Iterator[None]:
    """Make several statements see the same state of the file."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.rollback()


def _inode(path: str) -> int | None:
    try:
        return Path(path).stat().st_ino
    except FileNotFoundError:
        return None


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Sync a file's folder, because syncing only the file does not put its name on disk."""
    folder = os.open(Path(path).absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# For each SQLite error code, the error to raise and the text before SQLite's own message.
_UNAVAILABLE = (errors.Unavailable, "The data file is busy")
_FULL = (errors.DiskFull, "The disk is full, so the data file cannot grow")
_DAMAGED = (errors.Damaged, "The data file is damaged")
_CLOSED = (errors.Unwritable, "The data file cannot be opened or written")
_NO_MEMORY = (errors.ResourceExhausted, "The machine has no memory left")
_REFUSALS = {
    sqlite3.SQLITE_BUSY: _UNAVAILABLE,
    sqlite3.SQLITE_LOCKED: _UNAVAILABLE,
    sqlite3.SQLITE_PROTOCOL: _UNAVAILABLE,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_NOMEM: _NO_MEMORY,
    sqlite3.SQLITE_IOERR_NOMEM: _NO_MEMORY,
    # The log's index is a separate file, and SQLite reports a failure to grow it with a separate
    # code.
    sqlite3.SQLITE_IOERR_SHMSIZE: _FULL,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_READONLY: _CLOSED,
    sqlite3.SQLITE_CANTOPEN: _CLOSED,
    sqlite3.SQLITE_PERM: _CLOSED,
    sqlite3.SQLITE_IOERR: (errors.Unwritable, "The data file cannot be read or written"),
}
# The errors to raise for the other files next to the data file, by errno. Any other errno means
# Unwritable.
_FILE_REFUSALS: dict[int | None, type[errors.DatastoreError]] = {
    errno.ENOSPC: errors.DiskFull,
    errno.EDQUOT: errors.DiskFull,
    errno.EMFILE: errors.Unavailable,
    errno.ENFILE: errors.Unavailable,
    errno.ENOMEM: errors.Unavailable,
}


def refusal(fault: BaseException) -> errors.DatastoreError | None:
    """Return the error to raise for a file or machine fault, or None for other faults."""
    if isinstance(fault, UnicodeDecodeError):
        # Stored text is UTF-8, but damaged text may not be. SQLite quotes the damaged text in its
        # message, and the message then cannot be decoded.
        return errors.Damaged(f"The data file is damaged: {fault}.")
    code = getattr(fault, "sqlite_errorcode", None)
    if code is None:
        return None
    known = _REFUSALS.get(code) or _REFUSALS.get(code & 0xFF)
    if known is None:
        return None
    kind, text = known
    if code == sqlite3.SQLITE_CANTOPEN and _are_files_used_up():
        kind, text = errors.Unavailable, "Too many files are open"
    return kind(f"{text}: {fault}.")


def file_refusal(what: str, error: OSError) -> errors.DatastoreError:
    """Return the error to raise for a fault in one of the files next to the data file."""
    return _FILE_REFUSALS.get(error.errno, errors.Unwritable)(f"{what}: {error}")


def _are_files_used_up() -> bool:
    """Return whether this process cannot open any file; SQLite does not report that reason."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return True
    return False


class _Translating:
    """A context manager that converts SQLite's errors to the engine's errors.

    The context manager is stateless, so one instance suffices.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: object, fault: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(fault, (sqlite3.Error, UnicodeDecodeError)):
            known = refusal(fault)
            if known is not None:
                raise known from fault


translating = _Translating()


def _reason(path: str, fault: Exception) -> str:
    """Return why a file cannot be opened, because SQLite does not report the reason."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"There is no folder {folder}."
    return str(fault) if os.access(folder, os.W_OK) else f"The folder {folder} is not writable."


# The exceptions that reading a damaged row can raise, for example because of a NULL in place of
# bytes. SQLite stores the type of each value in the row, and has no checksums that would reveal the
# damage.
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)


@contextlib.contextmanager
def translating_at_opening(path: str) -> Iterator[None]:
    """Convert errors, name the file, and use FAILED_PRECONDITION if a retry cannot help."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as fault:
        known = refusal(fault)
        code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
        if known is None or _REFUSALS.get(code) is _CLOSED:
            raise errors.FailedPrecondition(f"{path}: {_reason(path, fault)}") from fault
        raise type(known)(f"{path}: {known.message}") from fault
    except (errors.Damaged, errors.ResourceExhausted, errors.Unavailable) as known:
        # An inner block has converted this error, but that block does not know the file's name.
        if path in known.message:
            raise
        raise type(known)(f"{path}: {known.message}") from known
    except MALFORMED as fault:
        raise errors.Damaged(f"{path}: The data file is damaged: {fault!r}.") from fault
