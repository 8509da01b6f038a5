"""Run the importer of Isso, which `scripts/test` installs (tests/isso)."""

import sqlite3
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support import optional_tools, programs

_PACKAGES = programs.ROOT / "tests" / "isso" / ".packages"
_ROWS = """
    SELECT threads.uri, threads.title, comments.author, comments.text, parents.text, comments.mode
    FROM comments JOIN threads ON threads.id = comments.tid
    LEFT JOIN comments AS parents ON parents.id = comments.parent
    ORDER BY comments.id
"""


class Row(NamedTuple):
    """A comment in Isso's database. `parent` is a text, and mode 1 is approved, 2 pending."""

    page: str
    title: str
    author: str | None
    text: str
    parent: str | None
    mode: int


def imported(file: Path, folder: Path) -> tuple[str, list[Row]]:
    """Import a WXR file into a new database in a folder; return what Isso printed and stored."""
    optional_tools.require(
        _PACKAGES.is_dir(), "no Isso: scripts/test without arguments installs it"
    )
    database, config = folder / "isso.db", folder / "isso.cfg"
    config.write_text(f"[general]\ndbpath = {database}\nhost = https://garden.example\n")
    program = [sys.executable, "-c", "import isso; isso.main()"]
    options: list[str | Path] = ["-c", config, "import", "--type", "wordpress", file]
    ended = programs.run([*program, *options], cwd=folder, PYTHONPATH=str(_PACKAGES))
    assert ended.returncode == 0, ended.stderr
    connection = sqlite3.connect(database)
    with connection:
        rows = [Row(*each) for each in connection.execute(_ROWS)]
    connection.close()
    return ended.stdout + ended.stderr, rows
