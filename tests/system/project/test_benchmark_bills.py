"""No writing operation bills more than before the work on writing (benchmarks/README.md).

An import ends by verifying itself, which it did not do before: that reads each comment, each thread
and the journal of the import once more.
"""

import re
from pathlib import Path

import pytest

from benchmarks.writing import operation_bills
from benchmarks.writing.operation_bills import Bill
from tests.support import programs

README = programs.ROOT / "benchmarks" / "README.md"
_NUMBER = r"([\d,]+)"
_ROW = re.compile(
    rf"^\| ([^|]+) \| {_NUMBER} / {_NUMBER} \| [^|]+ \| {_NUMBER} \| [^|]+ \|$", re.MULTILINE
)


IMPORT = "import of 1,000 comments into 20 threads"
VERIFICATION = 1_000 + 20 + 30  # Comments, threads, and rows of the journal with their queries.


def _before() -> dict[str, Bill]:
    found = {
        name: Bill(*(int(each.replace(",", "")) for each in numbers))
        for name, *numbers in _ROW.findall(README.read_text())
    }
    known = found[IMPORT]
    found[IMPORT] = Bill(known.lenient + VERIFICATION, known.strict + VERIFICATION, known.writes)
    return found


@pytest.mark.slow
def test_no_operation_is_dearer_than_before(tmp_path: Path) -> None:
    before, now = _before(), operation_bills.measured(tmp_path)
    assert list(before) == list(now)
    dearer = {
        name: (before[name], bill)
        for name, bill in now.items()
        if bill.lenient > before[name].lenient
        or bill.strict > before[name].strict
        or bill.writes > before[name].writes
    }
    assert dearer == {}


@pytest.mark.parametrize(
    ("before", "row"),
    [
        ({"reply": Bill(4, 5, 6)}, "| reply | 4 / 5 | 1 / 2 | 6 | 3,000 |"),
        ({}, "| reply |  | 1 / 2 |  | 3,000 |"),
    ],
)
def test_a_row_shows_both_checkouts(before: dict[str, Bill], row: str) -> None:
    assert operation_bills.table(before, {"reply": Bill(1, 2, 3000)}).splitlines()[2] == row
