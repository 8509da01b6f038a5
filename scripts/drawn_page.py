"""Write a page that a script draws from the code, or check that the stored page is up to date."""

import sys
from collections.abc import Sequence
from pathlib import Path


def write_or_check(target: Path, drawn: str, arguments: Sequence[str]) -> int:
    """Write the page; with `--check`, only compare it. Return the exit status."""
    if arguments != ["--check"]:
        target.write_text(drawn, encoding="utf-8")
        return 0
    if target.read_text(encoding="utf-8") == drawn:
        return 0
    print(f"docs/{target.name} is out of date: run {sys.argv[0]}")
    return 1
