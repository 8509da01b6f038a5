#!/usr/bin/env python3
"""Refuse names that do not say whether a function acts, returns a value or answers a question.

CONTRIBUTING.md explains the rule under "Names".

Usage: scripts/names.py         prints each offence with its place; exits with 1 if there is one
       scripts/names.py --list  prints "full name<TAB>kind" for each offence
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeGuard

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    "comments",
    "server",
    "flatthread",
    "emulator/datastore_emulator",
    "scripts",
)


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# Words that end like a participle or a gerund and are something else.
WORDS = words(
    """
    anything bed coding during embed encoding everything exceed feed heading listing mapping
    meaning need nothing opening paging posting proceed red ruling seed setting something speed
    spelling standing string thing warning
    """
)
# Irregular participles, without those that are also imperatives, such as `put` and `read`.
IRREGULAR = words(
    """
    beaten become been begun bent bound bought broken brought built caught chosen done drawn driven
    eaten fallen fed fought forbidden forgiven forgotten found frozen given gone grown heard held
    hidden hung kept known lain learnt led left lent lost made meant met overtaken paid risen said
    seen sent shaken shot shown slept sold sought spent spoken stolen stood stuck sung sunk sworn
    swept taken taught thought thrown told torn understood undone unmet unseen unsent unwritten
    withdrawn woken won worn written
    """
)
# What follows a participle without a noun: `left_behind`, `carried_over`.
PARTICLES = words(
    """
    again ago anew aside at away back behind below by down for from in into off on out over there
    to together up with within without
    """
)
QUESTIONS = frozenset(("is", "are", "was", "were", "has", "have", "may", "can", "could", "would"))
# Verbs that act and return whether the act had an effect.
ACTS = words(
    """
    adapt add admit advance apply begin cancel carry catch check checkpoint claim compact count do
    drop empty expire finish leave make mark mend remove renew request restrict retract set
    settle skip sleep step stop store switch take try wait
    """
)
# Names that a library calls, and names with a meaning of their own.
ALLOWED = {
    "body": "what a transaction runs",
    "cancelled": "a method of futures",
    "closed": "a property of files",
    "divide": "a method of importlib's and Flask's classes",
    "done": "a method of futures",
    "eof_received": "a method of asyncio's protocols",
    "ignore_amp": "the stored name of a site's option",
    "ignore_www": "the stored name of a site's option",
    "keep_trailing_slash": "the stored name of a site's option",
    "readable": "a method of files",
    "running": "a method of futures",
}
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Offence(NamedTuple):
    """A name that breaks the rule."""

    path: Path
    line: int
    name: str
    kind: str


def is_participle(word: str) -> bool:
    """Return whether a word is a past participle and cannot be an imperative."""
    return word in IRREGULAR or (word.endswith("ed") and word not in WORDS)


def is_gerund(word: str) -> bool:
    """Return whether a word is a verb with -ing."""
    return word.endswith("ing") and word not in WORDS


def is_riddle(parts: list[str]) -> bool:
    """Return whether a participle stands alone or before a particle: `counted`, `left_behind`."""
    first, *others = parts
    if not others:
        return is_participle(first)
    return len(others) == 1 and others[0] in PARTICLES and is_participle(first)


def returns_writes(function: Function) -> bool:
    """Return whether a function returns writes for its caller's transaction."""
    nodes = ast.walk(function.returns) if function.returns else ()
    return any(
        (isinstance(node, ast.Attribute) and node.attr == "Writes")
        or (isinstance(node, ast.Name) and node.id == "Writes")
        for node in nodes
    )


def is_question(first: str) -> bool:
    """Return whether a verb asks (`is`, `matches`) or tells whether an act had an effect."""
    asks = first.endswith("s") and not first.endswith("ss")
    return first in QUESTIONS or first in ACTS or asks


def is_context_manager(function: Function) -> bool:
    """Return whether a gerund may name a function: `with running():`."""
    return any("contextmanager" in ast.unparse(node) for node in function.decorator_list)


def is_empty_local(node: ast.AST) -> TypeGuard[ast.Name]:
    """Return whether a node binds a variable whose name does not say what it holds."""
    return (
        isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and node.id in {"found", "each"}
    )


def faults(function: Function) -> Iterator[str]:
    """Yield the kinds of a function's offences."""
    name = function.name.strip("_")
    if function.name.startswith("__") or name in ALLOWED or not name:
        return
    parts = name.split("_")
    if is_riddle(parts):
        yield "participle"
    if len(parts) == 1 and is_gerund(name) and not is_context_manager(function):
        yield "gerund"
    if returns_writes(function) and parts[-1] != "writes":
        yield "writes"
    is_bool = isinstance(function.returns, ast.Name) and function.returns.id == "bool"
    if is_bool and not is_question(parts[0]):
        yield "bool"


def offences(path: Path, node: ast.AST, prefix: str) -> Iterator[Offence]:
    """Yield the offences in a module, a class or a function."""
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{prefix}.{child.name}"
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for kind in faults(child):
                yield Offence(path, child.lineno, inner, kind)
        # A field has a stored name.
        if not isinstance(node, ast.AnnAssign) and is_empty_local(child):
            yield Offence(path, child.lineno, f"{prefix}.{child.id}", "local")
        yield from offences(path, child, inner)


def dotted_name(path: Path) -> str:
    """Return the dotted name of a module's file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "emulator" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main(arguments: list[str]) -> int:
    """Print the offences."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    wrong = [
        offence
        for path in paths
        for offence in offences(
            path, ast.parse(path.read_text(encoding="utf-8")), dotted_name(path)
        )
    ]
    for path, line, name, kind in wrong:
        place = f"{path.relative_to(ROOT)}:{line}: {name}: {kind}"
        print(f"{name}\t{kind}" if arguments == ["--list"] else place)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
