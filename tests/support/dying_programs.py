"""Run a step of the service in a process that dies at the point of its fault plan."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from comments.store import connection
from datastore_emulator import faults, inprocess
from tests.support import forked_programs, programs

INDEXES = programs.ROOT / "index.yaml"


def run(
    path: Path, rules: list[dict[str, Any]], step: Callable[..., object], *arguments: Any
) -> tuple[int, str]:
    """Run a step inside the context of a store in a file.

    Return the exit status and, from a process that survives, the number of its commits.
    """
    return forked_programs.run(_stepped, path, rules, step, arguments)


def _stepped(
    path: Path, rules: list[dict[str, Any]], step: Callable[..., object], arguments: Any
) -> None:
    commits = 0

    def counted(method: str, _request: Any, proceed: Callable[[], Any]) -> Any:
        nonlocal commits
        commits += method == "Commit"
        return proceed()

    with inprocess.open_engine(path, indexes=INDEXES) as engine:
        engine.install_faults(faults.Plan.parse({"rules": rules}))
        store = connection.Store(inprocess.Channel(engine, counted), project="test")
        with store.context():
            step(*arguments)
    print(commits)  # noqa: T201 - the tests read it
