"""The widget's files are sent without comments, and otherwise unchanged."""

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
def test_only_comment_lines_are_removed(source: str, sent: str) -> None:
    assert minify.without_comments(source) == sent


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_of_our_files_only_comment_lines_are_removed(file: Path) -> None:
    lines = file.read_text().splitlines()
    sent = minify.without_comments(file.read_text()).splitlines()
    left = iter(lines)
    assert all(line in left for line in sent)
    gone = list(lines)
    for line in sent:
        gone.remove(line)
    assert all(line.strip().startswith(("/*", "*", "//")) or _is_prose(line, file) for line in gone)
    # No template string spans lines, where its text could look like a comment.
    assert all(line.count("`") % 2 == 0 for line in sent)


def _is_prose(line: str, file: Path) -> bool:
    """Tell whether a line is inside a style sheet's comment, where lines have no mark."""
    return file.suffix == ".css" and "{" not in line and "}" not in line


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.suffix == ".js"], ids=lambda file: file.name
)
def test_the_sent_file_is_a_valid_module(file: Path, tmp_path: Path) -> None:
    node = shutil.which("node") or shutil.which("nodejs")
    optional_tools.require(node, "no node: what is sent is not checked")
    sent = tmp_path / f"{file.stem}.mjs"
    sent.write_text(minify.without_comments(file.read_text()))
    subprocess.run([str(node), "--check", sent], check=True)
