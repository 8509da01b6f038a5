"""Read a text file line by line, in bounded memory; the file may be compressed with gzip."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from comments import errors
from comments.jobs.importers.parsing import source_files, stray_bytes

# The maximum bytes in one line. One line of JSON has one comment with all its fields.
MAX_LINE = 8 << 20
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line with its end, its number from 1, and the number of its stray bytes (`stray_bytes`)."""

    number: int
    text: str
    strays: int


def read(path: Path) -> Iterator[Line]:
    """Yield the lines of a file in UTF-8. A byte order mark is dropped.

    Raises:
        errors.BadImport: the file cannot be read, or a line is too long or is not UTF-8.
    """
    number = 0
    with source_files.opened(path) as file:
        while data := file.readline(MAX_LINE + 1):
            number += 1
            if len(data) > MAX_LINE:
                message = f"the line is longer than {MAX_LINE:,} bytes"
                raise errors.BadImport(str(path), number, message)
            if number == 1:
                data = data.removeprefix(_BOM)
            yield Line(number, *stray_bytes.decode(str(path), number, data))
