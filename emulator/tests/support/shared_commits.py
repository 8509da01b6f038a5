"""Commits that deliberately share one COMMIT.

Owns a connection that reports the beginning and end of each write transaction and lets a test
intervene immediately before the COMMIT, and a commit that keeps the writer's turn so that other
commits wait.
"""

import functools
import sqlite3
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

from datastore_emulator import inprocess
from datastore_emulator.encoding import keys
from emulator.tests.support import service_calls
from tests.support import programs

_TOLD = ("BEGIN IMMEDIATE", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK")


class Watch:
    """Records transaction statements of this process's connections, except those of snapshots."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.at_commit: Callable[[], object] = lambda: None
        watch = self

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
                if statement.startswith(_TOLD):
                    watch.statements.append(statement)
                if statement == "COMMIT":
                    watch.at_commit()
                return super().execute(statement, *arguments)

        self.connect = functools.partial(sqlite3.connect, factory=Connection)

    @property
    def commits(self) -> int:
        """Return the number of transactions that have been committed or are about to be."""
        return self.statements.count("COMMIT")


def fault(code: int = sqlite3.SQLITE_FULL) -> sqlite3.Error:
    """Return an error like the ones that the sqlite3 module raises."""
    made = sqlite3.OperationalError("injected by the test")
    made.sqlite_errorcode = code
    return made


class Held:
    """A commit that puts entities and keeps the writer's turn until the test releases it."""

    def __init__(
        self,
        engine: inprocess.Engine,
        threads: futures.Executor,
        *entities: Any,
        fails: bool = False,
    ) -> None:
        self._engine = engine
        self._entities = entities
        self._fails = fails
        self._entered = threading.Event()
        self._go = threading.Event()
        self.done = threads.submit(self._run)
        assert self._entered.wait(programs.PATIENCE)

    def _run(self) -> None:
        with self._engine.storage.write(may_share=True) as writer:
            for entity in self._entities:
                partition = keys.Partition("test")
                path = keys.encode_path(entity.key)
                writer.put(partition, path, entity, writer.entity(partition.encoded + path))
            self._entered.set()
            assert self._go.wait(programs.PATIENCE)
            if self._fails:
                raise KeyError("injected by the test")

    def release(self, waiting: int) -> None:
        """Release the turn as soon as a number of other commits wait for it."""
        turn = turn_of(self._engine)
        programs.wait_until(lambda: turn._awaited == waiting, f"{waiting} wait for the turn")
        self._go.set()


def turn_of(engine: inprocess.Engine) -> Any:
    """Return the writer's turn of an engine."""
    return engine.storage._connections.turn


def put_in_group(
    engine: inprocess.Engine,
    service: service_calls.Service,
    threads: futures.ThreadPoolExecutor,
    *names: str,
) -> tuple[Held, list[futures.Future[Any]]]:
    """Put entities in one group; return the commit that holds the turn, and the other commits."""
    held = Held(engine, threads, service.entity(service.key("T", "held"), a=0))
    puts = [threads.submit(service.put, service.key("T", name), a=1) for name in names]
    held.release(len(names))
    return held, puts
