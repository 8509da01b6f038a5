"""Old module names: each imports the new module, with one warning."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import emulator
from emulator import old_names


@pytest.mark.parametrize(("old", "new"), old_names.MOVED.items())
def test_an_old_name_imports_the_new_module_and_warns_once(old: str, new: str) -> None:
    program = (
        "import importlib, sys, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    found = [importlib.import_module(sys.argv[1]) for _ in range(2)]\n"
        "assert found == [importlib.import_module(sys.argv[2])] * 2\n"
        "print(*[f'{each.category.__name__}: {each.message}' for each in caught])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, old, new], capture_output=True, text=True, check=True
    )
    assert ended.stdout == f"DeprecationWarning: {old} is now {new}\n"


def test_an_old_name_can_be_imported_from_the_package() -> None:
    program = "from emulator import meter; print(meter.Pricing.__module__)"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "emulator.execution.cost_meter\n"


def test_the_old_name_of_the_pytest_plugin_still_works(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["emulator.fixtures"]\n')
    (tmp_path / "test_store.py").write_text(
        "def test_empty(datastore_emulator):\n    assert datastore_emulator.address\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        cwd=Path(emulator.__file__).parent.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    assert "emulator.fixtures is now emulator.pytest_plugin" in ended.stdout


def test_the_guide_lists_the_old_names() -> None:
    guide = (Path(emulator.__file__).parent / "README.md").read_text()
    listed = re.findall(r"^\| `(emulator\.\w+)` \| `(emulator\.[\w.]+)` \|$", guide, re.MULTILINE)
    assert dict(listed) == old_names.MOVED


def test_an_unknown_name_is_not_importable() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("emulator.nothing")
