#!/usr/bin/env python3
"""Refuse folders that nobody can survey; print each and exit with 1 if there is one.

`comments/` has at most 16 rooms, a folder at most 12 modules and folders, and a room at most three
levels. A registry, whose modules are all of one kind, may have more modules.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOPS = {"comments": ".py", "widget/source": ".js"}
ROOMS, ENTRIES, LEVELS = 16, 12, 3
REGISTRIES = {
    "comments/cli/commands": "a module for each noun of the command",
    "comments/store/models": "a module for each group of stored kinds",
    "comments/transfer/formats": "a module for each import format",
    "comments/web/admin/pages": "a module for each page of the console",
}


def entries(folder: Path, suffix: str) -> list[Path]:
    """Return a folder's modules, and its folders with modules."""
    return [
        path
        for path in folder.iterdir()
        if path.stem != "__init__" and (path.suffix == suffix or any(path.rglob(f"*{suffix}")))
    ]


def faults(top: Path, suffix: str) -> Iterator[str]:
    """Yield what is wrong with the folders of a package."""
    for folder in sorted({top, *(path.parent for path in top.rglob(f"*{suffix}"))}):
        name, inside = folder.relative_to(ROOT), entries(folder, suffix)
        most = ENTRIES
        if folder == top:
            inside, most = [path for path in inside if path.is_dir()], ROOMS
        if len(inside) > most and str(name) not in REGISTRIES:
            yield f"{name} has {len(inside)} entries; the most is {most}"
        if len(folder.relative_to(top).parts) > LEVELS:
            yield f"{name} is too deep; a room has at most {LEVELS} levels"


def main() -> int:
    """Print the faults of all packages."""
    wrong = [fault for top, suffix in TOPS.items() for fault in faults(ROOT / top, suffix)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
