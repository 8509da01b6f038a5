"""Text written by strangers cannot control the terminal when commands show it in tables."""

import csv
import io
import json

import msgspec
import pytest

from comments.domain.text import tables
from comments.domain.text.tables import TableFormat


class Row(msgspec.Struct):
    """One row of a table."""

    name: str
    number: int | None


ROWS = [Row("news", 12), Row("how to", None)]


def test_a_table_is_aligned_under_its_names() -> None:
    assert tables.format_table(Row, ROWS, TableFormat.TABLE) == "name    number\nnews    12\nhow to"
    assert tables.format_table(Row, [], TableFormat.TABLE) == "name  number"


def test_csv_names_its_columns() -> None:
    assert tables.format_table(Row, [*ROWS, Row('a,"b', -1)], TableFormat.CSV) == (
        'name,number\nnews,12\nhow to,\n"a,""b",-1'
    )
    assert tables.format_table(Row, [], TableFormat.CSV) == "name,number"


def test_json_is_a_list_of_objects() -> None:
    assert json.loads(tables.format_table(Row, ROWS, TableFormat.JSON)) == [
        {"name": "news", "number": 12},
        {"name": "how to", "number": None},
    ]
    assert tables.format_table(Row, [], TableFormat.JSON) == "[]"


@pytest.mark.parametrize("text", ["=1+1", "@sum", "-x", "+1 5", "-", "\t=1", "\r=1"])
def test_a_cell_is_not_a_formula(text: str) -> None:
    written = tables.format_table(Row, [Row(text, 1)], TableFormat.CSV)
    (_, (cell, _)) = csv.reader(io.StringIO(written))
    assert cell[0] not in "=+-@\t\r"


@pytest.mark.parametrize("form", [TableFormat.TABLE, TableFormat.CSV, TableFormat.JSON])
def test_a_terminal_gets_no_control_characters(form: TableFormat) -> None:
    written = tables.format_table(Row, [Row("a\x1b[31m\x07\u202eb\nc", 1)], form)
    assert not {"\x1b", "\x07"} & set(written)
