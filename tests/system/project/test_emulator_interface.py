"""Flatthread uses only the documented modules of the emulator's package."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import programs

PACKAGE = "datastore_emulator"
GUIDE = (programs.ROOT / "emulator" / "docs" / "reference.md").read_text()
TABLE = GUIDE.partition("| module | what it provides |\n")[2].partition("\n\n")[0]
PUBLIC = {f"{PACKAGE}.{name}" for name in re.findall(r"^\| `(\w+)` \|", TABLE, re.MULTILINE)}
USERS = ("benchmarks", "comments", "scripts", "server", "tests")
# Tests that look inside an engine, to see or to speed up what its interface hides.
INSIDE = {
    "tests/comments/conftest.py": "transactions.open_transactions",
    "tests/comments/transfer/test_personal_data_erased.py": "transactions.shared_lock_files",
    "tests/comments/posting/test_index_rows.py": "encoding.indexes",
    "tests/comments/web/admin/test_site_pages_costs.py": "execution.lazy_indexes",
}


def imported(path: Path) -> Iterator[str]:
    """Yield each module of the package that a file imports."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if PACKAGE in text else ():
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.startswith(f"{PACKAGE}."))
        elif isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            yield from (f"{PACKAGE}.{each.name}" for each in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            is_public = node.module in PUBLIC
            yield from (
                [str(node.module)]
                if is_public
                else (f"{node.module}.{each.name}" for each in node.names)
            )


def used(paths: list[Path]) -> dict[str, set[str]]:
    """Return the modules of the package that each file imports, without documented ones."""
    found = {str(path.relative_to(programs.ROOT)): set(imported(path)) for path in paths}
    return {name: modules - PUBLIC for name, modules in found.items() if modules - PUBLIC}


def test_only_tests_that_look_inside_import_more_than_the_documented_modules() -> None:
    paths = [*programs.ROOT.glob("*.py")]
    for folder in USERS:
        paths += (programs.ROOT / folder).rglob("*.py")
    assert used([path for path in paths if "node_modules" not in path.parts]) == {
        name: {f"{PACKAGE}.{module}"} for name, module in INSIDE.items()
    }


def test_the_program_itself_imports_only_three_modules() -> None:
    found = set(imported(programs.ROOT / "embedded_engine.py"))
    assert found == {f"{PACKAGE}.{name}" for name in ("data_files", "errors", "inprocess")}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_each_documented_module_exists(name: str) -> None:
    module = name.rpartition(".")[2]
    assert (programs.ROOT / "emulator" / PACKAGE / f"{module}.py").is_file()


def test_the_emulators_tests_import_nothing_of_flatthread() -> None:
    allowed = {"programs", "forked_programs", "optional_tools", "other_user", "hypothesis_profiles"}
    for path in (programs.ROOT / "emulator").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"^\s*(from|import) (comments|server|benchmarks)\b", text, re.MULTILINE
        )
        for names in re.findall(r"^from tests\.support import (.*)$", text, re.MULTILINE):
            assert set(names.split(", ")) <= allowed
