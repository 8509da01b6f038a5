"""Starts until the first answer, memory after a start, and the processor time of commands.

A start is compared with that of a server that only imports the product's libraries
(`floors.imports`), in the column of the Flask floor.
"""

import resource
from collections.abc import Sequence
from pathlib import Path

from benchmarks.serving import gunicorn_process
from benchmarks.writing import checkouts, results

START = "start to the first answer, s"
PSS, RSS = "memory after a start (PSS), MB", "memory after a start (sum of RSS), MB"
COMMANDS = {
    "`--help`, processor s": ("--help",),
    "`site add --help`, processor s": ("site", "add", "--help"),
    "unknown command, processor s": ("nothing",),
    "missing argument, processor s": ("thread", "list"),
    "completion, processor s": (),
}
_TAB = {"_FLASK_COMPLETE": "bash_complete", "COMP_WORDS": "flask --app main si", "COMP_CWORD": "3"}


def measure(
    found: results.Results, trees: Sequence[checkouts.Checkout], folder: Path, *, rounds: int
) -> None:
    """Start everything in turn."""
    bare = folder / "imports"
    bare.mkdir()
    (bare / "0").write_text("{}")
    page = checkouts.path(f"t{checkouts.SMALL}")
    for _ in range(rounds):
        with gunicorn_process.floor(bare, "/0", "imports()") as server:
            _add(found, results.FLASK, server)
        for each in trees:
            with gunicorn_process.product(each.data, page, root=each.root) as server:
                _add(found, each.variant, server)
            for what, words in COMMANDS.items():
                found.add(what, each.variant, _used(each, words))


def _add(found: results.Results, variant: str, server: gunicorn_process.Server) -> None:
    found.add(START, variant, server.started)
    server.settle()
    found.add(PSS, variant, server.memory() / 1e6)
    found.add(RSS, variant, server.resident() / 1e6)


def _used(tree: checkouts.Checkout, words: Sequence[str]) -> float:
    """Return the processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {} if words else _TAB
    gunicorn_process.command(tree.data, *words, root=tree.root, environ=environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
