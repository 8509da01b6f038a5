"""docs/threats.md and SECURITY.md contain every threat, and the tests that they name exist."""

import re

from tests.conftest import ROOT

NAMED = re.compile(r"`((?:[a-z_]+/)+test_[a-z_]+\.py)(?:::(test_\w+))?`")
# All threats that are covered so far. The tests fail if the page loses a row.
ROWS = {f"A{number}" for number in (*range(1, 14), *range(16, 21))}
ROWS |= {f"B{number}" for number in range(1, 28)} | {f"C{number}" for number in range(1, 19)}
ROWS |= {f"D{number}" for number in range(1, 9)}
ROWS |= {"E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E10", "E11", "E12", "E14"}
# These threats do not apply, and the page says why.
NOT_HERE = {"A14", "A15"}

FAULTS = {"F1", "F2", "F3", "F7", "F8", "F16", "F17", "F18", "F22", "F27"}


def test_every_test_named_for_a_threat_exists() -> None:
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    named = NAMED.findall(text)
    assert len(named) > len(ROWS)
    for file, test in named:
        path = ROOT / (file if file.startswith("emulator/") else f"tests/{file}")
        assert path.exists(), f"docs/threats.md names {file}, which does not exist"
        if test:
            assert f"def {test}(" in path.read_text(encoding="utf-8"), f"{file} has no {test}"


def test_every_row_built_so_far_is_on_the_page() -> None:
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| ([A-Z]\d+) \|", text, re.MULTILINE)) == ROWS | NOT_HERE
    (reasons,) = re.findall(r"^## What does not apply\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"^\| ([A-Z]\d+) \|", reasons, re.MULTILINE)) == NOT_HERE


def test_security_md_covers_every_row_once() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    ranges = re.findall(r"^\| ([A-Z])(\d+)(?:-\1(\d+))? \|", text, re.MULTILINE)
    assert len(ranges) > 5
    led = [
        f"{letter}{number}"
        for letter, first, last in ranges
        for number in range(int(first), int(last or first) + 1)
    ]
    assert len(led) == len(set(led))
    assert set(led) == ROWS | NOT_HERE
    files = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert len(files) > 2
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_every_fault_built_so_far_is_on_the_page() -> None:
    """Faults have no separate rows; the threats' rows name them in parentheses."""
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    named = re.findall(r"^\|[^|]*\((F[^)]*)\) \|", text, re.MULTILINE)
    assert {fault for each in named for fault in each.split(", ")} == FAULTS


def test_every_longer_form_of_a_test_is_on_the_page_and_run_before_a_release() -> None:
    text = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    read = {
        name
        for folder in ("tests", "emulator/tests")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'environ\.get\("(\w+)", "\d+"\)', path.read_text(encoding="utf-8"))
    }
    assert "COUNTING_SECONDS" in read
    assert {name for name in read if name not in text} == set()
    raised = re.findall(r"^  export (\w+)=", (ROOT / "scripts" / "test").read_text(), re.MULTILINE)
    assert set(raised) == read - {"CONTRACT_SEED"}
