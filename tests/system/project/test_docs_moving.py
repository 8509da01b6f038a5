"""The tutorials for moving in work: their commands import a file of each system."""

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import programs
from tests.support.importing import sample_files
from tests.system.project.test_docs import DOCS, clone, commands, run

__all__ = ["clone"]  # A fixture

TUTORIALS = (DOCS / "moving-in.md").read_text()


def section(title: str) -> str:
    """Return the text of a tutorial."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TUTORIALS, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "system", "packs"),
    [("From Isso", "isso", False), ("From remark42", "remark42", True)],
)
def test_the_commands_of_a_tutorial_import_its_file(
    clone: Any, tmp_path: Path, title: str, system: str, packs: bool
) -> None:
    lines = [line for line in commands(section(title)) if "flatthread" in line]
    (file,) = {line.split()[2] for line in lines if " import " in line}
    sample = sample_files.of(system).SANE
    (clone / file).write_bytes(gzip.compress(sample.data) if packs else sample.data)
    added, tried, imported = (run(clone, line, FLATTHREAD_DATA=tmp_path / "data") for line in lines)
    assert (added.returncode, tried.returncode, imported.returncode) == (0, 0, 0), imported.stderr
    assert "nothing was stored" in tried.stdout
    assert f"Added {len(sample.comments)} comments" in imported.stdout
    assert "the store matches the file" in imported.stdout


def test_the_tutorials_quote_the_screens() -> None:
    texts = (programs.ROOT / "comments/domain/languages/en/admin.json").read_text("utf-8")
    for quoted in (
        "Get started",
        "Add website",
        "Import comments",
        "Upload and check",
        "Page mappings",
        "Check again",
    ):
        assert f"*{quoted}*" in TUTORIALS
        assert f'"{quoted}"' in texts
