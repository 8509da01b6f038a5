"""Open the files that formats read, compressed with gzip or not, in bounded memory.

`watching` limits the size of an unpacked file and reports progress while the file is read. The
limit and the reports are necessary, because a small packed file can unpack to many gigabytes that
contain no comment.
"""

import codecs
import contextlib
import contextvars
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from comments import errors
from comments.transfer.parsing import stray_bytes

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# The maximum number of bytes in one line. One line of JSON contains a comment with all its fields.
MAX_LINE = 8 << 20
_BOM = codecs.BOM_UTF8
_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 17  # Bytes to unpack at a time.


class _Watch(NamedTuple):
    most: int
    progress: Callable[[], object]


_WATCH: contextvars.ContextVar[_Watch | None] = contextvars.ContextVar("watch", default=None)


@contextlib.contextmanager
def watching(most: int, progress: Callable[[], object]) -> Iterator[None]:
    """Refuse files with more than `most` bytes, and call `progress` while files are read.

    This applies to the files that `open_file` opens inside the `with` block.
    """
    token = _WATCH.set(_Watch(most, progress))
    try:
        yield
    finally:
        _WATCH.reset(token)


class _WatchedFile(io.RawIOBase):
    """A file that counts the bytes read from it."""

    def __init__(self, path: Path, file: io.BufferedIOBase, watch: _Watch) -> None:
        self._path = path
        self._file = file
        self._watch = watch
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._watch.progress()
        count = self._file.readinto(buffer)
        self._size += count
        if self._size > self._watch.most:
            reason = f"the file has more than {self._watch.most:,} bytes when it is unpacked"
            raise errors.BadImport(str(self._path), None, reason)
        return count


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file for reading, and unpack it if it is a gzip file.

    Raises:
        errors.BadImport: the file cannot be read, is a ZIP archive, or contains damaged compressed
            data.
    """
    try:
        with path.open("rb") as file:
            head = file.peek(len(_ZIP))
            if head.startswith(_ZIP):
                reason = "the file is a ZIP archive. Unpack it, and import its files one by one"
                raise errors.BadImport(str(path), None, reason)
            if head.startswith(_GZIP):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield _buffered_reader(path, unpacked)
            else:
                yield _buffered_reader(path, file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        reason = f"the compressed file is damaged or incomplete: {error}"
        raise errors.BadImport(str(path), None, reason) from error
    except OSError as error:
        raise errors.BadImport(str(path), None, error.strerror or str(error)) from error


def _buffered_reader(path: Path, file: io.BufferedReader | gzip.GzipFile) -> io.BufferedReader:
    watch = _WATCH.get()
    if watch is not None:
        return io.BufferedReader(_WatchedFile(path, file, watch), _CHUNK)
    return file if isinstance(file, io.BufferedReader) else io.BufferedReader(file, _CHUNK)


@contextlib.contextmanager
def open_text(path: Path, encoding: str = "") -> Iterator[io.TextIOWrapper]:
    """Open a text file in UTF-8, in UTF-16 with a byte order mark, or in the given `encoding`.

    Line ends stay unchanged, and only a line feed ends a line. Invalid bytes become lone surrogates
    (`stray_bytes`), except in UTF-16.

    Raises:
        errors.BadImport: see `open_file`; also if the file is invalid UTF-16.
    """
    with open_file(path) as file:
        if not encoding:
            encoding = "utf-16" if file.peek(2).startswith(_UTF_16) else "utf-8-sig"
        text = io.TextIOWrapper(file, encoding=encoding, errors="surrogateescape", newline="\n")
        try:
            yield text
        except UnicodeError as error:
            reason = f"the text is not valid {encoding} ({error}). Convert the file to UTF-8."
            raise errors.BadImport(str(path), None, reason) from error


class Line(NamedTuple):
    """A line with its end, its number from 1, and its number of stray bytes (`stray_bytes`)."""

    number: int
    text: str
    strays: int


def lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a UTF-8 file. A byte order mark is dropped."""
    number = 0
    with open_file(path) as file:
        while data := file.readline(MAX_LINE + 1):
            number += 1
            if len(data) > MAX_LINE:
                message = f"the line is longer than {MAX_LINE:,} bytes"
                raise errors.BadImport(str(path), number, message)
            if number == 1:
                data = data.removeprefix(_BOM)
            yield Line(number, *stray_bytes.decode(str(path), number, data))
