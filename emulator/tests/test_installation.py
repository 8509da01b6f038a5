"""The package in other projects: pip installs it, and the examples of docs/use-it.md work."""

import ast
import os
import re
import sys
from pathlib import Path

import pytest

from emulator.tests.clients import node_driver
from tests.support import optional_tools, programs

FOLDER = Path(__file__).parents[1]
GUIDE = (FOLDER / "docs" / "use-it.md").read_text(encoding="utf-8")


def write_example(section: str, folder: Path) -> None:
    """Write the files of an example in docs/use-it.md to a folder."""
    text = GUIDE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    files = re.findall(r"This\sis `(\S+)`[^`]*```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert files, section
    for name, content in files:
        (folder / name).write_text(content, encoding="utf-8")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package. The environment of these tests has its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    ended = programs.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--target", folder, FOLDER],
        cwd=folder,
    )  # fmt: skip
    is_offline = "No matching distribution found for flit_core" in ended.stderr
    optional_tools.require(not is_offline, "pip cannot download flit_core")
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.mark.slow
def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    command = installed / "bin" / "datastore-emulator"
    ended = programs.run([command, "--help"], cwd=tmp_path, PYTHONPATH=str(installed))
    assert ended.stdout.startswith("usage: datastore-emulator "), ended.stderr


@pytest.mark.slow
def test_a_projects_tests_find_the_fixtures_without_an_import(
    installed: Path, tmp_path: Path
) -> None:
    write_example("pytest", tmp_path)
    ended = programs.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=tmp_path,
        PYTHONPATH=str(installed),
    )
    assert "4 passed" in ended.stdout, ended.stdout + ended.stderr


def test_unittest_runs_an_emulator_for_each_class(tmp_path: Path) -> None:
    write_example("unittest", tmp_path)
    ended = programs.run([sys.executable, "-m", "unittest"], cwd=tmp_path, PYTHONPATH=str(FOLDER))
    assert "Ran 2 tests" in ended.stderr, ended.stderr
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_node_tests_run_beside_the_installed_command(installed: Path, tmp_path: Path) -> None:
    optional_tools.require(node_driver.is_installed(), "no client library for Node")
    write_example("Node", tmp_path)
    (tmp_path / "node_modules").symlink_to(node_driver.FOLDER / "node_modules")
    ended = programs.run(
        ["npm", "test"],
        cwd=tmp_path,
        PATH=f"{installed / 'bin'}{os.pathsep}{os.environ['PATH']}",
        PYTHONPATH=str(installed),
    )
    assert re.search(r"^# pass 2$", ended.stdout, re.MULTILINE), ended.stdout + ended.stderr
    assert ended.returncode == 0, ended.stderr


def test_the_package_imports_only_what_its_dependencies_provide() -> None:
    found = set()
    for path in (FOLDER / "datastore_emulator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
    roots = {name.partition(".")[0] for name in found} - sys.stdlib_module_names
    assert roots == {"datastore_emulator", "google", "grpc", "pytest", "yaml"}
