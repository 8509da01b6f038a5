#!/usr/bin/env python3
"""Draw docs/operations.md from `comments/domain/moderation/operation_table.py`.

Usage: scripts/operations.py          writes docs/operations.md
       scripts/operations.py --check  exits with 1 if docs/operations.md is out of date
"""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from comments.domain.moderation import operation_table  # noqa: E402 - found through the path above

TARGET = ROOT / "docs" / "operations.md"
HEAD = """# What you can do, and where

`scripts/operations.py` generates this page from `comments/domain/moderation/operation_table.py`, so
do not edit the page. Pages of the console are written without the beginning of their address, which
is `/admin/` or `/admin/sites/SITE/`. [command-line.md](command-line.md) explains the commands, and
[people.md](people.md) the roles. If an operation has only a command or only a page, the last column
says why.
"""


def pages(operation: operation_table.OperationRow) -> str:
    """Return the addresses of an operation's pages and forms, each once."""
    routes = operation.routes.split(", ") if operation.routes else []
    addresses = dict.fromkeys(route.split(" ")[1].removeprefix("SITE/") for route in routes)
    return ", ".join(f"`{address}`" if address else "the first page" for address in addresses)


def section(title: str, rows: tuple[operation_table.OperationRow, ...]) -> Iterator[str]:
    """Draw the table of a section."""
    yield from (f"## {title}", "", "| operation | who | console | command | |")
    yield "|---|---|---|---|---|"
    for row in rows:
        commands = f"`{row.commands.replace(', ', '`, `')}`" if row.commands else ""
        yield f"| {row.name} | {row.audience} | {pages(row)} | {commands} | {row.reason} |"
    yield ""


def document() -> str:
    lines = [
        line for title, rows in operation_table.SECTIONS.items() for line in section(title, rows)
    ]
    return "\n".join((HEAD, *lines))


def main(arguments: list[str]) -> int:
    """Write the document, or check that it is up to date."""
    drawn = document()
    if arguments == ["--check"]:
        if TARGET.read_text(encoding="utf-8") != drawn:
            print("docs/operations.md is out of date: run scripts/operations.py")
            return 1
        return 0
    TARGET.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
