"""The wheel and the source distribution: what they contain, and that the wheel works on its own.

The wheel is installed without its dependencies into a new environment, which borrows those of the
tests; they include none of this project's modules.
"""

import json
import site
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import flatthread
from tests.support import optional_tools, programs

pytestmark = pytest.mark.slow

VERSION = flatthread.__version__
FILES = (f"flatthread-{VERSION}-py3-none-any.whl", f"flatthread-{VERSION}.tar.gz")


TOOLS = programs.ROOT / ".venv-release"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what scripts/release makes of a clone."""
    hatchling = TOOLS / "bin" / "hatchling"
    optional_tools.require(hatchling.exists(), "scripts/test installs hatchling for this test")
    folder = tmp_path_factory.mktemp("package")
    clone = programs.copy_project(folder / "clone")
    (clone / ".venv-release").symlink_to(TOOLS)
    # Another test builds the documentation, which takes longer than all of this.
    programs.write(clone / "scripts" / "docs", "#!/bin/sh\n")
    made = programs.run([clone / "scripts" / "release", folder / "dist"], cwd=folder)
    assert made.returncode == 0, made.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", built / FILES[0]], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text("\n".join(site.getsitepackages()))
    return folder / "bin" / "flatthread"


def files(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*")}


def test_the_source_distribution_builds_the_same_bytes(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / FILES[1]) as archive:
        archive.extractall(tmp_path, filter="data")
    again: list[str | Path] = [TOOLS / "bin" / "hatchling", "build", "--directory", tmp_path]
    made = programs.run(again, cwd=tmp_path / f"flatthread-{VERSION}")
    assert made.returncode == 0, made.stderr
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (built / name).read_bytes()


def test_the_wheel_has_one_name_and_all_of_the_program(built: Path) -> None:
    with zipfile.ZipFile(built / FILES[0]) as wheel:
        names = set(wheel.namelist())
    about = f"flatthread-{VERSION}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"flatthread", about}
    assert f"{about}/licenses/LICENSE" in names
    whole = {
        name.removeprefix("emulator/")
        for name in programs.tracked()
        if name.startswith(("comments/", "server/", "emulator/datastore_emulator/"))
    }
    assert {f"flatthread/program/{name}" for name in whole} <= names


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home of a user who has nothing, and who finds nothing in it afterwards."""
    (tmp_path / "home").mkdir()
    yield tmp_path / "home"
    assert files(tmp_path / "home") == set()


def test_an_installed_wheel_serves_and_writes_only_its_data(
    installed: Path, home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    before = files(installed.parents[1])
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PROOF_OF_WORK": "0"}

    def run(*words: str) -> str:
        ended = subprocess.run(
            [installed, *words], cwd=folder, env=environ, capture_output=True, text=True, check=True
        )
        return ended.stdout

    assert run("--version") == f"flatthread {VERSION}\n"
    assert "site" in run("--help")
    assert files(folder) == set()
    run("site", "add", "blog", "--origin", "https://blog.example")
    command: list[str | Path] = [installed, "serve", "--port", "0"]
    with programs.running(command, environ=environ, cwd=folder) as program:
        url = program.wait_for(r"answers at (http://\S+)/")[1]
        assert programs.fetch(url)[0] == 200
        thread = f"{url}/api/v1/sites/blog/comments?thread=t"
        status, _ = programs.fetch(
            thread,
            method="POST",
            body=json.dumps({"name": "Ada", "body": "first"}).encode(),
            content_type="application/json",
        )
        assert status == 201
        assert b"first" in programs.fetch(thread)[1]
        assert program.stop() == 0
    assert [each.name for each in folder.iterdir()] == ["data"]
    assert files(installed.parents[1]) == before


def test_the_bill_of_materials_lists_every_pinned_package(built: Path) -> None:
    bill = json.loads((built / "flatthread.cdx.json").read_text())
    lock = (programs.ROOT / "requirements.txt").read_text().splitlines()
    pins = [line.removesuffix(" \\") for line in lock if "==" in line]
    assert [f"{each['name']}=={each['version']}" for each in bill["components"]] == pins
    assert bill["metadata"]["component"]["version"] == VERSION
    needed = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert "pkg:pypi/flask@" in str(needed[f"pkg:pypi/flatthread@{VERSION}"])
    (click,) = (each for each in needed if "/click@" in each)
    (flask,) = (each for each in needed if "/flask@" in each)
    assert click in needed[flask]
