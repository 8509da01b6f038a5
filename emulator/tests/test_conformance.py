"""The tables of behaviors: every row names tests, and all named tests exist."""

import ast
import functools
import re
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
TABLE = TESTS.parent / "docs" / "conformance.md"
README = TESTS.parent / "README.md"


def rows(text: str) -> list[Any]:
    """Return the behavior and the named tests of each row in the table."""
    found = []
    for line in text.splitlines():
        if not line.startswith("|") or line.endswith("| tests |") or line == "|---|---|":
            continue
        behavior, held_by = (cell.strip() for cell in line.strip("|").split(" | "))
        found.append((behavior, re.findall(r"`([\w/]+::\w+)`", held_by)))
    return found


@functools.cache
def existing() -> set[str]:
    """Return the names of all tests of the emulator."""
    return {
        f"{path.relative_to(TESTS).with_suffix('').as_posix()}::{node.name}"
        for path in TESTS.rglob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def problems(text: str) -> list[str]:
    """Return the problems of a table, one per line."""
    table, there = rows(text), existing()
    behaviors = [behavior for behavior, _ in table]
    return (
        [f"twice: {each}" for each in sorted({b for b in behaviors if behaviors.count(b) > 1})]
        + [f"no tests: {behavior}" for behavior, named in table if not named]
        + [f"no such test: {name}" for _, named in table for name in named if name not in there]
    )


def test_every_behavior_appears_once_and_names_existing_tests() -> None:
    text = TABLE.read_text()
    assert len(rows(text)) > 100
    assert problems(text) == []


def test_every_row_of_the_comparison_names_existing_tests() -> None:
    text = README.read_text().partition("\n## Compare\n")[2].partition("\n## ")[0]
    assert len(rows(text)) > 10
    assert problems(text) == []


def test_every_section_has_rows() -> None:
    sections = TABLE.read_text().split("\n## ")[1:]
    assert len(sections) == 19
    assert all(rows(section) for section in sections)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("| one | none |", "no tests: one"),
        ("| one | `test_conformance::test_gone` |", "no such test: test_conformance::test_gone"),
        ("| two | `test_conformance::test_every_section_has_rows` |\n" * 2, "twice: two"),
    ],
)
def test_a_wrong_row_is_reported(row: str, problem: str) -> None:
    assert problems(f"| behavior | tests |\n|---|---|\n{row}") == [problem]
