"""The data file as a file: opening it, making it, and what is wrong with it.

Owns what a connection is set to, the creation and the upgrade of a file, and what SQLite's errors
mean to a caller. A file that is not the engine's, is damaged where it shows, or is of a newer
format is refused by its name. Damage further in shows when it is read, or to `inspection`:
looking for it at every open would cost as much as reading everything.

What must stay true: creation and upgrade are one SQLite transaction each, so a kill in the middle
leaves the file as it was. Durable means that a commit is on disk before it is acknowledged: WAL
with synchronous=FULL, which also syncs the log before and the file after each checkpoint; and the
folder of a new file is synced. The file is never opened but through SQLite: closing any other
descriptor of it would drop the locks that this process holds on it.
"""

from __future__ import annotations

import contextlib
import enum
import os
import random
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from emulator import errors
from emulator.storage import file_permissions, schema

APPLICATION = 0x46744453  # "FtDS"
BUSY_SECONDS = 20.0  # below the deadlines of clients: an answer is better than silence
_CACHE_KIB = 8192
_WAL_BYTES = 64 * 1024 * 1024  # what the log shrinks to after it had to grow


class Durability(enum.StrEnum):
    """What survives what."""

    DURABLE = "durable"  # an acknowledged commit survives a crash and a loss of power
    FAST = "fast"  # it survives kill -9; a loss of power may lose or damage the file


_SYNCHRONOUS = {Durability.DURABLE: "FULL", Durability.FAST: "OFF"}


def connect(
    path: str, durability: Durability, *, cache_kib: int = _CACHE_KIB, wait: float | None = None
) -> sqlite3.Connection:
    """Open a connection; `wait` is how many seconds it waits for a lock."""
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS if wait is None else wait,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=64,
    )
    try:
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        connection.execute("PRAGMA fullfsync = 1")  # on macOS fsync does not reach the disk
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        connection.execute("PRAGMA secure_delete = ON")  # zeros over what is deleted
    except BaseException:  # the first of them reads the file
        connection.close()
        raise
    return connection


def prepare(path: str, durability: Durability, now: Callable[[], int]) -> None:
    """Make the file, or bring it to this engine's format, or refuse it.

    Raises:
        errors.FailedPrecondition: it cannot be opened, is another program's, or is too new.
        errors.Damaged: it is not as the engine left it.
        errors.Unavailable: another process keeps it for itself.
    """
    with translated_at_opening(path):
        while True:
            before = _inode(path)
            file_permissions.create(path)
            with contextlib.closing(connect(path, durability)) as connection:
                found = found_format(connection, path)
                if found:
                    _refuse_torn_end(connection, path)
                # A restore may have put another file in this one's place while we waited for it.
                if before in (None, _inode(path)):
                    _prepare(connection, path, now, found)
                    break
        if before is None and durability is Durability.DURABLE:
            sync_folder(path)


def _refuse_torn_end(connection: sqlite3.Connection, path: str) -> None:
    """Refuse a file that ends within a page: SQLite reads zeros for the rest of it.

    With a log it may do so, after a loss of power while the log was moved: the log has the page.
    """
    page: int = connection.execute("PRAGMA page_size").fetchone()[0]
    if _size(path) % page and not _size(f"{path}-wal"):
        raise errors.Damaged(f"{path} is damaged: its end is missing.")


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


def _prepare(connection: sqlite3.Connection, path: str, now: Callable[[], int], found: int) -> None:
    if _with_log(connection) != "wal":
        raise errors.FailedPrecondition(f"{path} lies where SQLite can keep no write-ahead log.")
    if found == schema.FORMAT:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = found_format(connection, path)  # again: another process may have been faster
        if not found:
            schema.create(connection, now(), int.from_bytes(os.urandom(7), "big"))
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
        elif found < schema.FORMAT:
            schema.upgrade(connection, found)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.rollback()


