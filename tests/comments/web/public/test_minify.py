"""Claims about the widget's files as they are sent: comments go, and nothing else."""

import shutil
import subprocess
from pathlib import Path

import pytest

from comments.web.public import minify
from tests.support import optional_tools

STATIC = Path(minify.__file__).parents[1] / "static"
FILES = sorted(file for file in STATIC.glob("*/*") if file.suffix in {".js", ".css"})


@pytest.mark.parametrize(
    ("source", "sent"),
    [
        ("/** a\n * b\n */\nlet a;\n", "let a;\n"),
        ("  // why\n  let a; // what\n", "  let a; // what\n"),
        ("/* one */ let a;\nlet b;\n/* two */\n", "/* one */ let a;\nlet b;\n"),
        ("let a = 1; /* one\n two */\n", "let a = 1; /* one\n two */\n"),
        ("/* one */\n/* two */\nlet a;\n", "let a;\n"),
        ("let a = b\n  / c;\n", "let a = b\n  / c;\n"),
        ("", ""),
    ],
)
def test_only_lines_of_comments_go(source: str, sent: str) -> None:
    assert minify.without_comments(source) == sent


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_of_our_files_only_lines_of_comments_go(file: Path) -> None:
    lines = file.read_text().splitlines()
    sent = minify.without_comments(file.read_text()).splitlines()
    left = iter(lines)
    assert all(line in left for line in sent)
    gone = list(lines)
    for line in sent:
        gone.remove(line)
    assert all(line.strip().startswith(("/*", "*", "//")) or _is_prose(line, file) for line in gone)
    # No string goes on in another line, where it could look like a comment.
    assert all(line.count("`") % 2 == 0 for line in sent)


def _is_prose(line: str, file: Path) -> bool:
    """Whether a line is one within a style sheet's comment, whose lines bear no mark."""
    return file.suffix == ".css" and "{" not in line and "}" not in line


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.suffix == ".js"], ids=lambda file: file.name
)
def test_what_is_sent_is_a_module(file: Path, tmp_path: Path) -> None:
    node = shutil.which("node") or shutil.which("nodejs")
    optional_tools.require(node, "no node: what is sent is not checked")
    sent = tmp_path / f"{file.stem}.mjs"
    sent.write_text(minify.without_comments(file.read_text()))
    subprocess.run([str(node), "--check", sent], check=True)
