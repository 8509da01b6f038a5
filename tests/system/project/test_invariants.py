"""The invariants in docstrings are few, and each names an existing test (CONTRIBUTING.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROOMS = ("comments", "emulator/datastore_emulator", "server")
MOST = 60  # More than that, nobody remembers
FORM = re.compile(r"Invariant: \S.*[^.:] \((test_\w+\.py)::(test_\w+)\)\.")


def _invariants() -> Iterator[tuple[str, str]]:
    """Yield the name of each module and each paragraph of its docstring that has an invariant."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = ast.get_docstring(ast.parse(path.read_text())) or ""
            for paragraph in text.split("\n\n"):
                if paragraph.startswith("Invariant"):
                    yield path.name, " ".join(paragraph.split())


def _tests() -> set[tuple[str, str]]:
    """Return the file name and the name of each test."""
    return {
        (path.name, name)
        for folder in ("tests", "emulator/tests")
        for path in (ROOT / folder).rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)\(", path.read_text(), re.MULTILINE)
    }


def test_each_invariant_is_one_sentence_with_a_test_that_exists() -> None:
    tests = _tests()
    wrong = []
    for module, invariant in _invariants():
        form = FORM.fullmatch(invariant)
        if form is None or (form[1], form[2]) not in tests:
            wrong.append((module, invariant))
    assert not wrong


def test_there_are_few_invariants() -> None:
    assert 0 < len(list(_invariants())) <= MOST
