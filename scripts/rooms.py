#!/usr/bin/env python3
"""Draw docs/rooms.md: the packages of the project, their imports, and every module.

Everything comes from the code: the imports from its syntax trees, the sentences from its
docstrings.

Usage: scripts/rooms.py          writes docs/rooms.md
       scripts/rooms.py --check  exits with 1 if docs/rooms.md is out of date
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import drawn_page  # noqa: E402 - found through the path above

PACKAGES = ("comments", "datastore_emulator", "server", "flatthread")
TARGET = ROOT / "docs" / "rooms.md"
HEAD = """# Rooms

`scripts/rooms.py` generates this page from the code, so do not edit the page. An arrow means
"imports". An arrow is left out if it follows from other arrows.
[architecture.md](architecture.md) explains each room.
"""


def dotted_name(path: Path) -> str:
    """Return the dotted name of a module's file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(package: str) -> dict[str, Path]:
    """Return the modules of a package by dotted name."""
    return {dotted_name(path): path for path in sorted((ROOT / package).rglob("*.py"))}


def imported_names(path: Path) -> Iterator[str]:
    """Yield every dotted name that a module imports or may import from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room_of(package: str, name: str) -> str:
    """Return the room of a module, or the module itself if it belongs to no room."""
    return name.removeprefix(package).strip(".").split(".")[0]


def arrows(package: str, known: dict[str, Path]) -> dict[str, set[str]]:
    """Return for each room the rooms of the same package that its modules import."""
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        here = room_of(package, name)
        there = {room_of(package, other) for other in imported_names(path) if other in known}
        if here:
            graph.setdefault(here, set()).update(there - {here, ""})
    return graph


def reduce(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the graph without the arrows that follow from others."""

    def reachable_rooms(room: str) -> set[str]:
        return graph[room].union(*(reachable_rooms(target) for target in graph[room]))

    return {
        room: {
            target
            for target in there
            if not any(target in reachable_rooms(o) for o in there - {target})
        }
        for room, there in graph.items()
    }


def sentence(path: Path) -> str:
    """Return the first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def picture(package: str, known: dict[str, Path]) -> Iterator[str]:
    """Draw a package's rooms and their imports as a Mermaid diagram."""
    yield from ("```mermaid", "flowchart TD")
    for room, there in reduce(arrows(package, known)).items():
        yield f"    {room}" if not there else f"    {room} --> {' & '.join(sorted(there))}"
    yield "```"


def listing(package: str, known: dict[str, Path]) -> Iterator[str]:
    """List every module of a package, indented below its room."""
    for name, path in known.items():
        if name != package:
            depth = name.count(".") - 1
            short = name.rpartition(".")[2] + ("/" if path.name == "__init__.py" else "")
            yield f"{'  ' * depth}- `{short}` {sentence(path)}".rstrip()


def document() -> str:
    parts = [HEAD]
    for package in PACKAGES:
        known = modules(package)
        parts.append(f"## {package}/\n")
        parts.append("\n".join((*picture(package, known), "", *listing(package, known))) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(drawn_page.write_or_check(TARGET, document(), sys.argv[1:]))
