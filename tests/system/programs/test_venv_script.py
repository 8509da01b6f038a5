"""scripts/venv makes a complete environment. Stand-ins for Python record what it would install."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import programs

PYTHON = """#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
case "$*" in
  *version_info*) exit "${TOO_OLD:-0}" ;;
  "-m venv --clear "*) rm -rf .venv/* && mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"pip install"*) exit "${PIP_FAILS:-0}" ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    shutil.copy(programs.ROOT / "scripts" / "venv", tmp_path / "scripts")
    (tmp_path / "requirements.txt").write_text("flask==1\n")
    programs.write(tmp_path / "bin" / "python3", PYTHON)
    return tmp_path


def venv(folder: Path, **settings: Any) -> tuple[subprocess.CompletedProcess[str], Any]:
    log = folder / "log"
    log.write_text("")
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    ended = programs.run(
        [folder / "scripts" / "venv", "requirements.txt"],
        cwd="/",
        **{"PATH": path, "LOG": str(log), **settings},
    )
    return ended, log.read_text()


def test_it_creates_and_fills_an_environment_once(folder: Path) -> None:
    first, did = venv(folder)
    assert first.returncode == 0, first.stderr
    assert "-m venv --clear .venv" in did
    assert "--require-hashes -r requirements.txt" in did
    again, did = venv(folder)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert "install" not in did


def test_it_reinstalls_when_a_pin_changed(folder: Path) -> None:
    venv(folder)
    (folder / "requirements.txt").write_text("flask==2\n")
    _, did = venv(folder)
    assert "--require-hashes" in did
    assert "-m venv" not in did


def test_a_failed_installation_is_repeated(folder: Path) -> None:
    failed, _ = venv(folder, PIP_FAILS="1")
    assert failed.returncode != 0
    _, did = venv(folder)
    assert "--require-hashes" in did


def test_an_environment_without_its_python_is_recreated(folder: Path) -> None:
    venv(folder)
    (folder / ".venv" / "bin" / "python").unlink()
    _, did = venv(folder)
    assert "-m venv --clear .venv" in did


@pytest.mark.parametrize("has_python", [True, False])
def test_the_target_of_a_link_is_neither_cleared_nor_installed_into(
    folder: Path, has_python: bool
) -> None:
    theirs = folder / "theirs"
    programs.write(theirs / "notes", "of another project")
    if has_python:
        programs.write(theirs / "bin" / "python", PYTHON)
    before = sorted(theirs.rglob("*"))
    (folder / ".venv").symlink_to(theirs)
    made, did = venv(folder)
    assert made.returncode == 0, made.stderr
    assert f".venv is a link to {theirs}. A new environment replaces the link" in made.stderr
    assert sorted(theirs.rglob("*")) == before
    assert not (folder / ".venv").is_symlink()
    assert "-m venv --clear .venv" in did
    assert venv(folder)[1].count("install") == 0


def test_a_link_to_a_complete_environment_is_used(folder: Path) -> None:
    venv(folder)
    (folder / ".venv").rename(folder / "theirs")
    (folder / ".venv").symlink_to(folder / "theirs")
    used, did = venv(folder)
    assert (used.returncode, used.stderr) == (0, "")
    assert "venv --clear" not in did
    assert (folder / ".venv").is_symlink()


def test_clearing_a_borrowed_environment_leaves_the_lender_unharmed(folder: Path) -> None:
    lender = folder / "lender"
    programs.write(lender / "bin" / "tool", "theirs")
    (folder / "requirements-dev.txt").write_text("")
    programs.borrow_environment(folder, lender=lender)
    assert (folder / ".venv" / "bin" / "tool").read_text() == "theirs"
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "venv",
        "--clear",
        "--without-pip",
        folder / ".venv",
    ]
    subprocess.run(command, check=True)
    assert (lender / "bin" / "tool").read_text() == "theirs"
    assert [each.name for each in lender.rglob("*")] == ["bin", "tool"]


def test_a_python_that_is_too_old_is_refused_with_a_message(folder: Path) -> None:
    for name in ("python3.11", "python3.12", "python3.13", "python"):
        programs.write(folder / "bin" / name, PYTHON)
    ended, did = venv(folder, TOO_OLD="1")
    assert ended.returncode == 1
    assert "Python 3.11 or newer is required" in ended.stderr
    assert "venv --clear" not in did