def _with_log(connection: sqlite3.Connection) -> str:
    """Turn the write-ahead log on, which a file keeps, and return the file's journal mode.

    A new file, or one that was copied, has none until then. The switch needs the file alone, and
    where another process switches or writes just then SQLite refuses it at once: who holds a lock
    already does not wait for another. So who loses that race tries again.
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
            time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - so that they do not meet again
    return mode


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Move the log into the file and cut it to nothing; False if others use it just now."""
    connection.execute("PRAGMA busy_timeout = 0")  # nobody waits for this
    try:
        busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError:
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    return not busy


def found_format(connection: sqlite3.Connection, path: str) -> int:
    """Return a file's format, 0 for an empty one, if this engine can read it."""
    with _one_view(connection):  # another process may be making it
        found: int = connection.execute("PRAGMA user_version").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        is_empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if not found and is_empty:
        return 0
    if application != APPLICATION:
        raise errors.FailedPrecondition(
            f"{path} is a database of another program: application id {application:#x}, "
            f"format {found}."
        )
    if not 0 < found <= schema.FORMAT:
        raise errors.FailedPrecondition(
            f"{path} has format {found}; this engine reads formats 1 to {schema.FORMAT}. A newer "
            "engine wrote it."
        )
    return found


@contextlib.contextmanager
def _one_view(connection: sqlite3.Connection) -> Iterator[None]:
    """Read one state of the file with several statements."""
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
    """Put a file's name on disk: syncing the file alone does not."""
    folder = os.open(Path(path).absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# What SQLite's primary error codes are to a caller; the text goes before SQLite's own.
_UNAVAILABLE = (errors.Unavailable, "The data file is busy")
_FULL = (errors.ResourceExhausted, "The data file cannot grow")
_DAMAGED = (errors.Damaged, "The data file is damaged")
_CLOSED = (errors.Unavailable, "The data file cannot be opened or written")
_REFUSALS = {
    sqlite3.SQLITE_BUSY: _UNAVAILABLE,
    sqlite3.SQLITE_LOCKED: _UNAVAILABLE,
    sqlite3.SQLITE_PROTOCOL: _UNAVAILABLE,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_NOMEM: _FULL,
    # The index of the log is a file too, whose growth is reported apart.
    sqlite3.SQLITE_IOERR_SHMSIZE: _FULL,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_READONLY: _CLOSED,
    sqlite3.SQLITE_CANTOPEN: _CLOSED,
    sqlite3.SQLITE_PERM: _CLOSED,
    sqlite3.SQLITE_IOERR: (errors.Unavailable, "The data file cannot be read or written"),
}


def refusal(fault: BaseException) -> errors.DatastoreError | None:
    """Return what a fault of the file or the machine is to a caller, None if it is neither."""
    if isinstance(fault, UnicodeDecodeError):
        # What is stored is UTF-8. SQLite quotes it in its messages, which then cannot be read.
        return errors.Damaged(f"The data file is damaged: {fault}.")
    code = getattr(fault, "sqlite_errorcode", None)
    if code is None:
        return None
    known = _REFUSALS.get(code) or _REFUSALS.get(code & 0xFF)
    if known is None:
        return None
    kind, text = known
    return kind(f"{text}: {fault}.")


class _Translated:
    """Raises SQLite's errors as what they are to a caller. It holds nothing: one is enough."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: object, fault: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(fault, (sqlite3.Error, UnicodeDecodeError)):
            known = refusal(fault)
            if known is not None:
                raise known from fault


translated = _Translated()


# What reading rows raises that no engine has written, with NULL for bytes, say: SQLite has no
# checksums, and stores a value's type beside it.
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)


@contextlib.contextmanager
def translated_at_opening(path: str) -> Iterator[None]:
    """Name the file, and say FAILED_PRECONDITION where trying again cannot help."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as fault:
        known = refusal(fault)
        code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
        if known is None or _REFUSALS.get(code) is _CLOSED:
            raise errors.FailedPrecondition(f"{path}: {fault}") from fault
        raise type(known)(f"{path}: {known.message}") from fault
    except (errors.Damaged, errors.ResourceExhausted, errors.Unavailable) as known:
        # Translated further in, where the file has no name.
        if path in known.message:
            raise
        raise type(known)(f"{path}: {known.message}") from known
    except MALFORMED as fault:
        raise errors.Damaged(f"{path}: The data file is damaged: {fault!r}.") from fault
