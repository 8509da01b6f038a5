#!/usr/bin/env python3
"""Draw docs/operations.md from `comments/domain/moderation/operations.toml`.

Usage: scripts/operations.py          writes docs/operations.md
       scripts/operations.py --check  exits with 1 if docs/operations.md is out of date
"""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from comments.domain.moderation import operation_table  # noqa: E402 - found through the path above
from scripts import drawn_page  # noqa: E402 - same

TARGET = ROOT / "docs" / "operations.md"
HEAD = """# What you can do, and where

`scripts/operations.py` generates this page from `comments/domain/moderation/operations.toml`, so
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
        line for title, rows in operation_table.sections().items() for line in section(title, rows)
    ]
    return "\n".join((HEAD, *lines))


if __name__ == "__main__":
    sys.exit(drawn_page.write_or_check(TARGET, document(), sys.argv[1:]))
