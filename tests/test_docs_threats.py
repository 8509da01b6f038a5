"""Claims about docs/threats.md: the tests it names are there."""

import re

from tests.conftest import ROOT

NAMED = re.compile(r"`((?:[a-z]+/)?test_[a-z_]+\.py)(?:::(test_\w+))?`")
# What issue by issue is built so far; a row that is dropped from the page fails here.
ROWS = {*(f"A{n}" for n in range(1, 10)), "A18", *(f"C{n}" for n in range(1, 8)), "C9", "C16"}
ROWS |= {
    "B19",
    "C10",
    "C11",
    "C12",
    "C14",
    "C15",
    "C17",
    "D1",
    "D2",
    "D3",
    "D4",
    "A10",
    "A11",
    "A17",
}
ROWS |= {"C13", "B10", "B15", "B18", "B20", "B21", "B22", "B26", "B27"}
ROWS |= {"A19", "A20", "B4", "B5", "B16", "C8"}
ROWS |= {
    "B1",
    "B2",
    "B3",
    "B6",
    "B7",
    "B8",
    "B9",
    "B11",
    "B12",
    "B13",
    "B14",
    "B17",
    "B23",
    "B24",
    "B25",
}

FAULTS = {"F1", "F2", "F3", "F7", "F8", "F16", "F17", "F18", "F22"}


def test_every_test_named_for_a_threat_exists() -> None:
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    named = NAMED.findall(text)
    assert len(named) > len(ROWS)
    for file, test in named:
        folders = (ROOT / "tests", ROOT / "tests" / "comments")
        path = next((folder / file for folder in folders if (folder / file).exists()), None)
        assert path, f"docs/threats.md names {file}, which is not there"
        if test:
            assert f"def {test}(" in path.read_text(encoding="utf-8"), f"{file} has no {test}"


def test_every_row_built_so_far_is_on_the_page() -> None:
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| ([A-Z]\d+) \|", text, re.MULTILINE)) == ROWS


def test_every_fault_built_so_far_is_on_the_page() -> None:
    """Faults have no rows of their own: a row names those it is about, in brackets."""
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    named = re.findall(r"^\|[^|]*\((F[^)]*)\) \|", text, re.MULTILINE)
    assert {fault for each in named for fault in each.split(", ")} == FAULTS


def test_every_longer_form_of_a_test_is_on_the_page() -> None:
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    read = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r'environ\.get\("(\w+)", "\d+"\)', path.read_text(encoding="utf-8"))
    }
    assert "COUNTING_SECONDS" in read
    assert {name for name in read if name not in text} == set()
