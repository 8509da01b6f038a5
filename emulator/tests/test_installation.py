"""The package in other projects: pip installs the command and the pytest plugin."""

import ast
import sys
from pathlib import Path

import pytest

from tests.support import optional_tools, programs

FOLDER = Path(__file__).parents[1]
PROJECT = """
import pytest
from google.cloud import datastore, ndb

class Note(ndb.Model):
    text = ndb.StringProperty()
    rank = ndb.IntegerProperty()

@pytest.fixture(scope="session")
def datastore_options():
    return {"indexes": "index.yaml"}

@pytest.mark.parametrize("turn", range(3))
def test_every_test_finds_an_empty_store(datastore_ndb_client, datastore_emulator, turn):
    with datastore_ndb_client.context(), datastore_emulator.meter() as cost:
        assert Note.query().fetch() == []
        Note(text="a", rank=turn).put()
        assert [n.rank for n in Note.query(Note.text == "a").order(-Note.rank)] == [turn]
        assert cost.writes == 1

def test_the_other_client(datastore_client):
    assert list(datastore_client.query(kind="Note").fetch()) == []

def test_a_client_that_reads_the_environment(datastore_server):
    client = datastore.Client(project="test")
    client.put(datastore.Entity(client.key("Note", 1)))
    assert len(list(client.query(kind="Note").fetch())) == 1
"""
INDEX = """
indexes:
- kind: Note
  properties:
  - name: text
  - name: rank
    direction: desc
"""


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
def test_a_projects_tests_find_the_fixtures_without_any_configuration(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "index.yaml").write_text(INDEX)
    (tmp_path / "test_notes.py").write_text(PROJECT)
    ended = programs.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=tmp_path,
        PYTHONPATH=str(installed),
    )
    assert "5 passed" in ended.stdout, ended.stdout + ended.stderr


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
