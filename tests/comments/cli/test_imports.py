"""Completion, help texts and refused arguments import neither the store nor a page."""

import re
import subprocess
import sys

import click
import pytest

from comments.cli import command_table
from tests.support import programs

# Run a command line, then list the modules that it loaded on the last line of standard error.
# Packages contain only docstrings.
RUN = """
import gc
import sys
import flatthread.__main__

try:
    flatthread.__main__.main()
finally:
    roots = ("comments", "datastore_emulator", "google", "grpc", "msgspec")
    names = {
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in roots
        and type(module).__name__ != "_LazyModule"
        and not hasattr(module, "__path__")
    }
    sys.stderr.write(f"\\nfrozen {gc.get_freeze_count()}\\n" + " ".join(sorted(names)))
"""
# Show the help of each argument's command in one process.
HELPS = RUN.replace(
    """try:
    flatthread.__main__.main()
""",
    """names = sys.argv[1:]
try:
    for name in names:
        sys.argv[1:] = [name, "--help"]
        try:
            flatthread.__main__.main()
        except SystemExit as end:
            assert end.code == 0, name
""",
)
ROOMS = {"cli", "config", "domain", "errors", "limits", "logs", "setting_values", "sites"}


def run(
    arguments: list[str], program: str = RUN, **environ: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=programs.ROOT,
        env=programs.environment(**environ),
        check=False,
        capture_output=True,
        text=True,
    )


def imported(ended: "subprocess.CompletedProcess[str]") -> set[str]:
    return set(ended.stderr.rpartition("\n")[2].split())


def assert_light(ended: "subprocess.CompletedProcess[str]") -> None:
    names = imported(ended)
    assert "comments.cli.command_table" in names
    assert not [name for name in names if name.startswith(("datastore_emulator", "google", "grpc"))]
    assert {name.split(".")[1] for name in names if name.startswith("comments.")} <= ROOMS


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("--help", 0),
        ("unknown", 2),
        ("site set example --live soon", 2),
        ("site add No! --origin https://example.org", 1),
        ("thread show", 2),
    ],
)
def test_help_and_refusals_import_little(line: str, status: int) -> None:
    ended = run(line.split())
    assert ended.returncode == status
    assert_light(ended)


def test_the_help_of_each_command_imports_little() -> None:
    ended = run([str(each.name) for each in command_table.COMMANDS], program=HELPS)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Usage: ") == len(command_table.COMMANDS)
    assert_light(ended)


def test_a_list_of_commands_imports_none_of_them() -> None:
    assert imported(run(["--help"])) == {
        "comments.cli.command_table",
        "comments.cli.console",
        "comments.errors",
    }


def test_the_end_of_a_command_does_not_collect_what_was_loaded() -> None:
    found = re.search(r"^frozen (\d+)$", run(["--help"]).stderr, re.MULTILINE)
    assert found is not None
    assert int(found[1]) > 20_000


@pytest.mark.parametrize(
    ("words", "found"), [("site ad", ["site add"]), ("si", ["site", "site-key"])]
)
def test_completion_imports_little(words: str, found: list[str]) -> None:
    typed = f"flatthread {words}"
    ended = run(
        [],
        _FLATTHREAD_COMPLETE="bash_complete",
        COMP_WORDS=typed,
        COMP_CWORD=str(len(typed.split()) - 1),
    )
    assert ended.stdout.splitlines() == [f"plain,{each.split()[-1]}" for each in found]
    assert_light(ended)


@pytest.mark.parametrize("command", command_table.COMMANDS, ids=lambda each: str(each.name))
def test_a_listed_command_is_the_one_that_its_module_defines(
    command: command_table.Deferred,
) -> None:
    loaded = command.load()
    assert loaded.name == command.name
    assert loaded.get_short_help_str(200) == command.get_short_help_str(200)


def test_every_command_is_listed_once() -> None:
    names = [each.name for each in command_table.COMMANDS]
    assert len(names) == len(set(names))
    assert all(isinstance(each.load(), click.Command) for each in command_table.COMMANDS)
