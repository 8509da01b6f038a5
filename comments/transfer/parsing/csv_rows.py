"""Read a CSV file with a header, in bounded memory.

Values are separated by commas, semicolons or tabs. The header determines the separator, because a
text may contain more semicolons than the row has columns. Quoted values (`"`) can contain
separators, line ends and doubled quotation marks. Column names are case-insensitive.
"""

import csv
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from comments import errors
from comments.transfer.parsing import source_files
from comments.transfer.parsing.record_fields import Fields

_DELIMITERS = ",;\t"
_LINE_ENDS = (
    'a carriage return ("\\r") is neither in quotation marks nor before a line feed ("\\n"); '
    'end lines with "\\n" or "\\r\\n"'
)
# Our message for each error of the `csv` module. The keys are the parts of the module's own
# messages that identify the errors. The module refuses values longer than 131,072 characters, which
# is more than a comment may have.
_REASONS = {
    "unexpected end of data": "the quotation mark that opens a value is never closed",
    "field larger than": "a value is too long, or the quotation mark that opens it is never closed",
    "expected after": "in a quoted value, a quotation mark is not doubled",
    "new-line character": _LINE_ENDS,
}
_SHOWN = 200  # Maximum number of characters of the header in an error message.


def header(line: str) -> list[str]:
    """Return the column names in the first line of a file; no names if it is not CSV."""
    try:
        delimiter = max(_DELIMITERS, key=line.count)
        row = next(csv.reader([line], delimiter=delimiter, strict=True), [])
        return [name.strip().lower() for name in row]
    except csv.Error:
        return []


def read(path: Path, required: Collection[str]) -> Iterator[Fields]:
    """Yield each row as fields, with the number of the line where the row begins.

    Empty rows are ignored.

    Raises:
        errors.BadImport: the file is not such a CSV file, a column in `required` is missing, or the
            number of values in a row differs from the number of columns; the error names the line.
    """
    lines = _Lines(path)
    first = next((line for line in lines if line.strip()), "")
    if "\r" in first.rstrip("\r\n"):
        raise errors.BadImport(str(path), lines.number, f"invalid CSV: {_LINE_ENDS}")
    delimiter = max(_DELIMITERS, key=first.count)
    names = header(first)
    _check_header(path, lines.number, names, required)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = lines.number + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise errors.BadImport(str(path), start, _reason(error)) from error
        if row is None:
            return
        if not any(value.strip() for value in row):
            continue
        if len(row) != len(names):
            raise errors.BadImport(str(path), start, _ragged_row_text(row, names, delimiter))
        yield Fields(path, start, dict(zip(names, row, strict=True)), has_strays=lines.strays > 0)
        lines.strays = 0


class _Lines:
    """The lines of the file.

    `number` is the number of the last line that was read, and `strays` counts stray bytes.
    """

    def __init__(self, path: Path) -> None:
        self.number = 0
        self.strays = 0
        self._path = path
        self._lines = source_files.lines(path)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        if "\0" in line.text:
            message = "the line has a NUL character; the file is damaged or is not a text file"
            raise errors.BadImport(str(self._path), line.number, message)
        self.number = line.number
        self.strays += line.strays
        return line.text


def _check_header(path: Path, line: int, names: Sequence[str], required: Collection[str]) -> None:
    missing = [name for name in required if name not in names]
    if missing:
        shown = ", ".join(names)[:_SHOWN] or "none"
        message = f'the header has no column "{missing[0]}"; its columns are: {shown}'
        raise errors.BadImport(str(path), line or None, message)
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        message = f'the header has more than one column "{repeated[0]}"'
        raise errors.BadImport(str(path), line, message)


def _ragged_row_text(row: Sequence[str], names: Sequence[str], delimiter: str) -> str:
    separator = "a tab" if delimiter == "\t" else f'"{delimiter}"'
    return (
        f"the row has {len(row)} values, but the header names {len(names)} columns; put quotation "
        f"marks around a value with {separator} or a line end"
    )


def _reason(error: csv.Error) -> str:
    reason = next((text for part, text in _REASONS.items() if part in str(error)), str(error))
    return f"invalid CSV: {reason}"
