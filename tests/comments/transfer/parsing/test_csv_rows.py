"""CSV files are read as they were written; damaged ones are refused at the row's first line.

`samples/generic.py` has the faults and their messages.
"""

import csv
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.transfer import import_source
from comments.transfer.parsing import csv_rows

NAMES = ("id", "page", "text")
# No lone surrogates, which UTF-8 cannot encode, and no NUL, which is refused.
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
ROWS = st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=5)


def written(rows: list[tuple[str, ...]], delimiter: str, end: str = "\n") -> bytes:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([NAMES, *rows])
    return file.getvalue().encode()


def read(path: Path, data: bytes) -> list[tuple[str, ...]]:
    path.write_bytes(data)
    return [tuple(map(row.text, NAMES)) for row in csv_rows.read(path, NAMES)]


@given(rows=ROWS, delimiter=st.sampled_from(",;\t"), end=st.sampled_from(["\n", "\r\n"]))
def test_rows_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, ...]],
    delimiter: str,
    end: str,
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    full = [row for row in rows if any(value.strip() for value in row)]
    assert read(path, written(rows, delimiter, end)) == full


@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.csv"
    path.write_bytes(b"id,page,text\n" + data)
    place = 2
    try:
        found = list(csv_rows.read(path, NAMES))
    except errors.BadImport as error:
        place = error.line or 0
        found = []
    assert 1 < place <= 2 + data.count(b"\n")
    assert all(row.names == set(NAMES) for row in found)


def test_rows_are_counted_by_the_line_where_each_begins(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('\n\nid,page,text\n1,/a,"x\n\ny"\n\n2,/a,y\n')
    assert [row.number for row in csv_rows.read(path, NAMES)] == [4, 8]


def test_the_header_decides_about_the_delimiter(tmp_path: Path) -> None:
    assert read(tmp_path / "x.csv", b"id,page,text\n1,/a,x; y; z; !\n") == [
        ("1", "/a", "x; y; z; !")
    ]


def test_stray_bytes_are_reported_for_their_row_only(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"id,page,text\n1,/a,x\n2,/a,caf\xe9\n3,/a,x\n")
    found = {row.number: row.remarks for row in csv_rows.read(path, NAMES)}
    (remark,) = found[3]
    assert isinstance(remark, import_source.Corrected)
    assert (found[2], found[4]) == ([], [])


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("id;page", ["id", "page"]),
        (' ID ,"Page"\r\n', ["id", "page"]),
        ("", []),
        ('"id', []),
        ("<html>", ["<html>"]),
    ],
)
def test_a_header_is_split_into_names(line: str, names: list[str]) -> None:
    assert csv_rows.header(line) == names


def test_a_long_file_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"id,page,text\n" + b'1,/a,"two\n%s"\n' % (b"x" * 1000) * 5000)
    tracemalloc.start()
    try:
        assert sum(row.text("id") == "1" for row in csv_rows.read(path, NAMES)) == 5000
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 4
    finally:
        tracemalloc.stop()
