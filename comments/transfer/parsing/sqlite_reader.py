"""Read tables of an SQLite database as streams; write nothing to the database or its folder.

A database in WAL mode is opened as an immutable file, because SQLite would otherwise create files
beside it. Such a database must not have a log file with changes. A log file exists only while the
database is in use, or after a crash.

A small file can describe many gigabytes, because a column's default value is stored once for all
rows. Therefore only the wanted columns are read, and only ids are sorted. In addition, the size of
the file limits the total bytes of all values and the number of steps that SQLite may take.
"""

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from comments import errors

MAGIC = b"SQLite format 3\x00"
# The maximum number of bytes in one value. Longer values are not comments.
MAX_VALUE = 1 << 20
_STEPS = 100_000  # Number of SQLite steps between two calls of the progress handler.
_LEAST_CALLS, _BYTES_PER_CALL = 1000, 1000
_LEAST_BYTES = 1 << 20  # Bytes that all values may have in total even if the file is small.
WAIT = 5.0  # Seconds to wait for another program to unlock the database
_HEADER = 100  # Size in bytes
_WAL = 2  # The read version of a database in WAL mode
_GZIP = b"\x1f\x8b"
_COPY = 'make a copy with `sqlite3 {} ".backup copy.db"` and import the copy'
_PAGE_SIZE = slice(16, 18)
_READ_VERSION = 19
_CHANGES, _VALID_FOR = slice(24, 28), slice(92, 96)
_PAGES = slice(28, 32)


class Database:
    """An open database. Text is returned as bytes, because it may be invalid UTF-8."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._left = path.stat().st_size + _LEAST_BYTES

    def columns(self, table: str, required: Collection[str], title: str) -> list[str]:
        """Return the names of a table's columns, and check that the required ones are among them.

        `title` names the format in error messages.
        """
        # Views and virtual tables run code that the author of the file chose, so they are refused.
        is_table = "SELECT 1 FROM sqlite_master WHERE name = ? AND sql LIKE 'CREATE TABLE%'"
        if not self._connection.execute(is_table, (table,)).fetchall():
            raise self._bad(f'the file is not {title}: it has no table "{table}"')
        query = "SELECT name FROM pragma_table_info(?)"
        names = [bytes(name).decode() for (name,) in self._connection.execute(query, (table,))]
        for name in required:
            if name not in names:
                raise self._bad(f'the file is not {title}: table "{table}" has no column "{name}"')
        return names

    def rows(
        self, table: str, columns: Collection[str], order: str, *, noted: Collection[str] = ()
    ) -> Iterator[dict[str, object]]:
        """Yield rows of a table with these columns, sorted by a column of whole numbers.

        In the columns `noted`, a text or blob is shortened to one character.
        """
        names = ", ".join(
            _shortened_column(column) if column in noted else _quote(column) for column in columns
        )
        number = f"CASE typeof({_quote(order)}) WHEN 'integer' THEN {_quote(order)} END"
        ids = f"SELECT rowid FROM {_quote(table)} ORDER BY {number}, rowid"  # noqa: S608 - quoted
        query = f"SELECT {names} FROM {_quote(table)} WHERE rowid = ?"  # noqa: S608 - same
        for at in self._connection.execute(ids):
            for row in self._connection.execute(query, at):
                self._left -= sum(len(value) for value in row if isinstance(value, bytes))
                if self._left < 0:
                    raise self._bad("the values in the tables are larger than the file")
                yield dict(zip(columns, row, strict=True))

    def _bad(self, message: str) -> errors.BadImport:
        return errors.BadImport(str(self._path), None, message)


@contextlib.contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Open a database for reading, unless it is damaged, encrypted or in use."""
    options = "mode=ro&immutable=1" if _is_immutable(path) else "mode=ro"
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, timeout=WAIT)
        ) as connection:
            connection.text_factory = bytes
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            _limit_steps(connection, path.stat().st_size)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA ignore_check_constraints = ON")
            # In one transaction, all statements see the state of the same moment.
            connection.execute("BEGIN")
            _check(path, connection)
            yield Database(path, connection)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in {
            sqlite3.SQLITE_BUSY,
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_READONLY,
        }:
            raise _in_use_error(path, str(error)) from error
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            reason = "reading the database takes far more steps than its size explains"
            raise errors.BadImport(str(path), None, reason) from error
        raise _damage_error(path, str(error)) from error
    except sqlite3.DataError as error:
        reason = f"a value is longer than {MAX_VALUE:,} bytes"
        raise errors.BadImport(str(path), None, reason) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise _damage_error(path, str(error)) from error


def _is_immutable(path: Path) -> bool:
    """Check the file, and return whether it is a database in WAL mode."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
        size = path.stat().st_size
    except OSError as error:
        raise errors.BadImport(str(path), None, error.strerror or str(error)) from error
    if header.startswith(_GZIP):
        raise errors.BadImport(str(path), None, "the file is packed; unpack it with `gunzip`")
    if not header.startswith(MAGIC) or len(header) < _HEADER:
        reason = "the file is not an SQLite database, or it is encrypted"
        raise errors.BadImport(str(path), None, reason)
    page = int.from_bytes(header[_PAGE_SIZE], "big")
    pages = int.from_bytes(header[_PAGES], "big")
    # Old versions of SQLite do not maintain the number of pages.
    is_valid = header[_CHANGES] == header[_VALID_FOR]
    if is_valid and size < pages * (1 << 16 if page == 1 else page):
        raise errors.BadImport(
            str(path), None, f"the database is cut off: it has {size:,} bytes; copy it again"
        )
    if header[_READ_VERSION] != _WAL:
        return False
    real = path.resolve()
    log = real.with_name(f"{real.name}-wal")
    if log.exists() and log.stat().st_size:
        raise _in_use_error(path, f"{log.name} has changes that are not in the database yet")
    return True


def _check(path: Path, connection: sqlite3.Connection) -> None:
    for (raw,) in connection.execute("PRAGMA quick_check(10)"):
        finding = bytes(raw).decode(errors="replace")
        # A missing value does no harm, because each format handles missing values.
        if finding != "ok" and not finding.startswith("NULL value in "):
            raise _damage_error(path, finding.splitlines()[-1])


def _damage_error(path: Path, reason: str) -> errors.BadImport:
    message = (
        f"the database is damaged ({reason}). Try to repair it with "
        f'`sqlite3 {path.name} ".recover" | sqlite3 repaired.db`'
    )
    return errors.BadImport(str(path), None, message)


def _in_use_error(path: Path, reason: str) -> errors.BadImport:
    message = f"the database is in use ({reason}): {_COPY.format(path.name)}"
    return errors.BadImport(str(path), None, message)


def _limit_steps(connection: sqlite3.Connection, size: int) -> None:
    """Interrupt statements if together they take too many steps for the size of the file."""
    left = _LEAST_CALLS + size // _BYTES_PER_CALL

    def is_over() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(is_over, _STEPS)


def _shortened_column(name: str) -> str:
    column = _quote(name)
    short = f"substr({column}, 1, 1)"
    return f"CASE WHEN typeof({column}) IN ('text', 'blob') THEN {short} ELSE {column} END"


def _quote(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
