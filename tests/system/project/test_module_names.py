"""In all rooms, each name of a backend module or public class names only one thing."""

import ast
import itertools
from collections import Counter
from pathlib import Path

COMMENTS = Path(__file__).parents[3] / "comments"
NAMES = [each.stem for each in COMMENTS.rglob("*.py") if each.stem != "__init__"]


def _plurals(name: str) -> set[str]:
    return {f"{name}s", f"{name}es", f"{name.removesuffix('y')}ies"}


def test_no_two_modules_have_the_same_name() -> None:
    assert len(NAMES) > 100
    assert [name for name, number in Counter(NAMES).items() if number > 1] == []


def test_no_two_module_names_differ_only_in_number() -> None:
    pairs = itertools.permutations(set(NAMES), 2)
    assert [(one, other) for one, other in pairs if other in _plurals(one)] == []


def _public_classes(path: Path) -> list[str]:
    statements = ast.parse(path.read_text()).body
    names = [each.name for each in statements if isinstance(each, ast.ClassDef)]
    return [name for name in names if not name.startswith("_")]


def test_no_two_modules_define_public_classes_of_the_same_name() -> None:
    found = Counter(name for path in COMMENTS.rglob("*.py") for name in _public_classes(path))
    assert len(found) > 200
    assert [name for name, number in found.items() if number > 1] == []
