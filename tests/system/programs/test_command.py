"""The command `flatthread` runs its own clone from any folder, in each way of starting it."""

import re
import sys
from pathlib import Path

import pytest

import flatthread
from tests.support import loopback_servers, programs

# Modules of a user's project, whose names are also those of the product's.
TRAPS = ("main.py", "comments.py", "server.py", "flatthread.py")
STARTS = {
    "the clone's command": ["scripts/flatthread"],
    "a link to it": ["link"],
    "the folder": [sys.executable, "flatthread"],
}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with modules that must not be imported."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in TRAPS:
        (folder / name).write_text("raise SystemExit('not ours')")
    return folder


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which scripts/venv has run, and a link to its command."""
    folder = programs.copy_project(tmp_path_factory.mktemp("clone") / "clone with a space")
    programs.borrow_environment(folder)
    assert programs.run([folder / "scripts" / "venv", "requirements.txt"], cwd="/").returncode == 0
    (folder / "link").symlink_to(folder / ".venv" / "bin" / "flatthread")
    (folder / "flatthread" / "__init__.py").write_text('__version__ = "7"')
    return folder


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_clones_command_runs_the_clone_from_any_folder(
    clone: Path, elsewhere: Path, start: list[str]
) -> None:
    command: list[str | Path] = [*start[:-1], clone / start[-1], "--version"]
    ended = programs.run(command, cwd=elsewhere)
    assert (ended.stdout, ended.stderr) == ("flatthread 7\n", "")


def test_it_serves_in_a_folder_with_modules_of_the_same_names(elsewhere: Path) -> None:
    folder = Path(flatthread.__file__).parent
    command: list[str | Path] = [sys.executable, folder, "serve", "--port", "0", "--host", "::1"]
    with programs.running(command, environ=programs.environment(), cwd=elsewhere) as program:
        url = program.wait_for(r"answers at (http://\[::1\]:\d+)/")[1]
        assert programs.fetch(f"{url}/healthz")[0] == 200
        assert program.stop() == 0
    assert {each.name for each in elsewhere.iterdir()} == {*TRAPS, "data"}


def test_a_port_in_use_is_reported_at_once(tmp_path: Path) -> None:
    with loopback_servers.unused_port() as port:
        command = [*programs.FLATTHREAD, "serve", "--port", str(port)]
        data = str(tmp_path / "data")
        ended = programs.run(command, cwd=programs.ROOT, FLATTHREAD_DATA=data)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"Error: Cannot listen on 127.0.0.1:{port}: Address already in use. Choose another with "
        "--host and --port.\n"
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("given", ["70000", "http"])
def test_an_impossible_port_is_refused_by_name(tmp_path: Path, given: str) -> None:
    command = [*programs.FLATTHREAD, "serve"]
    data = str(tmp_path / "data")
    ended = programs.run(command, cwd=programs.ROOT, PORT=given, FLATTHREAD_DATA=data)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.search(f"Error: Invalid value for '--port': '?{given}'? is not ", ended.stderr)
    assert not (tmp_path / "data").exists()
