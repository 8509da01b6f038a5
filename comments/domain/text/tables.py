"""Format the lines of a report as a table, CSV or JSON (pure).

User-written text cannot act on the program that shows it: control characters become "?" on
terminals, and a CSV cell that a spreadsheet would evaluate starts with "'".
"""

import csv
import enum
import io
from collections.abc import Sequence

import msgspec

_CALCULATED = ("=", "+", "-", "@")


class TableFormat(enum.StrEnum):
    """The format of a table."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def format_table(
    kind: type[msgspec.Struct], lines: Sequence[msgspec.Struct], form: TableFormat
) -> str:
    """Format lines of the same type as a table whose columns are the fields of that type.

    The text has no final line break.
    """
    if form is TableFormat.JSON:
        return msgspec.json.format(msgspec.json.encode(lines)).decode()
    rows = [
        [_cell(msgspec.to_builtins(getattr(line, name))) for name in kind.__struct_fields__]
        for line in lines
    ]
    if form is TableFormat.CSV:
        return _csv(
            [list(kind.__struct_fields__), *([_inert(cell) for cell in row] for row in rows)]
        )
    return _align([list(kind.__struct_fields__), *rows])


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return "".join(character if character.isprintable() else "?" for character in text)


def _inert(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_CALCULATED) and not _is_number(cell) else cell


def _is_number(cell: str) -> bool:
    return cell.removeprefix("-").isdecimal()


def _csv(rows: Sequence[Sequence[str]]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue().rstrip("\n")


def _align(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
