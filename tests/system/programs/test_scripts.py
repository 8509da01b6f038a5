"""Scripts can be run, pins are complete, and hooks and pytest work as the scripts need."""

import gc
import re
import stat
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging import requirements, utils

from tests.support import programs


def test_every_script_is_executable() -> None:
    scripts = programs.ROOT / "scripts"
    for path in [*scripts.iterdir(), *(scripts / "hooks").iterdir(), programs.ROOT / ".ci" / "run"]:
        if path.is_file() and path.read_text().startswith("#!"):
            assert path.stat().st_mode & stat.S_IXUSR, path


@pytest.mark.parametrize("version", ["3.11.0", "3.11.3", "3.12.0", "3.13.0"])
def test_the_pins_are_complete_for_every_python(version: str) -> None:
    # The lock file is made with one version of Python. Older versions may need additional packages.
    for name in ("requirements.txt", "requirements-dev.txt"):
        text = (programs.ROOT / name).read_text()
        pinned = {utils.canonicalize_name(n) for n in re.findall(r"(?m)^([\w.-]+)==", text)}
        environment = {"python_full_version": version, "python_version": version[:4], "extra": ""}
        for package in pinned:
            try:
                needed = metadata.requires(package) or []
            except metadata.PackageNotFoundError:
                continue  # This version of Python does not need the package
            for requirement in map(requirements.Requirement, needed):
                if requirement.marker is None or requirement.marker.evaluate(environment):
                    assert utils.canonicalize_name(requirement.name) in pinned, package


@pytest.mark.parametrize(
    ("subject", "status"),
    [
        ("a" * 60, 0),
        ("a" * 61, 1),
        ("fixup! " + "a" * 60, 0),
        ("Short\n\n" + "a" * 70, 0),
    ],
)
def test_a_commit_subject_has_at_most_60_characters(
    tmp_path: Path, subject: str, status: int
) -> None:
    (tmp_path / "message").write_text(subject + "\n")
    hook = programs.ROOT / "scripts" / "hooks" / "commit-msg"
    assert programs.run([hook, tmp_path / "message"], cwd=tmp_path).returncode == status


def test_few_values_is_the_first_value_of_each_test() -> None:
    path = Path(__file__).relative_to(programs.ROOT)
    asked = ["--collect-only", "-q", "--few-values", "-k", "commit_subject"]
    said = programs.run([sys.executable, "-m", "pytest", *asked, path], cwd=programs.ROOT)
    assert said.stdout.count("::test_a_commit_subject_has_at_most_60_characters[") == 1


def test_collected_tests_are_exempt_from_garbage_collection() -> None:
    assert gc.get_freeze_count() > 10_000
