"""Test commands as users type them: their store, their terminal output, and their links."""

import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import programs

ADD = ("site", "add", "blog", "--origin", "https://blog.example")
INVITE = ("account", "invite", "--owner")


def flatthread(*words: Any, folder: Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    return programs.run(
        [*programs.FLATTHREAD, *words], cwd=programs.ROOT, FLATTHREAD_DATA=str(folder), **settings
    )


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder that contains a store."""
    folder = tmp_path_factory.mktemp("commands") / "data"
    assert flatthread(*ADD, folder=folder).returncode == 0
    return folder


@pytest.mark.parametrize("words", [("site", "list"), ("repair", "--fix"), INVITE])
def test_a_command_without_a_store_fails_and_creates_none(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    folder = tmp_path / "data"
    ended = flatthread(*words, folder=folder)
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert ended.stderr == (
        f"flatthread: There is no store in {folder}. Set FLATTHREAD_DATA to the folder of your "
        "store, or create one with `flatthread serve` or `flatthread site add`.\n"
    )
    assert not folder.exists()


@pytest.mark.parametrize(
    "words", [("Blog", "--origin", "https://blog.example"), ("blog", "--origin", "nonsense")]
)
def test_a_refused_site_creates_no_store(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = tmp_path / "data"
    ended = flatthread("site", "add", *words, folder=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Error: ")
    assert not folder.exists()


def test_help_needs_no_store(tmp_path: Path) -> None:
    for words in (["--help"], ["import", "--help"]):
        ended = flatthread(*words, folder=tmp_path / "data")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "import" in ended.stdout
    assert not list(tmp_path.iterdir())


def test_site_add_creates_a_store_and_later_commands_name_it(stored: Any) -> None:
    ended = flatthread("site", "list", folder=stored)
    assert ended.returncode == 0
    assert "blog\thttps://blog.example\n" in ended.stdout
    assert ended.stderr == f"Using the embedded engine in {stored}.\n"


def test_invalid_settings_end_a_command_with_one_line(stored: Any) -> None:
    ended = flatthread("site", "list", folder=stored, MAX_BODY="none")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr == (
        "flatthread: MAX_BODY must be a whole number from 1024 to 1048576, not 'none'\n"
    )


@pytest.mark.parametrize("watched", ["stdout", "stderr"])
def test_at_a_terminal_a_command_prints_no_json(stored: Any, watched: str) -> None:
    ours, theirs = pty.openpty()
    piped = "stderr" if watched == "stdout" else "stdout"
    try:
        ended = subprocess.run(  # type: ignore[call-overload]
            [*programs.FLATTHREAD, "site", "list"],
            cwd=programs.ROOT,
            env=programs.environment(FLATTHREAD_DATA=str(stored)),
            check=True,
            timeout=programs.PATIENCE,
            **{watched: theirs, piped: subprocess.PIPE},
        )
        shown = os.read(ours, 65_536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    said = shown if watched == "stderr" else ended.stderr.decode()
    assert said.splitlines() == [f"Using the embedded engine in {stored}."]


def test_an_invitation_leads_to_the_server_that_runs_on_the_store(stored: Any) -> None:
    environ = programs.environment(PORT="0", FLATTHREAD_DATA=str(stored))
    with programs.running([*programs.FLATTHREAD, "serve"], environ=environ) as server:
        url = server.wait_for(r"answers at (http://\S+/)")[1]
        shown = flatthread(*INVITE, folder=stored)
        assert re.fullmatch(rf"{url}admin/welcome#[\w-]{{43}}\n", shown.stdout)
        elsewhere = flatthread(*INVITE, folder=stored, PUBLIC_URL="https://comments.example")
        assert elsewhere.stdout.startswith("https://comments.example/admin/welcome#")
        assert server.stop() == 0
    stopped = flatthread(*INVITE, folder=stored)
    assert stopped.stdout.startswith("http://127.0.0.1:8080/admin/welcome#")
    assert "No server is running on this store" in stopped.stderr
    assert "PUBLIC_URL" in stopped.stderr
