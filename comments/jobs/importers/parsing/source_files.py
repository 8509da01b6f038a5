"""Open the files that formats read, packed with gzip or not."""

import codecs
import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from comments import errors

_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    """Open a file for reading, and unpack it if it is a gzip file.

    Raises:
        errors.BadImport: the file cannot be read, is a ZIP archive, or its compressed data is
            damaged.
    """
    try:
        with path.open("rb") as file:
            head = file.peek(len(_ZIP))
            if head.startswith(_ZIP):
                reason = "the file is a ZIP archive. Unpack it, and import its files one by one"
                raise errors.BadImport(str(path), None, reason)
            if head.startswith(_GZIP):
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield unpacked
            else:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        reason = f"the compressed file is damaged or incomplete: {error}"
        raise errors.BadImport(str(path), None, reason) from error
    except OSError as error:
        raise errors.BadImport(str(path), None, error.strerror or str(error)) from error


@contextlib.contextmanager
def opened_text(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open a text file, which is UTF-8, or UTF-16 with a byte order mark.

    Line ends stay as they are, and only a line feed ends a line. Bytes that are not UTF-8 become
    lone surrogates (`stray_bytes`).

    Raises:
        errors.BadImport: as `opened`, or the file is broken UTF-16.
    """
    with opened(path) as file:
        encoding = "utf-16" if file.peek(2).startswith(_UTF_16) else "utf-8-sig"
        text = io.TextIOWrapper(file, encoding=encoding, errors="surrogateescape", newline="\n")
        try:
            yield text
        except UnicodeError as error:
            reason = f"the text is not valid {encoding} ({error}). Convert the file to UTF-8."
            raise errors.BadImport(str(path), None, reason) from error
