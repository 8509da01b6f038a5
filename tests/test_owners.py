"""Claims about ownership: code that would write a comment around its owner does not pass."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

CHECK = ROOT / "scripts" / "check_owners.py"


def _check(*files: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECK, *files], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "line",
    [
        'models.Comment(key=models.comment_key("x"))',
        "row.put()",
        "row.put_async()",
        "ndb.put_multi([row])",
        "ndb.delete_multi([row.key])",
        "models.Comment.get_or_insert('x')",
        "datastore.Writes('tree', put=(row,))",
        "datastore.Writes(tree._OWNER, put=(row,))",
        "datastore.Writes(owner='tree')",
        "from comments.models import Comment",
        "from comments.models.trees import Comment",
        "from google.cloud import datastore",
        "from google.cloud.datastore import Client",
    ],
)
def test_a_module_that_writes_around_the_owner_is_refused(tmp_path: Path, line: str) -> None:
    module = tmp_path / "posting.py"
    module.write_text(f"def body(row, tree, models, datastore, ndb):\n    {line}\n")
    refused = _check(module)
    assert refused.returncode == 1
    assert f"{module}:2:" in refused.stdout


def test_the_owner_itself_and_the_backend_as_it_is_pass(tmp_path: Path) -> None:
    module = tmp_path / "tree.py"
    module.write_text('datastore.Writes("tree", put=(models.Comment(),))\n')
    assert _check(module).returncode == 0
    assert _check().stdout == "owners: ok\n"
    assert _check().returncode == 0


def test_no_test_defines_a_kind_of_the_product() -> None:
    # NDB keeps one class for each kind in a process, and the last one defined wins.
    def defined(path: Path) -> set[str]:
        return set(
            re.findall(r"^ *class (\w+)\((?:ndb\.)?Model\):", path.read_text(), re.MULTILINE)
        )

    kinds = set().union(*map(defined, (ROOT / "comments" / "models").glob("*.py")))
    assert "Comment" in kinds
    tests = (ROOT / "tests").rglob("*.py")
    assert {path.name: taken for path in tests if (taken := defined(path) & kinds)} == {}
